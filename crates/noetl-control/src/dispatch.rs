//! Slots of the worker in this process, and the commands that wait for one.
//!
//! A command is claimed in the transaction that issues it when a slot is free and nothing older
//! waits; otherwise it waits here, oldest first. Only references wait; the store has the rest.

pub(crate) mod calls;
pub(crate) mod served;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::{CommandId, ExecutionId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::calls::Calls;
use self::served::Served;
use crate::announcing::Announcements;
use crate::journal::shard_of;

/// References kept in memory; beyond it they are read back from the store when the rest is done.
const WAITING_MAX: usize = 100_000;

/// How often it is looked whether workers elsewhere are still there: they are missed much later.
const TAKE_BACK_EVERY: Duration = Duration::from_secs(5);

/// A command that waits for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) execution: ExecutionId,
    pub(crate) command: CommandId,
}

#[derive(Default)]
struct State {
    free: usize,
    waiting: Vec<VecDeque<Waiting>>,
    /// Whether a command found no room in `waiting`; it is read back from the store.
    overflowed: Vec<bool>,
    /// By shard: whether its store does not answer, so that its commands cannot be claimed.
    away: Vec<bool>,
    running: HashMap<CommandId, Running>,
    /// Slots whose command was handed to the worker; the other taken ones are of claims under way.
    assigned: usize,
    closed: bool,
}

/// A command that runs here.
struct Running {
    execution: ExecutionId,
    token: CancellationToken,
    /// Whether its tool may not run twice.
    once: bool,
}

/// Slots and the commands that wait for them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dispatch {
    slots: usize,
    state: Arc<Mutex<State>>,
    freed: Arc<[Notify]>,
    /// Workers elsewhere that wait.
    calls: Calls,
    /// Those whose pools are left to them.
    served: Served,
    /// Those that listen on a bus.
    announcements: Announcements,
}

/// The right to run one command. Dropping it frees the slot.
pub(crate) struct Slot {
    dispatch: Dispatch,
    is_assigned: bool,
}

impl Slot {
    /// Notes that its command is claimed for good and on its way to the worker.
    pub(crate) fn assign(&mut self) {
        self.is_assigned = true;
        self.dispatch.lock().assigned += 1;
    }
}

impl Drop for Slot {
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

impl State {
    /// The shard whose turn it is: the one whose oldest command is the oldest of all. One that is
    /// away keeps nobody waiting; it looks by itself whether it can be read again.
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

impl Dispatch {
    pub(crate) fn new(slots: usize, shards: usize) -> Self {
        let state = State {
            free: slots,
            waiting: vec![VecDeque::new(); shards],
            overflowed: vec![false; shards],
            away: vec![false; shards],
            ..State::default()
        };
        let freed = (0..shards).map(|_| Notify::new()).collect();
        Self {
            slots,
            state: Arc::new(Mutex::new(state)),
            freed,
            calls: Calls::default(),
            served: Served::default(),
            announcements: Announcements::default(),
        }
    }

    /// What is left to be announced on a bus.
    pub(crate) fn announcements(&self) -> &Announcements {
        &self.announcements
    }

    /// Workers elsewhere that wait.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Which pools workers elsewhere serve.
    pub(crate) fn served(&self) -> &Served {
        &self.served
    }

    /// Has commands read back from the store that were left to workers elsewhere and that they did not
    /// take, until the control plane closes.
    pub(crate) async fn take_back(self, closing: CancellationToken) {
        while self.has_worker() {
            tokio::select! {
                () = tokio::time::sleep(TAKE_BACK_EVERY) => {}
                () = closing.cancelled() => return,
            }
            if self.served.are_back() {
                self.lock().overflowed.fill(true);
                self.wake();
            }
        }
    }

    fn shard_of(&self, execution: ExecutionId) -> usize {
        shard_of(execution, self.freed.len())
    }

    /// Whether somebody else than the worker in this process may take what it leaves.
    pub(crate) fn is_for_others(&self) -> bool {
        !self.has_worker() || self.calls.is_used() || self.announcements.is_on()
    }

    /// Whether a worker in this process takes commands at all.
    pub(crate) fn has_worker(&self) -> bool {
        self.slots > 0
    }

    /// A slot for a command that was just issued: only if nothing older waits for one.
    pub(crate) fn reserve(&self) -> Option<Slot> {
        let mut state = self.lock();
        if state.closed || state.free == 0 || state.next_shard().is_some() {
            return None;
        }
        state.free -= 1;
        Some(self.slot())
    }

    /// The oldest waiting command of a shard, with a slot for it.
    pub(crate) fn next(&self, shard: usize) -> Option<(Waiting, Slot)> {
        let mut state = self.lock();
        if state.closed || state.free == 0 {
            return None;
        }
        let waiting = state.waiting[shard].pop_front()?;
        state.free -= 1;
        Some((waiting, self.slot()))
    }

    fn slot(&self) -> Slot {
        Slot { dispatch: self.clone(), is_assigned: false }
    }

    /// Lets a command wait for a slot.
    pub(crate) fn wait(&self, waiting: Waiting) {
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

    /// The command of a shard that has waited longest.
    pub(crate) fn oldest(&self, shard: usize) -> Option<Waiting> {
        self.lock().waiting[shard].front().copied()
    }

    /// Notes whether the store of a shard answers. Whoever waited behind it is woken.
    pub(crate) fn set_away(&self, shard: usize, is_away: bool) {
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

    /// Notes that commands wait in the store that are not known here.
    pub(crate) fn overflow(&self, shard: usize) {
        self.lock().overflowed[shard] = true;
    }

    /// The commands that wait here.
    pub(crate) fn waiting(&self) -> HashSet<CommandId> {
        let state = self.lock();
        state.waiting.iter().flatten().map(|waiting| waiting.command).collect()
    }

    /// Whether commands wait in the store that did not fit here, and nothing else does.
    pub(crate) fn take_overflow(&self, shard: usize) -> bool {
        let mut state = self.lock();
        let is_due = state.overflowed[shard] && state.waiting[shard].is_empty();
        if is_due {
            state.overflowed[shard] = false;
        }
        is_due
    }

    /// Hands out no slot from here on: commands stay in the store for the next start.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    /// Resolves when a slot was freed while commands of this shard wait.
    pub(crate) async fn freed(&self, shard: usize) {
        self.freed[shard].notified().await;
    }

    /// Wakes whoever waits for [`Dispatch::freed`].
    pub(crate) fn wake(&self) {
        for freed in &*self.freed {
            freed.notify_one();
        }
    }

    /// Remembers how to stop a command that runs here.
    pub(crate) fn runs(&self, command: Waiting, once: bool) -> CancellationToken {
        let token = CancellationToken::new();
        let running = Running { execution: command.execution, token: token.clone(), once };
        self.lock().running.insert(command.command, running);
        token
    }

    /// What this process has claimed and not seen the end of; `None` while a claim is under way.
    pub(crate) fn held(&self) -> Option<Vec<Waiting>> {
        let state = self.lock();
        let held = state.running.iter();
        let held = held.map(|(&command, of)| Waiting { execution: of.execution, command });
        (self.slots - state.free == state.assigned).then(|| held.collect())
    }

    /// How many commands run here that may not run twice, but for those of one execution; `None`
    /// while a claim is under way.
    pub(crate) fn once_beside(&self, execution: ExecutionId) -> Option<usize> {
        let state = self.lock();
        let once = state.running.values().filter(|of| of.once && of.execution != execution);
        (self.slots - state.free == state.assigned).then(|| once.count())
    }

    /// Tells commands of an execution that run here to stop, but for those that `keep` names.
    pub(crate) fn stop_others(&self, execution: ExecutionId, keep: impl Fn(CommandId) -> bool) {
        for (command, running) in &self.lock().running {
            if running.execution == execution && !keep(*command) {
                running.token.cancel();
            }
        }
    }

    /// Whether a command runs here.
    pub(crate) fn is_running(&self, command: CommandId) -> bool {
        self.lock().running.contains_key(&command)
    }

    /// Forgets a command that ran here.
    pub(crate) fn ended(&self, command: CommandId) {
        self.lock().running.remove(&command);
    }

    /// Tells whoever runs a command to stop: at once here, with its next word elsewhere.
    pub(crate) fn stop(&self, command: CommandId) {
        match self.lock().running.get(&command) {
            Some(running) => running.token.cancel(),
            None => self.calls.stop(command),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Every critical section is a few assignments that cannot panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(command: i64) -> Waiting {
        Waiting { execution: ExecutionId::new(1), command: CommandId::new(command) }
    }

    #[test]
    fn a_new_command_does_not_overtake_one_that_waits() {
        let dispatch = Dispatch::new(1, 1);
        let held = dispatch.reserve().expect("a free slot");
        dispatch.wait(waiting(1));
        drop(held);
        assert!(dispatch.reserve().is_none());
        let (oldest, _slot) = dispatch.next(0).expect("one waits and a slot is free");
        assert_eq!(oldest, waiting(1));
    }

    #[test]
    fn slots_are_never_more_than_were_given() {
        let dispatch = Dispatch::new(2, 1);
        let first = dispatch.reserve();
        let second = dispatch.reserve();
        assert!(first.is_some() && second.is_some());
        assert!(dispatch.reserve().is_none());
        drop(first);
        assert!(dispatch.reserve().is_some());
    }

    #[test]
    fn what_does_not_fit_is_read_back_once_the_rest_is_done() {
        let dispatch = Dispatch::new(1, 1);
        let held = dispatch.reserve();
        for command in 0..=i64::try_from(WAITING_MAX).unwrap() {
            dispatch.wait(waiting(command));
        }
        assert!(!dispatch.take_overflow(0), "others still wait");
        drop(held);
        while dispatch.next(0).is_some() {}
        assert!(dispatch.take_overflow(0));
        assert!(!dispatch.take_overflow(0));
    }

    #[test]
    fn a_freed_slot_goes_to_the_shard_that_has_waited_longest() {
        let dispatch = Dispatch::new(1, 2);
        let held = dispatch.reserve();
        let on = |shard: usize, command: i64| {
            let ids = (1..).map(ExecutionId::new);
            let execution = ids.into_iter().find(|id| shard_of(*id, 2) == shard).unwrap();
            Waiting { execution, command: CommandId::new(command) }
        };
        dispatch.wait(on(0, 7));
        dispatch.wait(on(1, 3));
        assert_eq!(dispatch.lock().next_shard(), Some(1));
        drop(held);
        assert!(dispatch.reserve().is_none(), "others wait");
        assert_eq!(dispatch.next(1).map(|(waiting, _)| waiting), Some(on(1, 3)));
        assert_eq!(dispatch.lock().next_shard(), Some(0));
    }

    #[test]
    fn a_shard_that_is_away_keeps_no_slot_from_others() {
        let dispatch = Dispatch::new(1, 2);
        let ids = (1..).map(ExecutionId::new);
        let execution = ids.into_iter().find(|id| shard_of(*id, 2) == 1).unwrap();
        dispatch.wait(Waiting { execution, command: CommandId::new(3) });
        assert!(dispatch.reserve().is_none(), "one waits");
        dispatch.set_away(1, true);
        let slot = dispatch.reserve().expect("nobody that could be served waits");
        drop(slot);
        dispatch.overflow(1);
        assert_eq!(dispatch.lock().next_shard(), None);
        dispatch.set_away(1, false);
        assert_eq!(dispatch.lock().next_shard(), Some(1));
    }
}
