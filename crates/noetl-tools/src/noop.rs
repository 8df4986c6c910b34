//! Tool `noop`: does nothing. For routing steps, and the cheapest tool.

use async_trait::async_trait;
use noetl_model::{Failure, Value};
use serde_json::json;

use crate::{Tool, ToolCall};

/// Tool that returns its `result` setting, or status `ok` with a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noop;

#[async_trait]
impl Tool for Noop {
    fn kind(&self) -> &'static str {
        "noop"
    }

    async fn run(&self, mut call: ToolCall) -> Result<Value, Failure> {
        if call.cancel.is_cancelled() {
            return Err(call.cancelled());
        }
        if let Some(result) = call.config.remove("result") {
            return Ok(result);
        }
        let message = call.config.remove("message").unwrap_or_else(|| "noop".into());
        Ok(json!({"status": "ok", "message": message}))
    }
}
