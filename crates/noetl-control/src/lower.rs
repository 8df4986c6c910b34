//! Commands in the words of published workers, and their answers in ours.
//!
//! The worker that is published renders every setting of a tool once more before it runs it, knows
//! other names for some settings, has fewer tools, and tells its answers in another shape. A command
//! is put into its words when it claims it, and never stored so: the log has what was decided. All of
//! this is plain computation; what has to be looked up (secrets, large values) is looked up by the
//! caller.

mod names;
mod pipeline;
mod raise;
mod settings;
mod split;
mod text;

use noetl_model::event::Issued;
use noetl_model::{ExecutionId, Map, Value};

use self::text::Texts;

pub use self::raise::{raised, raised_failure};

/// The words a command can be put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Of the worker published as 5.52.
    Worker552,
}

/// Tools that a published worker has, of those a playbook here can name.
const KINDS: [&str; 8] =
    ["noop", "shell", "http", "python", "postgres", "duckdb", "nats", "artifact"];

/// The tool that stands for a pipeline of tasks.
const PIPELINE: &str = "task_sequence";

/// A command as a published worker gets it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lowered {
    pub action: String,
    /// The tool's settings: a map, or a list of labelled tasks.
    pub tool_config: Value,
    pub args: Map,
    /// What templates may name, its own and those that texts are kept from rendering with.
    pub render_context: Map,
}

/// What was looked up for a command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The values its scope says are kept elsewhere, in the scope's order.
    pub blobs: Vec<Value>,
    /// The entries of the keychain its templates name, with their values.
    pub keychain: Map,
}

/// Whether published workers have a tool of this kind, or run pipelines of such.
pub fn has_kind(kind: &str) -> bool {
    kind == PIPELINE || KINDS.contains(&kind)
}

/// Why a published worker cannot run a command; `None` when it can.
pub fn lacking(issued: &Issued) -> Option<String> {
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

/// Puts a command into the words of published workers; why not, when they cannot run it.
pub fn lower(
    execution: ExecutionId,
    issued: &Issued,
    found: &Found,
    dialect: Dialect,
) -> Result<Lowered, String> {
    let Dialect::Worker552 = dialect;
    if let Some(why) = lacking(issued) {
        return Err(why);
    }
    let mut texts = Texts::default();
    let (tool_config, args) = if &*issued.tool == PIPELINE {
        (pipeline::lowered(execution, issued, &mut texts), Map::new())
    } else {
        let call = settings::Call {
            kind: &issued.tool,
            execution,
            step: &issued.step,
            attempt: issued.attempt,
            timeout_ms: issued.timeout_ms,
            is_rendered: true,
        };
        let (config, input) = call.lowered(issued.config.clone(), issued.input.clone());
        (texts.keep(Value::Object(config)), texts.keep_map(input))
    };
    let scope = issued.scope.as_deref();
    let mut render_context =
        scope.map(|scope| names::of(execution, scope, found)).unwrap_or_default();
    texts.add_to(&mut render_context);
    Ok(Lowered { action: issued.tool.to_string(), tool_config, args, render_context })
}
