//! Content by digest, and which execution refers to it.
//!
//! A value that is too large for an event is put here first; the event carries a [`BlobRef`] and
//! the execution's append names the digest, so that the reference is as durable as the event.
//! Where the content is (the database, a directory, a bucket) is the program's choice; the
//! references are always in the database. What nothing refers to is removed by
//! [`crate::collect`], some time after it was last put.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Timestamp};

use crate::{Digest, Spooled, StoreError};

/// Names content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRef {
    pub digest: Digest,
    /// How many bytes it has.
    pub bytes: u64,
    /// What they are. It belongs to the reference: the same content may be referred to as several.
    pub media_type: String,
}

impl BlobRef {
    /// Names these bytes.
    pub fn to(bytes: &[u8], media_type: &str) -> Self {
        let length = u64::try_from(bytes.len()).expect("a length in memory fits into 64 bits");
        Self { digest: Digest::of(bytes), bytes: length, media_type: media_type.to_owned() }
    }

    /// Whether these are the bytes it names. Every place asks before it hands them out.
    pub fn check(&self, found: &[u8]) -> Result<(), BlobError> {
        let is = Self::to(found, &self.media_type);
        let reason = match (is.bytes == self.bytes, is.digest == self.digest) {
            (true, true) => return Ok(()),
            (false, _) => format!("{} bytes instead of {}", is.bytes, self.bytes),
            (true, false) => format!("the digest of what is stored is {}", is.digest),
        };
        Err(BlobError::Corrupt { digest: self.digest, reason })
    }
}

/// Content as a list shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlob {
    pub digest: Digest,
    /// How many bytes are stored.
    pub bytes: u64,
    /// When it was last put or touched.
    pub written_at: Timestamp,
}

/// A stretch of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobPage {
    /// What it is by the clock that wrote the times of the list.
    pub now: Timestamp,
    /// Content in the order of digests.
    pub blobs: Vec<StoredBlob>,
}

/// Content that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// It is not there.
    #[error("content {digest} is missing")]
    Missing {
        /// What was asked for.
        digest: Digest,
    },
    /// What is there is something else.
    #[error("content {digest} is damaged: {reason}")]
    Corrupt {
        /// What was asked for.
        digest: Digest,
        /// How it was noticed.
        reason: String,
    },
    /// The place could not answer.
    #[error("the place of content could not answer")]
    Place(#[from] StoreError),
}

/// A place for content. Each call is atomic, and what it answered for is durable.
///
/// Whoever is about to refer to content puts it, or touches it, first, and commits the reference
/// within the grace that [`crate::collect`] is run with.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps content and says how to refer to it. The same content twice is one copy, made whole
    /// again if it was damaged, with a time of writing that is later than before.
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError>;

    /// Makes the time of writing later without the bytes at hand. Whether the content is there.
    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError>;

    /// The same as [`Blobs::put_blob`] with content that is in a file. A place that can takes it
    /// piece by piece, so that its size does not show in the memory of this process.
    async fn put_spooled(&self, content: Arc<Spooled>) -> Result<BlobRef, BlobError> {
        let media_type = content.blob().media_type.clone();
        self.put_blob(content.read_all().await?, &media_type).await
    }

    /// A part of the content: from a place in it on, at most so many bytes, none behind its end.
    /// Whether there is as much as the reference says is looked at, the digest is not: whoever puts
    /// the parts together compares it. A place that can reads no more than the part.
    async fn blob_part(
        &self,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Vec<u8>, BlobError> {
        let mut bytes = self.blob(blob).await?;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
        let mut part = bytes.split_off(from);
        part.truncate(most);
        Ok(part)
    }

    /// The content, compared with length and digest of its reference.
    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError>;

    /// Removes content that was last written at `seen`. Whether it did: content that was written
    /// since stays, and so does, where the place knows them, content that is referred to.
    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError>;

    /// Content with a digest above `after`, in the order of digests.
    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError>;
}

/// Which execution refers to which content. [`crate::EventLog::commit`] writes the references.
#[async_trait]
pub trait BlobRefs: Send + Sync {
    /// What an execution refers to, in the order of digests.
    async fn references(&self, execution: ExecutionId) -> Result<Vec<Digest>, StoreError>;

    /// Those of `among` that no execution refers to, in their order.
    async fn unreferenced(&self, among: &[Digest]) -> Result<Vec<Digest>, StoreError>;

    /// Drops the references of an execution that is purged, and says how many there were.
    async fn drop_references(&self, execution: ExecutionId) -> Result<usize, StoreError>;
}
