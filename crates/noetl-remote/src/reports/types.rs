//! Event types of reports, and the command that a report names.

use noetl_model::event::SubscriptionEvent;
use noetl_model::row::types;
use noetl_model::{CommandId, Value};

use super::ReportError;

/// Maximum length of an event type, in bytes.
const TYPE_MAX: usize = 200;

/// Returns `true` if a text is a valid event type: usable in every bus subject and metric label.
pub fn is_event_type(text: &str) -> bool {
    let is_text = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    !text.is_empty() && text.len() <= TYPE_MAX && text.chars().all(is_text)
}

/// Checks an event type. Rejects types that only the engine writes, because they drive executions.
pub(super) fn check_type(event_type: &str) -> Result<(), ReportError> {
    if !is_event_type(event_type) {
        return Err(ReportError::BadType(event_type.chars().take(200).collect()));
    }
    let is_reserved = event_type.starts_with("playbook")
        || event_type.starts_with("step.")
        || SubscriptionEvent::from_event_type(event_type).is_some()
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

/// Parses the command that a report names: `<execution>:<step>:<event>`, followed by `:i<index>`
/// for a loop item, or the number alone.
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

/// Returns the status text of a report without one.
pub fn derived_status(event_type: &str) -> &'static str {
    let mentions = |words: &[&str]| words.iter().any(|word| event_type.contains(word));
    if mentions(&["done", "exit", "completed"]) {
        "COMPLETED"
    } else if mentions(&["error", "failed"]) {
        "FAILED"
    } else {
        "RUNNING"
    }
}
