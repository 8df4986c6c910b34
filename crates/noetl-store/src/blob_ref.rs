//! References to blobs, and errors of storing and reading them.

use crate::{Digest, StoreError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRef {
    pub digest: Digest,
    /// Size of the blob in bytes.
    pub bytes: u64,
    /// Media type. It belongs to the reference: the same blob may be referred to with several
    /// types.
    pub media_type: String,
}

impl BlobRef {
    /// Returns the reference of these bytes.
    pub fn from_bytes(bytes: &[u8], media_type: &str) -> Self {
        let length = u64::try_from(bytes.len()).expect("a length in memory fits into 64 bits");
        Self { digest: Digest::of_bytes(bytes), bytes: length, media_type: media_type.to_owned() }
    }

    /// Checks that these bytes match the reference. Every blob store checks a blob before it
    /// returns it.
    pub fn check(&self, found: &[u8]) -> Result<(), BlobError> {
        let is = Self::from_bytes(found, &self.media_type);
        let reason = match (is.bytes == self.bytes, is.digest == self.digest) {
            (true, true) => return Ok(()),
            (false, _) => format!("{} bytes instead of {}", is.bytes, self.bytes),
            (true, false) => format!("the digest of what is stored is {}", is.digest),
        };
        Err(BlobError::Corrupt { digest: self.digest, reason })
    }
}

/// Errors of a blob store.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The blob does not exist.
    #[error("content {digest} is missing")]
    Missing {
        /// Digest of the requested blob.
        digest: Digest,
    },
    /// The stored bytes do not match the reference.
    #[error("content {digest} is damaged: {reason}")]
    Corrupt {
        /// Digest of the requested blob.
        digest: Digest,
        /// Difference between the stored bytes and the reference.
        reason: String,
    },
    #[error("blob store is unavailable")]
    Place(#[from] StoreError),
}
