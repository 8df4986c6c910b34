//! Tracks the appends of batches that are not committed yet.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use noetl_model::{Event, ExecutionId};

use super::batch::UncommittedItem;
use super::decide::holds_a_value;
use super::writer::{CommitWaiters, JournalWriter};

/// In-flight appends of one execution.
#[derive(Default)]
pub(super) struct InFlight {
    pub(super) batches: usize,
    /// Uncommitted events that carry values. Decisions on top of them may need those values.
    pub(super) events: Vec<Arc<Event>>,
    /// Batch number of each entry in `events`, in the same order.
    pub(super) numbers: Vec<u64>,
}

impl JournalWriter {
    /// Returns `true` if an in-flight batch appends to `execution`.
    pub(super) fn is_in_flight(&self, execution: ExecutionId) -> bool {
        self.under_way.contains_key(&execution)
    }

    pub(super) fn mark_in_flight(&mut self, pending: &[(UncommittedItem, Option<usize>)]) {
        for (pending, _) in pending.iter().filter(|(_, place)| place.is_some()) {
            let under_way = self.under_way.entry(pending.execution).or_default();
            under_way.batches += 1;
            for event in pending.decision.events.iter().filter(|event| holds_a_value(event)) {
                under_way.events.push(event.clone());
                under_way.numbers.push(self.batch);
            }
        }
    }

    /// Discards the values of batches that cannot be committed because an earlier batch was not.
    /// Another process may have written other events at their sequence numbers.
    pub(super) fn discard_uncommitted_values(&mut self, execution: ExecutionId) {
        if let Some(under_way) = self.under_way.get_mut(&execution) {
            under_way.events.clear();
            under_way.numbers.clear();
        }
    }

    pub(super) fn clear_in_flight(&mut self, waiters: &CommitWaiters) {
        for (pending, _) in waiters.pending.iter().filter(|(_, place)| place.is_some()) {
            if let Entry::Occupied(mut under_way) = self.under_way.entry(pending.execution) {
                let now = under_way.get_mut();
                now.batches -= 1;
                // These batches are done: their events are in the store, or in no log.
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
