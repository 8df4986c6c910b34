//! Dead letters: messages that could not start an execution, stored with the reason so none is
//! lost.
//!
//! The body is stored as an object, and an event in the subscription's log refers to it. The body
//! is stored first, so the event never refers to a missing object.

use noetl_model::{Map, SubscriptionId, Tenant, Value};
use noetl_store::BlobRef;

use noetl_journal::{SubscriptionError, Subscriptions};
use noetl_remote::{EventReport, ReportError, Reports};
use noetl_results::{DEAD_LETTERS, ObjectError, Objects};
use noetl_work::DeadLetter;

/// Type of the event that records a dead letter.
const EVENT: &str = "subscription.message.dead_lettered";

/// Length limit of an ID, reason, or header in the event, in characters.
const TEXT_MAX: usize = 2000;

#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// The subscription does not exist.
    #[error(transparent)]
    Subscription(SubscriptionError),
    #[error(transparent)]
    Object(ObjectError),
    #[error(transparent)]
    Report(ReportError),
}

/// Dead-letter service. Cheap to clone.
#[derive(Clone)]
pub struct DeadLetters {
    objects: Objects,
    reports: Reports,
    subscriptions: Subscriptions,
}

impl DeadLetters {
    pub(crate) fn new(objects: Objects, reports: Reports, subscriptions: Subscriptions) -> Self {
        Self { objects, reports, subscriptions }
    }

    /// Stores a dead letter and returns the key of the object with its body. A message that is
    /// stored twice has the same key.
    pub async fn keep(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        letter: DeadLetter,
    ) -> Result<String, DeadLetterError> {
        let known = self.subscriptions.get(tenant, id).await;
        known.map_err(DeadLetterError::Subscription)?;
        let named = BlobRef::from_bytes(letter.message.as_bytes(), "text/plain").digest;
        let key = format!("{DEAD_LETTERS}{tenant}/{id}/{named}");
        let bytes = letter.body.len();
        let kept =
            self.objects.put(Some(tenant), &key, "application/octet-stream", letter.body).await;
        let digest = kept.map_err(DeadLetterError::Object)?.digest;
        let told = [
            ("subscription_id", Value::from(id.to_string())),
            ("message_id", Value::from(cut(&letter.message))),
            ("code", Value::from(cut(&letter.code))),
            ("reason", Value::from(cut(&letter.reason))),
            ("attempts", Value::from(letter.attempts)),
            ("headers", shortened(letter.headers)),
            ("metadata", shortened(letter.metadata)),
            ("bytes", Value::from(bytes)),
            ("sha256", Value::from(digest.to_string())),
            ("object", Value::from(key.as_str())),
        ];
        let told = told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let report = EventReport {
            execution: id.log(),
            step: "ingress".to_owned(),
            event_type: EVENT.to_owned(),
            status: Some("DEAD_LETTERED".to_owned()),
            payload: Some(Value::Object(told)),
            meta: None,
            worker: None,
            event: None,
            columns: None,
        };
        self.reports.record(tenant, report).await.map_err(DeadLetterError::Report)?;
        Ok(key)
    }
}

/// Returns up to 100 entries of a map. Truncates long strings, removes NUL characters, and replaces
/// nested values with null.
fn shortened(map: Map) -> Value {
    let told = map.into_iter().take(100).map(|(name, value)| match value {
        Value::String(text) => (cut(&name), Value::from(cut(&text))),
        Value::Array(_) | Value::Object(_) => (cut(&name), Value::Null),
        plain => (cut(&name), plain),
    });
    Value::Object(told.collect())
}

fn cut(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(TEXT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_of_dead_letters_are_truncated() {
        let long = "x".repeat(TEXT_MAX * 2);
        let map = json!({"a": long, "b": [1], "c": 7, "d\u{0}": "e\u{0}f"});
        let Value::Object(map) = map else { panic!("a map") };
        let told = shortened(map);
        assert_eq!(told["a"].as_str().map(str::len), Some(TEXT_MAX));
        assert_eq!(told["b"], Value::Null);
        assert_eq!((&told["c"], &told["d"]), (&json!(7), &json!("ef")));
    }
}
