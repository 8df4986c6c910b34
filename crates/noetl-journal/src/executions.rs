//! Starts, watches, and stops executions.

mod clean;
mod fork;
mod lifecycle;
mod reissue;
mod request;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use noetl_catalog::{Catalog, PlaybookError, QuotaError, QuotaExceeded, Quotas};
use noetl_engine::{Answer, AnswerSource, Finalize, Input, Rejection, StartInput};
use noetl_identity::{self as ids, IdGenerator};
use noetl_model::trace::SpanId;
use noetl_model::{
    CatalogId, Clock, CommandId, Event, EventId, ExecutionId, Fact, Seq, Tenant, TraceContext,
};
use noetl_playbook::Playbook;
use noetl_results::ResultStorage;
use noetl_secrets::Placeholders;
use noetl_store::{CatalogEntry, ExecutionFilter, ExecutionRow, JournalStore, StoreError};
use noetl_work::Redaction;

use crate::journal::{Journal, NewExecution, SubmitError};
use crate::lost_reports::LostReports;
use crate::traces::{TraceParent, Traces};
use crate::watch::CommitWatch;

pub use fork::{ForkError, ForkRequest, ForkVersion, Forked, RetryRequest};
pub use lifecycle::CLEANED_MAX;
pub(crate) use request::{ParentLink, PreparedStart};
pub use request::{PreassignedId, StartRequest};

/// Attempts to start an execution: if its ID is taken, which already indicates two processes with
/// the same machine ID, and if the outcome of the commit is unknown.
const TRIES_MAX: usize = 8;

/// Interval at which [`finished`](Executions::finished) checks for an end by another process.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct StartedExecution {
    pub execution: ExecutionId,
    /// Number of commands issued by its first step.
    pub commands: usize,
}

/// Errors of starting an execution.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Neither `path` nor `catalog_id` was given.
    #[error("name the playbook by path or catalog_id")]
    Unnamed,
    /// No playbook has this path, version, or catalog ID.
    #[error("{0}")]
    NotFound(String),
    /// The playbook is missing or does not compile.
    #[error("failed to load the playbook")]
    Playbook(#[source] PlaybookError),
    /// The journal did not accept the start.
    #[error("the execution was not started")]
    Submit(#[source] SubmitError),
    /// The start would exceed a quota of the tenant.
    #[error(transparent)]
    Quota(QuotaExceeded),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

fn is_issue(event: &Event) -> bool {
    matches!(event.fact, Fact::CommandIssued(_))
}

/// Execution service. Cheap to clone.
#[derive(Clone)]
pub struct Executions {
    pub(crate) store: Arc<dyn JournalStore>,
    pub(crate) journal: Journal,
    pub(crate) catalog: Catalog,
    pub(crate) ids: IdGenerator,
    pub(crate) results: ResultStorage,
    pub(crate) watch: CommitWatch,
    pub(crate) redaction: Redaction,
    pub(crate) placeholders: Placeholders,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) traces: Traces,
    pub(crate) quotas: Quotas,
    /// Whether this process has a local worker.
    pub(crate) has_worker: bool,
    pub(crate) lost: LostReports,
    /// Caller recorded as the actor in events.
    pub(crate) actor: Option<Arc<str>>,
}

impl Executions {
    /// Returns the service for one caller. Events that record its starts, cancellations,
    /// finalizations, and answers name the caller, in the same commit.
    #[must_use]
    pub fn with_actor(&self, actor: Option<Arc<str>>) -> Self {
        Self { actor, ..self.clone() }
    }

    /// Starts an execution. On `Ok`, the start is durable and the execution will continue.
    pub async fn start(
        &self,
        tenant: &Tenant,
        request: StartRequest,
    ) -> Result<StartedExecution, StartError> {
        let ready = self.prepare(tenant, request).await?;
        let input = Input::Start(Box::new(ready.start));
        self.begin(tenant, &ready.playbook, &input, None).await
    }

    /// Starts an execution under a new ID. Placeholders of `origin` in the input are replaced with
    /// its own.
    async fn begin(
        &self,
        tenant: &Tenant,
        playbook: &Arc<Playbook>,
        input: &Input,
        origin: Option<ExecutionId>,
    ) -> Result<StartedExecution, StartError> {
        self.admit(tenant).await?;
        for _ in 0..TRIES_MAX {
            let fixed = PreassignedId { execution: self.ids.execution(), key: ids::entropy() };
            let own = match origin {
                Some(origin) => {
                    let of = (origin, fixed.execution);
                    Cow::Owned(self.reissued(tenant, of, input).await.map_err(StartError::Store)?)
                }
                None => Cow::Borrowed(input),
            };
            match self.begin_as(tenant, playbook, &own, fixed).await {
                Err(StartError::Submit(SubmitError::Taken)) => {}
                Err(StartError::Submit(SubmitError::Refused(Rejection::AlreadyStarted))) => {
                    return Ok(StartedExecution { execution: fixed.execution, commands: 0 });
                }
                answer => return answer,
            }
        }
        Err(StartError::Submit(SubmitError::Taken))
    }

    /// Checks whether the tenant's quotas allow one more start.
    pub async fn admit(&self, tenant: &Tenant) -> Result<(), StartError> {
        let admitted = self.quotas.check_start(&*self.store, tenant, self.clock.now()).await;
        admitted.map_err(|error| match error {
            QuotaError::Over(over) => StartError::Quota(over),
            QuotaError::Store(error) => StartError::Store(error),
        })
    }

    /// Redacts the payload, then finds and compiles the playbook. Writes nothing.
    pub async fn prepare(
        &self,
        tenant: &Tenant,
        mut request: StartRequest,
    ) -> Result<PreparedStart, StartError> {
        self.clean(tenant, &mut request.payload);
        self.find_and_compile(tenant, request).await
    }

    /// Finds and compiles the playbook of a start whose payload is already redacted.
    async fn find_and_compile(
        &self,
        tenant: &Tenant,
        request: StartRequest,
    ) -> Result<PreparedStart, StartError> {
        let entry = self.find(tenant, &request).await?;
        let trace = self
            .trace_of(tenant, request.trace, request.parent)
            .await
            .map_err(StartError::Store)?;
        let start = StartInput {
            catalog: entry.id,
            path: Arc::from(entry.path.as_str()),
            version: entry.version,
            payload: request.payload,
            parent: request.parent,
            pool: request.pool.filter(|pool| !pool.is_empty()).map(Arc::from),
            parent_command: None,
            returns: None,
            depth: 0,
            forked: None,
            trace,
            actor: self.actor.clone(),
        };
        let playbook = self.catalog.compile(entry).await.map_err(StartError::Playbook)?;
        Ok(PreparedStart { start, playbook })
    }

    /// Returns the trace context that becomes the parent of an execution's span.
    pub(crate) async fn trace_of(
        &self,
        tenant: &Tenant,
        said: TraceParent,
        parent: Option<ExecutionId>,
    ) -> Result<Option<TraceContext>, StoreError> {
        if let TraceParent::Said(context) = said {
            return Ok(Some(context));
        }
        // An execution of another tenant counts as missing, so its ID reveals nothing about it.
        let parent = match parent {
            Some(parent) if self.store.tenant_of(parent).await?.as_ref() == Some(tenant) => {
                Some(parent)
            }
            _ => None,
        };
        if let Some(parent) = parent {
            let began = self.start_event(parent).await?;
            if let Some(context) = began.and_then(|began| began.trace) {
                return Ok(Some(context.with_span(SpanId::of_execution(parent))));
            }
        }
        Ok(match said {
            // Without a collector, spans of a new trace are never exported, so the execution does
            // not pass it on to services it calls.
            TraceParent::Made(context) => self.traces.is_recording().then_some(context),
            _ => self.traces.is_recording().then(|| self.traces.begin()),
        })
    }

    /// Starts an execution with a preassigned ID. If it was already started with the same key,
    /// fails with [`Rejection::AlreadyStarted`].
    pub async fn start_as(
        &self,
        tenant: &Tenant,
        ready: &PreparedStart,
        fixed: PreassignedId,
    ) -> Result<StartedExecution, StartError> {
        let input = Input::Start(Box::new(ready.start.clone()));
        self.begin_as(tenant, &ready.playbook, &input, fixed).await
    }

    async fn begin_as(
        &self,
        tenant: &Tenant,
        playbook: &Arc<Playbook>,
        input: &Input,
        PreassignedId { execution, key }: PreassignedId,
    ) -> Result<StartedExecution, StartError> {
        for tries in 1.. {
            let start = NewExecution { key, tenant: tenant.clone(), playbook: playbook.clone() };
            match self.journal.start(execution, input.clone(), start).await {
                Ok(accepted) => {
                    let commands = match input {
                        Input::Fork(_) => fork::handed_out(&accepted.events),
                        _ => accepted.events.iter().filter(|event| is_issue(event)).count(),
                    };
                    return Ok(StartedExecution { execution, commands });
                }
                // The commit may have succeeded. A retry with the same key does not start the
                // execution twice.
                Err(SubmitError::Store(error))
                    if matches!(error.failure(), StoreError::Unknown(_)) && tries < TRIES_MAX => {}
                Err(error) => return Err(StartError::Submit(error)),
            }
        }
        Err(StartError::Submit(SubmitError::Taken))
    }

    async fn find(
        &self,
        tenant: &Tenant,
        request: &StartRequest,
    ) -> Result<CatalogEntry, StartError> {
        let (found, missing) = match (request.catalog, request.path.as_deref()) {
            (Some(id), _) => {
                (self.catalog.entry(tenant, id).await, format!("Catalog entry not found: {id}"))
            }
            (None, Some(path)) => {
                let found = self.catalog.entry_at(tenant, path, request.version).await;
                let version = request.version.map(|v| format!(" version {v}")).unwrap_or_default();
                (found, format!("Playbook not found: {path}{version}"))
            }
            (None, None) => return Err(StartError::Unnamed),
        };
        found.map_err(StartError::Store)?.ok_or(StartError::NotFound(missing))
    }

    /// Returns the compiled playbook of a catalog entry.
    pub(crate) async fn playbook(
        &self,
        tenant: &Tenant,
        catalog: CatalogId,
    ) -> Result<Arc<Playbook>, StartError> {
        let request = StartRequest { catalog: Some(catalog), ..StartRequest::default() };
        let entry = self.find(tenant, &request).await?;
        self.catalog.compile(entry).await.map_err(StartError::Playbook)
    }

    /// Answers a parked command, authorized by its callback token.
    pub async fn answer(
        &self,
        id: ExecutionId,
        command: CommandId,
        token: &str,
        mut outcome: Result<noetl_model::Value, noetl_model::Failure>,
    ) -> Result<(), SubmitError> {
        self.redact(id, &mut outcome).await?;
        let from = AnswerSource::Token(Arc::from(token));
        let (outcome, reference) = match outcome {
            Ok(mut data) => {
                let reference = self.results.offload(&mut data).await?;
                (Ok(data), reference)
            }
            Err(failure) => (Err(failure), None),
        };
        let answer = Answer { command, from, outcome, reference, actor: self.actor.clone() };
        self.journal.submit(id, Input::Answer(Box::new(answer))).await.map(|_| ())
    }

    /// Ends an execution by decision of an operator, whatever is outstanding. The execution fails
    /// if `error` is given, else it completes.
    pub async fn finalize(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        error: Option<String>,
    ) -> Result<(), SubmitError> {
        let row = self.get(tenant, id).await;
        if row.map_err(|error| SubmitError::Store(Arc::new(error)))?.is_none() {
            return Err(SubmitError::Refused(Rejection::NotFound));
        }
        let finalize = Finalize { error, actor: self.actor.clone() };
        self.journal.submit(id, Input::Finalize(finalize)).await.map(|_| ())
    }

    /// Returns the row of an execution.
    pub async fn get(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        self.store.execution(tenant, id).await
    }

    /// Returns the executions that match a filter, newest start first.
    pub async fn list(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        self.store.executions(tenant, filter).await
    }

    /// Returns up to `limit` events after a sequence number, oldest first.
    pub async fn events(
        &self,
        id: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.store.read(id, after, limit).await
    }

    /// Returns the sequence number of an event in an execution's log.
    pub async fn seq_of(&self, id: ExecutionId, event: EventId) -> Result<Option<Seq>, StoreError> {
        self.store.find_event(id, event).await
    }

    /// Waits until an execution has ended and returns its row, or `None` if it does not exist. On
    /// shutdown, returns the row as it is.
    pub async fn wait_until_finished(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        loop {
            // Subscribe before the read, so an end between the two is not missed.
            let end = self.watch.end_of(id);
            match self.get(tenant, id).await? {
                Some(row) if !row.status.is_final() => {}
                row => {
                    drop(end);
                    self.watch.forget_gone(id);
                    return Ok(row);
                }
            }
            if !self.store.is_shared() {
                // Otherwise resolves only when the control plane shuts down.
                let _ = end.await;
                return self.get(tenant, id).await;
            }
            // Another process may end the execution.
            if let Ok(Err(_)) = tokio::time::timeout(LOOK_EVERY, end).await {
                return self.get(tenant, id).await;
            }
            self.watch.forget_gone(id);
        }
    }
}
