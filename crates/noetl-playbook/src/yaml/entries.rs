//! Entries of a mapping during parsing.

use std::collections::HashMap;
use std::rc::Rc;

use super::node::{MapKey, Node};
use crate::diagnostic::SourcePos;

/// Maximum size of mappings that are searched linearly for duplicates. For them, a hash table costs
/// more.
const SMALL_MAP: usize = 16;

/// Entries of a mapping during parsing.
#[derive(Default)]
pub(super) struct Entries {
    list: Vec<(MapKey, Node)>,
    places: HashMap<Rc<str>, SourcePos>,
    /// Mappings merged with `<<`, in order of precedence.
    pub(super) inherited: Vec<Rc<Vec<(MapKey, Node)>>>,
    /// Whether a key was itself a mapping, as in an unquoted `{{ x }}`.
    pub(super) bare_template: bool,
}

impl Entries {
    /// Returns the position of a key, if present.
    pub(super) fn place_of(&self, name: &str) -> Option<SourcePos> {
        if self.list.len() <= SMALL_MAP {
            let mut keys = self.list.iter().map(|(key, _)| key);
            return keys.find(|key| &*key.name == name).map(|key| key.at);
        }
        self.places.get(name).copied()
    }

    /// Adds an entry with a new key.
    pub(super) fn push(&mut self, key: MapKey, value: Node) {
        if self.list.len() == SMALL_MAP {
            let known = self.list.iter().map(|(key, _)| (Rc::clone(&key.name), key.at));
            self.places = known.collect();
        }
        if self.list.len() >= SMALL_MAP {
            self.places.insert(Rc::clone(&key.name), key.at);
        }
        self.list.push((key, value));
    }

    /// Returns all entries: explicit ones, then merged ones, earlier maps first.
    pub(super) fn finish(mut self) -> Vec<(MapKey, Node)> {
        for inherited in std::mem::take(&mut self.inherited) {
            for (key, value) in inherited.iter() {
                if self.place_of(&key.name).is_none() {
                    self.push(key.clone(), value.clone());
                }
            }
        }
        self.list
    }
}
