//! Tool `artifact`: reads and stores results that are too large for the event log.
//!
//! `action: get` returns the value of a reference. `action: put` stores a value and returns its
//! reference. The worker defines the form of references and the location of values.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Map, Value};

use crate::config::{self, type_name, wrong};
use crate::{Artifacts, Tool, ToolCall};

/// Default timeout of a transfer: enough for the largest results over a slow connection.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);

/// Keys that may contain the reference, in the input or in the settings.
const REFERENCE_KEYS: [&str; 5] = ["result_ref", "ref", "_ref", "reference", "uri"];

/// Keys that may contain the value to store, in the input or in the settings.
const VALUE_KEYS: [&str; 3] = ["value", "data", "body"];

#[derive(Debug, Clone, Copy, Default)]
pub struct Artifact;

#[async_trait]
impl Tool for Artifact {
    fn kind(&self) -> &'static str {
        "artifact"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        call.run_within(TIMEOUT_DEFAULT, perform(&call)).await
    }
}

async fn perform(call: &ToolCall) -> Result<Value, Failure> {
    let artifacts = || -> Result<&Arc<dyn Artifacts>, Failure> {
        call.artifacts.as_ref().ok_or_else(|| {
            Failure::new(FailureKind::ToolMissing, "this worker has no access to stored results")
        })
    };
    match config::text(&call.config, "action")?.unwrap_or("get") {
        "get" => artifacts()?.get(&reference(call)?).await,
        "put" => {
            let value = argument(call, &VALUE_KEYS).cloned().or_else(|| rest(&call.input));
            let value = value.ok_or_else(|| wrong("an artifact put needs a `value`"))?;
            artifacts()?.put(value).await
        }
        other => Err(wrong(format!("`action` must be 'get' or 'put', not '{other}'"))),
    }
}

fn argument<'a>(call: &'a ToolCall, keys: &[&'a str]) -> Option<&'a Value> {
    let pair = config::first(&call.input, keys).or_else(|| config::first(&call.config, keys));
    pair.map(|(_, value)| value)
}

/// Returns the whole input, which is stored if no key names a value. `None` if it is empty.
fn rest(input: &Map) -> Option<Value> {
    (!input.is_empty()).then(|| Value::Object(input.clone()))
}

/// Returns the text of the reference, which may be a field of a reference object.
fn reference(call: &ToolCall) -> Result<String, Failure> {
    let Some(mut value) = argument(call, &REFERENCE_KEYS) else {
        return Err(wrong("an artifact get needs `input.result_ref`, such as `{{ step._ref }}`"));
    };
    if let Value::Object(object) = value
        && let Some((_, inner)) = config::first(object, &REFERENCE_KEYS)
    {
        value = inner;
    }
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Value::String(_) => Err(wrong("the reference is an empty text")),
        other => Err(wrong(format!("the reference must be a text, not {}", type_name(other)))),
    }
}
