//! Receives messages pushed to this server: each starts an execution or gets an error response.
//!
//! The sender is authenticated before. A message is acknowledged only once its execution is
//! durable, so a sender without a response redelivers; within the dedup window, redelivery leads to
//! the same execution.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use noetl_journal::{Metrics, StartError, SubscriptionError, Subscriptions, TraceParent};
use noetl_model::event::ReportedEvent;
use noetl_model::{Clock, ExecutionId, SubscriptionId, Tenant};
use noetl_playbook::subscription::{
    MessageContext, MessageRejection, MessageStart, Propagate, PushRequest, PushedMessage,
    start_for_message,
};
use noetl_store::SubscriptionState;
use noetl_work::MessageCounts;
use serde_json::json;
use tracing::warn;

use super::OpenListener;
use super::limits::{MessageLimiter, MessagePermit};
use crate::dedup::DedupStart;
use crate::message_starts::{MessageEntry, MessageStarter};

/// Maximum number of subscription IDs cached by path.
const KNOWN_MAX: usize = 4096;

/// A message from an authenticated sender.
#[derive(Debug, Clone, Default)]
pub struct IngressMessage {
    /// Headers by lower-case name. Among several with one name, the last.
    pub headers: BTreeMap<String, String>,
    /// Body bytes as received, not decoded.
    pub body: Vec<u8>,
    /// Verified signature in hex. Equal bytes with an equal signed time have equal signatures.
    pub signature: Option<String>,
}

/// Outcome of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveOutcome {
    /// Execution the message started, now or at its first delivery.
    pub execution: ExecutionId,
    pub subscription: SubscriptionId,
    /// Whether an earlier delivery started the execution.
    pub is_duplicate: bool,
    /// Whether the message repeats a verified signature within its dedup window.
    pub is_replay: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The subscription does not accept messages in its current state.
    #[error("Subscription '{path}' is {} and accepts no messages", .state.as_str())]
    NotTaking { path: String, state: SubscriptionState },
    /// The message exceeds a concurrency or rate limit.
    #[error("Subscription '{0}' takes no more messages now")]
    Limited(String),
    /// The message can never start an execution.
    #[error(transparent)]
    Message(MessageRejection),
    /// The playbook could not be started.
    #[error("the playbook '{playbook}' was not started")]
    Start {
        playbook: String,
        #[source]
        cause: StartError,
    },
    /// The subscription could not be found or registered.
    #[error(transparent)]
    Subscription(SubscriptionError),
}

/// Receives messages of push subscriptions. Cheap to clone.
#[derive(Clone)]
pub struct IngressService {
    subscriptions: Subscriptions,
    starter: MessageStarter,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    limits: MessageLimiter,
    /// Dedup window of signatures without a signed time. Zero turns deduplication of them off.
    replay_window: Duration,
    known: Arc<Mutex<LruCache<(Tenant, String), SubscriptionId>>>,
}

impl IngressService {
    pub(crate) fn new(
        subscriptions: Subscriptions,
        starter: MessageStarter,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        replay_window: Duration,
    ) -> Self {
        let most = NonZeroUsize::new(KNOWN_MAX).expect("more than none");
        let known = Arc::new(Mutex::new(LruCache::new(most)));
        let limits = MessageLimiter::default();
        Self { subscriptions, starter, metrics, clock, limits, replay_window, known }
    }

    /// Starts an execution for a message of an authenticated sender, and counts the outcome. The
    /// execution continues the sender's trace unless the document sets
    /// `headers.trace.propagate: none`.
    pub async fn receive(
        &self,
        tenant: &Tenant,
        listener: &OpenListener,
        message: IngressMessage,
        trace: TraceParent,
    ) -> Result<ReceiveOutcome, ReceiveError> {
        let received = match self.admit(tenant, listener, message).await {
            Ok((start, permit)) => {
                let received = self.start(tenant, listener, start, trace).await;
                drop(permit);
                received
            }
            Err(error) => {
                self.starter.count_rejected(MessageEntry::Ingress);
                Err(error)
            }
        };
        let one = MessageCounts { received: 1, ..MessageCounts::default() };
        let counts = match &received {
            Ok(received) if received.is_duplicate => MessageCounts { duplicate: 1, ..one },
            Ok(_) => MessageCounts { dispatched: 1, ..one },
            Err(_) => MessageCounts { failed: 1, ..one },
        };
        self.metrics.subscriptions.add(&listener.subscription.path, counts);
        if received.as_ref().is_ok_and(|received| received.is_replay) {
            self.metrics.webhook_replays.inc();
        }
        received
    }

    /// Counts a request that is rejected before its message is received.
    pub fn count_rejected(&self) {
        self.starter.count_rejected(MessageEntry::Ingress);
    }

    /// Returns the start request of a message, if its subscription accepts it now.
    async fn admit(
        &self,
        tenant: &Tenant,
        listener: &OpenListener,
        message: IngressMessage,
    ) -> Result<(MessageStart, MessagePermit), ReceiveError> {
        let document = &listener.subscription;
        let subscription = self.taking(tenant, &document.path).await?;
        let now = self.clock.now();
        let request = PushRequest {
            listener: listener.name.clone(),
            headers: message.headers.into_iter().collect(),
            body: message.body.into(),
            signature: message.signature,
            received_at: now,
            replay_window: self.replay_window,
        };
        let pushed = request.into_message(document).map_err(ReceiveError::Message)?;
        let PushedMessage { message, context } = pushed;
        let context = MessageContext { subscription, push: Some(&context) };
        let start = start_for_message(document, context, &message);
        let start = start.map_err(ReceiveError::Message)?;
        let limits = &document.limits;
        let (most, per_sec) = (limits.max_in_flight, limits.max_dispatch_per_sec);
        match self.limits.acquire(subscription, most, per_sec, now) {
            Ok(permit) => Ok((start, permit)),
            Err(exceeded) => {
                if exceeded.is_to_be_told {
                    self.tell(tenant, subscription, listener, exceeded.limit).await;
                }
                Err(ReceiveError::Limited(document.path.clone()))
            }
        }
    }

    async fn start(
        &self,
        tenant: &Tenant,
        listener: &OpenListener,
        mut start: MessageStart,
        trace: TraceParent,
    ) -> Result<ReceiveOutcome, ReceiveError> {
        let (subscription, playbook) = (start.subscription, start.playbook.clone());
        let is_signature = start.dedup.as_ref().is_some_and(|dedup| dedup.is_signature);
        let directives = std::mem::take(&mut start.directives);
        let (message, named) = (std::mem::take(&mut start.message), start.trace.clone());
        let trace = match (listener.subscription.headers.propagate, trace) {
            (Propagate::None, _) => TraceParent::Unsaid,
            // The request has a span of its own in the sender's trace. Its baggage is not filtered.
            (Propagate::W3c, TraceParent::Said(context)) => {
                let baggage = named.as_ref().and_then(|named| named.baggage.as_deref());
                TraceParent::Said(context.with_baggage(baggage))
            }
            (Propagate::W3c, other @ (TraceParent::Made(_) | TraceParent::Unsaid)) => other,
        };
        let started = self.starter.start(tenant, MessageEntry::Ingress, start, trace).await;
        let (execution, is_duplicate) = match started {
            Ok(DedupStart::New(started)) => (started.execution, false),
            Ok(DedupStart::Duplicate(execution)) => (execution, true),
            Err(cause) => return Err(ReceiveError::Start { playbook, cause }),
        };
        if !is_duplicate && !directives.applied.is_empty() {
            let (starter, tenant) = (self.starter.clone(), tenant.clone());
            // The response must not wait for a record that nothing depends on.
            tokio::spawn(async move {
                let named = named.as_ref();
                starter.record_directives(&tenant, execution, &message, &directives, named).await;
            });
        }
        let is_replay = is_duplicate && is_signature;
        Ok(ReceiveOutcome { execution, subscription, is_duplicate, is_replay })
    }

    /// Returns the subscription at a path if it accepts messages. Registers a subscription that
    /// does not exist yet. A deactivated one stays deactivated.
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

    /// Records in the subscription's event log that messages are rejected, on a best-effort basis.
    async fn tell(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        listener: &OpenListener,
        limit: &'static str,
    ) {
        let limits = &listener.subscription.limits;
        let said = ReportedEvent {
            event_type: "subscription.rate_limited".to_owned(),
            step: Arc::from("ingress"),
            status: "RATE_LIMITED".to_owned(),
            payload: Some(json!({
                "subscription_id": id.to_string(),
                "listener": listener.name,
                "reason": limit,
                "max_in_flight": limits.max_in_flight,
                "max_dispatch_per_sec": limits.max_dispatch_per_sec,
                "action": "reject",
                "loss_safe": true,
            })),
            meta: None,
            worker: None,
            key: None,
            columns: None,
        };
        if let Err(error) = self.subscriptions.note(tenant, id, said, None).await {
            warn!(%error, "failed to record rate-limited messages");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<(Tenant, String), SubscriptionId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
