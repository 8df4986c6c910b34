//! Messages that cannot become executions: kept, with the reason, so that nothing is lost.
//!
//! The body is an object of its own, and the log of the subscription says that it is there. The body
//! comes first: an event that names it is never alone.

use noetl_model::{Map, SubscriptionId, Tenant, Value};
use noetl_store::BlobRef;

use crate::objects::{DEAD_LETTERS, ObjectError, Objects};
use crate::reports::{Report, ReportError, Reports};
use crate::subscriptions::{SubscriptionError, Subscriptions};

/// The event that tells of one.
const EVENT: &str = "subscription.message.dead_lettered";

/// How much of an id, a reason or a header is told.
const TEXT_MAX: usize = 2000;

/// One that could not be dispatched.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    pub message: String,
    /// What kind of reason it was, in a word.
    pub code: String,
    /// Why, in a sentence.
    pub reason: String,
    /// How often it was tried.
    pub attempts: u64,
    pub headers: Map,
    /// Where it came from.
    pub metadata: Map,
    pub body: Vec<u8>,
}

/// Why one was not kept.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// There is no such subscription.
    #[error(transparent)]
    Subscription(SubscriptionError),
    /// Its body was not kept.
    #[error(transparent)]
    Object(ObjectError),
    /// The log did not take it.
    #[error(transparent)]
    Report(ReportError),
}

/// The service of dead letters. Cheap to clone.
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

    /// Keeps one, and answers with the key of the object that holds its body. The same message again
    /// has the same object.
    pub async fn keep(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        letter: DeadLetter,
    ) -> Result<String, DeadLetterError> {
        let known = self.subscriptions.get(tenant, id).await;
        known.map_err(DeadLetterError::Subscription)?;
        let named = BlobRef::to(letter.message.as_bytes(), "text/plain").digest;
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
        let report = Report {
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
        self.reports.take(tenant, report).await.map_err(DeadLetterError::Report)?;
        Ok(key)
    }
}

/// Texts of a map without what is too long to be told, or cannot be written.
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
    fn what_is_told_has_an_end() {
        let long = "x".repeat(TEXT_MAX * 2);
        let map = json!({"a": long, "b": [1], "c": 7, "d\u{0}": "e\u{0}f"});
        let Value::Object(map) = map else { panic!("a map") };
        let told = shortened(map);
        assert_eq!(told["a"].as_str().map(str::len), Some(TEXT_MAX));
        assert_eq!(told["b"], Value::Null);
        assert_eq!((&told["c"], &told["d"]), (&json!(7), &json!("ef")));
    }
}
