//! Builds the result of a loop from the results of its items.

use noetl_model::Failure;
use serde_json::{Map, Value, json};

/// Builds a loop's result from the outcomes of its items, in item order. `None` stands for an item
/// that did not start.
///
/// Results are at the indexes of their items, so a failed item leaves a null. Of a failure, only
/// kind, message, and `retryable` are included, because there may be as many failures as items.
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
