//! References to results stored outside the event log.

use serde::{Deserialize, Serialize};

use super::meta::{self, Map, Value};

/// A reference carried by an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PayloadRef {
    pub event_id: i64,
    /// Reference as the event carried it.
    pub reference: Value,
    /// Summary of the referenced data.
    pub summary: PayloadSummary,
}

impl PayloadRef {
    /// Creates a reference with its summary.
    pub(super) fn new(event_id: i64, reference: &Value) -> Self {
        Self {
            event_id,
            summary: PayloadSummary::from_value(reference),
            reference: reference.clone(),
        }
    }
}

/// Description of referenced data, as given in the reference.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PayloadSummary {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Digest of the data's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_digest: Option<String>,
    /// Number of rows of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_count: Option<i64>,
    /// Media type of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub locator: Option<String>,
}

impl PayloadSummary {
    /// Returns the summary of a reference; empty if the reference is not an object.
    pub fn from_value(reference: &Value) -> Self {
        let Some(reference) = reference.as_object() else { return Self::default() };
        let rows = meta::object(reference, "rows_ref");
        let inside = |key| rows.and_then(|rows| meta::object(rows, key));
        let places = [Some(reference), inside("meta"), inside("ipc")];
        let text = |key| places.iter().flatten().find_map(|fields| string(fields, key));
        let locator =
            string(reference, "ref").or_else(|| rows.and_then(|rows| string(rows, "ref")));
        Self {
            sha256: text("sha256").or_else(|| string(reference, "digest")),
            schema_digest: text("schema_digest"),
            row_count: places.iter().flatten().find_map(|place| meta::integer(place, "row_count")),
            media_type: text("media_type"),
            locator: locator.or_else(|| string(reference, "uri")),
        }
    }
}

fn string(fields: &Map, key: &str) -> Option<String> {
    fields.get(key)?.as_str().map(str::to_owned)
}
