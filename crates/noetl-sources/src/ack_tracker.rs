//! Tracks unacked messages of a source that only stores a consumer position.
//!
//! Messages are acked in any order. The position may advance past a message once all earlier ones
//! are acked. Nacked messages wait in memory for redelivery. If the process dies, the source
//! redelivers them, because its position never advanced past them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Messages delivered and not acked, in the order of the source. Each has a mark that denotes its
/// position at the source.
pub(crate) struct AckTracker<M, T>(Arc<Mutex<BTreeMap<u64, TrackedMessage<M, T>>>>);

struct TrackedMessage<M, T> {
    mark: M,
    state: AckState<T>,
}

/// Delivery state of a message. An acked message waits for earlier ones, and its content is
/// dropped.
enum AckState<T> {
    Out(T),
    Again(Instant, T),
    Done,
}

impl<M, T> Clone for AckTracker<M, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M, T> Default for AckTracker<M, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<M, T: Clone> AckTracker<M, T> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, TrackedMessage<M, T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an item was delivered.
    pub(crate) fn begin(&self, place: u64, mark: M, item: T) {
        self.lock().insert(place, TrackedMessage { mark, state: AckState::Out(item) });
    }

    /// Returns the number of items that the position has not advanced past.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns up to `most` nacked items whose delay has passed, and marks them as delivered.
    pub(crate) fn due(&self, now: Instant, most: usize) -> Vec<(u64, T)> {
        let mut all = self.lock();
        let due = all.iter_mut().filter_map(|(place, entry)| match &entry.state {
            AckState::Again(at, item) if *at <= now => {
                let item = item.clone();
                entry.state = AckState::Out(item.clone());
                Some((*place, item))
            }
            AckState::Again(..) | AckState::Out(_) | AckState::Done => None,
        });
        due.take(most).collect()
    }

    /// Records that an item is acked. If the position can advance, returns the last item before the
    /// first unacked one, with its mark.
    pub(crate) fn done(&self, place: u64) -> Option<(u64, M)> {
        let mut all = self.lock();
        if let Some(entry) = all.get_mut(&place) {
            entry.state = AckState::Done;
        }
        let mut last = None;
        while let Some(first) = all.first_entry() {
            if !matches!(first.get().state, AckState::Done) {
                break;
            }
            let (place, entry) = first.remove_entry();
            last = Some((place, entry.mark));
        }
        last
    }

    /// Schedules an item for redelivery after a delay, unless it is acked.
    pub(crate) fn schedule_redelivery(&self, place: u64, after: Duration) {
        if let Some(entry) = self.lock().get_mut(&place)
            && let AckState::Out(item) = &entry.state
        {
            entry.state = AckState::Again(Instant::now() + after, item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_advances_past_a_message_once_all_earlier_ones_are_acked() {
        let ledger = AckTracker::default();
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
    fn a_redelivered_message_blocks_the_position_and_is_delivered_once() {
        let ledger = AckTracker::default();
        let now = Instant::now();
        ledger.begin(1, (), "a");
        ledger.begin(2, (), "b");
        ledger.schedule_redelivery(1, Duration::from_secs(5));
        assert_eq!(ledger.done(2), None);
        assert_eq!(ledger.due(now, 10), []);
        let later = now + Duration::from_secs(10);
        assert_eq!(ledger.due(later, 10), [(1, "a")]);
        assert_eq!(ledger.due(later, 10), []);
        assert_eq!(ledger.done(1), Some((2, ())));
        ledger.schedule_redelivery(1, Duration::ZERO);
        assert_eq!(ledger.due(later, 10), [], "what is answered for does not come again");
    }
}
