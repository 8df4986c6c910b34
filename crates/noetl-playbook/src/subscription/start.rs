//! The path from a compiled subscription and a message to the start of an execution.
//!
//! Reads no clock and no store: IDs, the dedup window of signatures, and all facts about the arrival
//! of the message are arguments. So webhooks, runtimes, tests, and fuzzing share this path.

use std::collections::HashMap;
use std::time::Duration;

use noetl_model::trace::{TRACEPARENT, TRACESTATE};
use noetl_model::{Map, SubscriptionId, TraceContext};

use super::message::dedup_key;
use super::push::{PushContext, is_json};
use super::{
    Directives, Message, MessageRejection, Propagate, Subscription, directives, headers_by_name,
    payload,
};

/// Maximum deduplication window: the default retention of dedup keys.
pub const DEDUP_WINDOW_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Facts about a message that are not part of it.
#[derive(Debug, Clone, Copy)]
pub struct MessageContext<'a> {
    /// Subscription that the message belongs to.
    pub subscription: SubscriptionId,
    /// Arrival of a pushed message; `None` for a fetched one.
    pub push: Option<&'a PushContext>,
}

/// Request to start an execution for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageStart {
    pub playbook: String,
    pub payload: Map,
    /// Worker pool, if the message or its subscription selects one.
    pub pool: Option<String>,
    /// Trace that the execution continues, with the allowed baggage.
    pub trace: Option<TraceContext>,
    /// Subscription that is the parent of the execution.
    pub subscription: SubscriptionId,
    /// Deduplication of the start. `None` if every message starts an execution.
    pub dedup: Option<MessageDedup>,
    /// Size of the message body in bytes.
    pub bytes: usize,
    /// Message ID, for records about the message.
    pub message: String,
    /// Directives applied from the headers.
    pub directives: Directives,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDedup {
    pub key: String,
    /// Time in which the key starts at most one execution.
    pub window: Duration,
    /// Whether the key is the verified signature.
    pub is_signature: bool,
}

/// Returns the start request for a message, or the reason that no retry can start an execution.
pub fn start_for_message(
    subscription: &Subscription,
    context: MessageContext<'_>,
    message: &Message,
) -> Result<MessageStart, MessageRejection> {
    let (bytes, most) = (message.body.len(), subscription.message_bytes_max());
    if bytes as u64 > most {
        return Err(MessageRejection::TooLarge { bytes, most });
    }
    let headers = headers_by_name(&message.headers);
    let directives = directives::evaluate(subscription, &headers);
    let declared = directives.content_type.as_ref();
    let declared = declared.or(context.push.and_then(|push| push.content_type.as_ref()));
    // A sender gets the rejection as the response. A fetched message and one in an envelope have no
    // sender that gets one, so their playbook decides about text that should have been JSON.
    let is_from_sender = context.push.is_some_and(|push| !push.is_enveloped);
    let must_be_json = is_from_sender && declared.is_some_and(|declared| is_json(declared));
    let payload = payload::build(subscription, message, &directives, must_be_json)?;
    let dispatch = &subscription.dispatch;
    Ok(MessageStart {
        playbook: directives.playbook.clone().unwrap_or_else(|| dispatch.playbook.clone()),
        payload,
        pool: directives.pool.clone().or_else(|| dispatch.execution_pool.clone()),
        trace: trace(subscription, &headers),
        subscription: context.subscription,
        dedup: dedup(subscription, context.push, message, &directives),
        bytes,
        message: message.id.clone(),
        directives,
    })
}

/// Returns the deduplication of a message, or `None` if every message starts an execution.
///
/// Unless the document sets `dedup.enabled`, a signature is the key: one with a signed time for twice
/// its tolerance, because clocks may differ either way, and one without for the context's replay
/// window. With `dedup.enabled`, a verified signature is still the key unless the document trusts
/// unsigned headers, because a replay can change the header that carries the message ID.
fn dedup(
    subscription: &Subscription,
    push: Option<&PushContext>,
    message: &Message,
    directives: &Directives,
) -> Option<MessageDedup> {
    let spec = &subscription.dedup;
    let signed_at = subscription.ingress.as_ref().and_then(|it| it.verify.timestamp.as_ref());
    let validity = signed_at.map(|at| Duration::from_secs(at.tolerance_secs * 2 + 1));
    let by_signature = |window: Duration| {
        let signature = push.and_then(|push| push.signature.as_ref())?;
        let key = format!("signature:{signature}");
        Some(MessageDedup { key, window, is_signature: true })
    };
    match spec.enabled {
        Some(true) => {
            // A window shorter than the validity of the signed time would accept the same signature
            // twice.
            let window = validity.map_or(spec.window(), |validity| spec.window().max(validity));
            let signature = by_signature(window).filter(|_| !subscription.trusts_headers());
            signature.or_else(|| {
                let key = directives.idempotency_key.as_ref().unwrap_or(&message.id);
                let (key, window) = (dedup_key(key), spec.window());
                Some(MessageDedup { key, window, is_signature: false })
            })
        }
        Some(false) => validity.and_then(by_signature),
        None => {
            let window = validity.or(push.map(|push| push.replay_window));
            window.filter(|window| !window.is_zero()).and_then(by_signature)
        }
    }
}

/// Returns the trace of a message, or `None` if it names none or the document propagates none.
fn trace(subscription: &Subscription, headers: &HashMap<String, &str>) -> Option<TraceContext> {
    match subscription.headers.propagate {
        Propagate::W3c => {}
        Propagate::None => return None,
    }
    let header = |name: &str| headers.get(name).map(|value| value.trim());
    let context = TraceContext::read(header(TRACEPARENT)?, header(TRACESTATE))?;
    let is_allowed = |entry: &&str| {
        let name = entry.split(['=', ';']).next().unwrap_or_default().trim();
        subscription.headers.baggage_allowlist.iter().any(|allowed| allowed == name)
    };
    let entries = header("baggage").unwrap_or_default().split(',').map(str::trim);
    let baggage = entries.filter(is_allowed).collect::<Vec<_>>().join(",");
    Some(context.with_baggage(Some(&baggage)))
}

#[cfg(test)]
pub(super) mod tests;
