//! What a loop comes to.

use noetl_model::Failure;
use serde_json::{Map, Value, json};

/// A loop's result, from how each of its items ended, in their order; an item that was not started
/// has no outcome.
///
/// Results stand at the places of their items, so a failed one leaves a null. Of a failure only its
/// sentence is kept: there may be as many as there are items.
pub fn loop_result(items: impl IntoIterator<Item = Option<Result<Value, Failure>>>) -> Value {
    let (mut results, mut errors, mut skipped) = (Vec::new(), Vec::new(), 0_usize);
    for (index, item) in items.into_iter().enumerate() {
        results.push(match item {
            Some(Ok(data)) => data,
            Some(Err(failure)) => {
                let Failure { kind, message, retryable, .. } = failure;
                let error = json!({"kind": kind, "message": message, "retryable": retryable});
                errors.push(json!({"index": index, "error": error}));
                Value::Null
            }
            None => {
                skipped += 1;
                Value::Null
            }
        });
    }
    let (total, failed) = (results.len(), errors.len());
    let success = total - failed - skipped;
    let stats = json!({"total": total, "success": success, "failed": failed, "skipped": skipped});
    Value::Object(Map::from_iter([
        ("results".to_owned(), Value::Array(results)),
        ("stats".to_owned(), stats),
        ("errors".to_owned(), Value::Array(errors)),
    ]))
}
