//! Event row as input of the fold.

use std::fmt;

use noetl_model::row::EventRow;
use noetl_model::{CommandId, Origin};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::meta::{self, Map, Value};

/// The columns of a row that the fold reads. All but the ID may be missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayEvent {
    /// Event ID, which defines the order of events.
    pub event_id: i64,
    pub event_type: Option<String>,
    /// Status column; an empty text is equivalent to none.
    pub status: Option<String>,
    pub node_name: Option<String>,
    pub worker_id: Option<String>,
    /// Command the event is about, as decimal text.
    pub command_id: Option<String>,
    /// Stage the event is about.
    pub stage_id: Option<String>,
    /// Frame the event is about.
    pub frame_id: Option<String>,
    /// Type of the aggregate the event is about, such as `frame`.
    pub aggregate_type: Option<String>,
    /// ID of the aggregate the event is about.
    pub aggregate_id: Option<String>,
    /// Reference to a stored result: `result.reference`.
    pub reference: Option<Value>,
    /// Metadata of the event; empty if the column is not an object.
    pub meta: Map,
    /// Tenant, if the row has one. The fold ignores it.
    pub tenant_id: Option<String>,
    /// Organization, if the row has one. The fold ignores it.
    pub organization_id: Option<String>,
}

impl ReplayEvent {
    /// Converts a row to an event. JSON that cannot be parsed counts as missing: a row that replays
    /// with less data is better than an event log that does not replay.
    pub fn from_row(row: &EventRow) -> Self {
        let meta = row.meta.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let meta: Map = meta.unwrap_or_default();
        let command = row.command_id.map(|id| id.to_string());
        let more = row.more.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let more: Map = more.unwrap_or_default();
        Self {
            event_id: row.event_id.get(),
            event_type: row.event_type.as_deref().map(str::to_owned),
            status: row.status.as_deref().map(str::to_owned),
            node_name: row.node_name.as_deref().map(str::to_owned),
            worker_id: row.worker_id.as_deref().map(str::to_owned),
            command_id: command.or_else(|| reported_command(row, &meta)),
            reference: row.result.as_deref().and_then(reference_in),
            meta,
            stage_id: meta::text(&more, "stage_id"),
            frame_id: meta::text(&more, "frame_id"),
            aggregate_type: meta::text(&more, "aggregate_type"),
            aggregate_id: meta::text(&more, "aggregate_id"),
            tenant_id: meta::text(&more, "tenant_id"),
            organization_id: meta::text(&more, "organization_id"),
        }
    }

    /// Returns the event type, or an empty text if it is missing.
    pub(super) fn kind(&self) -> &str {
        self.event_type.as_deref().unwrap_or_default()
    }

    /// Returns the status, unless it is empty.
    pub(super) fn status(&self) -> Option<&str> {
        self.status.as_deref().filter(|status| !status.is_empty())
    }

    /// Returns the status, or `other` if there is none.
    pub(super) fn status_or(&self, other: &str) -> String {
        self.status().unwrap_or(other).to_owned()
    }

    /// Returns the stage the event belongs to.
    pub(super) fn stage(&self) -> Option<String> {
        self.part("stage", self.stage_id.as_deref(), "stage_id")
    }

    /// Returns the frame the event belongs to.
    pub(super) fn frame(&self) -> Option<String> {
        self.part("frame", self.frame_id.as_deref(), "frame_id")
    }

    fn part(&self, kind: &str, column: Option<&str>, key: &str) -> Option<String> {
        if let Some(id) = column {
            return Some(id.to_owned());
        }
        let aggregate = self.aggregate_id.as_deref().filter(|_| self.is_about(kind));
        let own = aggregate.map(|id| {
            let rest = id.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
            rest.unwrap_or(id).to_owned()
        });
        own.or_else(|| meta::text(&self.meta, key))
    }

    /// Returns the command the event belongs to.
    pub(super) fn command(&self) -> Option<String> {
        self.command_id.clone().or_else(|| meta::text(&self.meta, "command_id"))
    }

    /// Returns the loop the event belongs to.
    pub(super) fn loop_id(&self) -> Option<String> {
        meta::first_text(&self.meta, &["loop_id", "loop_event_id", "__loop_epoch_id"])
    }

    /// Returns `true` if the event's aggregate has this type.
    pub(super) fn is_about(&self, kind: &str) -> bool {
        self.aggregate_type.as_deref() == Some(kind)
    }
}

/// Returns the ID of the command that a worker's report names. Workers name commands
/// `<execution>:<step>:<id>`; all other events use the bare ID.
fn reported_command(row: &EventRow, meta: &Map) -> Option<String> {
    let name = meta::non_null(meta, "command_id").filter(|_| row.origin == Origin::Reported)?;
    let rest = name.as_str()?.strip_prefix(&row.execution_id.to_string())?.strip_prefix(':')?;
    let (_, id) = rest.rsplit_once(':')?;
    id.parse::<CommandId>().ok().map(|id| id.to_string())
}

/// Returns the reference in a result without deserializing the rest, which may be large.
fn reference_in(result: &str) -> Option<Value> {
    let ReferenceSearch(reference) = serde_json::from_str(result).ok()?;
    reference.filter(|reference| !reference.is_null())
}

/// Reference field of a result; the last one if it is repeated.
struct ReferenceSearch(Option<Value>);

impl<'de> Deserialize<'de> for ReferenceSearch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Finder;

        impl<'de> Visitor<'de> for Finder {
            type Value = ReferenceSearch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut fields: A,
            ) -> Result<ReferenceSearch, A::Error> {
                let mut value_of_key = None;
                while let Some(key) = fields.next_key::<std::borrow::Cow<'de, str>>()? {
                    if key == "reference" {
                        value_of_key = Some(fields.next_value()?);
                    } else {
                        fields.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(ReferenceSearch(value_of_key))
            }
        }

        deserializer.deserialize_map(Finder)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_reference_is_read_from_any_form_of_result() {
        assert_eq!(reference_in(r#"{"status":"X","reference":{"a":1}}"#), Some(json!({"a": 1})));
        assert_eq!(reference_in(r#"{"\u0072eference":"r"}"#), Some(json!("r")));
        assert_eq!(reference_in(r#"{"reference":1,"reference":2}"#), Some(json!(2)));
        for none in
            ["", "[]", "null", "{}", r#"{"reference":null}"#, r#"{"context":{"reference":1}}"#]
        {
            assert_eq!(reference_in(none), None, "{none}");
        }
    }
}
