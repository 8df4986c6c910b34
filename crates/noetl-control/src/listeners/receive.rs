//! Messages that this server is handed: each becomes an execution, or is answered with why not.
//!
//! Who sends was found out before. A message is answered only once its execution is durable, so a
//! sender that hears nothing sends it again; with a window of repeats that again is the same
//! execution.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use noetl_model::event::Reported;
use noetl_model::{Clock, ExecutionId, SubscriptionId, Tenant};
use noetl_store::SubscriptionState;
use serde_json::json;
use tracing::warn;

use super::directives::decide;
use super::limits::Limits;
use super::message::{Message, MessageError};
use super::settings::Listener;
use crate::executions::{Executions, StartError, StartRequest};
use crate::once::{Once, StartedOnce, Starts};
use crate::subscriptions::{SubscriptionError, Subscriptions};
use crate::traces::TraceOf;

/// Subscriptions whose id is remembered by their path.
const KNOWN_MAX: usize = 4096;

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenIn {
    /// The execution it is.
    pub execution: ExecutionId,
    /// Its subscription.
    pub subscription: SubscriptionId,
    /// Whether it had been one before.
    pub is_duplicate: bool,
}

/// Why a message became nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Its subscription takes none now.
    #[error("Subscription '{path}' is {}: it takes no messages", .state.as_str())]
    NotTaking {
        /// The path of the subscription.
        path: String,
        /// Where it stands.
        state: SubscriptionState,
    },
    /// It is one too many.
    #[error("Subscription '{0}' takes no more messages now")]
    Limited(String),
    /// It cannot be read.
    #[error(transparent)]
    Message(MessageError),
    /// Its playbook was not started.
    #[error("the playbook '{playbook}' was not started")]
    Start {
        /// The playbook.
        playbook: String,
        /// Why.
        #[source]
        cause: StartError,
    },
    /// Its subscription could not be found or registered.
    #[error(transparent)]
    Subscription(SubscriptionError),
}

/// Whether executions go on with the trace of whoever sends.
fn propagates(listener: &Listener) -> bool {
    let said = listener.headers.as_ref().and_then(|headers| headers.pointer("/trace/propagate"));
    said.and_then(|said| said.as_str()) != Some("none")
}

/// Takes messages. Cheap to clone.
#[derive(Clone)]
pub struct Ingress {
    subscriptions: Subscriptions,
    executions: Executions,
    starts: Starts,
    clock: Arc<dyn Clock>,
    limits: Limits,
    known: Arc<Mutex<LruCache<(Tenant, String), SubscriptionId>>>,
}

impl Ingress {
    pub(crate) fn new(
        subscriptions: Subscriptions,
        executions: Executions,
        starts: Starts,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let most = NonZeroUsize::new(KNOWN_MAX).expect("more than none");
        let known = Arc::new(Mutex::new(LruCache::new(most)));
        Self { subscriptions, executions, starts, clock, limits: Limits::default(), known }
    }

    /// Makes an execution of a message whose sender is known. It goes on with the sender's trace
    /// unless its document says otherwise.
    pub async fn receive(
        &self,
        tenant: &Tenant,
        listener: &Listener,
        message: &Message,
        trace: TraceOf,
    ) -> Result<TakenIn, ReceiveError> {
        let subscription = self.taking(tenant, &listener.path).await?;
        let now = self.clock.now();
        let decided = decide(listener.headers.as_ref(), &message.headers);
        let shaped = message.shape(listener, &decided, now).map_err(ReceiveError::Message)?;
        let most = (listener.max_in_flight, listener.max_per_sec);
        let _place = match self.limits.enter(subscription, most.0, most.1, now) {
            Ok(place) => place,
            Err(refused) => {
                if refused.is_to_be_told {
                    self.tell(tenant, subscription, listener).await;
                }
                return Err(ReceiveError::Limited(listener.path.clone()));
            }
        };
        let playbook = decided.playbook.unwrap_or_else(|| listener.playbook.clone());
        let request = StartRequest {
            path: Some(playbook.clone()),
            payload: shaped.payload,
            parent: Some(subscription.log()),
            pool: decided.pool.or_else(|| listener.execution_pool.clone()),
            trace: if propagates(listener) { trace } else { TraceOf::Unsaid },
            ..StartRequest::default()
        };
        let once = once(listener, message, decided.idempotency_key.unwrap_or(shaped.id));
        let once = once.map(|(key, window)| Once { scope: subscription, key, window });
        let started = match once {
            None => self.executions.start(tenant, request).await.map(StartedOnce::New),
            Some(once) => self.starts.once(tenant, request, once).await,
        };
        let (execution, is_duplicate) = match started {
            Ok(StartedOnce::New(started)) => (started.execution, false),
            Ok(StartedOnce::Duplicate(execution)) => (execution, true),
            Err(cause) => return Err(ReceiveError::Start { playbook, cause }),
        };
        Ok(TakenIn { execution, subscription, is_duplicate })
    }

    /// The subscription at a path, if it takes messages. One that was never registered is; one that
    /// is over stays over.
    async fn taking(&self, tenant: &Tenant, path: &str) -> Result<SubscriptionId, ReceiveError> {
        let key = (tenant.clone(), path.to_owned());
        let known = self.lock().get(&key).copied();
        let mut found = None;
        if let Some(id) = known {
            found = self.subscriptions.get(tenant, id).await.ok();
        }
        if found.as_ref().is_none_or(|row| row.state == SubscriptionState::Deactivated) {
            let rows = self.subscriptions.list(tenant).await.map_err(ReceiveError::Subscription)?;
            found = rows.into_iter().rfind(|row| row.path == path);
        }
        let row = match found {
            Some(row) => row,
            None => {
                let row = self.subscriptions.register(tenant, path).await;
                row.map_err(ReceiveError::Subscription)?
            }
        };
        self.lock().put(key, row.id);
        match row.state {
            SubscriptionState::Registered | SubscriptionState::Active => Ok(row.id),
            state => Err(ReceiveError::NotTaking { path: row.path, state }),
        }
    }

    /// Says in the subscription's log that messages are refused, as far as that can be said.
    async fn tell(&self, tenant: &Tenant, id: SubscriptionId, listener: &Listener) {
        let said = Reported {
            event_type: "subscription.rate_limited".to_owned(),
            step: Arc::from("ingress"),
            status: "RATE_LIMITED".to_owned(),
            payload: Some(json!({
                "subscription_id": id.to_string(),
                "listener": listener.name,
                "max_in_flight": listener.max_in_flight,
                "max_dispatch_per_sec": listener.max_per_sec,
            })),
            meta: None,
            worker: None,
            key: None,
        };
        if let Err(error) = self.subscriptions.note(tenant, id, said, None).await {
            warn!(%error, "that messages are refused is not noted");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<(Tenant, String), SubscriptionId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a repeat has the same, and for how long. A signature with a time is taken once even where
/// nothing is said of repeats: it counts for as long as its time does, on either side of ours.
fn once(listener: &Listener, message: &Message, key: String) -> Option<(String, Duration)> {
    if let Some(window) = listener.dedup {
        return Some((key, window));
    }
    let (signed_at, signature) = (listener.verify.signed_at.as_ref()?, message.signature.as_ref()?);
    let window = Duration::from_secs(signed_at.tolerance_secs * 2 + 1);
    Some((format!("signature:{signature}"), window))
}
