//! One event as the fold sees it.

use std::fmt;

use noetl_model::row::EventRow;
use noetl_model::{CommandId, Origin};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::meta::{self, Map, Value};

/// The columns of a row that the fold reads. All but the id may be missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayEvent {
    /// Its id, by which events are in order.
    pub event_id: i64,
    pub event_type: Option<String>,
    /// How it stands with it; empty is as good as missing.
    pub status: Option<String>,
    pub node_name: Option<String>,
    pub worker_id: Option<String>,
    /// The command it is about, as decimal text.
    pub command_id: Option<String>,
    /// The stage it is about.
    pub stage_id: Option<String>,
    /// The frame it is about.
    pub frame_id: Option<String>,
    /// What kind of thing it is about.
    pub aggregate_type: Option<String>,
    /// Which of that kind.
    pub aggregate_id: Option<String>,
    /// Where its result is kept: `result.reference`.
    pub reference: Option<Value>,
    /// What helps to read it; empty when it is no object.
    pub meta: Map,
    /// Whose it is, where the row says so. The fold does not look.
    pub tenant_id: Option<String>,
    /// Which part of them, where the row says so. The fold does not look.
    pub organization_id: Option<String>,
}

impl ReplayEvent {
    /// The event of a row. JSON that cannot be read counts as missing: a row that replays with
    /// less is better than a log that does not replay.
    pub fn of(row: &EventRow) -> Self {
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

    /// The type; nothing when it is missing.
    pub(super) fn kind(&self) -> &str {
        self.event_type.as_deref().unwrap_or_default()
    }

    /// The status, unless it is empty.
    pub(super) fn status(&self) -> Option<&str> {
        self.status.as_deref().filter(|status| !status.is_empty())
    }

    /// The status, or what is to stand for it.
    pub(super) fn status_or(&self, other: &str) -> String {
        self.status().unwrap_or(other).to_owned()
    }

    /// The stage it belongs to.
    pub(super) fn stage(&self) -> Option<String> {
        self.part("stage", self.stage_id.as_deref(), "stage_id")
    }

    /// The frame it belongs to.
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

    /// The command it belongs to.
    pub(super) fn command(&self) -> Option<String> {
        self.command_id.clone().or_else(|| meta::text(&self.meta, "command_id"))
    }

    /// The loop it belongs to.
    pub(super) fn loop_id(&self) -> Option<String> {
        meta::first_text(&self.meta, &["loop_id", "loop_event_id", "__loop_epoch_id"])
    }

    /// Whether its aggregate is of this kind.
    pub(super) fn is_about(&self, kind: &str) -> bool {
        self.aggregate_type.as_deref() == Some(kind)
    }
}

/// The command that a worker names in a report about it, by the id that everything else about it
/// has. Workers know commands as `<execution>:<step>:<id>`.
fn reported_command(row: &EventRow, meta: &Map) -> Option<String> {
    let name = meta::at(meta, "command_id").filter(|_| row.origin == Origin::Reported)?;
    let rest = name.as_str()?.strip_prefix(&row.execution_id.to_string())?.strip_prefix(':')?;
    let (_, id) = rest.rsplit_once(':')?;
    id.parse::<CommandId>().ok().map(|id| id.to_string())
}

/// The reference in a result, without keeping the rest of it, which may be large.
fn reference_in(result: &str) -> Option<Value> {
    let Found(reference) = serde_json::from_str(result).ok()?;
    reference.filter(|reference| !reference.is_null())
}

/// What a result has as its reference; of several, the last.
struct Found(Option<Value>);

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Finder;

        impl<'de> Visitor<'de> for Finder {
            type Value = Found;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Found, A::Error> {
                let mut found = None;
                while let Some(key) = fields.next_key::<std::borrow::Cow<'de, str>>()? {
                    if key == "reference" {
                        found = Some(fields.next_value()?);
                    } else {
                        fields.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Found(found))
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
    fn the_reference_is_found_in_any_result() {
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
