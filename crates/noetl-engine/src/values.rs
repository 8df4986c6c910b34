//! What a state keeps of the values that pass through it: small ones, and places of the others.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::{Failure, Seq, Value};
use noetl_playbook::template::{
    Away, Data, Names, Place, Slot, Source, exact_json, from_json, from_json_owned,
};

/// A value up to this rough size is held in memory; of a larger one only its place is known.
pub const VALUE_BYTES_MAX: usize = 1024;

/// Values of one execution are held up to this rough size together; beyond it further ones are
/// not held, whatever their size.
pub const VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How much of its values a state holds. What is decided does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest value that is held.
    pub value_bytes: usize,
    /// The most that is held of all values together.
    pub total_bytes: usize,
}

impl Limits {
    /// Everything is held, except what is in blobs: for callers that cannot load.
    pub const NONE: Self = Self { value_bytes: usize::MAX, total_bytes: usize::MAX };

    /// Whether a loop's items are held at all.
    pub(crate) fn holds_items(self) -> bool {
        self.value_bytes > 0
    }

    /// What is kept of `value` while `held` bytes are: the value, or where it is.
    pub(crate) fn keep(
        self,
        held: usize,
        value: &Value,
        seq: Seq,
        key: Option<&str>,
    ) -> (Source, usize) {
        let bytes = size_of(value);
        if bytes <= self.value_bytes && held.saturating_add(bytes) <= self.total_bytes {
            (Source::Held(from_json(value)), bytes)
        } else {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            (Source::Event { seq, key: key.map(Arc::from), bytes }, PART)
        }
    }

    /// What is kept of a tool's answer.
    pub(crate) fn keep_answer(
        self,
        held: usize,
        data: &Value,
        reference: Option<&Arc<BlobRef>>,
        seq: Seq,
    ) -> Kept {
        let (source, bytes) = self.keep(held, data, seq, None);
        let Some(reference) = reference else {
            return Kept { slot: slot(source), bytes };
        };
        // Fields that are not held are found in the blob.
        let fields = match source {
            Source::Held(fields) => fields,
            Source::Event { .. } | Source::Blob { .. } | Source::List(_) => Data::from(()),
        };
        let slot = Slot::away(Source::Blob { reference: reference.clone(), fields });
        let bytes = size_of_slot(&slot);
        Kept { slot, bytes }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { value_bytes: VALUE_BYTES_MAX, total_bytes: VALUES_BYTES_MAX }
    }
}

/// A slot and a rough size in memory of what it holds itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kept {
    pub(crate) slot: Slot,
    pub(crate) bytes: usize,
}

/// A slot of one source.
pub(crate) fn slot(source: Source) -> Slot {
    match source {
        Source::Held(data) => Slot::Held(data),
        source => Slot::away(source),
    }
}

/// Named values with their rough sizes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Values {
    pub(crate) names: Arc<Names>,
    sizes: HashMap<Arc<str>, usize>,
    /// A rough size of all of them.
    pub(crate) bytes: usize,
}

/// What a name held before it was set: nothing, or a slot and its size.
pub(crate) type Before = Option<(Slot, usize)>;

impl Values {
    /// Gives a name a value; answers with what it replaces.
    pub(crate) fn set(&mut self, name: Arc<str>, slot: Slot, bytes: usize) -> Before {
        let names = Arc::make_mut(&mut self.names);
        let old = names.insert(name.clone(), slot);
        let size = self.sizes.insert(name, bytes).unwrap_or(0);
        self.bytes = self.bytes - size + bytes;
        old.map(|slot| (slot, size))
    }

    /// Writes below a dotted path, making maps on the way; answers with the first name of it and
    /// what that replaces.
    pub(crate) fn write(&mut self, path: &str, source: Source, bytes: usize) -> (Arc<str>, Before) {
        let mut names = path.split('.');
        let name: Arc<str> = Arc::from(names.next().unwrap_or_default());
        let below: Vec<&str> = names.collect();
        let (slot, bytes) = if below.is_empty() {
            (slot(source), bytes)
        } else {
            let before = self.get(&name).cloned().unwrap_or_default();
            let slot = before.written(&below, source);
            let bytes = size_of_slot(&slot);
            (slot, bytes)
        };
        let before = self.set(name.clone(), slot, bytes);
        (name, before)
    }

    /// Undoes the last [`Values::set`] of a name that was not undone yet.
    pub(crate) fn unset(&mut self, name: &Arc<str>, before: Before) {
        if let Some((slot, bytes)) = before {
            self.set(name.clone(), slot, bytes);
            return;
        }
        // It was the last to be added, so that removing it moves no other.
        Arc::make_mut(&mut self.names).shift_remove(name);
        self.bytes -= self.sizes.remove(name).unwrap_or(0);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Slot> {
        self.names.get(name)
    }
}

/// A failure that nobody handled: here, or in the `step.exit` that recorded it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KeptFailure {
    Held(Failure),
    At { seq: Seq, bytes: u64 },
}

impl KeptFailure {
    /// What has to be loaded for it.
    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Self::Held(_) => None,
            Self::At { seq, bytes } => Some(Place::Event { seq: *seq, bytes: *bytes }),
        }
    }
}

/// What a place costs in memory.
const PART: usize = 96;

/// A rough size in memory of what a slot holds itself.
pub(crate) fn size_of_slot(slot: &Slot) -> usize {
    match slot {
        Slot::Held(data) => size_of(&exact_json(data)),
        Slot::Away(away) => size_of_parts(away),
    }
}

fn size_of_parts(away: &Away) -> usize {
    let held = |source: &Source| match source {
        Source::Held(data) | Source::Blob { fields: data, .. } => size_of(&exact_json(data)),
        Source::Event { .. } => 0,
        Source::List(gathered) => gathered.items().iter().map(size_of_slot).sum(),
    };
    away.parts.iter().map(|part| PART + held(&part.source)).sum()
}

/// A rough size of a value in memory.
pub(crate) fn size_of(value: &Value) -> usize {
    const NODE: usize = 32;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => NODE,
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(size_of).sum::<usize>(),
        Value::Object(map) => {
            NODE + map.iter().map(|(key, value)| NODE + key.len() + size_of(value)).sum::<usize>()
        }
    }
}

/// A rough size of a failure in memory.
pub(crate) fn size_of_failure(failure: &Failure) -> usize {
    failure.message.len() + failure.details.as_deref().map_or(0, size_of)
}

/// What later templates see of a failed step: what the tool still answered, at the top and below
/// `error`, so that a failed step is read as `output` was in its own arcs.
pub(crate) fn failed_result(failure: &Failure) -> Data {
    from_json_owned(failed_value(failure))
}

/// The same as JSON.
pub(crate) fn failed_value(failure: &Failure) -> Value {
    let details = match failure.details.as_deref() {
        Some(Value::Object(details)) => details.clone(),
        _ => noetl_model::Map::new(),
    };
    let mut error = details.clone();
    error.insert("kind".into(), failure.kind.as_str().into());
    error.insert("message".into(), failure.message.as_str().into());
    error.insert("retryable".into(), failure.retryable.into());
    let mut result = details;
    result.insert("status".into(), "error".into());
    result.insert("ok".into(), false.into());
    result.insert("error".into(), Value::Object(error));
    Value::Object(result)
}
