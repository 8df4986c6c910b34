//! Records reports of workers and clients about executions.
//!
//! A report about a command is an input to the engine. Any other report is stored and shown, but
//! has no effect on the execution. Event types that only the engine may write are rejected.

mod batch;
mod completions;
mod error;
mod inputs;
mod types;

use std::sync::Arc;

use noetl_engine::{Claim, Complete, Fail, Input, MarkStarted, RecordReport, Rejection};
use noetl_identity::IdGenerator;
use noetl_journal::{Journal, StepLogs, SubmitError, Subscriptions, TenantScope};
use noetl_model::event::{ReportColumns, ReportedEvent};
use noetl_model::placeholder::defuse;
use noetl_model::row::types as event_types;
use noetl_model::{
    CommandId, DEPTH_MAX, EventId, ExecutionId, Fact, Map, Seq, SubscriptionId, Tenant, Value,
    is_deeper_than,
};
use noetl_results::{ResolveError, Resolved, ResultStorage, StoredResults};
use noetl_secrets::Placeholders;
use noetl_store::{CommandRow, NewLine, RemoteStore, StoreError};
use noetl_work::Redaction;

pub use self::batch::Repeated;
use self::batch::{CommandReport, Commands, Prepared, Sent};
pub use self::completions::{Completion, CompletionAck};
pub use self::error::ReportError;
use self::inputs::{answered, ended, failure_in, printed_in};
pub use self::types::derived_status;
pub use self::types::is_event_type;
use self::types::{check_type, command_named};
use crate::leasing::{ExecutionCache, HandoffCache};
use crate::workers::{Workers, check_name};

#[derive(Debug, Clone)]
pub struct EventReport {
    pub execution: ExecutionId,
    /// Step that the report is about.
    pub step: String,
    /// Event type, such as `command.completed`.
    pub event_type: String,
    /// Status text; derived from the type if `None`.
    pub status: Option<String>,
    pub payload: Option<Value>,
    /// Additional metadata of the event.
    pub meta: Option<Value>,
    pub worker: Option<String>,
    /// Event ID assigned by the sender. A report with a known ID is a duplicate.
    pub event: Option<EventId>,
    /// Further columns of the event row.
    pub columns: Option<Box<ReportColumns>>,
}

impl EventReport {
    /// Returns the command that the payload or the metadata names.
    pub fn command(&self) -> Option<CommandId> {
        [&self.payload, &self.meta]
            .into_iter()
            .filter_map(|part| part.as_ref()?.get("command_id"))
            .find_map(command_named)
    }
}

/// Records reports. Cheap to clone.
#[derive(Clone)]
pub struct Reports {
    pub(crate) store: Arc<dyn RemoteStore>,
    pub(crate) journal: Journal,
    pub(crate) ids: IdGenerator,
    pub(crate) results: ResultStorage,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) redaction: Redaction,
    pub(crate) placeholders: Placeholders,
    pub(crate) workers: Workers,
    pub(crate) stored: StoredResults,
    pub(crate) known: ExecutionCache,
    pub(crate) handed: HandoffCache,
    pub(crate) logs: StepLogs,
}

impl Reports {
    /// Records one report and returns its event ID. A duplicate returns the same ID and has no
    /// effect.
    pub async fn record(
        &self,
        tenant: &Tenant,
        mut report: EventReport,
    ) -> Result<EventId, ReportError> {
        self.check(tenant, &mut report)?;
        let known = self.store.execution(tenant, report.execution).await;
        if known.map_err(ReportError::Store)?.is_none() {
            return self.note(tenant, report).await;
        }
        if let Some(worker) = &report.worker {
            self.workers.heard(&Some(tenant.clone()), worker).await;
        }
        if let Some(event) = report.event {
            let seen = self.store.find_event(report.execution, event).await;
            if seen.map_err(ReportError::Store)?.is_some() {
                return Ok(event);
            }
        }
        let prepared = self.prepare(tenant, report, &mut Commands::default()).await?;
        let sent = self.queue(prepared).await?;
        self.concluded(tenant, sent).await
    }

    /// Rejects a report that cannot be stored, and redacts secrets in any other.
    fn check(&self, tenant: &Tenant, report: &mut EventReport) -> Result<(), ReportError> {
        check_type(&report.event_type)?;
        let said = [&report.payload, &report.meta].into_iter().flatten();
        let columns = report.columns.iter().flat_map(|columns| columns.values());
        if said.chain(columns).any(|part| is_deeper_than(part, DEPTH_MAX)) {
            return Err(ReportError::TooDeep);
        }
        self.remove_secrets(tenant, report);
        Ok(())
    }

    /// Replaces known secrets, and defuses text that looks like a placeholder.
    fn remove_secrets(&self, tenant: &Tenant, report: &mut EventReport) {
        let minter = self.placeholders.minter(tenant, report.execution);
        let mint = |alias: &str, field: &str| minter.as_ref()?.mint(alias, field);
        let clean = |part: &mut Value| {
            defuse(part);
            self.redaction.value_with(tenant, part, Some(&mint));
        };
        [&mut report.payload, &mut report.meta].into_iter().flatten().for_each(clean);
        let Some(columns) = &mut report.columns else { return };
        columns.values_mut().for_each(clean);
        if let Some(error) = columns.error.take() {
            let mut text = Value::from(error);
            clean(&mut text);
            columns.error = text.as_str().map(str::to_owned);
        }
    }

    /// Claims a command for a remote worker. A command outside the scope is treated as finished.
    pub async fn claim(
        &self,
        scope: &TenantScope,
        command: CommandId,
        worker: &str,
    ) -> Result<CommandRow, ReportError> {
        check_name(worker).map_err(ReportError::Worker)?;
        let found = self.store.command(command).await.map_err(ReportError::Store)?;
        let refused = |refusal| ReportError::Submit(SubmitError::Refused(refusal));
        let row = found.ok_or_else(|| refused(Rejection::CommandFinished))?;
        if let Some(tenant) = scope {
            let of = self.store.tenant_of(row.execution).await.map_err(ReportError::Store)?;
            if of.as_ref() != Some(tenant) {
                return Err(refused(Rejection::CommandFinished));
            }
        }
        let input = Input::Claim(Claim { command, worker: Arc::from(worker) });
        let claimed = self.journal.submit(row.execution, input).await;
        self.workers.heard(scope, worker).await;
        match claimed {
            Ok(_) => {
                self.workers.held().record();
                Ok(row)
            }
            Err(SubmitError::Refused(Rejection::ClaimedBy(holder))) => {
                Err(ReportError::ClaimedBy(holder))
            }
            Err(error) => Err(ReportError::Submit(error)),
        }
    }

    /// Returns the row of a command and its specification.
    pub async fn command(
        &self,
        command: CommandId,
    ) -> Result<Option<(CommandRow, Arc<noetl_model::event::CommandSpec>)>, StoreError> {
        let Some(row) = self.store.command(command).await? else { return Ok(None) };
        Ok(self.issued(&row).await?.map(|issued| (row, issued)))
    }

    /// Returns the specification in a command's `command.issued` event.
    async fn issued(
        &self,
        row: &CommandRow,
    ) -> Result<Option<Arc<noetl_model::event::CommandSpec>>, StoreError> {
        let before = Seq(row.issued.0.saturating_sub(1));
        let events = self.store.read(row.execution, before, 1).await?;
        Ok(events.into_iter().next().and_then(|event| match event.fact {
            Fact::CommandIssued(issued) => Some(issued),
            _ => None,
        }))
    }

    /// Replaces the reference to a separately stored result by the result. A reference that cannot
    /// be resolved is unchanged.
    async fn fetch(&self, tenant: &Tenant, report: &mut EventReport) -> Result<(), ReportError> {
        let result = report.payload.as_mut().and_then(|payload| payload.get_mut("result"));
        let Some(Value::Object(result)) = result else { return Ok(()) };
        let named = result.get("reference").and_then(|reference| reference.get("ref"));
        let Some(uri) = named.and_then(Value::as_str) else { return Ok(()) };
        match self.stored.resolve(tenant, uri).await {
            Ok(Resolved(bytes)) => {
                if let Ok(whole) = serde_json::from_slice(&bytes) {
                    result.insert("context".to_owned(), whole);
                    result.remove("reference");
                }
                Ok(())
            }
            Err(ResolveError::Store(error)) => Err(ReportError::Store(error)),
            Err(ResolveError::Malformed(_) | ResolveError::NotFound) => Ok(()),
        }
    }

    /// Reads the data that a report needs before it is submitted. Writes nothing except a large
    /// result, which is unreferenced until the report is committed.
    async fn prepare(
        &self,
        tenant: &Tenant,
        mut report: EventReport,
        commands: &mut Commands,
    ) -> Result<Prepared, ReportError> {
        let Some(row) = commands.command_of(self, &report).await? else {
            return Ok(Prepared { report, about: None });
        };
        let command = row.id;
        let worker: Arc<str> = Arc::from(report.worker.as_deref().unwrap_or("unknown"));
        let mut printed = Vec::new();
        let mut input = match report.event_type.as_str() {
            event_types::COMMAND_CLAIMED => {
                check_name(&worker).map_err(ReportError::Worker)?;
                Input::Claim(Claim { command, worker })
            }
            event_types::COMMAND_STARTED => {
                check_name(&worker).map_err(ReportError::Worker)?;
                Input::Begin(MarkStarted { command, worker })
            }
            event_types::CALL_DONE => {
                let issued = self.issued(&row).await.map_err(ReportError::Store)?;
                self.fetch(tenant, &mut report).await?;
                printed = printed_in(command, self.ids.now(), &report, issued.as_deref());
                answered(command, report.payload.as_ref(), issued.as_deref())
            }
            // The failure in `call.error` is repeated in `command.failed`, which is the one that
            // counts.
            event_types::CALL_ERROR => return Ok(Prepared { report, about: None }),
            event_types::COMMAND_COMPLETED => ended(command, &report),
            _ => Input::Fail(Fail {
                command,
                failure: failure_in(report.payload.as_ref()),
                ctx: Map::new(),
                step: Map::new(),
            }),
        };
        if let Input::Complete(Complete { data: Some(data), reference, .. }) = &mut input {
            *reference = self.results.offload(data).await.map_err(ReportError::from)?;
        }
        // The report's ID becomes that of the first resulting event, if it can follow the claim.
        let is_later = |id: &EventId| id.get() > command.get() && self.ids.is_plausible(*id);
        let first_id = report.event.filter(is_later);
        Ok(Prepared { report, about: Some(Box::new(CommandReport { input, first_id, printed })) })
    }

    /// Queues a report in the journal.
    async fn queue(&self, prepared: Prepared) -> Result<Sent, ReportError> {
        let Prepared { report, about } = prepared;
        let Some(about) = about else { return self.queue_kept(report).await };
        let CommandReport { input, first_id, printed } = *about;
        let queued = self.journal.queue(report.execution, input, first_id).await;
        let (queued, report) = (queued.map_err(ReportError::Submit)?, Box::new(report));
        Ok(Sent::About { queued, report, printed })
    }

    /// Waits until a report is committed. Returns its event ID.
    async fn concluded(&self, tenant: &Tenant, sent: Sent) -> Result<EventId, ReportError> {
        let (queued, report, printed) = match sent {
            Sent::Kept { queued, asked } => {
                let accepted = queued.done().await.map_err(ReportError::Submit)?;
                // No event if the report had been recorded before.
                let kept = accepted.events.first().map(|event| event.id);
                return Ok(kept.or(asked).unwrap_or(EventId::new(0)));
            }
            Sent::About { queued, report, printed } => (queued, report, printed),
        };
        match queued.done().await {
            // The worker had claimed the command before: no event to record.
            Ok(accepted)
                if accepted.events.is_empty()
                    && report.event_type == event_types::COMMAND_CLAIMED =>
            {
                Ok(EventId::new(0))
            }
            // A late or repeated report is recorded without effect.
            Ok(accepted) if accepted.events.is_empty() => self.keep(tenant, *report).await,
            Ok(accepted) => {
                self.print(tenant, report.execution, printed).await;
                Ok(report.event.unwrap_or(accepted.events[0].id))
            }
            Err(SubmitError::Refused(Rejection::ClaimedBy(holder))) => {
                Err(ReportError::ClaimedBy(holder))
            }
            Err(SubmitError::Refused(_)) => self.keep(tenant, *report).await,
            Err(error) => Err(ReportError::Submit(error)),
        }
    }

    /// Records a report that has no effect.
    async fn keep(&self, tenant: &Tenant, report: EventReport) -> Result<EventId, ReportError> {
        let sent = self.queue_kept(report).await?;
        Box::pin(self.concluded(tenant, sent)).await
    }

    async fn queue_kept(&self, report: EventReport) -> Result<Sent, ReportError> {
        let (execution, asked) = (report.execution, report.event);
        let said = said(report);
        let id = asked.filter(|id| self.ids.is_plausible(*id));
        let key = if id.is_none() { asked.map(EventId::get) } else { None };
        let input = Input::Keep(Box::new(RecordReport { said, id, key }));
        let queued = self.journal.queue(execution, input, None).await;
        Ok(Sent::Kept { queued: queued.map_err(ReportError::Submit)?, asked })
    }

    /// Appends the output of a step. Failures are only logged, because the report itself is
    /// committed.
    async fn print(&self, tenant: &Tenant, execution: ExecutionId, lines: Vec<NewLine>) {
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.logs.append(tenant, execution, lines).await {
            tracing::warn!(%execution, %error, "failed to store step logs reported by worker");
        }
    }

    /// Records a report in the log of a subscription, whose runtime reports under the
    /// subscription's ID. No execution has that ID.
    async fn note(&self, tenant: &Tenant, report: EventReport) -> Result<EventId, ReportError> {
        let (execution, event) = (report.execution, report.event);
        let id = SubscriptionId::new(execution.get());
        let noted = self.subscriptions.note(tenant, id, said(report), event).await;
        noted.map_err(ReportError::Store)?.ok_or(ReportError::UnknownExecution(execution))
    }
}

/// Returns a report as the event to store. Removes the caller from its metadata: clients trust that
/// name in events of the control plane, and a report may have the type of one.
fn said(mut report: EventReport) -> ReportedEvent {
    if let Some(Value::Object(meta)) = &mut report.meta {
        meta.remove("actor");
    }
    let status = report.status.unwrap_or_else(|| derived_status(&report.event_type).to_owned());
    ReportedEvent {
        event_type: report.event_type,
        step: Arc::from(report.step),
        status,
        payload: report.payload.filter(Value::is_object),
        meta: report.meta,
        worker: report.worker.map(Arc::from),
        key: None,
        columns: report.columns,
    }
}
