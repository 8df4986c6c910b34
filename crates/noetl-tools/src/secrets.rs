//! Tool `secrets`: returns the metadata of a stored credential, or one of its fields.
//!
//! Without `field`, the result lists the field names and contains no secret. With it, the value is
//! part of the step's result, for use in a later task; a worker that records results must treat it
//! as a secret.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Value};
use serde_json::json;

use crate::config::{self, type_name, wrong};
use crate::{Tool, ToolCall};

/// Default timeout of a lookup.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Keys that may contain the credential's alias.
const ALIAS_KEYS: [&str; 5] = ["credential", "name", "alias", "key", "auth"];

#[derive(Debug, Clone, Copy, Default)]
pub struct SecretsTool;

#[async_trait]
impl Tool for SecretsTool {
    fn kind(&self) -> &'static str {
        "secrets"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        call.run_within(TIMEOUT_DEFAULT, perform(&call)).await
    }
}

async fn perform(call: &ToolCall) -> Result<Value, Failure> {
    let alias = match config::first(&call.config, &ALIAS_KEYS)
        .or_else(|| config::first(&call.input, &ALIAS_KEYS))
    {
        Some((_, Value::String(alias))) if !alias.trim().is_empty() => alias.trim(),
        Some((key, other)) => {
            let actual = type_name(other);
            return Err(wrong(format!("`{key}` must name a stored credential, not be {actual}")));
        }
        None => return Err(wrong("a secrets step needs `auth`, the alias of a stored one")),
    };
    let Some(source) = &call.credentials else {
        return Err(Failure::new(
            FailureKind::ToolMissing,
            "this worker has no access to stored credentials",
        ));
    };
    let credential = source.get(alias).await?;
    let fields: Vec<&String> = credential.data.keys().collect();
    let Some(field) = config::text(&call.config, "field")? else {
        return Ok(json!({"name": credential.name, "type": credential.kind, "fields": fields}));
    };
    match credential.data.get(field) {
        Some(value) => Ok(json!({
            "name": credential.name, "type": credential.kind, "field": field, "value": value,
        })),
        None => Err(Failure::new(
            FailureKind::NotFound,
            format!(
                "credential '{}' has no field '{field}'; it has {}",
                credential.name,
                fields.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(", ")
            ),
        )),
    }
}
