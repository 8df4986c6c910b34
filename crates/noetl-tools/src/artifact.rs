//! Reads and keeps results that are too large to travel in the log.
//!
//! `action: get` gives the value a reference stands for, `action: put` keeps one and answers with
//! its reference. What references look like and where values lie is the worker's affair.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Map, Value};

use crate::config::{self, type_name, wrong};
use crate::{Artifacts, Call, Tool};

/// How long a transfer may take when nobody says otherwise: enough for the largest results over a
/// slow line.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);

/// Where a reference may stand, in the input or in the settings.
const REFERENCE_KEYS: [&str; 5] = ["result_ref", "ref", "_ref", "reference", "uri"];

/// Where a value to keep may stand, in the input or in the settings.
const VALUE_KEYS: [&str; 3] = ["value", "data", "body"];

/// The `artifact` tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Artifact;

#[async_trait]
impl Tool for Artifact {
    fn kind(&self) -> &'static str {
        "artifact"
    }

    async fn run(&self, call: Call) -> Result<Value, Failure> {
        call.within(TIMEOUT_DEFAULT, perform(&call)).await
    }
}

async fn perform(call: &Call) -> Result<Value, Failure> {
    let artifacts = || -> Result<&Arc<dyn Artifacts>, Failure> {
        call.artifacts.as_ref().ok_or_else(|| {
            Failure::new(FailureKind::ToolMissing, "this worker has no access to stored results")
        })
    };
    match config::text(&call.config, "action")?.unwrap_or("get") {
        "get" => artifacts()?.get(&reference(call)?).await,
        "put" => {
            let value = given(call, &VALUE_KEYS).cloned().or_else(|| rest(&call.input));
            let value = value.ok_or_else(|| wrong("an artifact put needs a `value`"))?;
            artifacts()?.put(value).await
        }
        other => Err(wrong(format!("`action` must be 'get' or 'put', not '{other}'"))),
    }
}

fn given<'a>(call: &'a Call, keys: &[&'a str]) -> Option<&'a Value> {
    let found = config::first(&call.input, keys).or_else(|| config::first(&call.config, keys));
    found.map(|(_, value)| value)
}

/// Without a value of its own, the whole input is what to keep.
fn rest(input: &Map) -> Option<Value> {
    (!input.is_empty()).then(|| Value::Object(input.clone()))
}

/// The reference's text; a reference object has it in one of its fields.
fn reference(call: &Call) -> Result<String, Failure> {
    let Some(mut found) = given(call, &REFERENCE_KEYS) else {
        return Err(wrong("an artifact get needs `input.result_ref`, such as `{{ step._ref }}`"));
    };
    if let Value::Object(object) = found
        && let Some((_, inner)) = config::first(object, &REFERENCE_KEYS)
    {
        found = inner;
    }
    match found {
        Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Value::String(_) => Err(wrong("the reference is an empty text")),
        other => Err(wrong(format!("the reference must be a text, not {}", type_name(other)))),
    }
}
