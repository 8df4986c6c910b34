//! References to results that are kept elsewhere.

use serde::{Deserialize, Serialize};

use super::meta::{self, Map, Value};

/// A reference that an event carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PayloadRef {
    pub event_id: i64,
    /// The reference as it was.
    pub reference: Value,
    /// What it says about what it refers to.
    pub summary: PayloadSummary,
}

impl PayloadRef {
    /// A reference with its summary.
    pub(super) fn new(event_id: i64, reference: &Value) -> Self {
        Self { event_id, summary: PayloadSummary::of(reference), reference: reference.clone() }
    }
}

/// What a reference says about what it refers to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PayloadSummary {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The checksum of its schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_digest: Option<String>,
    /// How many rows it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_count: Option<i64>,
    /// How to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub locator: Option<String>,
}

impl PayloadSummary {
    /// The summary of a reference; an empty one when it is no object.
    pub fn of(reference: &Value) -> Self {
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
            row_count: places.iter().flatten().find_map(|found| meta::integer(found, "row_count")),
            media_type: text("media_type"),
            locator: locator.or_else(|| string(reference, "uri")),
        }
    }
}

fn string(fields: &Map, key: &str) -> Option<String> {
    fields.get(key)?.as_str().map(str::to_owned)
}
