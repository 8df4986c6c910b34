//! Source for a Google Pub/Sub subscription, pulled over the REST API.
//!
//! Each delivery has an ack deadline, which is extended while the message is in flight. The service
//! redelivers a message whose deadline passes. A pull request waits at the service and continues
//! across calls of `fetch`: messages of an abandoned request would stay undelivered until their
//! deadline.

mod calls;
mod token;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_egress::EgressPolicy;
use noetl_model::{Map, Value};
use noetl_playbook::subscription::Subscription;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

use self::calls::PubsubClient;
use crate::source::{
    Delivery, DeliveryAck, Message, Source, SourceError, SourceFactory, number, text,
};

/// Default ack deadline in seconds.
const DEADLINE_DEFAULT_SECS: u64 = 60;

/// Maximum ack deadline of the service in seconds.
const DEADLINE_MAX_SECS: u64 = 600;

/// Target size of one pull in bytes. The service limits only the number of messages, so the count
/// adapts to the size of the last ones.
const BYTES_WANTED: usize = 8 << 20;

/// Number of messages in the first pull.
const COUNT_FIRST: usize = 10;

/// Maximum number of acks in one request.
const ACKS_MAX: usize = 1000;

/// Opens sources of kind `pubsub`.
#[derive(Debug, Clone, Default)]
pub struct Pubsub {
    egress: EgressPolicy,
}

impl Pubsub {
    /// Restricts endpoints to those this egress policy allows.
    pub fn with_egress_policy(egress: EgressPolicy) -> Self {
        Self { egress }
    }
}

#[async_trait]
impl SourceFactory for Pubsub {
    fn kind(&self) -> &'static str {
        "pubsub"
    }

    async fn open(
        &self,
        _subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError> {
        let deadline = number(settings, "ack_deadline_secs")?.unwrap_or(DEADLINE_DEFAULT_SECS);
        let calls = Arc::new(PubsubClient::new(settings, name(settings)?, self.egress.clone())?);
        calls.look().await?;
        let acks = AckBatcher { calls, pending: Mutex::default(), flushing: Mutex::default() };
        Ok(Arc::new(PullSource {
            acks: Arc::new(acks),
            deadline: deadline.clamp(10, DEADLINE_MAX_SECS),
            reader: Mutex::new(PubsubReader { asked: None, count: COUNT_FIRST }),
        }))
    }
}

/// Returns the full resource name of the subscription.
fn name(settings: &Map) -> Result<String, SourceError> {
    let wrong = |message: &str| SourceError::Settings(message.to_owned());
    let configured = text(settings, "subscription")?
        .ok_or_else(|| wrong("a pubsub source needs `subscription`, the name of one that pulls"))?;
    let name = match (configured.contains('/'), text(settings, "project")?) {
        (true, _) => configured.to_owned(),
        (false, Some(project)) => format!("projects/{project}/subscriptions/{configured}"),
        (false, None) => {
            let right =
                "`subscription` must be projects/…/subscriptions/…, or have `project` beside it";
            return Err(wrong(right));
        }
    };
    let parts: Vec<&str> = name.split('/').collect();
    let is_plain = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_.~+%:".contains(letter))
    };
    match parts[..] {
        ["projects", project, "subscriptions", own] if is_plain(project) && is_plain(own) => {
            Ok(name)
        }
        _ => Err(wrong("`subscription` must be projects/…/subscriptions/…")),
    }
}

struct PullSource {
    acks: Arc<AckBatcher>,
    deadline: u64,
    reader: Mutex<PubsubReader>,
}

struct PubsubReader {
    asked: Option<JoinHandle<Result<Vec<Value>, SourceError>>>,
    count: usize,
}

/// Batches acks: those that arrive while a request is in flight are sent with the next.
struct AckBatcher {
    calls: Arc<PubsubClient>,
    pending: Mutex<Vec<PendingAck>>,
    flushing: Mutex<()>,
}

struct PendingAck {
    ack_id: String,
    reply: oneshot::Sender<Result<(), SourceError>>,
}

impl AckBatcher {
    async fn ack(&self, ack_id: &str) -> Result<(), SourceError> {
        let (reply, mut result) = oneshot::channel();
        self.pending.lock().await.push(PendingAck { ack_id: ack_id.to_owned(), reply });
        loop {
            {
                let _flushing = tokio::select! {
                    // An earlier caller's request included this ack.
                    answer = &mut result => return answer.unwrap_or_else(|_| Err(missing_result())),
                    flushing = self.flushing.lock() => flushing,
                };
                let batch: Vec<PendingAck> = {
                    let mut pending = self.pending.lock().await;
                    let count = pending.len().min(ACKS_MAX);
                    pending.drain(..count).collect()
                };
                if !batch.is_empty() {
                    let ids: Vec<&str> = batch.iter().map(|pending| &*pending.ack_id).collect();
                    let outcome = self.calls.acknowledge(&ids).await;
                    for pending in batch {
                        let _ = pending.reply.send(outcome.clone());
                    }
                }
            }
            if let Ok(answer) = result.try_recv() {
                return answer;
            }
        }
    }
}

fn missing_result() -> SourceError {
    SourceError::Away("the service sent no result for the acknowledgment".to_owned())
}

#[async_trait]
impl Source for PullSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut reader = self.reader.lock().await;
        let mut asked = match reader.asked.take() {
            Some(asked) => asked,
            None => {
                let (calls, count) = (self.acks.calls.clone(), reader.count.min(most).max(1));
                tokio::spawn(async move { calls.pull(count).await })
            }
        };
        let Ok(received) = tokio::time::timeout(wait, &mut asked).await else {
            reader.asked = Some(asked);
            return Ok(Vec::new());
        };
        let failed = |_| SourceError::Away("the request for messages ended badly".to_owned());
        let received = received.map_err(failed)??;
        let messages: Vec<Message> = received.into_iter().filter_map(message).collect();
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let bytes: usize = messages.iter().map(|message| message.body.len()).sum();
        let each = (bytes / messages.len()).max(1);
        reader.count = (BYTES_WANTED / each).clamp(1, (reader.count * 2).min(1000));
        let ids: Vec<&str> =
            messages.iter().filter_map(|message| message.ack_id.as_deref()).collect();
        self.acks.calls.hold(&ids, self.deadline).await?;
        let delivered = messages.into_iter().map(|message| {
            let ack_id = message.ack_id.clone().unwrap_or_default();
            let handle = PubsubAck { ack_id, acks: self.acks.clone(), deadline: self.deadline };
            Delivery::new(message, handle)
        });
        Ok(delivered.collect())
    }

    fn ack_wait(&self) -> Duration {
        Duration::from_secs(self.deadline)
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        Ok(None)
    }

    async fn close(&self) {
        if let Some(asked) = self.reader.lock().await.asked.take() {
            asked.abort();
        }
    }
}

/// Converts a received message. Returns `None` if it has no ack ID.
fn message(received: Value) -> Option<Message> {
    let Value::Object(mut received) = received else { return None };
    let ack_id = received.get("ackId")?.as_str()?.to_owned();
    let Some(Value::Object(mut message)) = received.remove("message") else { return None };
    let text = |value: Option<Value>| match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let attributes = match message.remove("attributes") {
        Some(Value::Object(attributes)) => attributes,
        _ => Map::new(),
    };
    let headers = attributes
        .iter()
        .filter_map(|(name, value)| value.as_str().map(|value| (name.clone(), value.to_owned())));
    let data = text(message.remove("data")).unwrap_or_default();
    let mut metadata = Map::new();
    for (own, theirs) in [("published_at", "publishTime"), ("ordering_key", "orderingKey")] {
        if let Some(value) = text(message.remove(theirs)) {
            metadata.insert(own.to_owned(), Value::from(value));
        }
    }
    if let Some(attempt) = received.remove("deliveryAttempt") {
        metadata.insert("delivered".to_owned(), attempt);
    }
    Some(Message {
        // Every published message has an ID.
        id: text(message.remove("messageId")).unwrap_or_else(|| ack_id.clone()),
        body: STANDARD.decode(data).unwrap_or_default().into(),
        headers: headers.collect(),
        attributes,
        metadata,
        ack_id: Some(ack_id),
    })
}

struct PubsubAck {
    ack_id: String,
    acks: Arc<AckBatcher>,
    deadline: u64,
}

#[async_trait]
impl DeliveryAck for PubsubAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.acks.ack(&self.ack_id).await
    }

    async fn nack(&self, after: Duration) -> Result<(), SourceError> {
        let after = after.as_secs_f64().ceil() as u64;
        self.acks.calls.hold(&[&self.ack_id], after.min(DEADLINE_MAX_SECS)).await
    }

    async fn term(&self) -> Result<(), SourceError> {
        self.ack().await
    }

    async fn extend(&self) -> Result<(), SourceError> {
        self.acks.calls.hold(&[&self.ack_id], self.deadline).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name_in(settings: Value) -> Result<String, SourceError> {
        let Value::Object(settings) = settings else { panic!("a map") };
        name(&settings)
    }

    #[test]
    fn a_subscription_has_a_full_name_or_a_name_and_a_project() {
        let whole = Ok("projects/p/subscriptions/s".to_owned());
        assert_eq!(name_in(json!({"subscription": "projects/p/subscriptions/s"})), whole);
        assert_eq!(name_in(json!({"subscription": "s", "project": "p"})), whole);
        for wrong in [
            json!({}),
            json!({"subscription": "s"}),
            json!({"subscription": "projects/p/topics/s"}),
            json!({"subscription": "projects/p/subscriptions/s?x=1"}),
            json!({"subscription": "../../s", "project": "p"}),
        ] {
            assert!(matches!(name_in(wrong.clone()), Err(SourceError::Settings(_))), "{wrong}");
        }
    }

    #[test]
    fn a_recorded_response_is_decoded() {
        let received = json!({
            "ackId": "UAYWLF1GSFE3GQhoUQ5PXiM_NSAoRRAJ",
            "message": {
                "data": "eyJvcmRlciI6IDd9",
                "attributes": {"x-a": "1"},
                "messageId": "11536582841834193",
                "publishTime": "2024-06-10T08:00:00.123Z",
                "orderingKey": "k",
            },
            "deliveryAttempt": 2,
        });
        let decoded = message(received).unwrap();
        assert_eq!(
            (decoded.id.as_str(), &decoded.body[..]),
            ("11536582841834193", &br#"{"order": 7}"#[..])
        );
        assert_eq!(decoded.headers, [("x-a".to_owned(), "1".to_owned())]);
        assert_eq!(
            (&decoded.metadata["delivered"], &decoded.metadata["ordering_key"]),
            (&json!(2), &json!("k"))
        );
        // A message may have attributes only.
        let bare = message(json!({"ackId": "a", "message": {"messageId": "1"}})).unwrap();
        assert!(bare.body.is_empty());
        assert_eq!(message(json!({"message": {}})), None);
    }
}
