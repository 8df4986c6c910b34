//! Large results on their way from workers elsewhere and to them, by digest.
//!
//! What comes in goes to a file first, which has no name and so goes with the process: a slow worker
//! keeps no transaction open, and the size of a result does not show in the memory of this process.
//! What goes out is read piece by piece. Content belongs to nobody before a log refers to it; whoever
//! names a SHA-256 has had what it is of, or was told of it by a log that is theirs.

use std::sync::Arc;

use noetl_store::{BlobError, BlobRef, Blobs, Digest, Spooled, StoreError};
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// The most bytes of one result.
pub const CONTENT_MAX: u64 = 512 << 20;

/// Bytes read at a time. A place that keeps content compressed reads all before a part with it, so many
/// small ones cost; those of a mebibyte and more are memory that stays with the process for a while.
const PART: usize = 400 << 10;

/// What all of it is.
const JSON: &str = "application/json";

/// Why content was not kept, or not read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// What it is called by is no digest.
    #[error("content is named by its SHA-256 in lower-case hexadecimal digits, not by '{0}'")]
    Name(String),
    /// It is something else than was said.
    #[error("the SHA-256 of what came is {found}, not {wanted}")]
    Other { wanted: Digest, found: Digest },
    /// There is more of it than is kept.
    #[error(
        "a result of more than {CONTENT_MAX} bytes is not kept; write it to a file or a bucket"
    )]
    TooLarge,
    /// It is not there.
    #[error("there is no content {0}")]
    Missing(Digest),
    /// The file it goes to could not be written.
    #[error("content could not be put aside")]
    Spool(#[source] std::io::Error),
    /// Its place did not answer, or has something else under its name.
    #[error("the place of content did not answer")]
    Place(#[source] BlobError),
}

/// Content by digest. Cheap to clone.
#[derive(Clone)]
pub struct Content {
    blobs: Arc<dyn Blobs>,
}

impl Content {
    pub(crate) fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs }
    }

    /// Begins to take content that is said to have this digest.
    pub async fn begin(&self, digest: &str) -> Result<Upload, ContentError> {
        let wanted = named(digest)?;
        let file = tokio::task::spawn_blocking(tempfile::tempfile).await;
        let file = file.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let file = File::from_std(file.map_err(ContentError::Spool)?);
        Ok(Upload { blobs: self.blobs.clone(), wanted, file, digest: Sha256::new(), bytes: 0 })
    }

    /// A part of content: from a place in it on; empty behind its end.
    pub async fn part(&self, digest: &str, bytes: u64, from: u64) -> Result<Vec<u8>, ContentError> {
        let digest = named(digest)?;
        let blob = BlobRef { digest, bytes, media_type: JSON.to_owned() };
        self.blobs.blob_part(&blob, from, PART).await.map_err(|error| match error {
            BlobError::Missing { digest } => ContentError::Missing(digest),
            other => ContentError::Place(other),
        })
    }
}

/// Content that is coming in.
pub struct Upload {
    blobs: Arc<dyn Blobs>,
    wanted: Digest,
    file: File,
    digest: Sha256,
    bytes: u64,
}

impl Upload {
    /// Takes the next piece.
    pub async fn add(&mut self, piece: &[u8]) -> Result<(), ContentError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if self.bytes > CONTENT_MAX {
            return Err(ContentError::TooLarge);
        }
        self.digest.update(piece);
        self.file.write_all(piece).await.map_err(ContentError::Spool)
    }

    /// Keeps it, if it is what was said. The digest, and how many bytes it has.
    pub async fn finish(mut self) -> Result<(Digest, u64), ContentError> {
        self.file.flush().await.map_err(ContentError::Spool)?;
        let found = Digest::from_bytes(self.digest.finalize().into());
        if found != self.wanted {
            return Err(ContentError::Other { wanted: self.wanted, found });
        }
        let blob = BlobRef { digest: found, bytes: self.bytes, media_type: JSON.to_owned() };
        let content = Arc::new(Spooled::new(blob, self.file.into_std().await));
        let kept = self.blobs.put_spooled(content).await.map_err(ContentError::Place)?;
        Ok((kept.digest, kept.bytes))
    }
}

impl From<StoreError> for ContentError {
    fn from(error: StoreError) -> Self {
        Self::Place(error.into())
    }
}

fn named(text: &str) -> Result<Digest, ContentError> {
    text.parse().map_err(|_| ContentError::Name(text.chars().take(80).collect()))
}
