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
        self.in_flight.contains_key(&execution)
    }

    pub(super) fn mark_in_flight(&mut self, pending: &[(UncommittedItem, Option<usize>)]) {
        for (pending, _) in pending.iter().filter(|(_, place)| place.is_some()) {
            let in_flight = self.in_flight.entry(pending.execution).or_default();
            in_flight.batches += 1;
            for event in pending.decision.events.iter().filter(|event| holds_a_value(event)) {
                in_flight.events.push(event.clone());
                in_flight.numbers.push(self.batch);
            }
        }
    }

    /// Discards the values of batches that cannot be committed because an earlier batch was not.
    /// Another process may have written other events at their sequence numbers.
    pub(super) fn discard_uncommitted_values(&mut self, execution: ExecutionId) {
        if let Some(in_flight) = self.in_flight.get_mut(&execution) {
            in_flight.events.clear();
            in_flight.numbers.clear();
        }
    }

    pub(super) fn clear_in_flight(&mut self, waiters: &CommitWaiters) {
        for (pending, _) in waiters.pending.iter().filter(|(_, place)| place.is_some()) {
            if let Entry::Occupied(mut in_flight) = self.in_flight.entry(pending.execution) {
                let now = in_flight.get_mut();
                now.batches -= 1;
                // These batches are done: their events are in the store, or in no log.
                let here = now.numbers.partition_point(|number| *number <= waiters.batch);
                now.events.drain(..here);
                now.numbers.drain(..here);
                if now.batches == 0 {
                    in_flight.remove();
                }
            }
        }
    }
}
