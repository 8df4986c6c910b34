//! Values in the state: small ones inline, large ones as references.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::{Failure, Seq, Value};
use noetl_template::{
    Data, DeferredValue, Names, ValueRef, ValueSlot, ValueSource, exact_json, from_json,
    from_json_owned,
};

/// Maximum approximate size, in bytes, of a value stored inline. A larger one is stored as a
/// reference.
pub const VALUE_BYTES_MAX: usize = 1024;

/// Maximum approximate size, in bytes, of all inline values of one execution. Beyond it, the state
/// stores further values as references, whatever their size.
pub const VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Limits on the values that a state stores inline. They do not affect decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueLimits {
    /// Maximum size of one inline value, in bytes.
    pub value_bytes: usize,
    /// Maximum size of all inline values together, in bytes.
    pub total_bytes: usize,
}

impl ValueLimits {
    /// No limit: all values are inline, except those in blobs. For callers that cannot load values.
    pub const NONE: Self = Self { value_bytes: usize::MAX, total_bytes: usize::MAX };

    /// Returns `true` if the state may store a loop's items inline.
    pub(crate) fn holds_items(self) -> bool {
        self.value_bytes > 0
    }

    /// Returns the inline value, or a reference to it, and the size it adds to the state.
    /// `inline_bytes` is the size of all inline values so far.
    pub(crate) fn store_or_reference(
        self,
        inline_bytes: usize,
        value: &Value,
        seq: Seq,
        key: Option<&str>,
    ) -> (ValueSource, usize) {
        let bytes = size_of(value);
        if bytes <= self.value_bytes && inline_bytes.saturating_add(bytes) <= self.total_bytes {
            (ValueSource::Held(from_json(value)), bytes)
        } else {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            (ValueSource::Event { seq, key: key.map(Arc::from), bytes }, PART)
        }
    }

    /// Returns the inline result of a tool, or a reference to it.
    pub(crate) fn store_answer(
        self,
        inline_bytes: usize,
        data: &Value,
        reference: Option<&Arc<BlobRef>>,
        seq: Seq,
    ) -> StoredValue {
        let (source, bytes) = self.store_or_reference(inline_bytes, data, seq, None);
        let Some(reference) = reference else {
            return StoredValue { slot: slot(source), bytes };
        };
        // Fields that are not inline are in the blob.
        let fields = match source {
            ValueSource::Held(fields) => fields,
            ValueSource::Event { .. } | ValueSource::Blob { .. } | ValueSource::List(_) => {
                Data::from(())
            }
        };
        let slot = ValueSlot::away(ValueSource::Blob { reference: reference.clone(), fields });
        let bytes = size_of_slot(&slot);
        StoredValue { slot, bytes }
    }
}

impl Default for ValueLimits {
    fn default() -> Self {
        Self { value_bytes: VALUE_BYTES_MAX, total_bytes: VALUES_BYTES_MAX }
    }
}

/// A slot and the approximate size in memory of its inline part, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredValue {
    pub(crate) slot: ValueSlot,
    pub(crate) bytes: usize,
}

/// Creates a slot from one source.
pub(crate) fn slot(source: ValueSource) -> ValueSlot {
    match source {
        ValueSource::Held(data) => ValueSlot::Held(data),
        source => ValueSlot::away(source),
    }
}

/// Named values with their approximate sizes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ValueTable {
    pub(crate) names: Arc<Names>,
    sizes: HashMap<Arc<str>, usize>,
    /// Approximate size of all values, in bytes.
    pub(crate) bytes: usize,
}

/// Previous value of a name: `None`, or a slot and its size.
pub(crate) type PreviousValue = Option<(ValueSlot, usize)>;

impl ValueTable {
    /// Sets the value of a name and returns the previous one.
    pub(crate) fn set(&mut self, name: Arc<str>, slot: ValueSlot, bytes: usize) -> PreviousValue {
        let names = Arc::make_mut(&mut self.names);
        let old = names.insert(name.clone(), slot);
        let size = self.sizes.insert(name, bytes).unwrap_or(0);
        self.bytes = self.bytes - size + bytes;
        old.map(|slot| (slot, size))
    }

    /// Writes below a dotted path and creates maps as needed. Returns the first name of the path
    /// and its previous value.
    pub(crate) fn write(
        &mut self,
        path: &str,
        source: ValueSource,
        bytes: usize,
    ) -> (Arc<str>, PreviousValue) {
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

    /// Undoes the last [`ValueTable::set`] of a name that was not undone.
    pub(crate) fn unset(&mut self, name: &Arc<str>, before: PreviousValue) {
        if let Some((slot, bytes)) = before {
            self.set(name.clone(), slot, bytes);
            return;
        }
        // The name was added last, so removing it does not change the order of the others.
        Arc::make_mut(&mut self.names).shift_remove(name);
        self.bytes -= self.sizes.remove(name).unwrap_or(0);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ValueSlot> {
        self.names.get(name)
    }
}

/// An unhandled failure: inline, or a reference to the `step.exit` event that recorded it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoredFailure {
    Held(Failure),
    At { seq: Seq, bytes: u64 },
}

impl StoredFailure {
    /// Returns the reference to load, or `None` if the failure is inline.
    pub(crate) fn place(&self) -> Option<ValueRef> {
        match self {
            Self::Held(_) => None,
            Self::At { seq, bytes } => Some(ValueRef::Event { seq: *seq, bytes: *bytes }),
        }
    }
}

/// Approximate size of a value reference in memory, in bytes.
const PART: usize = 96;

/// Returns the approximate size in memory of a slot's inline part, in bytes.
pub(crate) fn size_of_slot(slot: &ValueSlot) -> usize {
    match slot {
        ValueSlot::Held(data) => size_of(&exact_json(data)),
        ValueSlot::Away(away) => size_of_parts(away),
    }
}

fn size_of_parts(away: &DeferredValue) -> usize {
    let source_size = |source: &ValueSource| match source {
        ValueSource::Held(data) | ValueSource::Blob { fields: data, .. } => {
            size_of(&exact_json(data))
        }
        ValueSource::Event { .. } => 0,
        ValueSource::List(gathered) => gathered.items().iter().map(size_of_slot).sum(),
    };
    away.parts.iter().map(|part| PART + source_size(&part.source)).sum()
}

/// Returns the approximate size of a value in memory, in bytes.
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

/// Returns the approximate size of a failure in memory, in bytes.
pub(crate) fn size_of_failure(failure: &Failure) -> usize {
    failure.message.len() + failure.details.as_deref().map_or(0, size_of)
}

/// Returns the result of a failed step as later templates see it: the tool's data, at the top level
/// and below `error`, so that templates read it like `output` in the step's own arcs.
pub(crate) fn failed_result(failure: &Failure) -> Data {
    from_json_owned(failed_value(failure))
}

/// Returns the result of a failed step as JSON; see [`failed_result`].
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
