//! Custom objects that templates can use as values.

use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object};

use super::data::Data;

/// Result of `namespace()`: the only mutable value, used to pass data out of a loop.
#[derive(Debug)]
pub(super) struct Namespace(Mutex<IndexMap<Arc<str>, Data>>);

impl Namespace {
    pub(super) fn new(fields: impl IntoIterator<Item = (Arc<str>, Data)>) -> Self {
        Self(Mutex::new(fields.into_iter().collect()))
    }

    pub(super) fn set(&self, field: &Arc<str>, value: Data) {
        let mut fields = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fields.insert(Arc::clone(field), value);
    }
}

impl Object for Namespace {
    fn get_value(self: &Arc<Self>, key: &Data) -> Option<Data> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Data> {
        let fields = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fields.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let fields = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = fields.keys().map(|key| Data::from(Arc::clone(key)));
        Enumerator::Values(keys.collect())
    }
}

/// The variable `loop` inside `{% for %}`.
#[derive(Debug)]
pub(super) struct LoopState {
    /// Index of the current item, from 0.
    pub(super) index: usize,
    /// All items of the loop.
    pub(super) items: Arc<[Data]>,
    pub(super) depth: usize,
}

impl LoopState {
    /// Returns the argument at the current position of the cycle.
    pub(super) fn cycle(&self, values: &[Data]) -> Data {
        match values.len() {
            0 => Data::UNDEFINED,
            length => values[self.index % length].clone(),
        }
    }
}

impl Object for LoopState {
    fn get_value(self: &Arc<Self>, key: &Data) -> Option<Data> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Data> {
        let left = self.items.len() - self.index;
        Some(match key {
            "index" => Data::from(self.index + 1),
            "index0" => Data::from(self.index),
            "revindex" => Data::from(left),
            "revindex0" => Data::from(left - 1),
            "first" => Data::from(self.index == 0),
            "last" => Data::from(left == 1),
            "length" => Data::from(self.items.len()),
            "depth" => Data::from(self.depth + 1),
            "depth0" => Data::from(self.depth),
            "previtem" => self.item(self.index.checked_sub(1)),
            "nextitem" => self.item(self.index.checked_add(1)),
            _ => return None,
        })
    }
}

impl LoopState {
    fn item(&self, index: Option<usize>) -> Data {
        index.and_then(|index| self.items.get(index)).cloned().unwrap_or(Data::UNDEFINED)
    }
}
