//! Parses the statements of a database step from its settings.

use noetl_model::{Failure, Map, Value};

use super::scan::Dialect;
use super::statements::{Statement, TransactionControl, split};
use crate::ToolCall;
use crate::config::{self, type_name, wrong};

/// Settings that may contain statements. The first one that is present applies.
const TEXT_KEYS: [&str; 5] = ["query", "command", "sql", "commands", "statements"];

/// Statements of a step, in order.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    pub(crate) parts: Vec<ScriptStatement<'a>>,
    /// Whether to run the statements in one transaction.
    pub(crate) is_atomic: bool,
}

/// A statement and its parameters.
#[derive(Debug, Clone)]
pub(crate) struct ScriptStatement<'a> {
    pub(crate) statement: Statement<'a>,
    pub(crate) params: Params<'a>,
}

/// Values for a statement's parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Params<'a> {
    List(&'a [Value]),
    /// Values by name. Names in `params` take precedence over those in the step's `input`.
    Named {
        /// Values of `params`. `None` if the step has none.
        params: Option<&'a Map>,
        /// Values of the step's `input`.
        input: &'a Map,
    },
}

impl<'a> Params<'a> {
    /// Returns the value of a name. Without `params`, an unknown name is not a parameter and
    /// returns `None`. With `params`, it is an error.
    pub(crate) fn value(&self, name: &str) -> Result<Option<&'a Value>, Failure> {
        let Self::Named { params, input } = self else { return Ok(None) };
        let value = params.and_then(|params| params.get(name)).or_else(|| input.get(name));
        match (value, params) {
            (None, Some(_)) => Err(wrong(format!(
                "the statement asks for `:{name}`, which `params` does not have"
            ))),
            (value, _) => Ok(value),
        }
    }
}

impl<'a> Script<'a> {
    pub(crate) fn read(call: &'a ToolCall, kind: &str, dialect: Dialect) -> Result<Self, Failure> {
        Self::read_from(&call.config, &call.input, kind, dialect)
    }

    pub(crate) fn read_from(
        config: &'a Map,
        input: &'a Map,
        kind: &str,
        dialect: Dialect,
    ) -> Result<Self, Failure> {
        let Some((key, value)) = config::first(config, &TEXT_KEYS) else {
            return Err(wrong(format!(
                "a {kind} step needs its SQL under `query` (a text) or `commands` (a list)"
            )));
        };
        let shared = params(config, "params", input)?;
        let mut parts = Vec::new();
        let items = match value {
            Value::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        for (place, item) in items.iter().enumerate() {
            let (text, params) = match item {
                Value::String(text) => (text.as_str(), shared),
                Value::Object(item) if value.is_array() => {
                    let Some((_, Value::String(text))) = config::first(item, &TEXT_KEYS[..3])
                    else {
                        return Err(wrong(format!("`{key}[{place}]` needs its SQL under `query`")));
                    };
                    let own = item.contains_key("params");
                    let params = if own {
                        self::params(item, &format!("{key}[{place}].params"), input)?
                    } else {
                        shared
                    };
                    (text.as_str(), params)
                }
                other => {
                    let actual = type_name(other);
                    return Err(wrong(format!("`{key}` must be a text or a list, not {actual}")));
                }
            };
            let statements = split(text, dialect);
            parts.extend(
                statements.into_iter().map(|statement| ScriptStatement { statement, params }),
            );
        }
        if parts.is_empty() {
            return Err(wrong(format!("`{key}` holds no statement")));
        }
        let is_atomic = is_atomic(config, &parts)?;
        Ok(Self { parts, is_atomic })
    }
}

fn params<'a>(config: &'a Map, key: &str, input: &'a Map) -> Result<Params<'a>, Failure> {
    match config.get("params") {
        None | Some(Value::Null) => Ok(Params::Named { params: None, input }),
        Some(Value::Array(list)) => Ok(Params::List(list)),
        Some(Value::Object(map)) => Ok(Params::Named { params: Some(map), input }),
        Some(other) => {
            Err(wrong(format!("`{key}` must be a list or a map, not {}", type_name(other))))
        }
    }
}

/// Returns `true` if the statements run in one transaction. That is the default for several
/// statements, unless they contain transaction control or `autocommit` is set.
fn is_atomic(config: &Map, parts: &[ScriptStatement<'_>]) -> Result<bool, Failure> {
    let mut open = false;
    let mut controls = false;
    for part in parts {
        match part.statement.control {
            TransactionControl::None | TransactionControl::Inner => {}
            TransactionControl::Begin => (open, controls) = (true, true),
            TransactionControl::Finish => (open, controls) = (false, true),
        }
    }
    if open {
        return Err(wrong(
            "the statements begin a transaction that they do not end, so nothing would be kept; \
             add `commit`, or leave `begin` out: several statements take effect together",
        ));
    }
    let autocommit = match config.get("autocommit") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(autocommit)) => *autocommit,
        Some(other) => {
            let actual = type_name(other);
            return Err(wrong(format!("`autocommit` must be true or false, not {actual}")));
        }
    };
    Ok(parts.len() > 1 && !controls && !autocommit)
}
