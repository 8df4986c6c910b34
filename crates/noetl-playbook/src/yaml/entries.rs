//! The entries of one mapping while it is read.

use std::collections::HashMap;
use std::rc::Rc;

use super::node::{Key, Node, Place};

/// Mappings up to this size are searched for duplicates key by key; a hash table costs more.
const SMALL_MAP: usize = 16;

/// The entries of a mapping being read.
#[derive(Default)]
pub(super) struct Entries {
    list: Vec<(Key, Node)>,
    places: HashMap<Rc<str>, Place>,
    /// Mappings that `<<` names, in the order they count.
    pub(super) inherited: Vec<Rc<Vec<(Key, Node)>>>,
    /// Whether a key was itself a mapping, as in `{{ x }}` without quotes.
    pub(super) bare_template: bool,
}

impl Entries {
    /// Where a key was written, if it was.
    pub(super) fn place_of(&self, name: &str) -> Option<Place> {
        if self.list.len() <= SMALL_MAP {
            let mut keys = self.list.iter().map(|(key, _)| key);
            return keys.find(|key| &*key.name == name).map(|key| key.at);
        }
        self.places.get(name).copied()
    }

    /// Adds an entry whose key is new.
    pub(super) fn push(&mut self, key: Key, value: Node) {
        if self.list.len() == SMALL_MAP {
            let known = self.list.iter().map(|(key, _)| (Rc::clone(&key.name), key.at));
            self.places = known.collect();
        }
        if self.list.len() >= SMALL_MAP {
            self.places.insert(Rc::clone(&key.name), key.at);
        }
        self.list.push((key, value));
    }

    /// All entries: those written out, then those merged in, earlier ones first.
    pub(super) fn finish(mut self) -> Vec<(Key, Node)> {
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
