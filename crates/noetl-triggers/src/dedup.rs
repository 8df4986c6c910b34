//! Starts at most one execution per dedup key within a window.
//!
//! The playbook is found and compiled before the key is reserved, so a request that cannot start
//! leaves no reservation. The reservation names the execution ID, and the start follows it. A
//! request that finds a reservation without its execution, because a process died in between,
//! starts that very execution. So a message is never lost, and never starts two executions.

use std::sync::Arc;
use std::time::Duration;

use noetl_engine::Rejection;
use noetl_identity::IdGenerator;
use noetl_journal::{
    Executions, PreassignedId, StartError, StartRequest, StartedExecution, SubmitError,
    Subscriptions,
};
use noetl_model::event::ReportedEvent;
use noetl_model::{ExecutionId, Map, Snowflakes, SubscriptionId, Tenant, Value};
use noetl_store::{DedupOutcome, TriggerStore};
use tracing::warn;

/// Maximum window: the default retention of dedup keys.
pub const WINDOW_MAX: Duration = noetl_playbook::subscription::DEDUP_WINDOW_MAX;

/// Time after its reservation during which an execution may still be started. Much longer than a
/// start takes, and shorter than any retention of executions.
const MADE_GOOD_MAX: Duration = Duration::from_secs(12 * 3600);

/// Dedup key of a start, with its scope and window.
#[derive(Debug, Clone)]
pub struct DedupKey {
    /// Scope in which the key is unique: a subscription or another execution; 0 for none.
    pub scope: SubscriptionId,
    pub key: String,
    /// Time during which an equal key counts as a duplicate.
    pub window: Duration,
    /// Whether each duplicate is recorded in the subscription's event log.
    pub is_noted: bool,
}

/// Outcome of a deduplicated start.
#[derive(Debug, Clone)]
pub enum DedupStart {
    New(StartedExecution),
    /// The key was already used, by this execution.
    Duplicate(ExecutionId),
}

/// Starts deduplicated executions. Cheap to clone.
#[derive(Clone)]
pub struct DedupStarter {
    store: Arc<dyn TriggerStore>,
    executions: Executions,
    subscriptions: Subscriptions,
    ids: IdGenerator,
}

impl DedupStarter {
    pub(crate) fn new(
        store: Arc<dyn TriggerStore>,
        executions: Executions,
        subscriptions: Subscriptions,
        ids: IdGenerator,
    ) -> Self {
        Self { store, executions, subscriptions, ids }
    }

    /// Returns the service for one caller; see [`Executions::with_actor`].
    #[must_use]
    pub fn with_actor(&self, actor: Option<Arc<str>>) -> Self {
        Self { executions: self.executions.with_actor(actor), ..self.clone() }
    }

    /// Starts an execution unless one was started for the key within the window.
    pub async fn start_once(
        &self,
        tenant: &Tenant,
        request: StartRequest,
        once: DedupKey,
    ) -> Result<DedupStart, StartError> {
        let ready = self.executions.prepare(tenant, request).await?;
        self.executions.admit(tenant).await?;
        self.ids.ensure_leased().map_err(StartError::Store)?;
        let mine = self.ids.execution();
        let DedupKey { scope, key, window, .. } = &once;
        let reserved = self.store.reserve(tenant, *scope, key, mine, *window).await;
        let (execution, is_mine) = match reserved.map_err(StartError::Store)? {
            DedupOutcome::New => (mine, true),
            DedupOutcome::Known(execution) => (execution, false),
        };
        let known = self.store.tenant_of(execution).await.map_err(StartError::Store)?;
        if known.is_some() || self.is_old(execution) {
            return Ok(self.was_started(tenant, &once, mine, execution).await);
        }
        // Every process that starts it uses the same key.
        let fixed = PreassignedId { execution, key: execution.get().cast_unsigned() };
        match self.executions.start_as(tenant, &ready, fixed).await {
            Ok(started) if is_mine => Ok(DedupStart::New(started)),
            Ok(_) | Err(StartError::Submit(SubmitError::Refused(Rejection::AlreadyStarted))) => {
                Ok(self.was_started(tenant, &once, mine, execution).await)
            }
            Err(StartError::Submit(SubmitError::Taken)) => {
                Ok(self.repeated(tenant, &once, mine, execution).await)
            }
            Err(error) => {
                if is_mine && is_final(&error) {
                    self.give_back(tenant, &once, execution).await;
                }
                Err(error)
            }
        }
    }

    /// Returns the outcome for an execution that has been started, by whichever process. The
    /// request that made the reservation gets [`DedupStart::New`], even if another request started
    /// the execution first or an earlier response was lost. So at most one of all requests gets it.
    async fn was_started(
        &self,
        tenant: &Tenant,
        once: &DedupKey,
        mine: ExecutionId,
        execution: ExecutionId,
    ) -> DedupStart {
        match mine == execution {
            true => DedupStart::New(StartedExecution { execution, commands: 0 }),
            false => self.repeated(tenant, once, mine, execution).await,
        }
    }

    /// Returns `true` if a reservation is so old that its execution will not start anymore: it was
    /// started, and retention, which takes at least a day, has purged it.
    fn is_old(&self, execution: ExecutionId) -> bool {
        self.ids.now().since(Snowflakes::time_of(execution.get())) > MADE_GOOD_MAX
    }

    /// Records a duplicate in the subscription's event log, on a best-effort basis, and returns it.
    async fn repeated(
        &self,
        tenant: &Tenant,
        once: &DedupKey,
        left_out: ExecutionId,
        original: ExecutionId,
    ) -> DedupStart {
        let text = |name: &str, value: String| (name.to_owned(), Value::from(value));
        let payload = Map::from_iter([
            text("subscription_id", once.scope.to_string()),
            text("dedup_key", once.key.clone()),
            text("original_execution_id", original.to_string()),
            text("suppressed_execution_id", left_out.to_string()),
            ("duplicate_suppressed".to_owned(), Value::Bool(true)),
        ]);
        let said = ReportedEvent {
            event_type: "subscription.message.deduplicated".to_owned(),
            step: Arc::from("ingress"),
            status: "DEDUPLICATED".to_owned(),
            payload: Some(Value::Object(payload)),
            meta: None,
            worker: None,
            key: None,
            columns: None,
        };
        if once.is_noted
            && once.scope.get() != 0
            && let Err(error) = self.subscriptions.note(tenant, once.scope, said, None).await
        {
            warn!(%error, "failed to record duplicate message");
        }
        DedupStart::Duplicate(original)
    }

    /// Removes the reservation, so the next request need not start an execution that was rejected.
    async fn give_back(&self, tenant: &Tenant, once: &DedupKey, execution: ExecutionId) {
        let given = self.store.unreserve(tenant, once.scope, &once.key, execution).await;
        if let Err(error) = given {
            warn!(%error, execution.id = %execution, "failed to remove dedup reservation");
        }
    }
}

/// Returns `true` if the start itself was rejected, so no request can start it under this
/// reservation. After any other failure the reservation stays: the next request starts that very
/// execution.
fn is_final(error: &StartError) -> bool {
    matches!(error, StartError::Submit(SubmitError::Refused(_) | SubmitError::Playbook(_)))
}
