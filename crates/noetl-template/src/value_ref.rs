//! Named values that need not be in memory.
//!
//! A scope's names refer to slots. Small values are inline. Large values are references, and a
//! template that reads one finds it in [`Loaded`] or records that it is needed.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use noetl_model::Seq;
use noetl_model::event::BlobRef;
use serde_json::{Map, Value};

use super::data::Data;
use super::json::from_json;

/// Values by name, in the order they were first written.
pub type Names = IndexMap<Arc<str>, ValueSlot>;

/// A named value: inline or by reference.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueSlot {
    /// Inline value, held in memory.
    Held(Data),
    /// Value to be loaded on demand.
    Away(Arc<DeferredValue>),
}

impl Default for ValueSlot {
    fn default() -> Self {
        Self::Held(Data::from(()))
    }
}

impl From<Data> for ValueSlot {
    fn from(data: Data) -> Self {
        Self::Held(data)
    }
}

/// A value merged from several parts, at least one of which is not in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct DeferredValue {
    /// Parts in the order in which they overwrite each other. Never empty.
    pub parts: Vec<ValuePatch>,
}

/// A write to a value.
#[derive(Debug, Clone, PartialEq)]
pub struct ValuePatch {
    /// Path below the value. Empty for the whole value.
    pub path: Vec<Arc<str>>,
    pub source: ValueSource,
}

/// Written value, or a reference to it.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueSource {
    /// Inline value, held in memory.
    Held(Data),
    /// Value in an event of the execution's log.
    Event {
        /// Sequence number of the event.
        seq: Seq,
        /// Name of the value within the event. `None` for an event with a single value.
        key: Option<Arc<str>>,
        /// Approximate size in memory, in bytes.
        bytes: u64,
    },
    Blob {
        reference: Arc<BlobRef>,
        /// Top-level fields known without loading the value: a map, or null.
        fields: Data,
    },
    /// A list whose items are inline or references.
    List(Arc<ValueList>),
}

/// Values gathered into a list without copying.
#[derive(Debug, Default)]
pub struct ValueList {
    items: Vec<ValueSlot>,
    /// Cached list. `None` inside if an item is not in memory.
    whole: OnceLock<Option<Data>>,
}

impl ValueList {
    /// Creates a list of these values, in this order.
    pub fn new(items: Vec<ValueSlot>) -> Self {
        Self { items, whole: OnceLock::new() }
    }

    pub fn items(&self) -> &[ValueSlot] {
        &self.items
    }

    /// Returns the list if all items are in memory.
    pub fn inline(&self) -> Option<Data> {
        let gather = || {
            let inline = self.items.iter().map(|item| match item {
                ValueSlot::Held(data) => Some(data.clone()),
                ValueSlot::Away(_) => None,
            });
            inline.collect::<Option<Vec<Data>>>().map(Data::from)
        };
        self.whole.get_or_init(gather).clone()
    }
}

impl PartialEq for ValueList {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

/// Reference to a value to load: an event of the execution's log, or a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueRef {
    Event {
        /// Sequence number of the event.
        seq: Seq,
        /// Approximate size of the needed values in bytes.
        bytes: u64,
    },
    Blob(Arc<BlobRef>),
}

impl ValueRef {
    /// Returns the approximate size of the needed data in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Event { bytes, .. } => *bytes,
            Self::Blob(reference) => reference.bytes,
        }
    }

    /// Returns `true` if both refer to the same event or blob.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Event { seq, .. }, Self::Event { seq: other, .. }) => seq == other,
            (Self::Blob(blob), Self::Blob(other)) => blob.digest == other.digest,
            _ => false,
        }
    }
}

impl ValueSlot {
    /// Creates a slot for a value with a single source.
    pub fn away(source: ValueSource) -> Self {
        Self::Away(Arc::new(DeferredValue { parts: vec![ValuePatch { path: Vec::new(), source }] }))
    }

    /// Returns a field that is known without loading the value. `None` does not mean that it is
    /// missing.
    pub fn known_field(&self, key: &str) -> Option<Data> {
        let Self::Away(away) = self else { return None };
        match away.parts.as_slice() {
            [ValuePatch { path, source: ValueSource::Blob { fields, .. } }] if path.is_empty() => {
                fields.as_object()?.get_value_by_str(key)
            }
            parts if parts.iter().all(|part| part.path.len() == 1) => {
                let part = parts.iter().find(|part| &*part.path[0] == key)?;
                part.source.inline()
            }
            _ => None,
        }
    }

    /// Creates a map of fields, each inline or by reference.
    pub fn fields(fields: impl IntoIterator<Item = (Arc<str>, ValueSource)>) -> Self {
        let part = |(name, source)| ValuePatch { path: vec![name], source };
        Self::Away(Arc::new(DeferredValue { parts: fields.into_iter().map(part).collect() }))
    }

    /// Returns the references to load for the value.
    pub fn places(&self) -> impl Iterator<Item = ValueRef> {
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

    /// Returns the slot after a write of `source` at `path`. Creates objects along the path as
    /// needed.
    #[must_use]
    pub fn written(self, path: &[&str], source: ValueSource) -> Self {
        if path.is_empty() {
            return match source {
                ValueSource::Held(data) => Self::Held(data),
                source => Self::away(source),
            };
        }
        let path: Vec<Arc<str>> = path.iter().map(|name| Arc::from(*name)).collect();
        let part = ValuePatch { path, source };
        let parts = match self {
            Self::Held(data) => {
                vec![ValuePatch { path: Vec::new(), source: ValueSource::Held(data) }, part]
            }
            Self::Away(away) => {
                let mut parts = Arc::unwrap_or_clone(away).parts;
                overwrite(&mut parts, part);
                parts
            }
        };
        let inline: Option<Vec<Data>> = parts.iter().map(|part| part.source.inline()).collect();
        match inline {
            Some(inline) => Self::Held(merged(&parts, &inline)),
            None => Self::Away(Arc::new(DeferredValue { parts })),
        }
    }
}

/// Adds a write and removes the writes it hides, so that there is at most one part per path. The
/// new part replaces the first hidden one, because a key stays at the position of its first write.
fn overwrite(parts: &mut Vec<ValuePatch>, part: ValuePatch) {
    let hidden = |old: &ValuePatch| old.path.starts_with(&part.path);
    let first = parts.iter().position(hidden).unwrap_or(parts.len());
    parts.retain(|old| !hidden(old));
    parts.insert(first, part);
}

impl ValueSource {
    fn inline(&self) -> Option<Data> {
        match self {
            Self::Held(data) => Some(data.clone()),
            Self::Event { .. } | Self::Blob { .. } => None,
            Self::List(gathered) => gathered.inline(),
        }
    }

    /// Adds all references to load for the source.
    fn add_places(&self, places: &mut Vec<ValueRef>) {
        match self {
            Self::List(gathered) if gathered.inline().is_none() => {
                places.extend(gathered.items().iter().flat_map(ValueSlot::places));
            }
            source => places.extend(source.place()),
        }
    }

    /// Returns the reference to load for the source, if it is a single one.
    pub(super) fn place(&self) -> Option<ValueRef> {
        match self {
            Self::Held(_) | Self::List(_) => None,
            Self::Event { seq, bytes, .. } => Some(ValueRef::Event { seq: *seq, bytes: *bytes }),
            Self::Blob { reference, .. } => Some(ValueRef::Blob(reference.clone())),
        }
    }
}

/// Merges writes to a value. `values` are the values of `parts`.
pub(super) fn merged(parts: &[ValuePatch], values: &[Data]) -> Data {
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

/// Returns the JSON that a value was created from, without a size limit. A value without a JSON
/// form becomes null.
pub fn exact_json(data: &Data) -> Value {
    serde_json::to_value(data).unwrap_or(Value::Null)
}
