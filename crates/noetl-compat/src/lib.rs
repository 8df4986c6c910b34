//! Translates commands for published workers, and their results back.
//!
//! A published worker renders every tool setting once more before it runs the tool, uses other
//! names for some settings, supports fewer tools, and returns results in another shape. A command
//! is translated when such a worker claims it and never stored in that form: the event log contains
//! the original decision. This module does no I/O; callers look up secrets and large values.

mod decode;
mod kinds;
mod names;
mod pipeline;
mod settings;
mod split;
mod template_text;
mod values;

use noetl_model::event::CommandSpec;
use noetl_model::{ExecutionId, Map, Value};

pub use self::decode::{decode_failure, decode_result};
use self::kinds::{KINDS, PIPELINE};
use self::template_text::Texts;
pub use self::values::ResolvedValues;

/// Command format of a published worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Format of published worker 5.52.
    Worker552,
}

/// A command in the format of published workers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompatCommand {
    pub action: String,
    /// Settings of the tool: a map, or a list of labeled tasks.
    pub tool_config: Value,
    pub args: Map,
    /// Names available to templates, including literal texts that must not be rendered.
    pub render_context: Map,
}

/// Returns `true` if published workers support this tool kind, or it is a pipeline.
pub fn has_kind(kind: &str) -> bool {
    kind == PIPELINE || KINDS.contains(&kind)
}

/// Returns the reason why a published worker cannot run a command, or `None` if it can.
pub fn unsupported_reason(issued: &CommandSpec) -> Option<String> {
    if issued.item.as_ref().is_some_and(|item| item.claims) {
        return Some("published workers do not hand back the rows that a claim returns".to_owned());
    }
    if &*issued.tool != PIPELINE {
        return settings::lacking(&issued.tool, &issued.config);
    }
    if issued.config.contains_key("loop") {
        return Some("published workers run no loop within one command".to_owned());
    }
    let tasks = issued.config.get("tasks").and_then(Value::as_array);
    let lacking = tasks.into_iter().flatten().find_map(pipeline::lacking);
    lacking.or_else(|| split::lacking(issued))
}

/// Translates a command for published workers. Returns the reason if they cannot run it.
pub fn encode_command(
    execution: ExecutionId,
    issued: &CommandSpec,
    found: &ResolvedValues,
    dialect: Dialect,
) -> Result<CompatCommand, String> {
    let Dialect::Worker552 = dialect;
    if let Some(why) = unsupported_reason(issued) {
        return Err(why);
    }
    let mut texts = Texts::default();
    let (tool_config, args) = if &*issued.tool == PIPELINE {
        (pipeline::lowered(execution, issued, &mut texts), Map::new())
    } else {
        let call = settings::ToolCallSpec {
            kind: &issued.tool,
            execution,
            step: &issued.step,
            attempt: issued.attempt,
            timeout_ms: issued.timeout_ms,
            is_rendered: true,
        };
        let (config, input) = call.lowered(issued.config.clone(), issued.input.clone());
        (texts.escape(Value::Object(config)), texts.keep_map(input))
    };
    let scope = issued.scope.as_deref();
    let mut render_context =
        scope.map(|scope| names::template_names(execution, scope, found)).unwrap_or_default();
    texts.add_to(&mut render_context);
    Ok(CompatCommand { action: issued.tool.to_string(), tool_config, args, render_context })
}
