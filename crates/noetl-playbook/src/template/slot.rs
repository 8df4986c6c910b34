//! Values that a scope names and that need not be in memory.
//!
//! A scope's names lead to slots. A small value is held; of a large one only its place is known,
//! and a template that touches it finds it among what was [`Loaded`], or notes that it is needed.

use std::sync::{Arc, OnceLock};

use noetl_model::Seq;
use noetl_model::event::BlobRef;
use serde_json::{Map, Value};

use super::Data;
use super::json::from_json;

/// A named value: here, or elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Slot {
    /// In memory.
    Held(Data),
    /// Somewhere else.
    Away(Arc<Away>),
}

impl Default for Slot {
    /// Null, held.
    fn default() -> Self {
        Self::Held(Data::from(()))
    }
}

impl From<Data> for Slot {
    fn from(data: Data) -> Self {
        Self::Held(data)
    }
}

/// A value that is put together from what several places hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Away {
    /// Written one over the other, in this order. Never empty.
    pub parts: Vec<Part>,
}

/// One write to a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Where below the value it was written; empty for the whole.
    pub path: Vec<Arc<str>>,
    pub source: Source,
}

/// What was written, or where it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// In memory.
    Held(Data),
    /// In an event of the execution's log.
    Event {
        /// The event's place in the log.
        seq: Seq,
        /// Which of the event's named values; `None` for an event that holds one.
        key: Option<Arc<str>>,
        /// Its rough size in memory.
        bytes: u64,
    },
    /// In a blob.
    Blob {
        reference: Arc<BlobRef>,
        /// Top-level fields of the value that are known without reading it: a map, or null.
        fields: Data,
    },
    /// A list, each item of which is somewhere.
    List(Arc<Gathered>),
}

/// Values gathered into a list without being copied.
#[derive(Debug, Default)]
pub struct Gathered {
    items: Vec<Slot>,
    /// The list itself, once it was asked for; only if all of it is held.
    whole: OnceLock<Option<Data>>,
}

impl Gathered {
    /// These values, in this order.
    pub fn new(items: Vec<Slot>) -> Self {
        Self { items, whole: OnceLock::new() }
    }

    pub fn items(&self) -> &[Slot] {
        &self.items
    }

    /// The list, if all of it is in memory.
    pub fn held(&self) -> Option<Data> {
        let gather = || {
            let held = self.items.iter().map(|item| match item {
                Slot::Held(data) => Some(data.clone()),
                Slot::Away(_) => None,
            });
            held.collect::<Option<Vec<Data>>>().map(Data::from)
        };
        self.whole.get_or_init(gather).clone()
    }
}

impl PartialEq for Gathered {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

/// Something to load: an event of the execution's log, or a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Event {
        /// Its place in the log.
        seq: Seq,
        /// A rough size of the values in it that are needed.
        bytes: u64,
    },
    Blob(Arc<BlobRef>),
}

impl Place {
    /// A rough size of what is needed of it.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Event { bytes, .. } => *bytes,
            Self::Blob(reference) => reference.bytes,
        }
    }

    /// Whether it is the same event or blob.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Event { seq, .. }, Self::Event { seq: other, .. }) => seq == other,
            (Self::Blob(blob), Self::Blob(other)) => blob.digest == other.digest,
            _ => false,
        }
    }
}

impl Slot {
    /// A value that one place holds.
    pub fn away(source: Source) -> Self {
        Self::Away(Arc::new(Away { parts: vec![Part { path: Vec::new(), source }] }))
    }

    /// A field that is known although the value itself may not be here. `None` says nothing.
    pub fn known_field(&self, key: &str) -> Option<Data> {
        let Self::Away(away) = self else { return None };
        match away.parts.as_slice() {
            [Part { path, source: Source::Blob { fields, .. } }] if path.is_empty() => {
                fields.as_object()?.get_value_by_str(key)
            }
            parts if parts.iter().all(|part| part.path.len() == 1) => {
                let part = parts.iter().find(|part| &*part.path[0] == key)?;
                part.source.held()
            }
            _ => None,
        }
    }

    /// A map of these fields, each of them somewhere.
    pub fn fields(fields: impl IntoIterator<Item = (Arc<str>, Source)>) -> Self {
        let part = |(name, source)| Part { path: vec![name], source };
        Self::Away(Arc::new(Away { parts: fields.into_iter().map(part).collect() }))
    }

    /// Places that hold parts of it.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let parts = match self {
            Self::Held(_) => [].as_slice(),
            Self::Away(away) => away.parts.as_slice(),
        };
        let mut places = Vec::new();
        for part in parts {
            part.source.add_places(&mut places);
        }
        places.into_iter()
    }

    /// The slot after `source` was written at `path` below it, with maps made on the way.
    #[must_use]
    pub fn written(self, path: &[&str], source: Source) -> Self {
        if path.is_empty() {
            return match source {
                Source::Held(data) => Self::Held(data),
                source => Self::away(source),
            };
        }
        let path: Vec<Arc<str>> = path.iter().map(|name| Arc::from(*name)).collect();
        let part = Part { path, source };
        let parts = match self {
            Self::Held(data) => {
                vec![Part { path: Vec::new(), source: Source::Held(data) }, part]
            }
            Self::Away(away) => {
                let mut parts = Arc::unwrap_or_clone(away).parts;
                overwrite(&mut parts, part);
                parts
            }
        };
        let held: Option<Vec<Data>> = parts.iter().map(|part| part.source.held()).collect();
        match held {
            Some(held) => Self::Held(merged(&parts, &held)),
            None => Self::Away(Arc::new(Away { parts })),
        }
    }
}

/// Adds a write. What it hides is forgotten, so that parts stay as few as there are paths; it takes
/// the place of the first of them, since a key stays where it was first written.
fn overwrite(parts: &mut Vec<Part>, part: Part) {
    let hidden = |old: &Part| old.path.starts_with(&part.path);
    let first = parts.iter().position(hidden).unwrap_or(parts.len());
    parts.retain(|old| !hidden(old));
    parts.insert(first, part);
}

impl Source {
    fn held(&self) -> Option<Data> {
        match self {
            Self::Held(data) => Some(data.clone()),
            Self::Event { .. } | Self::Blob { .. } => None,
            Self::List(gathered) => gathered.held(),
        }
    }

    /// Everything that has to be loaded for it.
    fn add_places(&self, places: &mut Vec<Place>) {
        match self {
            Self::List(gathered) if gathered.held().is_none() => {
                places.extend(gathered.items().iter().flat_map(Slot::places));
            }
            source => places.extend(source.place()),
        }
    }

    /// What has to be loaded for it, if it is in one place.
    pub(super) fn place(&self) -> Option<Place> {
        match self {
            Self::Held(_) | Self::List(_) => None,
            Self::Event { seq, bytes, .. } => Some(Place::Event { seq: *seq, bytes: *bytes }),
            Self::Blob { reference, .. } => Some(Place::Blob(reference.clone())),
        }
    }
}

/// What the writes come to; `values` are those of the parts.
pub(super) fn merged(parts: &[Part], values: &[Data]) -> Data {
    let mut root = Value::Object(Map::new());
    for (part, data) in parts.iter().zip(values) {
        let value = exact_json(data);
        if part.path.is_empty() {
            root = value;
        } else {
            put(&mut root, &part.path, value);
        }
    }
    from_json(&root)
}

fn put(root: &mut Value, path: &[Arc<str>], value: Value) {
    let mut at = root;
    for name in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let map = at.as_object_mut().expect("made an object just above");
        at = map.entry(&**name).or_insert(Value::Null);
    }
    *at = value;
}

/// The JSON a value was made from, of any size; what no JSON made is null.
pub fn exact_json(data: &Data) -> Value {
    serde_json::to_value(data).unwrap_or(Value::Null)
}
