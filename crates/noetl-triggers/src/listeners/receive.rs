//! Receives messages pushed to this server: each starts an execution or gets an error response.
//!
//! The sender is authenticated before. A message is acknowledged only once its execution is
//! durable, so a sender without a response redelivers; within the dedup window, redelivery leads to
//! the same execution.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use noetl_journal::{
    Executions, StartError, StartRequest, SubscriptionError, Subscriptions, TraceParent,
};
use noetl_model::event::ReportedEvent;
use noetl_model::{Clock, ExecutionId, SubscriptionId, Tenant};
use noetl_store::SubscriptionState;
use serde_json::json;
use tracing::warn;

use super::directives::decide;
use super::limits::MessageLimiter;
use super::message::{IngressMessage, MessageError};
use super::settings::{Listener, ListenerDedup};
use crate::dedup::{DedupKey, DedupStart, DedupStarter};

/// Maximum number of subscription IDs cached by path.
const KNOWN_MAX: usize = 4096;

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

/// Errors returned by [`IngressService::receive`].
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The subscription does not accept messages in its current state.
    #[error("Subscription '{path}' is {}: it takes no messages", .state.as_str())]
    NotTaking {
        /// Path of the subscription.
        path: String,
        state: SubscriptionState,
    },
    /// The message exceeds a concurrency or rate limit.
    #[error("Subscription '{0}' takes no more messages now")]
    Limited(String),
    /// The message cannot be parsed.
    #[error(transparent)]
    Message(MessageError),
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

/// Returns `true` if executions continue the sender's trace.
fn propagates(listener: &Listener) -> bool {
    let said = listener.headers.as_ref().and_then(|headers| headers.pointer("/trace/propagate"));
    said.and_then(|said| said.as_str()) != Some("none")
}

/// Receives messages of push subscriptions. Cheap to clone.
#[derive(Clone)]
pub struct IngressService {
    subscriptions: Subscriptions,
    executions: Executions,
    starts: DedupStarter,
    clock: Arc<dyn Clock>,
    limits: MessageLimiter,
    /// Dedup window of signatures without a signed time. Zero turns deduplication of them off.
    replay_window: Duration,
    known: Arc<Mutex<LruCache<(Tenant, String), SubscriptionId>>>,
}

impl IngressService {
    pub(crate) fn new(
        subscriptions: Subscriptions,
        executions: Executions,
        starts: DedupStarter,
        clock: Arc<dyn Clock>,
        replay_window: Duration,
    ) -> Self {
        let most = NonZeroUsize::new(KNOWN_MAX).expect("more than none");
        let known = Arc::new(Mutex::new(LruCache::new(most)));
        let limits = MessageLimiter::default();
        Self { subscriptions, executions, starts, clock, limits, replay_window, known }
    }

    /// Starts an execution for a message of an authenticated sender. The execution continues the
    /// sender's trace unless the document sets `headers.trace.propagate: none`.
    pub async fn receive(
        &self,
        tenant: &Tenant,
        listener: &Listener,
        message: &IngressMessage,
        trace: TraceParent,
    ) -> Result<ReceiveOutcome, ReceiveError> {
        let subscription = self.taking(tenant, &listener.path).await?;
        let now = self.clock.now();
        let section = listener.headers.as_ref().filter(|_| listener.trusts_headers());
        let decided = decide(section, &message.headers);
        let shaped = message.shape(listener, &decided, now).map_err(ReceiveError::Message)?;
        let most = (listener.max_in_flight, listener.max_per_sec);
        let _place = match self.limits.acquire(subscription, most.0, most.1, now) {
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
            trace: if propagates(listener) { trace } else { TraceParent::Unsaid },
            ..StartRequest::default()
        };
        let key = decided.idempotency_key.unwrap_or(shaped.id);
        let repeat = repeat(listener, message, key, self.replay_window);
        let is_signature = repeat.as_ref().is_some_and(|repeat| repeat.is_signature);
        let once = repeat.map(|Repeat { key, window, is_signature }| DedupKey {
            scope: subscription,
            key,
            window,
            // Replays of one captured message must not fill the subscription's event log.
            is_noted: !is_signature,
        });
        let started = match once {
            None => self.executions.start(tenant, request).await.map(DedupStart::New),
            Some(once) => self.starts.start_once(tenant, request, once).await,
        };
        let (execution, is_duplicate) = match started {
            Ok(DedupStart::New(started)) => (started.execution, false),
            Ok(DedupStart::Duplicate(execution)) => (execution, true),
            Err(cause) => return Err(ReceiveError::Start { playbook, cause }),
        };
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
    async fn tell(&self, tenant: &Tenant, id: SubscriptionId, listener: &Listener) {
        let said = ReportedEvent {
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

/// Dedup rule of one message.
struct Repeat {
    /// Dedup key of the message.
    key: String,
    /// Window in which the key starts at most one execution.
    window: Duration,
    /// Whether the key is the signature.
    is_signature: bool,
}

/// Returns the dedup rule of a message, or `None` if every message starts an execution.
///
/// Without `dedup` in the document, a signature is the key: one with a signed time for twice its
/// tolerance, because clocks may differ either way, and one without for `replay_window`. With
/// `dedup`, a verified signature is still the key unless the document trusts unsigned headers,
/// because a replay can change the header that carries the message ID.
fn repeat(
    listener: &Listener,
    message: &IngressMessage,
    key: String,
    replay_window: Duration,
) -> Option<Repeat> {
    let signed_at = listener.verify.signed_at.as_ref();
    let counts = signed_at.map(|signed_at| Duration::from_secs(signed_at.tolerance_secs * 2 + 1));
    let signature = message.signature.as_ref().map(|mac| format!("signature:{mac}"));
    match (signature, listener.dedup) {
        (Some(key), ListenerDedup::Within(window)) if !listener.trusts_headers() => {
            // A window shorter than the validity of the signed time would accept the same signature
            // twice.
            let window = counts.map_or(window, |counts| window.max(counts));
            Some(Repeat { key, window, is_signature: true })
        }
        (_, ListenerDedup::Within(window)) => Some(Repeat { key, window, is_signature: false }),
        (Some(key), ListenerDedup::Unsaid | ListenerDedup::Off) if counts.is_some() => {
            counts.map(|window| Repeat { key, window, is_signature: true })
        }
        (Some(key), ListenerDedup::Unsaid) if !replay_window.is_zero() => {
            Some(Repeat { key, window: replay_window, is_signature: true })
        }
        (_, ListenerDedup::Unsaid | ListenerDedup::Off) => None,
    }
}

#[cfg(test)]
mod tests {
    use noetl_playbook::subscription::{SIGNED, SignedAt, VerifyKind};
    use serde_json::Value;

    use super::*;
    use crate::listeners::settings::ListenerVerify;

    const WINDOW: Duration = Duration::from_secs(300);

    fn listener(kind: VerifyKind, timed: bool, dedup: ListenerDedup, unsigned: bool) -> Listener {
        let header = "x-time".to_owned();
        let signed_at = SignedAt { header, tolerance_secs: 60, signed: SIGNED.to_owned() };
        let verify = ListenerVerify {
            kind,
            header: None,
            secret: None,
            audience: None,
            service_account: None,
            prefix: None,
            signed_at: timed.then_some(signed_at),
            issuer: String::new(),
        };
        Listener {
            name: String::new(),
            path: String::new(),
            source: String::new(),
            is_push: true,
            verify,
            max_bytes: None,
            playbook: String::new(),
            payload_from: String::new(),
            execution_pool: None,
            dedup,
            max_in_flight: None,
            max_per_sec: None,
            headers: Some(json!({ "unsigned": Value::Bool(unsigned) })),
        }
    }

    /// Returns the dedup key of a message and its window in seconds.
    fn recognized(listener: &Listener, window: Duration) -> Option<(String, u64)> {
        let is_signed = listener.verify.kind == VerifyKind::HmacSha256;
        let signature = is_signed.then(|| "mac".to_owned());
        let message = IngressMessage { signature, ..IngressMessage::default() };
        let found = repeat(listener, &message, "key".to_owned(), window)?;
        assert_eq!(found.is_signature, found.key == "signature:mac");
        Some((found.key, found.window.as_secs()))
    }

    #[test]
    fn a_signature_counts_once_unless_the_document_says_otherwise() {
        use VerifyKind::{Bearer, HmacSha256};
        let within = |seconds| ListenerDedup::Within(Duration::from_secs(seconds));
        let signature = |seconds| Some(("signature:mac".to_owned(), seconds));
        let key = |seconds| Some(("key".to_owned(), seconds));
        for (kind, timed, dedup, unsigned, expected) in [
            (HmacSha256, false, ListenerDedup::Unsaid, false, signature(300)),
            (HmacSha256, false, ListenerDedup::Unsaid, true, signature(300)),
            (HmacSha256, false, ListenerDedup::Off, false, None),
            (HmacSha256, false, within(7), false, signature(7)),
            (HmacSha256, false, within(7), true, key(7)),
            (HmacSha256, true, ListenerDedup::Unsaid, false, signature(121)),
            (HmacSha256, true, ListenerDedup::Off, false, signature(121)),
            (HmacSha256, true, within(7), false, signature(121)),
            (HmacSha256, true, within(500), false, signature(500)),
            (Bearer, false, ListenerDedup::Unsaid, false, None),
            (Bearer, false, within(7), false, key(7)),
        ] {
            let listener = listener(kind, timed, dedup, unsigned);
            let found = recognized(&listener, WINDOW);
            assert_eq!(found, expected, "{kind:?} {timed} {dedup:?} {unsigned}");
        }
        let untimed = listener(HmacSha256, false, ListenerDedup::Unsaid, false);
        assert_eq!(recognized(&untimed, Duration::ZERO), None, "the setting is off");
        assert_eq!(crate::Options::default().replay_window, WINDOW);
    }
}
