//! Resolves references: reads and measures the values, but never returns them.

use std::collections::HashMap;

use noetl_engine::replay::{Checksum, PayloadSummary, ReplayState, canonical};
use noetl_model::event::BlobRef;
use noetl_model::{Map, Tenant, Value};
use noetl_results::{ResolveError, Resolved};
use noetl_store::{Digest, StoreError};
use serde::Serialize;

use super::Replay;
use super::pass::spawn_fold;

/// Maximum number of distinct locators resolved in one replay. Each may be a read of a large value.
const PLACES_MAX: usize = 10_000;

/// Resolution of all references in a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Payloads {
    /// Each reference, in the order of the execution, its frames, and its business objects.
    pub payload_resolution: Vec<PayloadResolution>,
    pub payload_resolution_summary: PayloadsSummary,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PayloadResolution {
    /// Position of the reference in the state.
    #[serde(flatten)]
    pub label: PayloadLabel,
    /// Summary of the value, as stated in the reference.
    pub reference_summary: PayloadSummary,
    pub resolution: Resolution,
}

/// Position of a reference in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PayloadLabel {
    /// `execution`, `frame`, or `business_object`.
    pub scope: &'static str,
    /// Event that introduced the reference.
    pub event_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_key: Option<String>,
}

/// Outcome of resolving a reference. Fields that don't apply are null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Resolution {
    #[serde(rename = "ref")]
    pub locator: Option<String>,
    /// Whether the value was found.
    pub resolved: bool,
    /// SHA-256 of the value's canonical JSON, or of its bytes if it is not JSON.
    pub checksum: Option<String>,
    /// Number of bytes the checksum covers.
    pub size_bytes: Option<u64>,
    /// Number of rows: of a list, or of the list at `rows`.
    pub row_count: Option<u64>,
    /// `null`, `boolean`, `number`, `string`, `array`, `object`, or `bytes` if the value is not
    /// JSON.
    pub value_type: Option<&'static str>,
    /// Reason the value was not found.
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PayloadsSummary {
    /// Number of references in the state.
    pub total: usize,
    /// Number of references whose value was found.
    pub resolved: usize,
    /// Number of references whose value was not found.
    pub unresolved: usize,
    /// Number of distinct locators resolved.
    pub unique_refs: usize,
    /// Whether all values were found.
    pub all_resolved: bool,
    /// SHA-256 of the canonical JSON of all resolutions.
    pub checksum: String,
}

impl Replay {
    /// Resolves the references of a state. Fails if a store is unavailable; a missing value is
    /// reported as unresolved.
    pub(super) async fn resolve(
        &self,
        tenant: &Tenant,
        state: &ReplayState,
    ) -> Result<Payloads, StoreError> {
        let mut found: HashMap<String, Resolution> = HashMap::new();
        let mut rows = Vec::new();
        for (label, reference) in references(state) {
            let resolution = match locator(reference) {
                None => unresolved(None, "the reference names no place"),
                Some(place) => match found.get(&place) {
                    Some(known) => known.clone(),
                    None if found.len() >= PLACES_MAX => {
                        let why = format!("not looked at: more than {PLACES_MAX} places");
                        unresolved(Some(place), &why)
                    }
                    None => {
                        let resolution = self.look_up(tenant, &place, reference).await?;
                        found.insert(place, resolution.clone());
                        resolution
                    }
                },
            };
            let reference_summary = PayloadSummary::from_value(reference);
            rows.push(PayloadResolution { label, reference_summary, resolution });
        }
        let resolved = rows.iter().filter(|row| row.resolution.resolved).count();
        let checksum = serde_json::to_value(&rows).map(|rows| Checksum::of_value(&rows).value);
        Ok(Payloads {
            payload_resolution_summary: PayloadsSummary {
                total: rows.len(),
                resolved,
                unresolved: rows.len() - resolved,
                unique_refs: found.len(),
                all_resolved: resolved == rows.len(),
                checksum: checksum.expect("maps with text keys always have a JSON form"),
            },
            payload_resolution: rows,
        })
    }

    async fn look_up(
        &self,
        tenant: &Tenant,
        place: &str,
        reference: &Value,
    ) -> Result<Resolution, StoreError> {
        match self.stored.resolve(tenant, place).await {
            Ok(Resolved(text)) => return measured_bytes(place.to_owned(), text).await,
            Err(ResolveError::NotFound) => {
                return Ok(unresolved(Some(place.to_owned()), "there is no such result"));
            }
            Err(ResolveError::Store(error)) => return Err(error),
            Err(ResolveError::Malformed(_)) => {}
        }
        let Some(blob) = blob_named(place, reference) else {
            return Ok(unresolved(
                Some(place.to_owned()),
                "the payload is stored outside this control plane",
            ));
        };
        match self.results.read(&blob).await {
            Ok(bytes) => measured_bytes(place.to_owned(), bytes).await,
            Err(error) if error.is_transient() => Err(StoreError::backend("read a result", error)),
            Err(error) => Ok(unresolved(Some(place.to_owned()), &error.to_string())),
        }
    }
}

/// Returns the references of a state, with their positions.
fn references(state: &ReplayState) -> impl Iterator<Item = (PayloadLabel, &Value)> {
    let label =
        |scope, event_id| PayloadLabel { scope, event_id, frame_id: None, object_key: None };
    let of_execution = state
        .execution
        .payload_refs
        .iter()
        .map(move |entry| (label("execution", Some(entry.event_id)), &entry.reference));
    let of_frames = state.frames.values().filter_map(move |frame| {
        let bare = label("frame", frame.terminal_event_id);
        let label = PayloadLabel { frame_id: Some(frame.frame_id.clone()), ..bare };
        Some((label, frame.output_ref.as_ref()?))
    });
    let of_objects = state.business_objects.values().flat_map(move |object| {
        object.payload_refs.iter().map(move |entry| {
            let bare = label("business_object", Some(entry.event_id));
            let label = PayloadLabel { object_key: Some(object.object_key.clone()), ..bare };
            (label, &entry.reference)
        })
    });
    of_execution.chain(of_frames).chain(of_objects)
}

/// Returns the locator of a reference; for a blob of this control plane, its digest.
fn locator(reference: &Value) -> Option<String> {
    let text = |fields: &Map, keys: &[&str]| {
        keys.iter().find_map(|key| fields.get(*key)?.as_str().map(str::to_owned))
    };
    let fields = match reference {
        Value::String(place) => return Some(place.clone()),
        Value::Object(fields) => fields,
        _ => return None,
    };
    if fields.get("kind").is_some_and(|kind| kind == "payload_store") {
        return text(fields, &["uri", "sha256"]);
    }
    let keys = ["ref", "uri", "locator"];
    let inside = || text(fields.get("rows_ref")?.as_object()?, &keys);
    text(fields, &keys).or_else(inside).or_else(|| text(fields, &["digest"]))
}

/// Returns the blob with this digest, of the length stated in the reference.
fn blob_named(place: &str, reference: &Value) -> Option<BlobRef> {
    let digest: Digest = place.parse().ok()?;
    let fields = reference.as_object()?;
    let media_type = fields.get("media_type").and_then(Value::as_str).unwrap_or_default();
    Some(BlobRef {
        digest: digest.to_string().into(),
        bytes: fields.get("bytes")?.as_u64()?,
        media_type: media_type.into(),
    })
}

fn unresolved(locator: Option<String>, why: &str) -> Resolution {
    Resolution { locator, error: Some(why.to_owned()), ..Resolution::default() }
}

async fn measured_bytes(place: String, bytes: Vec<u8>) -> Result<Resolution, StoreError> {
    // Parsing a large text takes long too.
    spawn_fold(move || match serde_json::from_slice(&bytes) {
        Ok(value) => measure(place, &value),
        Err(_) => Resolution {
            locator: Some(place),
            resolved: true,
            checksum: Some(Digest::of_bytes(&bytes).to_string()),
            size_bytes: u64::try_from(bytes.len()).ok(),
            row_count: None,
            value_type: Some("bytes"),
            error: None,
        },
    })
    .await
}

fn measure(place: String, value: &Value) -> Resolution {
    let text = canonical::text(value);
    let rows = match value {
        Value::Array(rows) => Some(rows.len()),
        Value::Object(fields) => {
            fields.get("rows").and_then(Value::as_array).map(|rows| rows.len())
        }
        _ => None,
    };
    Resolution {
        locator: Some(place),
        resolved: true,
        checksum: Some(Digest::of_bytes(text.as_bytes()).to_string()),
        size_bytes: u64::try_from(text.len()).ok(),
        row_count: rows.and_then(|rows| u64::try_from(rows).ok()),
        value_type: Some(kind_of(value)),
        error: None,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_may_name_its_location_in_several_forms() {
        for (reference, place) in [
            (json!("noetl://x"), Some("noetl://x")),
            (json!({"kind": "payload_store", "uri": "u", "sha256": "s", "ref": "no"}), Some("u")),
            (json!({"kind": "payload_store", "sha256": "s", "ref": "no"}), Some("s")),
            (json!({"kind": "payload_store", "ref": "no"}), None),
            (json!({"ref": "r", "uri": "u", "locator": "l"}), Some("r")),
            (json!({"uri": "u", "locator": "l", "rows_ref": {"ref": "no"}}), Some("u")),
            (json!({"locator": "l"}), Some("l")),
            (json!({"rows_ref": {"uri": "u"}}), Some("u")),
            (json!({"ref": null, "rows_ref": {"locator": "l"}, "digest": "no"}), Some("l")),
            (json!({"digest": "d", "bytes": 3}), Some("d")),
            (json!({}), None),
            (json!(5), None),
        ] {
            assert_eq!(locator(&reference).as_deref(), place, "{reference}");
        }
    }

    #[tokio::test]
    async fn bytes_are_measured_whether_they_are_json_or_not() {
        for (bytes, kind, rows) in [("[1, 2]", "array", Some(2)), ("no JSON", "bytes", None)] {
            let found = measured_bytes("p".into(), bytes.into()).await.expect("an answer");
            assert_eq!((found.value_type, found.row_count), (Some(kind), rows));
        }
    }
}
