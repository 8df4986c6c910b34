//! Source of the commands of a server: its connection, or a long poll over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use noetl_api::completions::{CompletionItem, ContentStored};
use noetl_api::work;
use noetl_api::workers::{CommandLeaseRequest, LeasedCommand, RegisterRequest};
use noetl_model::{ExecutionId, Failure, FailureKind, Map, Tenant, Value};
use noetl_work::{CommandOutcome, INLINE_MAX, LEASE_BATCH_MAX, is_small, small_fields};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::content;
use super::leases::HeldLeases;
use super::lend::{Lender, OwnedCommand};
use super::line::Line;
use super::link::{RETRY, ServerLink, chain};
use super::metrics::WorkerEvent;
use super::reporter::{ReportOutcome, ReportReply, Reporter};
use super::services::RemoteServices;
use super::step_logs::LogShipper;
use crate::services::Services;
use crate::source::CommandSource;
use crate::task::CommandTask;

/// Duration of a long poll. Servers respond within 30 seconds at the latest.
const WAIT: Duration = Duration::from_secs(25);

/// A response without commands that arrives sooner than this did not wait for them.
const TOO_SOON: Duration = Duration::from_millis(500);

/// Commands of a server.
pub(crate) struct LeasePoller {
    pub(crate) link: Arc<ServerLink>,
    pub(crate) leases: HeldLeases,
    pub(crate) reporter: Reporter,
    pub(crate) lender: Lender,
    pub(crate) line: Line,
    pub(crate) lines: LogShipper,
    pub(crate) pool: Option<String>,
    pub(crate) registration: Arc<RegisterRequest>,
    /// Cancelled when the worker must claim no more commands.
    pub(crate) draining: CancellationToken,
}

#[async_trait]
impl CommandSource for LeasePoller {
    type Claim = OwnedCommand;

    async fn take(&self, free: usize) -> Option<Vec<(CommandTask, OwnedCommand)>> {
        loop {
            let taken = tokio::select! {
                taken = self.line.take(free) => taken,
                () = self.draining.cancelled() => return None,
            };
            let taken = match taken {
                Some(taken) => taken,
                // The server has no connections for workers.
                None => self.take_within(free, WAIT).await?,
            };
            if !taken.is_empty() {
                self.link.counters.set_running(self.leases.len());
                return Some(taken);
            }
        }
    }

    async fn over(&self) {
        self.draining.cancelled().await;
    }

    fn services(&self, claim: &OwnedCommand) -> Arc<dyn Services> {
        Arc::new(RemoteServices {
            link: self.link.clone(),
            lines: self.lines.clone(),
            tenant: claim.tenant.clone(),
            registration: self.registration.clone(),
        })
    }

    async fn lost(&self, claim: &OwnedCommand) {
        claim.holding.lost.cancelled().await;
    }

    async fn report(
        &self,
        claim: OwnedCommand,
        ended: CommandOutcome,
    ) -> Option<(CommandTask, OwnedCommand)> {
        let next = tokio::select! {
            next = self.say(&claim, ended) => next,
            () = claim.holding.lost.cancelled() => None,
        };
        drop(claim);
        let next = next.and_then(|leased| self.lender.lend(*leased));
        self.link.counters.set_running(self.leases.len());
        next
    }
}

impl LeasePoller {
    /// Leases commands, waiting up to `wait` for the first. Returns an empty list if the server has
    /// none. Retries while the server is unavailable. Returns `None` once the worker must claim no
    /// more.
    pub(crate) async fn take_within(
        &self,
        free: usize,
        wait: Duration,
    ) -> Option<Vec<(CommandTask, OwnedCommand)>> {
        let (mut delays, began) = (RETRY.delays(), Instant::now());
        loop {
            let asked_at = Instant::now();
            let left = wait.saturating_sub(began.elapsed());
            let request = self.request(free, left);
            let asked = tokio::select! {
                asked = self.link.request(work::lease(&request)) => asked,
                () = self.draining.cancelled() => return None,
            };
            match asked {
                Ok(reply) => {
                    self.link.set_lease(reply.lease_seconds);
                    let taken = reply.commands.into_iter().filter_map(|it| self.lender.lend(it));
                    let taken: Vec<_> = taken.collect();
                    if !taken.is_empty() || left.is_zero() || began.elapsed() >= wait {
                        self.link.counters.set_running(self.leases.len());
                        return Some(taken);
                    }
                    if asked_at.elapsed() >= TOO_SOON {
                        delays.reset();
                        continue;
                    }
                }
                // `ServerLink::ask` has logged transient errors as an unavailable server.
                Err(error) if error.is_passing() => {}
                Err(error) => warn!(error = chain(&error), "lease request rejected, retrying"),
            }
            tokio::select! {
                () = tokio::time::sleep(delays.next_delay()) => {}
                () = self.draining.cancelled() => return None,
            }
        }
    }

    fn request(&self, free: usize, wait: Duration) -> CommandLeaseRequest {
        CommandLeaseRequest {
            worker_id: self.link.name.clone(),
            pool: self.pool.clone(),
            kinds: None,
            max: free.clamp(1, LEASE_BATCH_MAX),
            wait_seconds: wait.as_secs_f64(),
            public_key: Some(self.link.key.public()),
        }
    }

    async fn say(&self, claim: &OwnedCommand, ended: CommandOutcome) -> Option<Box<LeasedCommand>> {
        self.lines.flush().await;
        let end = self.prepared(claim, ended).await;
        let takes_next = !self.draining.is_cancelled();
        finish(&self.reporter, &self.link, claim, end, takes_next).await
    }

    /// Returns a completion ready to send: known secrets redacted, and a large result uploaded as a
    /// blob.
    async fn prepared(&self, claim: &OwnedCommand, mut ended: CommandOutcome) -> CompletionItem {
        let (link, tenant) = (self.link.clone(), claim.tenant.clone());
        let execution = claim.execution;
        if ended.outcome.as_ref().is_ok_and(is_small) {
            redact(&link, (execution, &tenant), &mut ended);
            return completion_of(claim, ended);
        }
        // Serializing a large value takes long enough to block the other tasks on this thread.
        let written = tokio::task::spawn_blocking(move || {
            redact(&link, (execution, &tenant), &mut ended);
            let text = ended.outcome.as_ref().ok().map(Value::to_string);
            (ended, text.filter(|text| text.len() > INLINE_MAX))
        });
        let Ok((mut ended, text)) = written.await else {
            let message = "the result has no JSON form";
            return completion_of(claim, Err(Failure::new(FailureKind::Schema, message)).into());
        };
        let Some(text) = text else { return completion_of(claim, ended) };
        if let Ok(data) = &mut ended.outcome {
            *data = small_fields(data.take());
        }
        match content::upload(&self.link, Bytes::from(text)).await {
            Ok(stored) => {
                let content =
                    ContentStored { digest: stored.digest.to_string(), bytes: stored.bytes };
                CompletionItem { content: Some(content), ..completion_of(claim, ended) }
            }
            Err(failure) => completion_of(claim, CommandOutcome { outcome: Err(failure), ..ended }),
        }
    }
}

/// Replaces secrets with the placeholders that the server sent with them.
fn redact(
    link: &ServerLink,
    (execution, tenant): (ExecutionId, &Tenant),
    ended: &mut CommandOutcome,
) {
    if link.redaction.is_empty() {
        return;
    }
    let texts = link.placeholders.of_execution(execution);
    let input =
        |alias: &str, field: &str| texts.get(&(alias.to_owned(), field.to_owned())).cloned();
    link.redaction.ended(tenant, ended, Some(&input));
}

/// Sends a completion until the server responds. Converts a rejected completion into a failure with
/// the reason, so that the step doesn't wait forever. Returns the command that is handed off.
pub(super) async fn finish(
    reporter: &Reporter,
    link: &ServerLink,
    claim: &OwnedCommand,
    end: CompletionItem,
    takes_next: bool,
) -> Option<Box<LeasedCommand>> {
    claim.holding.reports();
    let is_done = end.failure.is_none();
    let mut answer = reporter.report(&end, takes_next).await;
    if let Some(ReportReply { reported: ReportOutcome::Refused(why), .. }) = &answer {
        link.counters.count(WorkerEvent::Refused);
        warn!(command.id = %claim.command, error = why, "completion rejected, failing command");
        let message = format!("the result was not taken: {why}");
        let failure = Failure::new(FailureKind::Schema, message);
        let end = CompletionItem {
            execution_id: end.execution_id,
            event_id: end.event_id,
            data: Value::Null,
            content: None,
            failure: Some(failure),
            ctx: Map::new(),
            step: Map::new(),
        };
        answer = reporter.report(&end, takes_next).await;
    }
    let Some(ReportReply { reported, next }) = answer else {
        // The lease expires, and another worker gets the command.
        link.counters.count(WorkerEvent::Refused);
        return None;
    };
    match reported {
        ReportOutcome::Accepted if is_done => link.counters.count(WorkerEvent::Done),
        ReportOutcome::Accepted => link.counters.count(WorkerEvent::Failed),
        ReportOutcome::Late => {
            link.counters.count(WorkerEvent::Late);
            debug!(command.id = %claim.command, "late completion");
        }
        ReportOutcome::Refused(_) => link.counters.count(WorkerEvent::Refused),
    }
    next
}

pub(super) fn completion_of(claim: &OwnedCommand, ended: CommandOutcome) -> CompletionItem {
    let CommandOutcome { outcome, ctx, step } = ended;
    let (data, failure) = match outcome {
        Ok(data) => (data, None),
        Err(failure) => (Value::Null, Some(failure)),
    };
    CompletionItem {
        execution_id: claim.execution.into(),
        event_id: claim.command.into(),
        data,
        content: None,
        failure,
        ctx,
        step,
    }
}
