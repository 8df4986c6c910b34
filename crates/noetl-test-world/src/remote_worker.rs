//! Remote workers: they lease commands, renew their leases, and report completions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::event::BlobRef;
use noetl_model::{CommandId, ExecutionId, Tenant};
use noetl_remote::{Completion, CompletionAck, LeasedRow, LongPoll};
use noetl_tools::ToolRegistry;
use noetl_work::CommandOutcome;
use noetl_worker::{CommandExecutor, CommandTask, LoadError, ValueFetcher};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::scene::Scene;
use super::tool::Scripted;

const TIMEOUT: Duration = Duration::from_secs(12);

const HEARTBEAT: Duration = Duration::from_secs(6);

/// Fails every load: the simulated commands reference no blobs.
struct NoValues;

#[async_trait]
impl ValueFetcher for NoValues {
    async fn load(&self, reference: &BlobRef) -> Result<Vec<u8>, LoadError> {
        Err(LoadError { message: format!("no {}", reference.digest), is_passing: false })
    }
}

/// Runs workers one after another.
pub(crate) async fn run(scene: Arc<Scene>, number: usize) {
    for generation in 1.. {
        let name = format!("w{number}-{generation}");
        RemoteWorker { scene: scene.clone(), name }.work().await;
        tokio::time::sleep(scene.millis(100, 15_000)).await;
    }
}

struct RemoteWorker {
    scene: Arc<Scene>,
    name: String,
}

impl RemoteWorker {
    /// Works until the worker dies.
    async fn work(self) {
        let me = Arc::new(self);
        me.scene.note(&me.name, "a worker starts");
        let mut running: JoinSet<(CommandId, Option<LeasedRow>)> = JoinSet::new();
        let mut in_flight: BTreeMap<CommandId, CancellationToken> = BTreeMap::new();
        loop {
            if me.scene.fault_in(&me.name, &[Fault::WorkerDied], 40).is_some() {
                // Its running commands are dropped with it.
                return;
            }
            let mut leased = Vec::new();
            while let Some(Ok((ended, next))) = running.try_join_next() {
                in_flight.remove(&ended);
                leased.extend(next);
            }
            me.begin(leased, &mut in_flight, &mut running);
            me.heartbeat(&in_flight).await;
            let free = 3_usize.saturating_sub(in_flight.len());
            if free == 0 {
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
            let leased = me.lease(free).await;
            me.begin(leased, &mut in_flight, &mut running);
        }
    }

    /// Starts leased commands, unless they run already: a response may arrive twice.
    fn begin(
        self: &Arc<Self>,
        rows: Vec<LeasedRow>,
        in_flight: &mut BTreeMap<CommandId, CancellationToken>,
        running: &mut JoinSet<(CommandId, Option<LeasedRow>)>,
    ) {
        for leased in rows {
            if let Entry::Vacant(place) = in_flight.entry(leased.row.id) {
                let cancel = place.insert(CancellationToken::new()).clone();
                running.spawn(self.clone().perform(leased, cancel));
            }
        }
    }

    /// Renews the leases, and stops cancelled and lost commands.
    async fn heartbeat(&self, in_flight: &BTreeMap<CommandId, CancellationToken>) {
        let Some((_, control)) = self.scene.some_control() else {
            tokio::time::sleep(Duration::from_millis(700)).await;
            return;
        };
        let ids: Vec<CommandId> = in_flight.keys().copied().collect();
        let tenant = Tenant::default();
        let asked = control.remote.leasing.renew(&tenant, &None, &self.name, &ids);
        let Ok(Ok(renewed)) = tokio::time::timeout(HEARTBEAT / 2, asked).await else { return };
        for id in renewed.cancel.iter().chain(&renewed.lost) {
            if let Some(cancel) = in_flight.get(id) {
                cancel.cancel();
            }
        }
    }

    async fn lease(&self, max: usize) -> Vec<LeasedRow> {
        let Some((_, control)) = self.scene.some_control() else { return Vec::new() };
        let request = LongPoll {
            worker: self.name.clone(),
            pool: None,
            kinds: None,
            max,
            wait: HEARTBEAT / 2,
            public_key: None,
        };
        let tenant = Tenant::default();
        let asked = control.remote.leasing.lease(&tenant, &None, request);
        let leased = match tokio::time::timeout(HEARTBEAT, asked).await {
            Ok(Ok(leased)) => leased,
            Ok(Err(_)) | Err(_) => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                return Vec::new();
            }
        };
        if !leased.is_empty() && self.scene.fault_in(&self.name, &[Fault::WorkerCut], 15).is_some()
        {
            // The commands are leased, but the response is lost.
            return Vec::new();
        }
        leased
    }

    async fn perform(
        self: Arc<Self>,
        leased: LeasedRow,
        cancel: CancellationToken,
    ) -> (CommandId, Option<LeasedRow>) {
        let (execution, id) = (leased.row.execution, leased.row.id);
        let scripted = Scripted { scene: self.scene.clone(), life: None };
        let clock = self.scene.clock.clone();
        let performer =
            CommandExecutor::new(ToolRegistry::default().with(scripted), Arc::new(NoValues), clock);
        let (tenant, issued) = (Tenant::default(), leased.issued);
        let command = CommandTask { execution, id, tenant, issued, cancel: cancel.clone() };
        let ended = performer.execute(&command).await;
        let next = self.report(execution, id, &ended, &cancel).await;
        if self.scene.fault_in(&self.name, &[Fault::WorkerRepeats], 8).is_some() {
            tokio::time::sleep(self.scene.millis(0, 20_000)).await;
            self.send(execution, id, &ended, false).await;
        }
        (id, next)
    }

    /// Reports a completion until it is accepted, and returns the handoff.
    async fn report(
        &self,
        execution: ExecutionId,
        id: CommandId,
        ended: &CommandOutcome,
        cancel: &CancellationToken,
    ) -> Option<LeasedRow> {
        loop {
            // Some reports ask for a handoff, others leave it to the next poll.
            let takes_next = self.scene.between(0, 1) == 1;
            let send = || self.send(execution, id, ended, takes_next);
            // A load balancer resends a report to a second server, and both process it.
            let response = match self.scene.fault_in(&self.name, &[Fault::WorkerRepeats], 4) {
                Some(_) => {
                    let (one, other) = tokio::join!(send(), send());
                    one.or(other)
                }
                None => send().await,
            };
            match response {
                Some(ack) => return ack.next,
                None if cancel.is_cancelled() => return None,
                None => tokio::time::sleep(self.scene.millis(100, 2_000)).await,
            }
        }
    }

    /// Sends a completion once. Returns `None` without a response.
    async fn send(
        &self,
        execution: ExecutionId,
        command: CommandId,
        ended: &CommandOutcome,
        takes_next: bool,
    ) -> Option<CompletionAck> {
        let (_, control) = self.scene.some_control()?;
        let outcome = ended.outcome.clone();
        let (ctx, step) = (ended.ctx.clone(), ended.step.clone());
        let ended = CommandOutcome { outcome, ctx, step };
        let end = Completion { execution, command, ended, reference: None };
        let next = takes_next
            .then(|| control.remote.leasing.next_command_filter(&None, &self.name, None, None));
        let next = next.transpose().expect("a worker's name");
        let response =
            control.remote.reports.record_completion(&None, &self.name, end, next.as_ref());
        let ack = tokio::time::timeout(TIMEOUT, response).await.ok()?.ok()?;
        self.scene.fault_in(&self.name, &[Fault::WorkerCut], 15).is_none().then_some(ack)
    }
}
