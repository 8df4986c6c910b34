//! Stores results that are too large for the event log as blobs, and refers to them.

use std::sync::Arc;

use noetl_model::event::BlobRef as Reference;
use noetl_model::{Event, Fact, Map, Value};
use noetl_store::{BlobError, BlobRef, Blobs, Digest};
use noetl_template::blob_of_ref;

use crate::journal::SubmitError;

/// Maximum size of a result in its event, in bytes of JSON.
pub const INLINE_MAX: usize = 64 * 1024;

/// Maximum size in bytes of each field, and maximum number of fields, stored in the event beside a
/// reference, so conditions on small fields need not read the blob. Only top-level fields count.
const FIELD_BYTES_MAX: usize = 256;
const FIELDS_MAX: usize = 32;

const JSON: &str = "application/json";

/// Store of large results. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ResultStorage {
    blobs: Arc<dyn Blobs>,
}

/// Error of reading a large result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultError {
    #[error("its reference is not one of ours")]
    Reference,
    #[error(transparent)]
    Blob(BlobError),
}

impl ResultError {
    /// Returns `true` if a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Blob(BlobError::Place(_)))
    }
}

impl From<ResultError> for SubmitError {
    fn from(error: ResultError) -> Self {
        match error {
            ResultError::Blob(BlobError::Place(error)) => Self::Store(Arc::new(error)),
            other => {
                Self::Store(Arc::new(noetl_store::StoreError::backend("read a result", other)))
            }
        }
    }
}

impl ResultStorage {
    pub(crate) fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs }
    }

    /// Stores a large result as a blob. Then `data` has only its small fields left, and the
    /// reference is returned; a small result is unchanged. Idempotent.
    pub(crate) async fn offload(
        &self,
        data: &mut Value,
    ) -> Result<Option<Arc<Reference>>, SubmitError> {
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
    pub(crate) async fn put(&self, value: &Value) -> Result<Reference, SubmitError> {
        self.put_bytes(value.to_string().into_bytes()).await
    }

    async fn put_bytes(&self, bytes: Vec<u8>) -> Result<Reference, SubmitError> {
        let kept = self.blobs.put_blob(bytes, JSON).await;
        let kept = kept.map_err(|error| SubmitError::from(ResultError::Blob(error)))?;
        Ok(Reference {
            digest: kept.digest.to_string().into(),
            bytes: kept.bytes,
            media_type: kept.media_type.into(),
        })
    }

    /// Extends the life of a blob. Returns whether it exists.
    pub(crate) async fn touch(&self, digest: Digest) -> Result<bool, SubmitError> {
        let touched = self.blobs.touch_blob(digest).await;
        touched.map_err(|error| SubmitError::from(ResultError::Blob(error)))
    }

    /// Returns the bytes of a result, after verifying their digest.
    pub(crate) async fn read(&self, reference: &Reference) -> Result<Vec<u8>, ResultError> {
        let digest = reference.digest.parse().map_err(|_| ResultError::Reference)?;
        let reference = BlobRef {
            digest,
            bytes: reference.bytes,
            media_type: reference.media_type.to_string(),
        };
        self.blobs.blob(&reference).await.map_err(ResultError::Blob)
    }
}

/// Returns the blob that an event refers to.
pub(crate) fn refers_to(event: &Event) -> Option<Digest> {
    match &event.fact {
        Fact::CallDone { reference: None, data, .. } => named_in(data),
        Fact::CallDone { reference, .. } | Fact::PlaybookCompleted { reference, .. } => {
            reference.as_ref()?.digest.parse().ok()
        }
        _ => None,
    }
}

/// Returns the blob in a result that is itself a reference, such as a stored artifact.
fn named_in(data: &Value) -> Option<Digest> {
    let text =
        data.get("ref").filter(|_| data.get("kind").is_some_and(|kind| kind == "result_ref"));
    blob_of_ref(text?.as_str()?)?.digest.parse().ok()
}

/// Returns `true` if a result certainly fits into its event. If not, it has to be measured.
pub fn is_small(data: &Value) -> bool {
    fits(data, &mut INLINE_MAX.clone())
}

/// Returns `true` if the JSON of a value certainly fits into `left` bytes. Stops as soon as it may
/// not.
fn fits(value: &Value, left: &mut usize) -> bool {
    let cost = match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(_) => 26,
        // A character may be written as an escape of six.
        Value::String(text) => text.len() * 6 + 3,
        Value::Array(_) | Value::Object(_) => 2,
    };
    if cost > *left {
        return false;
    }
    *left -= cost;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(map) => map.iter().all(|(key, item)| {
            let key = key.len() * 6 + 4;
            let fits_key = key <= *left;
            *left = left.saturating_sub(key);
            fits_key && fits(item, left)
        }),
        _ => true,
    }
}

/// Returns the small fields of a large result, which are stored beside its reference.
pub fn small_fields(data: Value) -> Value {
    let Value::Object(map) = data else { return Value::Object(Map::new()) };
    let is_small = |value: &Value| match value {
        Value::String(text) => text.len() <= FIELD_BYTES_MAX,
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    };
    let small = map
        .into_iter()
        .filter(|(key, value)| key.len() <= FIELD_BYTES_MAX && is_small(value))
        .take(FIELDS_MAX);
    Value::Object(small.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_certainly_fits_is_spared_its_measurement() {
        for value in [json!(null), json!([1, 2.5, "x"]), json!({"a": {"b": [true]}})] {
            assert!(fits(&value, &mut INLINE_MAX.clone()));
        }
        assert!(!fits(&json!("x".repeat(INLINE_MAX)), &mut INLINE_MAX.clone()));
        assert!(!fits(&json!(vec![1; INLINE_MAX]), &mut INLINE_MAX.clone()));
    }

    #[test]
    fn small_fields_stay_beside_a_reference() {
        let data = json!({"rows": 7, "name": "x", "all": [1], "text": "y".repeat(300), "no": null});
        assert_eq!(small_fields(data), json!({"rows": 7, "name": "x", "no": null}));
        assert_eq!(small_fields(json!([1, 2])), json!({}));
    }
}
