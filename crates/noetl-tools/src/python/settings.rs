//! Settings of a Python step.

use noetl_model::{Failure, Map, Value};
use serde::Serialize;

use crate::ToolCall;
use crate::config::{self, type_name, wrong};

/// Validated settings of a call.
#[derive(Debug, Clone)]
pub(super) struct PythonSettings<'a> {
    pub(super) code: &'a str,
    /// Imports by alias. The list form names packages and imports nothing.
    pub(super) libs: Value,
    pub(super) env: Map,
    pub(super) limits: ResourceLimits,
    /// Value of `context` without `args`: the worker's context, the map under `context` in the
    /// settings, and the IDs of the execution and command.
    pub(super) context: Map,
}

/// Limits that the operating system enforces on a step. `None` inherits the worker's limit.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ResourceLimits {
    /// Maximum address space, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_mb: Option<u32>,
    /// Maximum CPU time, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_seconds: Option<u32>,
    /// Maximum open files and sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) open_files: Option<u32>,
}

impl<'a> PythonSettings<'a> {
    /// Parses the settings of a call whose program is `code`.
    pub(super) fn read(call: &'a ToolCall, code: &'a str) -> Result<Self, Failure> {
        let config = &call.config;
        let env = config::environment(config)?;
        let env = env.into_iter().map(|(name, text)| (name.to_owned(), text.into()));
        Ok(Self {
            code,
            libs: libs(config.get("libs"))?,
            env: env.collect(),
            limits: limits(config)?,
            context: context(call)?,
        })
    }
}

fn context(call: &ToolCall) -> Result<Map, Failure> {
    let mut context = call.context.clone();
    context.extend(config::map(&call.config, "context")?.cloned().unwrap_or_default());
    context.insert("execution_id".to_owned(), call.execution.get().into());
    context.insert("command_id".to_owned(), call.command.get().into());
    context.insert("step".to_owned(), (*call.step).into());
    context.insert("attempt".to_owned(), call.attempt.into());
    Ok(context)
}

fn libs(libs: Option<&Value>) -> Result<Value, Failure> {
    match libs {
        None | Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(list @ Value::Array(_)) => Ok(list.clone()),
        Some(Value::Object(map)) => {
            for (alias, spec) in map {
                let is_text = |key: &str| spec.get(key).is_some_and(Value::is_string);
                let is_known = spec.is_string() || (is_text("from") && is_text("import"));
                if !is_known {
                    return Err(wrong(format!(
                        "`libs.{alias}` must be a module's name or {{from: module, import: name}}"
                    )));
                }
            }
            Ok(Value::Object(map.clone()))
        }
        Some(other) => Err(wrong(format!("`libs` must be a map, not {}", type_name(other)))),
    }
}

fn limits(config: &Map) -> Result<ResourceLimits, Failure> {
    let mut limits = ResourceLimits::default();
    for (name, value) in config::map(config, "limits")?.into_iter().flatten() {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let Some(number) = number.filter(|number| *number > 0) else {
            return Err(wrong(format!("`limits.{name}` must be a positive whole number")));
        };
        match name.as_str() {
            "memory_mb" => limits.memory_mb = Some(number),
            "cpu_seconds" => limits.cpu_seconds = Some(number),
            "open_files" => limits.open_files = Some(number),
            other => {
                return Err(wrong(format!(
                    "`limits` knows memory_mb, cpu_seconds and open_files, not '{other}'"
                )));
            }
        }
    }
    Ok(limits)
}
