//! `keychain`: secrets by declared name, resolved when a template reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::data::Data;

/// Declared keychain entries, and those resolved so far.
///
/// Exists only where a worker renders. A declared entry that is not resolved yet is recorded as
/// requested. An undeclared entry, or a field that an entry lacks, is an error instead of
/// undefined, because an empty secret is never intended.
#[derive(Clone, Default)]
pub struct KeychainNames {
    declared: BTreeSet<Arc<str>>,
    resolved: BTreeMap<Arc<str>, Data>,
}

/// Shows the names of the entries, never their contents.
impl std::fmt::Debug for KeychainNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keychain").field("declared", &self.declared).finish_non_exhaustive()
    }
}

impl KeychainNames {
    /// Creates a keychain that declares these entries.
    pub fn new(declared: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { declared: declared.into_iter().collect(), resolved: BTreeMap::new() }
    }

    /// Stores the fields of a resolved entry.
    pub fn insert(&mut self, name: Arc<str>, fields: Data) {
        self.resolved.insert(name, fields);
    }

    /// Discards resolved entries, so that templates request them again.
    pub fn forget(&mut self) {
        self.resolved.clear();
    }

    pub(super) fn find(&self, name: &str) -> Lookup<'_> {
        match (self.resolved.get(name), self.declared.get(name)) {
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

/// Result of looking up a name in a keychain.
pub(super) enum Lookup<'k> {
    Found(&'k Data),
    Wanted(Arc<str>),
    Refused(String),
}

/// Returns the message for a field that an entry does not have.
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
