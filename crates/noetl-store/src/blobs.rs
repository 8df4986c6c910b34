//! Blobs: content-addressed bytes, and the executions that refer to them.
//!
//! A writer stores a value that is too large for an event here first; the event carries a
//! [`BlobRef`], and the execution's append names the digest, so that the reference is as durable as
//! the event. The deployment selects the blob store (database, directory, or bucket); the
//! references are always in the database. [`crate::collect_garbage`] removes unreferenced blobs some time
//! after they were last put.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Timestamp};

use crate::blob_ref::{BlobError, BlobRef};
use crate::{Digest, SpooledFile, StoreError};

/// Entry of a blob listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlob {
    pub digest: Digest,
    pub bytes: u64,
    /// Time the blob was last put or touched.
    pub written_at: Timestamp,
}

/// A page of a blob listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobPage {
    /// Current time of the clock that wrote the times in the listing.
    pub now: Timestamp,
    /// Blobs in order of their digests.
    pub blobs: Vec<StoredBlob>,
}

/// Storage of blobs. Each call is atomic, and its effect is durable when it returns.
///
/// A writer must put or touch a blob before it refers to it, and must commit the reference within
/// the grace period of [`crate::collect_garbage`].
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores a blob and returns its reference. Storing the same bytes twice keeps one copy,
    /// repairs a damaged one, and advances its time of writing.
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError>;

    /// Advances a blob's time of writing without its bytes. Returns `true` if the blob exists.
    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError>;

    /// Like [`Blobs::put_blob`], but reads the bytes from a file. A store that supports it copies
    /// the file piece by piece, so that memory use does not depend on the size.
    async fn put_spooled(&self, content: Arc<SpooledFile>) -> Result<BlobRef, BlobError> {
        let media_type = content.blob().media_type.clone();
        self.put_blob(content.read_all().await?, &media_type).await
    }

    /// Returns at most `most` bytes of a blob from offset `from`; empty past its end. Checks the
    /// size of the blob but not its digest, which the caller that assembles the parts must compare.
    /// A store that supports it reads only the requested range.
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

    /// Returns a blob after checking it against the size and digest of its reference.
    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError>;

    /// Removes a blob that was last written at `seen`. Returns `true` if it did. A blob written
    /// since then stays, and so does a referenced one if the store knows its references.
    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError>;

    /// Returns blobs with a digest above `after`, in order of their digests.
    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError>;
}

/// References from executions to blobs. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait BlobRefs: Send + Sync {
    /// Returns the blobs that an execution refers to, in order of their digests.
    async fn references(&self, execution: ExecutionId) -> Result<Vec<Digest>, StoreError>;

    /// Returns the digests in `among` that no execution refers to, in the same order.
    async fn unreferenced(&self, among: &[Digest]) -> Result<Vec<Digest>, StoreError>;

    /// Removes the references of an execution that is purged and returns their number.
    async fn drop_references(&self, execution: ExecutionId) -> Result<usize, StoreError>;
}
