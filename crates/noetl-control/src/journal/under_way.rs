//! What batches that are not committed yet append.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use noetl_model::{Event, ExecutionId};

use super::batch::Pending;
use super::decide::holds_a_value;
use super::writer::{Waiters, Writer};

/// What batches under way append to one execution.
#[derive(Default)]
pub(super) struct UnderWay {
    pub(super) batches: usize,
    /// Those of their events that hold values, which a decision on top of them may need.
    pub(super) events: Vec<Arc<Event>>,
    /// The batch of each.
    pub(super) numbers: Vec<u64>,
}

impl Writer {
    /// Whether a batch under way appends to an execution.
    pub(super) fn is_under_way(&self, execution: ExecutionId) -> bool {
        self.under_way.contains_key(&execution)
    }

    pub(super) fn set_off(&mut self, pending: &[(Pending, Option<usize>)]) {
        for (pending, _) in pending.iter().filter(|(_, place)| place.is_some()) {
            let under_way = self.under_way.entry(pending.execution).or_default();
            under_way.batches += 1;
            for event in pending.events.iter().filter(|event| holds_a_value(event)) {
                under_way.events.push(event.clone());
                under_way.numbers.push(self.batch);
            }
        }
    }

    /// Forgets the values of batches that cannot be kept, because one before them was not: another
    /// process may have recorded other events at their places.
    pub(super) fn forget_doomed(&mut self, execution: ExecutionId) {
        if let Some(under_way) = self.under_way.get_mut(&execution) {
            under_way.events.clear();
            under_way.numbers.clear();
        }
    }

    pub(super) fn arrived(&mut self, waiters: &Waiters) {
        for (pending, _) in waiters.pending.iter().filter(|(_, place)| place.is_some()) {
            if let Entry::Occupied(mut under_way) = self.under_way.entry(pending.execution) {
                let now = under_way.get_mut();
                now.batches -= 1;
                // What has arrived is in the store, or is in no log.
                let here = now.numbers.partition_point(|number| *number <= waiters.batch);
                now.events.drain(..here);
                now.numbers.drain(..here);
                if now.batches == 0 {
                    under_way.remove();
                }
            }
        }
    }
}
