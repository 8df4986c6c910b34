//! Assigns pending commands to the slots of the local worker.
//!
//! The writer claims a command in the transaction that issues it if a slot is free and no older
//! command is pending. Otherwise the command is enqueued here, oldest first. The queue contains
//! only IDs; the store has the rest.

pub(crate) mod long_polls;
pub(crate) mod remote_pools;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::{CommandId, ExecutionId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use self::long_polls::{LongPolls, QueuedPoll};
pub use self::remote_pools::RemotePools;
use crate::announcements::AnnouncementQueue;
use crate::shards::shard_of;

/// Pending commands queued in memory per shard. Further ones are reloaded from the store once the
/// queue is empty.
const WAITING_MAX: usize = 100_000;

/// Interval at which the local worker checks whether remote workers still serve their pools. Much
/// shorter than the time after which a worker counts as gone.
const TAKE_BACK_EVERY: Duration = Duration::from_secs(5);

/// Command that waits for a slot of the local worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingCommand {
    pub(crate) execution: ExecutionId,
    pub(crate) command: CommandId,
}

#[derive(Default)]
struct DispatchState {
    free: usize,
    waiting: Vec<VecDeque<PendingCommand>>,
    /// Whether a command did not fit into `waiting`, by shard. Such commands are reloaded from the
    /// store.
    overflowed: Vec<bool>,
    /// Whether the shard's store is unavailable, so its commands cannot be claimed.
    away: Vec<bool>,
    running: HashMap<CommandId, RunningCommand>,
    /// Slots whose command was sent to the worker. The other occupied slots belong to claims in
    /// flight.
    assigned: usize,
    closed: bool,
}

/// Command that the local worker runs.
struct RunningCommand {
    execution: ExecutionId,
    token: CancellationToken,
    /// Whether the command's tool is not idempotent, so it must not run twice.
    once: bool,
}

/// Slots of the local worker and the commands that wait for them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    slots: usize,
    state: Arc<Mutex<DispatchState>>,
    freed: Arc<[Notify]>,
    /// Long polls of remote workers.
    calls: LongPolls,
    /// Pools that are left to remote workers.
    served: RemotePools,
    /// Commands to announce to workers on a bus.
    announcements: AnnouncementQueue,
}

/// Permit to run one command. Dropping it frees the slot.
pub(crate) struct WorkerSlot {
    dispatch: Dispatcher,
    is_assigned: bool,
}

impl WorkerSlot {
    /// Records that the slot's command is durably claimed and on its way to the worker.
    pub(crate) fn assign(&mut self) {
        self.is_assigned = true;
        self.dispatch.lock().assigned += 1;
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        let shard = {
            let mut state = self.dispatch.lock();
            state.free += 1;
            state.assigned -= usize::from(self.is_assigned);
            state.next_shard()
        };
        if let Some(shard) = shard {
            self.dispatch.freed[shard].notify_one();
        }
    }
}

impl DispatchState {
    /// Returns the shard that gets the next free slot: the one whose oldest pending command is the
    /// oldest of all. Skips shards whose store is unavailable, so they do not block others; their
    /// writers probe the store themselves.
    fn next_shard(&self) -> Option<usize> {
        let fronts = self.waiting.iter().enumerate();
        let oldest = fronts
            .filter(|(shard, _)| !self.away[*shard])
            .filter_map(|(shard, waiting)| Some((waiting.front()?.command, shard)))
            .min()
            .map(|(_, shard)| shard);
        let mut overflowed = self.overflowed.iter().zip(&self.away);
        oldest.or_else(|| overflowed.position(|(&overflowed, &is_away)| overflowed && !is_away))
    }
}

impl Dispatcher {
    pub(crate) fn new(slots: usize, shards: usize) -> Self {
        let state = DispatchState {
            free: slots,
            waiting: vec![VecDeque::new(); shards],
            overflowed: vec![false; shards],
            away: vec![false; shards],
            ..DispatchState::default()
        };
        let freed = (0..shards).map(|_| Notify::new()).collect();
        Self {
            slots,
            state: Arc::new(Mutex::new(state)),
            freed,
            calls: LongPolls::default(),
            served: RemotePools::default(),
            announcements: AnnouncementQueue::default(),
        }
    }

    /// Returns the queue of commands to announce on a bus.
    pub(crate) fn announcements(&self) -> &AnnouncementQueue {
        &self.announcements
    }

    /// Returns the long polls of remote workers.
    pub(crate) fn calls(&self) -> &LongPolls {
        &self.calls
    }

    /// Returns the pools that remote workers serve.
    pub(crate) fn served(&self) -> &RemotePools {
        &self.served
    }

    /// Schedules a reload of commands that were left to remote workers which have since gone. Runs
    /// until the control plane shuts down.
    pub(crate) async fn reclaim_untaken(self, closing: CancellationToken) {
        while self.has_worker() {
            tokio::select! {
                () = tokio::time::sleep(TAKE_BACK_EVERY) => {}
                () = closing.cancelled() => return,
            }
            if self.served.take_reclaimable() {
                self.lock().overflowed.fill(true);
                self.wake();
            }
        }
    }

    fn shard_of(&self, execution: ExecutionId) -> usize {
        shard_of(execution, self.freed.len())
    }

    /// Returns `true` if any worker other than the local one may claim commands.
    pub(crate) fn is_for_others(&self) -> bool {
        !self.has_worker() || self.calls.is_used() || self.announcements.is_on()
    }

    /// Returns `true` if this process has a local worker.
    pub(crate) fn has_worker(&self) -> bool {
        self.slots > 0
    }

    /// Reserves a slot for a newly issued command. Returns `None` if no slot is free or an older
    /// command is pending.
    pub(crate) fn reserve(&self) -> Option<WorkerSlot> {
        let mut state = self.lock();
        if state.closed || state.free == 0 || state.next_shard().is_some() {
            return None;
        }
        state.free -= 1;
        Some(self.slot())
    }

    /// Removes the oldest pending command of a shard from the queue and returns it with a slot.
    pub(crate) fn next(&self, shard: usize) -> Option<(PendingCommand, WorkerSlot)> {
        let mut state = self.lock();
        if state.closed || state.free == 0 {
            return None;
        }
        let waiting = state.waiting[shard].pop_front()?;
        state.free -= 1;
        Some((waiting, self.slot()))
    }

    fn slot(&self) -> WorkerSlot {
        WorkerSlot { dispatch: self.clone(), is_assigned: false }
    }

    /// Enqueues a command until a slot is free.
    pub(crate) fn enqueue(&self, waiting: PendingCommand) {
        if !self.has_worker() {
            return;
        }
        let shard = self.shard_of(waiting.execution);
        let mut state = self.lock();
        if state.overflowed[shard] || state.waiting[shard].len() >= WAITING_MAX {
            state.overflowed[shard] = true;
            return;
        }
        state.waiting[shard].push_back(waiting);
    }

    /// Returns the oldest pending command of a shard, and leaves it in the queue.
    pub(crate) fn oldest(&self, shard: usize) -> Option<PendingCommand> {
        self.lock().waiting[shard].front().copied()
    }

    /// Records whether the store of a shard is unavailable. On a change, wakes the shard that gets
    /// the next free slot.
    pub(crate) fn set_shard_available(&self, shard: usize, is_away: bool) {
        let next = {
            let mut state = self.lock();
            if std::mem::replace(&mut state.away[shard], is_away) == is_away {
                return;
            }
            state.next_shard().filter(|_| state.free > 0)
        };
        if let Some(next) = next {
            self.freed[next].notify_one();
        }
    }

    /// Records that the store has pending commands of a shard that are not in the queue.
    pub(crate) fn overflow(&self, shard: usize) {
        self.lock().overflowed[shard] = true;
    }

    /// Returns the commands in the queue, of all shards.
    pub(crate) fn waiting(&self) -> HashSet<CommandId> {
        let state = self.lock();
        state.waiting.iter().flatten().map(|waiting| waiting.command).collect()
    }

    /// Returns `true`, and clears the overflow flag, if the store has pending commands of a shard
    /// that did not fit and the queue is empty.
    pub(crate) fn take_overflow(&self, shard: usize) -> bool {
        let mut state = self.lock();
        let is_due = state.overflowed[shard] && state.waiting[shard].is_empty();
        if is_due {
            state.overflowed[shard] = false;
        }
        is_due
    }

    /// Stops handing out slots. Pending commands stay in the store for the next start.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    /// Waits until a slot is freed for pending commands of this shard.
    pub(crate) async fn freed(&self, shard: usize) {
        self.freed[shard].notified().await;
    }

    /// Wakes every waiter of [`Dispatcher::freed`].
    pub(crate) fn wake(&self) {
        for freed in &*self.freed {
            freed.notify_one();
        }
    }

    /// Registers a command as running on the local worker and returns the token that cancels it.
    pub(crate) fn track_running(&self, command: PendingCommand, once: bool) -> CancellationToken {
        let token = CancellationToken::new();
        let running = RunningCommand { execution: command.execution, token: token.clone(), once };
        self.lock().running.insert(command.command, running);
        token
    }

    /// Returns the commands this process has claimed and not finished, or `None` while a claim is
    /// in flight.
    pub(crate) fn claimed_commands(&self) -> Option<Vec<PendingCommand>> {
        let state = self.lock();
        let held = state.running.iter();
        let held = held.map(|(&command, of)| PendingCommand { execution: of.execution, command });
        (self.slots - state.free == state.assigned).then(|| held.collect())
    }

    /// Returns the number of running commands with tools that must not run twice, except those of
    /// `execution`. Returns `None` while a claim is in flight.
    pub(crate) fn non_idempotent_outside(&self, execution: ExecutionId) -> Option<usize> {
        let state = self.lock();
        let once = state.running.values().filter(|of| of.once && of.execution != execution);
        (self.slots - state.free == state.assigned).then(|| once.count())
    }

    /// Cancels the local commands of an execution, except those for which `keep` returns `true`.
    pub(crate) fn stop_others(&self, execution: ExecutionId, keep: impl Fn(CommandId) -> bool) {
        for (command, running) in &self.lock().running {
            if running.execution == execution && !keep(*command) {
                running.token.cancel();
            }
        }
    }

    /// Returns `true` if the local worker runs the command.
    pub(crate) fn is_running(&self, command: CommandId) -> bool {
        self.lock().running.contains_key(&command)
    }

    /// Removes a command from the running commands.
    pub(crate) fn untrack(&self, command: CommandId) {
        self.lock().running.remove(&command);
    }

    /// Stops a command: cancels it at once on the local worker, or records the stop for the next
    /// report of the remote worker that runs it.
    pub(crate) fn stop(&self, command: CommandId) {
        match self.lock().running.get(&command) {
            Some(running) => running.token.cancel(),
            None => self.calls.stop(command),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DispatchState> {
        // Every critical section is a few assignments that cannot panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(command: i64) -> PendingCommand {
        PendingCommand { execution: ExecutionId::new(1), command: CommandId::new(command) }
    }

    #[test]
    fn a_new_command_does_not_overtake_one_that_waits() {
        let dispatch = Dispatcher::new(1, 1);
        let held = dispatch.reserve().expect("a free slot");
        dispatch.enqueue(waiting(1));
        drop(held);
        assert!(dispatch.reserve().is_none());
        let (oldest, _slot) = dispatch.next(0).expect("one waits and a slot is free");
        assert_eq!(oldest, waiting(1));
    }

    #[test]
    fn slots_are_never_more_than_were_given() {
        let dispatch = Dispatcher::new(2, 1);
        let first = dispatch.reserve();
        let second = dispatch.reserve();
        assert!(first.is_some() && second.is_some());
        assert!(dispatch.reserve().is_none());
        drop(first);
        assert!(dispatch.reserve().is_some());
    }

    #[test]
    fn overflowed_commands_are_read_from_the_store_later() {
        let dispatch = Dispatcher::new(1, 1);
        let held = dispatch.reserve();
        for command in 0..=i64::try_from(WAITING_MAX).unwrap() {
            dispatch.enqueue(waiting(command));
        }
        assert!(!dispatch.take_overflow(0), "others still wait");
        drop(held);
        while dispatch.next(0).is_some() {}
        assert!(dispatch.take_overflow(0));
        assert!(!dispatch.take_overflow(0));
    }

    #[test]
    fn a_freed_slot_is_given_to_the_shard_waiting_longest() {
        let dispatch = Dispatcher::new(1, 2);
        let held = dispatch.reserve();
        let on = |shard: usize, command: i64| {
            let ids = (1..).map(ExecutionId::new);
            let execution = ids.into_iter().find(|id| shard_of(*id, 2) == shard).unwrap();
            PendingCommand { execution, command: CommandId::new(command) }
        };
        dispatch.enqueue(on(0, 7));
        dispatch.enqueue(on(1, 3));
        assert_eq!(dispatch.lock().next_shard(), Some(1));
        drop(held);
        assert!(dispatch.reserve().is_none(), "others wait");
        assert_eq!(dispatch.next(1).map(|(waiting, _)| waiting), Some(on(1, 3)));
        assert_eq!(dispatch.lock().next_shard(), Some(0));
    }

    #[test]
    fn an_unavailable_shard_keeps_no_slot_from_others() {
        let dispatch = Dispatcher::new(1, 2);
        let ids = (1..).map(ExecutionId::new);
        let execution = ids.into_iter().find(|id| shard_of(*id, 2) == 1).unwrap();
        dispatch.enqueue(PendingCommand { execution, command: CommandId::new(3) });
        assert!(dispatch.reserve().is_none(), "one waits");
        dispatch.set_shard_available(1, true);
        let slot = dispatch.reserve().expect("nobody that could be served waits");
        drop(slot);
        dispatch.overflow(1);
        assert_eq!(dispatch.lock().next_shard(), None);
        dispatch.set_shard_available(1, false);
        assert_eq!(dispatch.lock().next_shard(), Some(1));
    }
}
