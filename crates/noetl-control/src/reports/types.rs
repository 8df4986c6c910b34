//! Types of reports, and the command that a report names.

use noetl_model::event::Lifecycle;
use noetl_model::row::types;
use noetl_model::{CommandId, Value};

use super::ReportError;

/// The most characters of an event type.
const TYPE_MAX: usize = 200;

/// Whether a text can be an event's type: every subject and every label can hold it.
pub fn is_event_type(text: &str) -> bool {
    let is_text = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    !text.is_empty() && text.len() <= TYPE_MAX && text.chars().all(is_text)
}

/// Types that only the engine decides; a client that could say them could drive executions.
pub(super) fn check_type(event_type: &str) -> Result<(), ReportError> {
    if !is_event_type(event_type) {
        return Err(ReportError::BadType(event_type.chars().take(200).collect()));
    }
    let is_reserved = event_type.starts_with("playbook")
        || event_type.starts_with("step.")
        || Lifecycle::from_event_type(event_type).is_some()
        || matches!(
            event_type,
            types::COMMAND_ISSUED
                | types::CTX_UPDATED
                | types::TOKENS_DROPPED
                | types::COMMAND_EXPIRED
                | types::COMMAND_CANCELLED
                | types::COMMAND_PARKED
                | types::LOOP_STARTED
                | types::LOOP_ITEMS
                | types::LOOP_DONE
        );
    if is_reserved {
        return Err(ReportError::Reserved(event_type.to_owned()));
    }
    Ok(())
}

/// The command a report names: `<execution>:<step>:<event>`, with `:i<index>` after it for an item of a
/// loop, or the number alone.
pub(super) fn command_named(value: &Value) -> Option<CommandId> {
    match value {
        Value::Number(number) => number.as_i64().map(CommandId::new),
        Value::String(text) => {
            let is_item = |part: &&str| {
                let index = part.strip_prefix('i');
                index.is_some_and(|index| index.bytes().all(|byte| byte.is_ascii_digit()))
            };
            let mut parts = text.rsplit(':');
            parts.find(|part| !is_item(part))?.parse().ok()
        }
        _ => None,
    }
}

/// The status text of a report that gives none.
pub(crate) fn derived_status(event_type: &str) -> &'static str {
    let mentions = |words: &[&str]| words.iter().any(|word| event_type.contains(word));
    if mentions(&["done", "exit", "completed"]) {
        "COMPLETED"
    } else if mentions(&["error", "failed"]) {
        "FAILED"
    } else {
        "RUNNING"
    }
}
