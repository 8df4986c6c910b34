//! Stores results that are too large for the event log as blobs, and refers to them.

use std::sync::Arc;

use noetl_model::Value;
use noetl_model::event::BlobRef as Reference;
use noetl_store::{BlobError, BlobRef, Blobs, Digest};
use noetl_work::{INLINE_MAX, is_small, small_fields};

const JSON: &str = "application/json";

/// Store of large results. Cheap to clone.
#[derive(Clone)]
pub struct ResultStorage {
    blobs: Arc<dyn Blobs>,
}

/// Error of reading a large result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    #[error("the value reference is not a blob of this control plane")]
    Reference,
    #[error(transparent)]
    Blob(BlobError),
}

impl ResultError {
    /// Returns `true` if a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Blob(BlobError::Place(_)))
    }
}

impl ResultStorage {
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs }
    }

    /// Stores a large result as a blob. Then `data` has only its small fields left, and the
    /// reference is returned; a small result is unchanged. Idempotent.
    pub async fn offload(&self, data: &mut Value) -> Result<Option<Arc<Reference>>, ResultError> {
        if is_small(data) {
            return Ok(None);
        }
        let bytes = data.to_string().into_bytes();
        if bytes.len() <= INLINE_MAX {
            return Ok(None);
        }
        let reference = self.put_bytes(bytes).await?;
        *data = small_fields(data.take());
        Ok(Some(Arc::new(reference)))
    }

    /// Stores a value as a blob, whatever its size.
    pub async fn put(&self, value: &Value) -> Result<Reference, ResultError> {
        self.put_bytes(value.to_string().into_bytes()).await
    }

    async fn put_bytes(&self, bytes: Vec<u8>) -> Result<Reference, ResultError> {
        let kept = self.blobs.put_blob(bytes, JSON).await;
        let kept = kept.map_err(ResultError::Blob)?;
        Ok(Reference {
            digest: kept.digest.to_string().into(),
            bytes: kept.bytes,
            media_type: kept.media_type.into(),
        })
    }

    /// Extends the life of a blob. Returns whether it exists.
    pub async fn touch(&self, digest: Digest) -> Result<bool, ResultError> {
        let touched = self.blobs.touch_blob(digest).await;
        touched.map_err(ResultError::Blob)
    }

    /// Returns the bytes of a result, after verifying their digest.
    pub async fn read(&self, reference: &Reference) -> Result<Vec<u8>, ResultError> {
        let digest = reference.digest.parse().map_err(|_| ResultError::Reference)?;
        let reference = BlobRef {
            digest,
            bytes: reference.bytes,
            media_type: reference.media_type.to_string(),
        };
        self.blobs.blob(&reference).await.map_err(ResultError::Blob)
    }
}
