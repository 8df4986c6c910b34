//! References to blobs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Reference to a blob: a value that is too large for the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// Hash of the bytes, which addresses the blob.
    pub digest: Arc<str>,
    /// Size of the value in bytes.
    pub bytes: u64,
    /// Media type of the bytes.
    pub media_type: Arc<str>,
}
