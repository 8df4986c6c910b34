//! State of a connected worker: its slots, and the commands that it holds.
//!
//! A command occupies a slot from its claim to the ack of its completion. The state passes from one
//! session to the next, so that a command which the worker did not receive is sent again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::CommandId;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::leasing::LeasedRow;

/// Actor and public key of a worker. If either differs, it is another process.
type Identity = (Arc<str>, String);

/// State of one worker, by tenant and name.
#[derive(Default)]
pub(super) struct ConnectedWorker {
    state: Mutex<WorkerState>,
    /// Changes with the state, for sessions and their tasks.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct WorkerState {
    /// Number of the current or last session.
    session: u64,
    /// Whether that session is open.
    is_open: bool,
    /// End of the last session.
    ended: Option<Instant>,
    identity: Option<Identity>,
    slots: usize,
    /// Whether the worker accepts no more commands.
    is_draining: bool,
    held: HashMap<CommandId, HeldCommand>,
    /// Commands to send, oldest first.
    waiting: VecDeque<CommandId>,
}

struct HeldCommand {
    /// The command, unless another server or an earlier process sent it.
    row: Option<LeasedRow>,
    /// Number of the frame that carried the command; `None` until it is sent.
    sent_in: Option<u64>,
    /// Whether a session has taken the command to send it.
    is_taken: bool,
    /// Completions of the command that are being recorded.
    reporting: usize,
    /// Whether the command has to stop.
    is_cancelled: bool,
    /// Whether the worker was told to stop it.
    is_told: bool,
}

impl HeldCommand {
    const fn new(row: Option<LeasedRow>) -> Self {
        let (is_taken, reporting) = (false, 0);
        Self { row, sent_in: None, is_taken, reporting, is_cancelled: false, is_told: false }
    }
}

impl ConnectedWorker {
    /// Begins a session, and ends the earlier one. Returns the number of the session, and whether
    /// another process had the earlier one: it doesn't hold that one's commands.
    pub(super) fn attach(&self, identity: Identity, slots: usize) -> (u64, bool) {
        let mut state = self.lock();
        let is_other = state.identity.as_ref().is_some_and(|earlier| *earlier != identity);
        if is_other {
            state.held.clear();
        }
        // Until the worker is known to lack them, commands of earlier sessions are not sent.
        state.waiting.clear();
        state.session += 1;
        state.identity = Some(identity);
        state.slots = slots;
        (state.is_open, state.is_draining, state.ended) = (true, false, None);
        let number = state.session;
        drop(state);
        self.changed.send_replace(());
        (number, is_other)
    }

    /// Ends a session, unless a later one has begun.
    pub(super) fn detach(&self, session: u64) {
        let mut state = self.lock();
        if state.session == session {
            (state.is_open, state.ended) = (false, Some(Instant::now()));
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Returns the time since the last session ended, or `None` while one is open.
    pub(super) fn gone_for(&self) -> Option<Duration> {
        let state = self.lock();
        state.ended.filter(|_| !state.is_open).map(|ended| ended.elapsed())
    }

    /// Returns `true` if this session is the current one.
    pub(super) fn is_current(&self, session: u64) -> bool {
        let state = self.lock();
        state.session == session && state.is_open
    }

    /// Returns a receiver that changes with the state.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the number of free slots, or `None` if the session has ended.
    pub(super) fn free(&self, session: u64) -> Option<usize> {
        let state = self.lock();
        let is_current = state.session == session && state.is_open;
        let slots = if state.is_draining { 0 } else { state.slots };
        is_current.then(|| slots.saturating_sub(state.held.len()))
    }

    /// Stops claims for the worker.
    pub(super) fn drain(&self) {
        self.lock().is_draining = true;
        self.changed.send_replace(());
    }

    pub(super) fn is_draining(&self) -> bool {
        self.lock().is_draining
    }

    /// Adds claimed commands, to be sent.
    pub(super) fn add(&self, rows: Vec<LeasedRow>) {
        let mut state = self.lock();
        for row in rows {
            state.add(row);
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Returns the rows of commands that are not among `holds`: the worker did not receive them.
    pub(super) fn unreceived(&self, holds: &HashSet<CommandId>) -> Vec<LeasedRow> {
        let mut state = self.lock();
        state.held.retain(|id, held| holds.contains(id) || held.row.is_some());
        let others = state.held.iter().filter(|(id, _)| !holds.contains(*id));
        let mut rows: Vec<LeasedRow> = others.filter_map(|(_, held)| held.row.clone()).collect();
        rows.sort_unstable_by_key(|row| row.row.id);
        rows
    }

    /// Sets what a resumed session holds: `kept` are with the worker, `resent` have to be sent, and
    /// commands in neither list are removed unless they were added meanwhile.
    pub(super) fn resume(&self, kept: &[CommandId], resent: Vec<LeasedRow>, gone: &[CommandId]) {
        let mut state = self.lock();
        for id in gone {
            state.held.remove(id);
        }
        for id in kept {
            let held = state.held.entry(*id).or_insert_with(|| HeldCommand::new(None));
            (held.sent_in, held.is_taken, held.is_told) = (Some(0), true, false);
        }
        for row in resent {
            state.held.remove(&row.row.id);
            state.add(row);
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Returns the commands to send, oldest first.
    pub(super) fn take_waiting(&self) -> Vec<LeasedRow> {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let rows = waiting.iter().filter_map(|id| {
            let held = state.held.get_mut(id)?;
            held.is_taken = true;
            held.row.clone()
        });
        rows.collect()
    }

    /// Records that a frame with these commands was sent.
    pub(super) fn sent(&self, commands: &[CommandId], frame: u64) {
        let mut state = self.lock();
        for command in commands {
            if let Some(held) = state.held.get_mut(command) {
                held.sent_in = Some(frame);
            }
        }
    }

    pub(super) fn holds(&self, command: CommandId) -> bool {
        self.lock().held.contains_key(&command)
    }

    /// Returns the pool of a held command, if this server sent it.
    pub(super) fn pool_of(&self, command: CommandId) -> Option<Arc<str>> {
        let state = self.lock();
        state.held.get(&command)?.row.as_ref().map(|row| row.row.pool.clone())
    }

    /// Records that a completion of a command is being recorded.
    pub(super) fn begin_report(&self, command: CommandId) {
        if let Some(held) = self.lock().held.get_mut(&command) {
            held.reporting += 1;
        }
    }

    /// Records that a completion was handled. If the command is over, its slot is free, or has the
    /// next command. That one is sent after [`release`](Self::release), so that the ack is first.
    pub(super) fn end_report(&self, command: CommandId, is_over: bool, next: Option<LeasedRow>) {
        let mut state = self.lock();
        if let Some(held) = state.held.get_mut(&command) {
            held.reporting = held.reporting.saturating_sub(1);
        }
        if is_over {
            state.held.remove(&command);
        }
        if let Some(next) = next {
            state.held.entry(next.row.id).or_insert_with(|| HeldCommand::new(Some(next)));
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Makes the next command of a completion ready to send, unless it was sent.
    pub(super) fn release(&self, command: CommandId) {
        let mut state = self.lock();
        if state.held.get(&command).is_some_and(|held| !held.is_taken)
            && !state.waiting.contains(&command)
        {
            state.waiting.push_back(command);
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Removes and returns the commands that a worker with these commands has dropped: it received
    /// the frame that carried them, and doesn't list them.
    pub(super) fn take_dropped(
        &self,
        received: u64,
        listed: &HashSet<CommandId>,
    ) -> Vec<(CommandId, Option<LeasedRow>)> {
        let mut state = self.lock();
        let is_dropped = |id: &CommandId, held: &HeldCommand| {
            held.reporting == 0
                && held.sent_in.is_some_and(|frame| frame <= received)
                && !listed.contains(id)
        };
        let dropped: Vec<CommandId> = state
            .held
            .iter()
            .filter(|(id, held)| is_dropped(id, held))
            .map(|(id, _)| *id)
            .collect();
        let removed = dropped.into_iter().filter_map(|id| Some((id, state.held.remove(&id)?.row)));
        let removed = removed.collect();
        drop(state);
        self.changed.send_replace(());
        removed
    }

    /// Updates the commands after a renewal. `kept` still belong to the worker. Returns those of
    /// `lost` without a completion in flight.
    pub(super) fn renewed(
        &self,
        kept: &[CommandId],
        cancelled: &[CommandId],
        lost: Vec<CommandId>,
    ) -> Vec<CommandId> {
        let mut state = self.lock();
        let mut gone = Vec::with_capacity(lost.len());
        for id in lost {
            match state.held.get(&id) {
                Some(held) if held.reporting > 0 => {}
                _ => {
                    state.held.remove(&id);
                    gone.push(id);
                }
            }
        }
        for id in kept {
            let held = state.held.entry(*id).or_insert_with(|| HeldCommand::new(None));
            (held.sent_in, held.is_taken) = (held.sent_in.or(Some(0)), true);
        }
        for id in cancelled {
            if let Some(held) = state.held.get_mut(id) {
                held.is_cancelled = true;
            }
        }
        drop(state);
        self.changed.send_replace(());
        gone
    }

    /// Returns the commands that have to stop and of which the worker was not told, without those
    /// that it was not sent.
    pub(super) fn take_cancelled(&self, is_stopped: impl Fn(CommandId) -> bool) -> Vec<CommandId> {
        let mut state = self.lock();
        let untold = state.held.iter_mut().filter(|(_, held)| held.is_taken && !held.is_told);
        let cancelled = untold.filter(|(id, held)| held.is_cancelled || is_stopped(**id));
        let told = cancelled.map(|(id, held)| {
            held.is_told = true;
            *id
        });
        told.collect()
    }

    fn lock(&self) -> MutexGuard<'_, WorkerState> {
        // Every critical section leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerState {
    fn add(&mut self, row: LeasedRow) {
        let id = row.row.id;
        // A completion that arrives twice leads to the same command.
        if self.held.contains_key(&id) {
            return;
        }
        self.held.insert(id, HeldCommand::new(Some(row)));
        self.waiting.push_back(id);
    }
}
