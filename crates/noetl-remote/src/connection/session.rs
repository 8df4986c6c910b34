//! One connection of a worker.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Expire, Input};
use noetl_journal::{LeaseHolder, LogError};
use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::{CommandId, CommandState, ExecutionId};
use noetl_store::{CommandFilter, NewLine};
use noetl_work::LEASE_BATCH_MAX;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::feed::Feed;
use super::worker::ConnectedWorker;
use super::{ConnectError, ConnectionCaller};
use crate::leasing::{LeaseError, LeaseService, LeasedRow, RenewalResult};
use crate::reports::{Completion, ReportError, Reports};

/// Heartbeats per lease duration. Several may be lost before a lease expires.
const PER_LEASE: u32 = 9;

const HEARTBEAT_MAX: Duration = Duration::from_secs(15);

/// Maximum time without any sign of life.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Session of a worker. Dropping it ends the session; the worker keeps its leases.
pub struct WorkerSession {
    pub(super) leasing: LeaseService,
    pub(super) reports: Reports,
    pub(super) worker: Arc<ConnectedWorker>,
    pub(super) number: u64,
    /// Name of the session in the server log.
    pub(super) id: String,
    pub(super) name: Arc<str>,
    pub(super) caller: ConnectionCaller,
    /// Filters of the accepted commands, one for each pool.
    pub(super) wanted: Arc<[CommandFilter]>,
}

/// Commands that a worker holds from an earlier session, by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Commands the worker still holds.
    pub keep: Vec<CommandId>,
    /// Commands the worker no longer holds.
    pub drop: Vec<CommandId>,
    /// Commands in `keep` that the worker must stop.
    pub cancel: Vec<CommandId>,
}

impl WorkerSession {
    /// Returns the duration of the worker's leases.
    pub const fn lease(&self) -> Duration {
        self.leasing.duration()
    }

    /// Returns the interval at which the worker renews its leases, and at which both sides ping.
    pub fn heartbeat(&self) -> Duration {
        (self.lease() / PER_LEASE).clamp(Duration::from_secs(1), HEARTBEAT_MAX)
    }

    /// Returns the time without a sign of life after which the connection is closed.
    pub fn silence(&self) -> Duration {
        self.lease().min(SILENCE_MAX)
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a receiver that changes when there may be commands to send, or the session has
    /// ended.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.worker.subscribe()
    }

    /// Returns a receiver that changes when a command of any worker has to stop.
    pub fn stop_signal(&self) -> watch::Receiver<()> {
        self.leasing.calls.stop_signal()
    }

    /// Returns `true` if a later session of the worker has replaced this one.
    pub fn is_superseded(&self) -> bool {
        !self.worker.is_current(self.number)
    }

    /// Returns the commands to send, oldest first. Nothing once the session is superseded.
    pub fn take_commands(&self) -> Vec<LeasedRow> {
        if self.is_superseded() { Vec::new() } else { self.worker.take_waiting() }
    }

    /// Records that a frame with these commands was sent.
    pub fn sent(&self, commands: &[CommandId], frame: u64) {
        self.worker.sent(commands, frame);
    }

    /// Makes the next command of a completion ready to send. The session sends it after the ack.
    pub fn release(&self, next: CommandId) {
        self.worker.release(next);
    }

    /// Returns commands to stop, each once.
    pub fn take_cancelled(&self) -> Vec<CommandId> {
        self.worker.take_cancelled(|command| self.leasing.calls.is_stopped(command))
    }

    /// Returns `true` if the worker holds the command, as far as this session knows.
    pub fn holds(&self, command: CommandId) -> bool {
        self.worker.holds(command)
    }

    /// Claims no more commands for the worker.
    pub fn drain(&self) {
        self.worker.drain();
    }

    /// Returns the part of the session that records a completion, to run while others are received.
    pub fn reporter(&self) -> SessionReporter {
        SessionReporter {
            leasing: self.leasing.clone(),
            reports: self.reports.clone(),
            worker: self.worker.clone(),
            name: self.name.clone(),
            caller: self.caller.clone(),
            wanted: self.wanted.clone(),
        }
    }

    /// Renews the leases of the listed commands. Commands sent in the first `received` frames that
    /// are not listed count as dropped: they expire. Returns the commands that the worker no longer
    /// holds.
    pub async fn renew(
        &self,
        received: u64,
        commands: &[CommandId],
    ) -> Result<Vec<CommandId>, LeaseError> {
        let listed: HashSet<CommandId> = commands.iter().copied().collect();
        for (command, row) in self.worker.take_dropped(received, &listed) {
            debug!(command.id = %command, worker = &*self.name, "worker dropped command");
            if let Some(row) = row {
                self.expire(&row).await;
            }
        }
        let RenewalResult { cancel, lost } = self.renew_all(commands).await?;
        let gone: HashSet<CommandId> = lost.iter().copied().collect();
        let kept: Vec<CommandId> =
            commands.iter().copied().filter(|command| !gone.contains(command)).collect();
        Ok(self.worker.renewed(&kept, &cancel, lost))
    }

    /// Stores lines that a command printed.
    pub async fn print(&self, execution: ExecutionId, lines: Vec<NewLine>) -> Result<(), LogError> {
        let tenant = match &self.caller.scope {
            Some(tenant) => tenant.clone(),
            None => {
                let tenant = self.leasing.workers.tenant_of(execution).await?;
                tenant.ok_or(LogError::NotFound(execution))?
            }
        };
        self.reports.logs.append(&tenant, execution, lines).await.map(|_| ())
    }

    /// Renews the leases of commands that the worker holds from an earlier session, and queues
    /// those that it did not receive.
    pub(super) async fn resume(&self, holds: Vec<CommandId>) -> Result<Resumed, ConnectError> {
        let RenewalResult { cancel, lost } = self.renew_all(&holds).await?;
        let gone: HashSet<CommandId> = lost.iter().copied().collect();
        let held: HashSet<CommandId> = holds.iter().copied().collect();
        let keep: Vec<CommandId> =
            holds.into_iter().filter(|command| !gone.contains(command)).collect();
        let (mut resent, mut over) = (Vec::new(), lost.clone());
        for row in self.worker.unreceived(&held) {
            match self.is_claimed(&row).await? {
                true => resent.push(row),
                false => over.push(row.row.id),
            }
        }
        let ids: Vec<CommandId> = resent.iter().map(|row| row.row.id).collect();
        if !ids.is_empty() {
            let RenewalResult { lost: expired, .. } = self.renew_all(&ids).await?;
            resent.retain(|row| !expired.contains(&row.row.id));
            over.extend(expired);
        }
        self.worker.resume(&keep, resent, &over);
        let cancelled = cancel.into_iter().filter(|command| !gone.contains(command));
        let cancel: Vec<CommandId> = cancelled.collect();
        Ok(Resumed { keep, drop: lost, cancel })
    }

    /// Starts the task that claims commands. It ends with the session.
    pub(super) fn start_feed(&self) {
        let feed = Feed {
            leasing: self.leasing.clone(),
            worker: self.worker.clone(),
            session: self.number,
            name: self.name.clone(),
            wanted: self.wanted.clone(),
        };
        tokio::spawn(feed.run());
    }

    async fn renew_all(&self, commands: &[CommandId]) -> Result<RenewalResult, LeaseError> {
        let ConnectionCaller { tenant, scope, .. } = &self.caller;
        if commands.is_empty() {
            return self.leasing.renew(tenant, scope, &self.name, &[]).await;
        }
        let mut all = RenewalResult::default();
        for batch in commands.chunks(LEASE_BATCH_MAX) {
            let renewed = self.leasing.renew(tenant, scope, &self.name, batch).await?;
            all.cancel.extend(renewed.cancel);
            all.lost.extend(renewed.lost);
        }
        Ok(all)
    }

    /// Returns `true` if the worker still holds a command that it may not have received.
    async fn is_claimed(&self, leased: &LeasedRow) -> Result<bool, LeaseError> {
        let row = self.leasing.store.command(leased.row.id).await.map_err(LeaseError::Store)?;
        Ok(row.is_some_and(|row| {
            row.state == CommandState::Claimed && row.worker.as_deref() == Some(&*self.name)
        }))
    }

    /// Expires a command that the worker received and dropped.
    async fn expire(&self, leased: &LeasedRow) {
        if !matches!(self.is_claimed(leased).await, Ok(true)) {
            return;
        }
        let reason = format!("worker '{}' dropped the command", self.name);
        let command = leased.row.id;
        let input = Expire { command, reason, attempts_max: ATTEMPTS_MAX, may_have_run: true };
        let expired = self.leasing.journal.submit(leased.row.execution, Input::Expire(input)).await;
        if let Err(error) = expired {
            // The lease expires by itself.
            warn!(command.id = %command, %error, "failed to expire dropped command");
        }
    }
}

impl Drop for WorkerSession {
    fn drop(&mut self) {
        self.worker.detach(self.number);
    }
}

/// Records the completions of a session. Continues if the session ends meanwhile.
#[derive(Clone)]
pub struct SessionReporter {
    leasing: LeaseService,
    reports: Reports,
    worker: Arc<ConnectedWorker>,
    name: Arc<str>,
    caller: ConnectionCaller,
    wanted: Arc<[CommandFilter]>,
}

impl SessionReporter {
    /// Records a completion. Returns whether it took effect. With `takes_next`, a command that the
    /// completion issues may be claimed for the same slot: it is returned, and sent after
    /// [`release`](Self::release).
    pub async fn record(
        &self,
        completion: Completion,
        takes_next: bool,
    ) -> Result<(bool, Option<CommandId>), ReportError> {
        let command = completion.command;
        let next = (takes_next && !self.worker.is_draining()).then(|| self.lease_holder(command));
        self.worker.begin_report(command);
        let recorded = self.reports.record_completion(
            &self.caller.scope,
            &self.name,
            completion,
            next.as_ref(),
        );
        match recorded.await {
            Ok(ack) => {
                let next = ack.next.as_ref().map(|next| next.row.id);
                self.worker.end_report(command, true, ack.next);
                Ok((ack.counts, next))
            }
            Err(error) => {
                self.worker.end_report(command, false, None);
                Err(error)
            }
        }
    }

    /// Makes the next command of a completion ready to send by the current session.
    pub fn release(&self, next: CommandId) {
        self.worker.release(next);
    }

    /// Returns the holder of the next command: of the same pool as the completed one, if known.
    fn lease_holder(&self, command: CommandId) -> LeaseHolder {
        let pool = self.worker.pool_of(command);
        let of_pool = pool.and_then(|pool| self.wanted.iter().find(|it| it.pool() == &*pool));
        let next = of_pool.or(self.wanted.first()).cloned().map(Arc::new);
        self.leasing.workers.held().record();
        LeaseHolder { next, ..self.leasing.lease_holder(&self.name) }
    }
}
