//! Tools without side effects: an echo of the arguments, and `noop`.

use async_trait::async_trait;
use noetl_model::{Failure, Value};
use noetl_tools::{Tool, ToolCall};

/// Returns its arguments, under the kind `python`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

#[async_trait]
impl Tool for Echo {
    fn kind(&self) -> &'static str {
        "python"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        Ok(Value::Object(call.input))
    }
}

/// Returns the `result` of its configuration, under the kind `noop`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noop;

#[async_trait]
impl Tool for Noop {
    fn kind(&self) -> &'static str {
        "noop"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        Ok(call.config.get("result").cloned().unwrap_or(Value::Null))
    }
}
