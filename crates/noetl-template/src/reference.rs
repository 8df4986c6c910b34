//! Reference fields of a value stored as a blob: `_ref`, `_uri`, and `_store`.

use std::sync::Arc;

use noetl_model::ExecutionId;
use noetl_model::event::BlobRef;

use super::data::Data;
use super::scope::Scope;
use super::value_ref::{ValuePatch, ValueSlot, ValueSource};

/// Maximum size in bytes of a value that `_store` reports as `kv`.
const SMALL_BYTES_MAX: u64 = 1024 * 1024;

/// Number of hexadecimal digits of a SHA-256 digest.
const DIGEST_DIGITS: usize = 64;

/// Formats a reference to a result stored as a blob:
/// `noetl://execution/<id>/result/<step>/<digest>-<bytes>`. Includes the size, so that a reader can
/// validate the content with the reference alone.
pub fn result_ref(execution: ExecutionId, step: &str, blob: &BlobRef) -> String {
    format!("noetl://execution/{execution}/result/{step}/{}-{}", blob.digest, blob.bytes)
}

/// Parses a reference to a blob. Returns `None` for any other text.
pub fn blob_of_ref(text: &str) -> Option<BlobRef> {
    let (_, last) = text.strip_prefix("noetl://execution/")?.rsplit_once('/')?;
    let (digest, bytes) = last.rsplit_once('-')?;
    let bytes = bytes.parse().ok()?;
    let is_digest = digest.len() == DIGEST_DIGITS
        && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_digest.then(|| BlobRef {
        digest: Arc::from(digest),
        bytes,
        media_type: Arc::from("application/json"),
    })
}

/// Returns `_ref`, `_uri`, or `_store` of a result, or `None` for a value in the log itself.
pub(super) fn field(
    slot: &ValueSlot,
    step: Option<&Arc<str>>,
    key: &str,
    scope: &Scope,
) -> Option<Data> {
    let blob = blob_of(slot).filter(|_| is_field(key))?;
    Some(match key {
        // Other engines name the storage by size, and authors compare with their names.
        "_store" if blob.bytes <= SMALL_BYTES_MAX => Data::from("kv"),
        "_store" => Data::from("disk"),
        _ => {
            let step = step.map_or("result", |step| &**step);
            Data::from(result_ref(scope.identity.execution, step, blob))
        }
    })
}

fn is_field(key: &str) -> bool {
    matches!(key, "_ref" | "_uri" | "_store")
}

/// Returns `true` if this key of a value follows from its reference, so that the value need not be
/// loaded.
pub fn is_reference(slot: &ValueSlot, key: &str) -> bool {
    is_field(key) && blob_of(slot).is_some()
}

fn blob_of(slot: &ValueSlot) -> Option<&BlobRef> {
    let ValueSlot::Away(away) = slot else { return None };
    match away.parts.as_slice() {
        [ValuePatch { path, source: ValueSource::Blob { reference, .. } }] if path.is_empty() => {
            Some(reference)
        }
        _ => None,
    }
}
