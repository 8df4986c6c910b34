//! Starting an execution once for a key, however often it is asked for within a window.
//!
//! What is asked for is found and compiled before anything is noted, so a request that cannot be
//! started leaves no trace. The note names the execution, and the start follows it: whoever meets a
//! note without its execution, because a process died in between, starts that very execution. So a
//! message is never lost, and never becomes two executions.

use std::sync::Arc;
use std::time::Duration;

use noetl_engine::Refusal;
use noetl_model::event::Reported;
use noetl_model::{ExecutionId, Map, Snowflakes, SubscriptionId, Tenant, Value};
use noetl_store::{Reserved, Store};
use tracing::warn;

use crate::executions::{Executions, Fixed, StartError, StartRequest, Started};
use crate::ids::Ids;
use crate::journal::SubmitError;
use crate::subscriptions::Subscriptions;

/// The longest window: as long as notes are kept when nothing else is said.
pub const WINDOW_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long after a note its execution may still be started. Far longer than a start takes, and
/// shorter than anything is kept that was started.
const MADE_GOOD_MAX: Duration = Duration::from_secs(12 * 3600);

/// What tells one message from another, and for how long.
#[derive(Debug, Clone)]
pub struct Once {
    /// What the key is unique in: a subscription or another execution; 0 for nothing.
    pub scope: SubscriptionId,
    pub key: String,
    /// For how long a repeat is one.
    pub window: Duration,
    /// Whether the log of the subscription says of each repeat that it was left out.
    pub is_noted: bool,
}

/// What became of a start.
#[derive(Debug, Clone)]
pub enum StartedOnce {
    New(Started),
    /// It had been, as this execution.
    Duplicate(ExecutionId),
}

/// Starts executions once. Cheap to clone.
#[derive(Clone)]
pub struct Starts {
    store: Arc<dyn Store>,
    executions: Executions,
    subscriptions: Subscriptions,
    ids: Ids,
}

impl Starts {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        executions: Executions,
        subscriptions: Subscriptions,
        ids: Ids,
    ) -> Self {
        Self { store, executions, subscriptions, ids }
    }

    /// Returns the service for one caller; see [`Executions::by`].
    #[must_use]
    pub fn by(&self, actor: Option<Arc<str>>) -> Self {
        Self { executions: self.executions.by(actor), ..self.clone() }
    }

    /// Starts an execution unless one was started for the key within the window.
    pub async fn once(
        &self,
        tenant: &Tenant,
        request: StartRequest,
        once: Once,
    ) -> Result<StartedOnce, StartError> {
        let ready = self.executions.prepare(tenant, request).await?;
        self.executions.admit(tenant).await?;
        self.ids.leased().map_err(StartError::Store)?;
        let mine = self.ids.execution();
        let Once { scope, key, window, .. } = &once;
        let reserved = self.store.reserve(tenant, *scope, key, mine, *window).await;
        let (execution, is_mine) = match reserved.map_err(StartError::Store)? {
            Reserved::New => (mine, true),
            Reserved::Known(execution) => (execution, false),
        };
        let known = self.store.tenant_of(execution).await.map_err(StartError::Store)?;
        if known.is_some() || self.is_old(execution) {
            return Ok(self.was_started(tenant, &once, mine, execution).await);
        }
        // Whoever starts it does so with the same key.
        let fixed = Fixed { execution, key: execution.get().cast_unsigned() };
        match self.executions.start_as(tenant, &ready, fixed).await {
            Ok(started) if is_mine => Ok(StartedOnce::New(started)),
            Ok(_) | Err(StartError::Submit(SubmitError::Refused(Refusal::AlreadyStarted))) => {
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

    /// What one hears whose execution was started, by whomever: the one who noted it, that it is new, were
    /// it another that met the note and was faster, or its own answer that was lost on the way. So among
    /// all that ask, one at most hears that.
    async fn was_started(
        &self,
        tenant: &Tenant,
        once: &Once,
        mine: ExecutionId,
        execution: ExecutionId,
    ) -> StartedOnce {
        match mine == execution {
            true => StartedOnce::New(Started { execution, commands: 0 }),
            false => self.repeated(tenant, once, mine, execution).await,
        }
    }

    /// Whether a note is so old that its execution is not about to start any more: it was started,
    /// and retention has removed it since, which takes at least a day.
    fn is_old(&self, execution: ExecutionId) -> bool {
        self.ids.now().since(Snowflakes::time_of(execution.get())) > MADE_GOOD_MAX
    }

    /// Says in the subscription's log that a repeat was left out, as far as that can be said.
    async fn repeated(
        &self,
        tenant: &Tenant,
        once: &Once,
        left_out: ExecutionId,
        original: ExecutionId,
    ) -> StartedOnce {
        let text = |name: &str, value: String| (name.to_owned(), Value::from(value));
        let payload = Map::from_iter([
            text("subscription_id", once.scope.to_string()),
            text("dedup_key", once.key.clone()),
            text("original_execution_id", original.to_string()),
            text("suppressed_execution_id", left_out.to_string()),
            ("duplicate_suppressed".to_owned(), Value::Bool(true)),
        ]);
        let said = Reported {
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
            warn!(%error, "a repeat is not noted");
        }
        StartedOnce::Duplicate(original)
    }

    /// So that the next try need not start what was refused.
    async fn give_back(&self, tenant: &Tenant, once: &Once, execution: ExecutionId) {
        let given = self.store.unreserve(tenant, once.scope, &once.key, execution).await;
        if let Err(error) = given {
            warn!(%error, execution.id = %execution, "a message is still noted as started");
        }
    }
}

/// Whether it was refused for what it is, so that nobody starts it under this note. After any other
/// failure the note stays: the next try starts that very execution.
fn is_final(error: &StartError) -> bool {
    matches!(error, StartError::Submit(SubmitError::Refused(_) | SubmitError::Playbook(_)))
}
