//! What was loaded for a decision, and what turned out to be needed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noetl_model::Seq;

use super::Data;
use super::slot::{Away, Gathered, Part, Place, Slot, Source, merged};

/// Values of places, by place.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    values: HashMap<(Seq, Option<Arc<str>>), Data>,
    events: HashSet<Seq>,
    blobs: HashMap<Arc<str>, Data>,
    lost: Vec<(Place, String)>,
}

impl Loaded {
    /// Notes what an event holds: one value, or one per name.
    pub fn insert_event(
        &mut self,
        seq: Seq,
        values: impl IntoIterator<Item = (Option<Arc<str>>, Data)>,
    ) {
        self.events.insert(seq);
        self.values.extend(values.into_iter().map(|(key, data)| ((seq, key), data)));
    }

    /// Notes what the blob of this digest holds.
    pub fn insert_blob(&mut self, digest: Arc<str>, data: Data) {
        self.blobs.insert(digest, data);
    }

    /// Notes that a place cannot be read, and why: what touches it fails instead of waiting.
    pub fn insert_lost(&mut self, place: Place, why: String) {
        self.lost.push((place, why));
    }

    /// Whether a place was looked at, successfully or not.
    pub fn has(&self, place: &Place) -> bool {
        let found = match place {
            Place::Event { seq, .. } => self.events.contains(seq),
            Place::Blob(reference) => self.blobs.contains_key(&reference.digest),
        };
        found || self.lost_because(place).is_some()
    }

    fn lost_because(&self, place: &Place) -> Option<&str> {
        let lost = self.lost.iter().find(|(lost, _)| lost.is_same(place));
        lost.map(|(_, why)| why.as_str())
    }
}

/// How a scope gets at values that are away. Clones note what they miss in one list.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    loaded: Arc<Loaded>,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Debug, Default)]
struct Noted {
    needed: Vec<Place>,
    lost: Option<String>,
    /// Entries of the keychain that were touched and are not found yet.
    secrets: Vec<Arc<str>>,
    /// What was asked of the keychain that it cannot give.
    refused: Option<String>,
    /// Values put together from several parts, so that a loop in a template does it once.
    merged: Vec<(Arc<Away>, Data)>,
}

impl Reach {
    /// Among these values.
    pub fn new(loaded: Arc<Loaded>) -> Self {
        Self { loaded, noted: Arc::default() }
    }

    /// Places that templates touched and that are not loaded. What was rendered meanwhile is
    /// worth nothing: a missing value counts as undefined, so that the rest is noted too.
    pub fn needed(&self) -> Vec<Place> {
        self.noted().needed.clone()
    }

    /// Why a value that templates touched cannot be had.
    pub fn lost(&self) -> Option<String> {
        self.noted().lost.clone()
    }

    /// Entries of the keychain that templates touched and that are not found yet.
    pub fn secrets(&self) -> Vec<Arc<str>> {
        self.noted().secrets.clone()
    }

    /// What templates asked of the keychain that it cannot give.
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

    /// The value of a slot; undefined, and noted, when it is away and not loaded.
    pub fn data(&self, slot: &Slot) -> Data {
        let away = match slot {
            Slot::Held(data) => return data.clone(),
            Slot::Away(away) => away,
        };
        if let [part] = away.parts.as_slice()
            && part.path.is_empty()
        {
            return self.source(&part.source).unwrap_or(Data::UNDEFINED);
        }
        if let Some((_, data)) = self.noted().merged.iter().find(|(of, _)| Arc::ptr_eq(of, away)) {
            return data.clone();
        }
        // All parts are looked up even if one is missing, so that all are noted.
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

    fn source(&self, source: &Source) -> Option<Data> {
        let found = match source {
            Source::Held(data) => return Some(data.clone()),
            Source::Event { seq, key, .. } => self.loaded.values.get(&(*seq, key.clone())),
            Source::Blob { reference, .. } => self.loaded.blobs.get(&reference.digest),
            Source::List(gathered) => return self.list(gathered),
        };
        if found.is_none()
            && let Some(place) = source.place()
        {
            self.note(place);
        }
        found.cloned()
    }

    /// A gathered list. All items are looked up even if one is missing, so that all are noted.
    fn list(&self, gathered: &Gathered) -> Option<Data> {
        if let Some(whole) = gathered.held() {
            return Some(whole);
        }
        let items: Vec<Data> = gathered.items().iter().map(|item| self.data(item)).collect();
        let is_whole = !items.iter().any(Data::is_undefined);
        is_whole.then(|| Data::from(items))
    }

    fn note(&self, place: Place) {
        if let Some(why) = self.loaded.lost_because(&place) {
            self.noted().lost.get_or_insert_with(|| why.to_owned());
        } else if self.loaded.has(&place) {
            // Asking again would give the same event again.
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

/// What parts come to. Fields side by side are put into a map as they are; only writes one over the
/// other have to be copied.
fn put_together(parts: &[Part], values: Vec<Data>) -> Data {
    if parts.iter().all(|part| part.path.len() == 1) {
        let names = parts.iter().map(|part| part.path[0].clone());
        return Data::from_pairs(names.map(Data::from).zip(values));
    }
    merged(parts, &values)
}
