//! Values loaded for a decision, and values found to be missing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Enumerator, Object};
use noetl_model::Seq;

use super::data::Data;
use super::value_ref::{
    DeferredValue, Names, ValueList, ValuePatch, ValueRef, ValueSlot, ValueSource, merged,
};

#[derive(Debug, Clone, Default)]
pub struct LoadedValues {
    values: HashMap<(Seq, Option<Arc<str>>), Data>,
    events: HashSet<Seq>,
    blobs: HashMap<Arc<str>, Data>,
    lost: Vec<(ValueRef, String)>,
}

impl LoadedValues {
    /// Stores the values of an event: a single one, or one per name.
    pub fn insert_event(
        &mut self,
        seq: Seq,
        values: impl IntoIterator<Item = (Option<Arc<str>>, Data)>,
    ) {
        self.events.insert(seq);
        self.values.extend(values.into_iter().map(|(key, data)| ((seq, key), data)));
    }

    /// Stores the value of the blob with this digest.
    pub fn insert_blob(&mut self, digest: Arc<str>, data: Data) {
        self.blobs.insert(digest, data);
    }

    /// Records that a referenced value cannot be read, and why. Templates that use it fail instead
    /// of requesting it.
    pub fn insert_lost(&mut self, place: ValueRef, why: String) {
        self.lost.push((place, why));
    }

    /// Returns `true` if a load was attempted, successfully or not.
    pub fn has(&self, place: &ValueRef) -> bool {
        let is_loaded = match place {
            ValueRef::Event { seq, .. } => self.events.contains(seq),
            ValueRef::Blob(reference) => self.blobs.contains_key(&reference.digest),
        };
        is_loaded || self.lost_because(place).is_some()
    }

    fn lost_because(&self, place: &ValueRef) -> Option<&str> {
        let lost = self.lost.iter().find(|(lost, _)| lost.is_same(place));
        lost.map(|(_, why)| why.as_str())
    }
}

/// Access to values that are not in memory. Clones record missing values in the same list.
#[derive(Debug, Clone, Default)]
pub struct ValueLoader {
    loaded: Arc<LoadedValues>,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Debug, Default)]
struct Noted {
    needed: Vec<ValueRef>,
    lost: Option<String>,
    /// Keychain entries that templates read and that are not resolved yet.
    secrets: Vec<Arc<str>>,
    /// Reason that the keychain rejected a request.
    refused: Option<String>,
    /// Values merged from several parts, cached so that a loop in a template merges them once.
    merged: Vec<(Arc<DeferredValue>, Data)>,
}

impl ValueLoader {
    /// Creates access to these values.
    pub fn new(loaded: Arc<LoadedValues>) -> Self {
        Self { loaded, noted: Arc::default() }
    }

    /// Returns the referenced values that templates read and that are not loaded. Discard the
    /// rendering if there are any: missing values count as undefined, so that rendering continues
    /// and finds all of them.
    pub fn needed(&self) -> Vec<ValueRef> {
        self.noted().needed.clone()
    }

    /// Returns the reason that a value used by templates cannot be read.
    pub fn lost(&self) -> Option<String> {
        self.noted().lost.clone()
    }

    /// Returns the keychain entries that templates read and that are not resolved yet.
    pub fn secrets(&self) -> Vec<Arc<str>> {
        self.noted().secrets.clone()
    }

    /// Returns the reason that the keychain rejected a request of a template.
    pub fn refused(&self) -> Option<String> {
        self.noted().refused.clone()
    }

    pub(super) fn want_secret(&self, name: Arc<str>) {
        let mut noted = self.noted();
        if !noted.secrets.contains(&name) {
            noted.secrets.push(name);
        }
    }

    pub(super) fn refuse_secret(&self, why: String) {
        self.noted().refused.get_or_insert(why);
    }

    /// Returns the value of a slot. If it is not loaded, records that and returns undefined.
    pub fn data(&self, slot: &ValueSlot) -> Data {
        let away = match slot {
            ValueSlot::Held(data) => return data.clone(),
            ValueSlot::Away(away) => away,
        };
        if let [part] = away.parts.as_slice()
            && part.path.is_empty()
        {
            return self.source(&part.source).unwrap_or(Data::UNDEFINED);
        }
        if let Some((_, data)) = self.noted().merged.iter().find(|(of, _)| Arc::ptr_eq(of, away)) {
            return data.clone();
        }
        // Look up all parts even if one is missing, so that all missing parts are recorded.
        let values: Vec<_> = away.parts.iter().map(|part| self.source(&part.source)).collect();
        match values.into_iter().collect::<Option<Vec<Data>>>() {
            None => Data::UNDEFINED,
            Some(values) => {
                let data = put_together(&away.parts, values);
                self.noted().merged.push((away.clone(), data.clone()));
                data
            }
        }
    }

    fn source(&self, source: &ValueSource) -> Option<Data> {
        let value = match source {
            ValueSource::Held(data) => return Some(data.clone()),
            ValueSource::Event { seq, key, .. } => self.loaded.values.get(&(*seq, key.clone())),
            ValueSource::Blob { reference, .. } => self.loaded.blobs.get(&reference.digest),
            ValueSource::List(gathered) => return self.list(gathered),
        };
        if value.is_none()
            && let Some(place) = source.place()
        {
            self.note(place);
        }
        value.cloned()
    }

    /// Returns a gathered list. Looks up all items even if one is missing, so that all missing
    /// items are recorded.
    fn list(&self, gathered: &ValueList) -> Option<Data> {
        if let Some(whole) = gathered.inline() {
            return Some(whole);
        }
        let items: Vec<Data> = gathered.items().iter().map(|item| self.data(item)).collect();
        let is_whole = !items.iter().any(Data::is_undefined);
        is_whole.then(|| Data::from(items))
    }

    fn note(&self, place: ValueRef) {
        if let Some(why) = self.loaded.lost_because(&place) {
            self.noted().lost.get_or_insert_with(|| why.to_owned());
        } else if self.loaded.has(&place) {
            // Loading the event once more would give the same result.
            let why = "the log does not hold what the state expects there".to_owned();
            self.noted().lost.get_or_insert(why);
        } else {
            let mut noted = self.noted();
            if !noted.needed.iter().any(|known| known.is_same(&place)) {
                noted.needed.push(place);
            }
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A map of names shared with the scope. Values that are not in memory are looked up when read.
#[derive(Debug)]
pub(super) struct SharedNames {
    pub(super) names: Arc<Names>,
    pub(super) reach: ValueLoader,
}

impl Object for SharedNames {
    fn get_value(self: &Arc<Self>, key: &Data) -> Option<Data> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Data> {
        self.names.get(key).map(|slot| self.reach.data(slot))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let keys = self.names.keys().map(|key| Data::from(Arc::clone(key)));
        Enumerator::Values(keys.collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.names.len())
    }
}

/// Combines parts to a value. Disjoint fields are put into a map without copying; only overlapping
/// writes require a copy.
fn put_together(parts: &[ValuePatch], values: Vec<Data>) -> Data {
    if parts.iter().all(|part| part.path.len() == 1) {
        let names = parts.iter().map(|part| part.path[0].clone());
        return Data::from_pairs(names.map(Data::from).zip(values));
    }
    merged(parts, &values)
}
