//! Uploads and downloads of large results by remote workers, addressed by digest.
//!
//! An upload is spooled to an unnamed temporary file, which disappears with the process. A slow
//! worker thus keeps no transaction open, and result size does not affect the memory of this
//! process. Downloads are read in parts. A blob belongs to no tenant until an event log refers to
//! it. A caller that presents a SHA-256 either had the content or read the digest in its own event
//! log.

use std::sync::Arc;

use noetl_store::{BlobError, BlobRef, Blobs, Digest, SpooledFile, StoreError};
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// Size limit of one result, in bytes (512 MiB).
pub const CONTENT_MAX: u64 = 512 << 20;

/// Bytes per read of a download (400 KiB). A blob store that compresses reads everything before a
/// part, so many small parts are slow. Buffers of 1 MiB and more stay allocated to the process for
/// a while.
const PART: usize = 400 << 10;

/// Media type of all content.
const JSON: &str = "application/json";

/// Errors of uploads and downloads.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The name is not a digest.
    #[error("'{0}' is not a SHA-256 digest in lower-case hexadecimal digits")]
    Name(String),
    /// The content does not match its digest.
    #[error("the SHA-256 of what came is {found}, not {wanted}")]
    Other { wanted: Digest, found: Digest },
    /// The content exceeds [`CONTENT_MAX`].
    #[error("results are limited to {CONTENT_MAX} bytes; write larger ones to a file or a bucket")]
    TooLarge,
    /// No blob has this digest.
    #[error("blob {0} not found")]
    Missing(Digest),
    /// Writing the temporary file failed.
    #[error("failed to write the content to a temporary file")]
    Spool(#[source] std::io::Error),
    /// The blob store is unavailable, or stores different content under the name.
    #[error("blob store is unavailable")]
    Place(#[source] BlobError),
}

/// Content addressed by digest. Cheap to clone.
#[derive(Clone)]
pub struct Content {
    blobs: Arc<dyn Blobs>,
}

impl Content {
    pub(crate) fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs }
    }

    /// Starts an upload of content with this digest.
    pub async fn begin(&self, digest: &str) -> Result<Upload, ContentError> {
        let wanted = named(digest)?;
        let file = tokio::task::spawn_blocking(tempfile::tempfile).await;
        let file = file.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let file = File::from_std(file.map_err(ContentError::Spool)?);
        Ok(Upload { blobs: self.blobs.clone(), wanted, file, digest: Sha256::new(), bytes: 0 })
    }

    /// Returns a part of a blob that starts at byte offset `from`. Empty past the end.
    pub async fn part(&self, digest: &str, bytes: u64, from: u64) -> Result<Vec<u8>, ContentError> {
        let digest = named(digest)?;
        let blob = BlobRef { digest, bytes, media_type: JSON.to_owned() };
        self.blobs.blob_part(&blob, from, PART).await.map_err(|error| match error {
            BlobError::Missing { digest } => ContentError::Missing(digest),
            other => ContentError::Place(other),
        })
    }
}

/// Upload of one blob, spooled to a temporary file.
pub struct Upload {
    blobs: Arc<dyn Blobs>,
    wanted: Digest,
    file: File,
    digest: Sha256,
    bytes: u64,
}

impl Upload {
    /// Appends a piece of the content.
    pub async fn add(&mut self, piece: &[u8]) -> Result<(), ContentError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if self.bytes > CONTENT_MAX {
            return Err(ContentError::TooLarge);
        }
        self.digest.update(piece);
        self.file.write_all(piece).await.map_err(ContentError::Spool)
    }

    /// Verifies the digest and stores the blob. Returns the digest and the size in bytes.
    pub async fn finish(mut self) -> Result<(Digest, u64), ContentError> {
        self.file.flush().await.map_err(ContentError::Spool)?;
        let found = Digest::from_bytes(self.digest.finalize().into());
        if found != self.wanted {
            return Err(ContentError::Other { wanted: self.wanted, found });
        }
        let blob = BlobRef { digest: found, bytes: self.bytes, media_type: JSON.to_owned() };
        let content = Arc::new(SpooledFile::new(blob, self.file.into_std().await));
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
