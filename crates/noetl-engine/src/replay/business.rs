//! Business objects: what the work of an execution is about.

use serde::{Deserialize, Serialize};

use super::event::ReplayEvent;
use super::meta::{self, Map};
use super::reference::PayloadRef;
use super::state::UNKNOWN;

const KIND: &str = "business_object";

const DELETED: &str = "DELETED";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BusinessObject {
    /// Type and id, parted by a slash.
    pub object_key: String,
    /// What kind of object.
    pub object_type: String,
    pub object_id: String,
    pub status: String,
    /// Its version: as said, or else the number of its events.
    pub version: i64,
    /// How many events were about it.
    pub event_count: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event_id: Option<i64>,
    /// The newest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<i64>,
    /// The newest that deleted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_event_id: Option<i64>,
    /// The type of the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_type: Option<String>,
    /// What is known of it.
    pub attributes: Map,
    /// References of its events, in their order.
    pub payload_refs: Vec<PayloadRef>,
    /// The newest of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_payload_ref: Option<PayloadRef>,
}

/// What an object is called.
pub(super) struct Identity {
    object_type: String,
    object_id: String,
}

impl Identity {
    /// The object an event is about: as its meta says, and what that leaves open, as its aggregate
    /// does.
    pub(super) fn of(event: &ReplayEvent) -> Option<Self> {
        let fields = &event.meta;
        let inside = meta::object(fields, KIND);
        let said = |inner: [&str; 2], outer: [&str; 2]| {
            let own = inside.and_then(|inside| meta::first_text(inside, &inner));
            own.or_else(|| meta::first_text(fields, &outer))
        };
        let object_type = said(["object_type", "type"], ["business_object_type", "object_type"]);
        let object_id = said(["object_id", "id"], ["business_object_id", "object_id"]);
        if let (Some(object_type), Some(object_id)) = (&object_type, &object_id) {
            return Some(Self { object_type: object_type.clone(), object_id: object_id.clone() });
        }
        let aggregate = event.aggregate_id.as_deref().filter(|_| event.is_about(KIND))?;
        let named = Self::of_aggregate(aggregate);
        Some(Self {
            object_type: object_type.unwrap_or(named.object_type),
            object_id: object_id.unwrap_or(named.object_id),
        })
    }

    fn of_aggregate(aggregate: &str) -> Self {
        let rest = aggregate.strip_prefix("business_object/").unwrap_or(aggregate);
        let mut parts = rest.split('/').filter(|part| !part.is_empty());
        let first = parts.next();
        let others: Vec<&str> = parts.collect();
        match first {
            Some(first) if !others.is_empty() => {
                Self { object_type: first.to_owned(), object_id: others.join("/") }
            }
            _ => Self { object_type: KIND.to_owned(), object_id: aggregate.to_owned() },
        }
    }

    /// Type and id in one.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.object_type, self.object_id)
    }
}

impl BusinessObject {
    /// An object nothing is known of.
    pub(super) fn new(identity: Identity) -> Self {
        Self {
            object_key: identity.key(),
            object_type: identity.object_type,
            object_id: identity.object_id,
            status: UNKNOWN.to_owned(),
            version: 0,
            event_count: 0,
            first_event_id: None,
            last_event_id: None,
            deleted_event_id: None,
            last_event_type: None,
            attributes: Map::new(),
            payload_refs: Vec::new(),
            last_payload_ref: None,
        }
    }

    /// Takes one of its events in.
    pub(super) fn apply(&mut self, event: &ReplayEvent) {
        let id = event.event_id;
        let inside = meta::object(&event.meta, KIND);
        self.event_count += 1;
        self.first_event_id.get_or_insert(id);
        self.last_event_id = Some(id);
        self.last_event_type.clone_from(&event.event_type);
        let said = inside.and_then(|inside| meta::integer(inside, "version"));
        let said = said.or_else(|| meta::integer(&event.meta, "business_object_version"));
        self.version = said.unwrap_or_else(|| i64::try_from(self.event_count).unwrap_or(i64::MAX));
        if let Some(status) = event.status().or_else(|| status_by_type(event.kind())) {
            self.status = status.to_owned();
            if status == DELETED {
                self.deleted_event_id = Some(id);
            }
        }
        if let Some(inside) = inside {
            self.change_attributes(inside);
        }
        if let Some(reference) = &event.reference {
            let entry = PayloadRef::new(id, reference);
            self.payload_refs.push(entry.clone());
            self.last_payload_ref = Some(entry);
        }
    }

    /// `state` replaces what is known; `patch`, or else `attributes`, is laid over it.
    fn change_attributes(&mut self, inside: &Map) {
        if let Some(state) = meta::object(inside, "state") {
            self.attributes = state.clone();
        }
        let patch = meta::at(inside, "patch").or_else(|| meta::at(inside, "attributes"));
        if let Some(patch) = patch.and_then(|patch| patch.as_object()) {
            let fields = patch.iter().map(|(key, value)| (key.clone(), value.clone()));
            self.attributes.extend(fields);
        }
    }
}

fn status_by_type(kind: &str) -> Option<&'static str> {
    let (_, verb) = kind.rsplit_once('.')?;
    match verb {
        "deleted" | "removed" => Some(DELETED),
        "created" | "updated" | "upserted" => Some("ACTIVE"),
        _ => None,
    }
}
