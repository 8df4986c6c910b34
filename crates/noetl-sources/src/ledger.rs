//! Messages of a source that only knows how far it was read.
//!
//! Messages are answered for in any order; the source may be told a place once everything before it is
//! answered for. What is to come again waits here, and goes with the process: then the source hands
//! it out again, because its place was never passed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What was handed out and not answered for, in the order of the source. Each has a mark, by which the
/// source knows its place.
pub(crate) struct Ledger<M, T>(Arc<Mutex<BTreeMap<u64, Entry<M, T>>>>);

struct Entry<M, T> {
    mark: M,
    state: State<T>,
}

/// What is answered for waits for those before it, and needs no room for what it held.
enum State<T> {
    Out(T),
    Again(Instant, T),
    Done,
}

impl<M, T> Clone for Ledger<M, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M, T> Default for Ledger<M, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<M, T: Clone> Ledger<M, T> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Entry<M, T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an item was handed out.
    pub(crate) fn begin(&self, place: u64, mark: M, item: T) {
        self.lock().insert(place, Entry { mark, state: State::Out(item) });
    }

    /// How many places are not passed.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Up to so many of those that are to come again, handed out once more.
    pub(crate) fn due(&self, now: Instant, most: usize) -> Vec<(u64, T)> {
        let mut all = self.lock();
        let due = all.iter_mut().filter_map(|(place, entry)| match &entry.state {
            State::Again(at, item) if *at <= now => {
                let item = item.clone();
                entry.state = State::Out(item.clone());
                Some((*place, item))
            }
            State::Again(..) | State::Out(_) | State::Done => None,
        });
        due.take(most).collect()
    }

    /// Notes that an item is answered for. Answers with the last place of the beginning that is answered
    /// for without a gap, and its mark, when that has moved.
    pub(crate) fn done(&self, place: u64) -> Option<(u64, M)> {
        let mut all = self.lock();
        if let Some(entry) = all.get_mut(&place) {
            entry.state = State::Done;
        }
        let mut last = None;
        while let Some(first) = all.first_entry() {
            if !matches!(first.get().state, State::Done) {
                break;
            }
            let (place, entry) = first.remove_entry();
            last = Some((place, entry.mark));
        }
        last
    }

    /// Notes that an item is to come again after a while, unless it is answered for.
    pub(crate) fn again(&self, place: u64, after: Duration) {
        if let Some(entry) = self.lock().get_mut(&place)
            && let State::Out(item) = &entry.state
        {
            entry.state = State::Again(Instant::now() + after, item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_passed_once_everything_before_it_is_answered_for() {
        let ledger = Ledger::default();
        for place in [3, 5, 7, 9] {
            ledger.begin(place, format!("m{place}"), ());
        }
        assert_eq!(ledger.done(5), None);
        assert_eq!(ledger.done(3), Some((5, "m5".to_owned())));
        assert_eq!(ledger.done(9), None);
        assert_eq!(ledger.done(9), None, "a word said twice changes nothing");
        assert_eq!(ledger.len(), 2);
        assert_eq!(ledger.done(7), Some((9, "m9".to_owned())));
        assert_eq!(ledger.done(7), None);
    }

    #[test]
    fn what_comes_again_holds_the_place_and_comes_once() {
        let ledger = Ledger::default();
        let now = Instant::now();
        ledger.begin(1, (), "a");
        ledger.begin(2, (), "b");
        ledger.again(1, Duration::from_secs(5));
        assert_eq!(ledger.done(2), None);
        assert_eq!(ledger.due(now, 10), []);
        let later = now + Duration::from_secs(10);
        assert_eq!(ledger.due(later, 10), [(1, "a")]);
        assert_eq!(ledger.due(later, 10), []);
        assert_eq!(ledger.done(1), Some((2, ())));
        ledger.again(1, Duration::ZERO);
        assert_eq!(ledger.due(later, 10), [], "what is answered for does not come again");
    }
}
