//! `keychain`: secrets by the names a playbook declares, found when a template touches them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Data;

/// The entries that templates may name, and what is known of them so far.
///
/// There is one only where a worker renders. An entry that is declared and not found yet is noted
/// as wanted; what is not declared, or a field that an entry does not have, is refused instead of
/// being undefined, because an empty secret is never what the author meant.
#[derive(Clone, Default)]
pub struct Keychain {
    declared: BTreeSet<Arc<str>>,
    found: BTreeMap<Arc<str>, Data>,
}

/// Shows which entries there are, never what is in them.
impl std::fmt::Debug for Keychain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keychain").field("declared", &self.declared).finish_non_exhaustive()
    }
}

impl Keychain {
    /// A keychain that declares these entries.
    pub fn new(declared: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { declared: declared.into_iter().collect(), found: BTreeMap::new() }
    }

    /// Gives an entry its fields.
    pub fn insert(&mut self, name: Arc<str>, fields: Data) {
        self.found.insert(name, fields);
    }

    /// Forgets what was found, so that it is asked for again.
    pub fn forget(&mut self) {
        self.found.clear();
    }

    pub(super) fn find(&self, name: &str) -> Lookup<'_> {
        match (self.found.get(name), self.declared.get(name)) {
            (Some(fields), _) => Lookup::Found(fields),
            (None, Some(name)) => Lookup::Wanted(name.clone()),
            (None, None) => Lookup::Refused(self.undeclared(name)),
        }
    }

    fn undeclared(&self, name: &str) -> String {
        let known: Vec<&str> = self.declared.iter().map(|name| &**name).collect();
        match known.as_slice() {
            [] => format!("the playbook's keychain declares no '{name}'"),
            known => format!(
                "the playbook's keychain declares no '{name}'; this step may use {}",
                known.join(", ")
            ),
        }
    }
}

/// What a keychain knows of a name.
pub(super) enum Lookup<'k> {
    Found(&'k Data),
    Wanted(Arc<str>),
    Refused(String),
}

/// What is wrong with asking for a field that an entry does not have.
pub(super) fn no_field(name: &str, fields: &Data, field: &str) -> String {
    let known: Vec<String> =
        fields.try_iter().map(|keys| keys.map(|key| key.to_string()).collect()).unwrap_or_default();
    match known.as_slice() {
        [] => format!("the keychain's '{name}' has no field '{field}'; it has none"),
        known => {
            format!("the keychain's '{name}' has no field '{field}'; it has {}", known.join(", "))
        }
    }
}
