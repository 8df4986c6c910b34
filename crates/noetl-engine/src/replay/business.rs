//! Business objects: the entities that the work of an execution is about.

use serde::{Deserialize, Serialize};

use super::event::ReplayEvent;
use super::meta::{self, Map};
use super::reference::PayloadRef;
use super::state::UNKNOWN;

const KIND: &str = "business_object";

const DELETED: &str = "DELETED";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BusinessObject {
    /// Type and ID, separated by a slash.
    pub object_key: String,
    /// Type of the object, from the event's meta or aggregate.
    pub object_type: String,
    pub object_id: String,
    pub status: String,
    /// Version from the newest event, or else the number of events.
    pub version: i64,
    /// Number of events about the object.
    pub event_count: u64,
    /// ID of the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event_id: Option<i64>,
    /// ID of the newest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<i64>,
    /// ID of the newest event that deleted the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_event_id: Option<i64>,
    /// Type of the newest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_type: Option<String>,
    /// Attributes of the object, merged from its events.
    pub attributes: Map,
    /// Payload references of its events, in event order.
    pub payload_refs: Vec<PayloadRef>,
    /// Payload reference of the newest event that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_payload_ref: Option<PayloadRef>,
}

/// Type and ID of an object.
pub(super) struct ObjectIdentity {
    object_type: String,
    object_id: String,
}

impl ObjectIdentity {
    /// Returns the object an event is about: from its meta, or else from its aggregate.
    pub(super) fn from_event(event: &ReplayEvent) -> Option<Self> {
        let fields = &event.meta;
        let inside = meta::object(fields, KIND);
        let identity_text = |inner: [&str; 2], outer: [&str; 2]| {
            let own = inside.and_then(|inside| meta::first_text(inside, &inner));
            own.or_else(|| meta::first_text(fields, &outer))
        };
        let object_type =
            identity_text(["object_type", "type"], ["business_object_type", "object_type"]);
        let object_id = identity_text(["object_id", "id"], ["business_object_id", "object_id"]);
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

    /// Returns type and ID, separated by a slash.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.object_type, self.object_id)
    }
}

impl BusinessObject {
    /// Creates an object without events.
    pub(super) fn new(identity: ObjectIdentity) -> Self {
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

    /// Folds an event about the object.
    pub(super) fn apply(&mut self, event: &ReplayEvent) {
        let id = event.event_id;
        let inside = meta::object(&event.meta, KIND);
        self.event_count += 1;
        self.first_event_id.get_or_insert(id);
        self.last_event_id = Some(id);
        self.last_event_type.clone_from(&event.event_type);
        let version = inside.and_then(|inside| meta::integer(inside, "version"));
        let version = version.or_else(|| meta::integer(&event.meta, "business_object_version"));
        self.version =
            version.unwrap_or_else(|| i64::try_from(self.event_count).unwrap_or(i64::MAX));
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

    /// Applies an event's attributes: `state` replaces all of them; `patch`, or else `attributes`,
    /// is merged over them.
    fn change_attributes(&mut self, inside: &Map) {
        if let Some(state) = meta::object(inside, "state") {
            self.attributes = state.clone();
        }
        let patch =
            meta::non_null(inside, "patch").or_else(|| meta::non_null(inside, "attributes"));
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
