//! Translates the settings of one tool call to the names that published workers use.

mod http;
mod python;

use noetl_model::{ExecutionId, Map, Value};

use super::template_text::is_template;
use crate::kinds::KINDS;

pub(super) use self::python::hide_from_code;

/// Settings with another name in published workers: tool kind, name here, name there.
const RENAMED: [(&str, &str, &str); 9] = [
    ("shell", "cmds", "command"),
    ("http", "endpoint", "url"),
    ("postgres", "connection", "connection_string"),
    ("postgres", "sql", "query"),
    ("postgres", "command", "query"),
    ("duckdb", "database", "db_path"),
    ("duckdb", "command", "query"),
    ("nats", "action", "operation"),
    ("nats", "prefix", "pattern"),
];

/// A tool call without its settings.
pub(super) struct ToolCallSpec<'a> {
    pub(super) kind: &'a str,
    pub(super) execution: ExecutionId,
    pub(super) step: &'a str,
    pub(super) attempt: u32,
    pub(super) timeout_ms: Option<u64>,
    /// Whether templates are already rendered, so text that looks like a template is literal.
    pub(super) is_rendered: bool,
}

impl ToolCallSpec<'_> {
    /// Returns the settings and arguments in the form of published workers.
    pub(super) fn lowered(&self, mut config: Map, mut input: Map) -> (Map, Map) {
        for (kind, ours, theirs) in RENAMED {
            if kind == self.kind
                && !config.contains_key(theirs)
                && let Some(value) = config.remove(ours)
            {
                config.insert(theirs.to_owned(), value);
            }
        }
        credential(&mut config);
        self.limit(&mut config);
        match self.kind {
            "shell" => self.shell(&mut config, &input),
            "http" => http::lowered(&mut config, &input, self.is_rendered),
            "python" => python::lowered(&mut config, &input),
            "postgres" => {
                statements(&mut config);
                returning(&mut config);
            }
            "duckdb" => statements(&mut config),
            "nats" => nats(&mut config, &input),
            "artifact" => {
                if let Some(reference) = input.remove("ref") {
                    input.entry("result_ref").or_insert(reference);
                }
                // By default the tool calls an Arrow Flight server first, and fails if none listens
                // on the port.
                config.entry("prefer").or_insert_with(|| "http".into());
            }
            _ => {}
        }
        (config, input)
    }

    /// Sets the timeout in whole seconds, under the one name that published workers always read. A
    /// value that is not a number would make the whole command unreadable.
    fn limit(&self, config: &mut Map) {
        let written = [config.remove("timeout"), config.remove("timeout_seconds")];
        let written = written.into_iter().flatten().find_map(|value| milliseconds(&value));
        if let Some(ms) = self.timeout_ms.or(written)
            && matches!(self.kind, "shell" | "http" | "python")
        {
            config.insert("timeout_seconds".to_owned(), ms.div_ceil(1000).max(1).into());
        }
    }

    fn shell(&self, config: &mut Map, input: &Map) {
        if let Some(Value::Array(commands)) = config.get("command") {
            let commands = commands.iter().map(|command| format!("{{ {}\n}}", plain(command)));
            let joined = commands.collect::<Vec<_>>().join(" && ");
            config.insert("command".to_owned(), joined.into());
        }
        let mut env = strings(config.remove("env"));
        let mut add = |name: &str, text: String| {
            env.entry(name).or_insert(Value::String(text));
        };
        add("NOETL_EXECUTION_ID", self.execution.to_string());
        add("NOETL_STEP", self.step.to_owned());
        add("NOETL_ATTEMPT", self.attempt.to_string());
        let text = Value::Object(input.clone()).to_string();
        if self.is_rendered || !is_template(&text) {
            add("NOETL_INPUT", text);
        }
        config.insert("env".to_owned(), Value::Object(env));
    }
}

/// Returns the reason why published workers cannot make a call with these settings, or `None` if
/// they can.
pub(super) fn lacking(kind: &str, config: &Map) -> Option<String> {
    if !KINDS.contains(&kind) {
        return Some(format!("published workers have no tool of kind '{kind}'"));
    }
    let says = |name: &str, values: &[&str]| {
        let text = config.get(name).and_then(Value::as_str);
        text.is_some_and(|text| values.contains(&text))
    };
    let has = |name: &str| config.get(name).is_some_and(|value| !value.is_null());
    let named_params = || config.get("params").is_some_and(Value::is_object);
    let several = || config.get("commands").is_some_and(|list| !are_texts(list));
    let why = match kind {
        "postgres" | "duckdb" if named_params() => "parameters by name",
        "postgres" | "duckdb" if several() => "parameters for each of several statements",
        "postgres" if says("sslmode", &["require", "verify-ca", "verify-full"]) => {
            "encrypted connections to Postgres"
        }
        "artifact" if says("action", &["put"]) => "keeping an artifact",
        "nats" if ["create", "revision", "create_bucket"].iter().any(|name| has(name)) => {
            "conditions of a write to a NATS bucket, and making one"
        }
        "nats" if ["action", "operation"].iter().any(|name| says(name, &["request"])) => {
            "requests over NATS"
        }
        "python" if has("limits") => "limits of a Python step",
        _ => return None,
    };
    Some(format!("published workers do not know {why}"))
}

fn are_texts(list: &Value) -> bool {
    list.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

/// Replaces a reference to a stored credential by its alias, the only form that published workers
/// look up. Inline secrets are unchanged.
fn credential(config: &mut Map) {
    let alias_of = |auth: &Value| {
        let auth = auth.as_object()?;
        let alias = ["credential", "key", "alias"].iter().find_map(|key| auth.get(*key));
        alias.and_then(Value::as_str).map(str::to_owned)
    };
    let Some(auth) = config.get("auth").or_else(|| config.get("credential")) else { return };
    let named = || {
        let inner = auth.as_object().filter(|map| map.len() == 1)?.values().next()?;
        alias_of(inner)
    };
    if let Some(alias) = alias_of(auth).or_else(named) {
        config.remove("credential");
        config.insert("auth".to_owned(), alias.into());
    }
}

/// Joins statements to one text, which the tool splits.
fn statements(config: &mut Map) {
    if let Some(Value::Array(statements)) = config.remove("commands") {
        let joined = statements.iter().map(plain).collect::<Vec<_>>().join(";\n");
        config.entry("query").or_insert(joined.into());
    }
}

/// Rewrites a single statement that writes and returns rows as a query for these rows, because
/// published workers fetch rows only for `select` and `with`.
fn returning(config: &mut Map) {
    let Some(Value::String(query)) = config.get_mut("query") else { return };
    let text = query.trim().trim_end_matches(';').trim_end();
    let mut words =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_ascii_lowercase);
    let writes = words.next().is_some_and(|word| matches!(&*word, "insert" | "update" | "delete"));
    if writes
        && !text.contains(';')
        && !text.contains("--")
        && words.any(|word| word == "returning")
    {
        *query = format!("with _noetl_rows as ({text}) table _noetl_rows");
    }
}

fn nats(config: &mut Map, input: &Map) {
    if config.get("operation").and_then(Value::as_str) == Some("publish") {
        config.insert("operation".to_owned(), "js_publish".into());
    }
    for name in ["payload", "message", "body"] {
        if let Some(value) = config.remove(name) {
            config.entry("data").or_insert(value);
        }
    }
    let sends = config.get("operation").and_then(Value::as_str) == Some("js_publish");
    if sends && !config.contains_key("data") && !input.is_empty() {
        config.insert("data".to_owned(), Value::Object(input.clone()));
    }
}

/// Returns a map whose values are text, without null values.
fn strings(map: Option<Value>) -> Map {
    let Some(Value::Object(map)) = map else { return Map::new() };
    let present = map.into_iter().filter(|(_, value)| !value.is_null());
    present.map(|(name, value)| (name, Value::String(plain(&value)))).collect()
}

/// Returns a value as text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Parses a duration as written in playbooks, in seconds or with a unit, to milliseconds.
fn milliseconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => {
            let text = text.trim();
            let digits = text.trim_end_matches(char::is_alphabetic);
            let number: f64 = digits.trim().parse().ok()?;
            match &text[digits.len()..] {
                "ms" => number / 1000.0,
                "" | "s" => number,
                "m" => number * 60.0,
                "h" => number * 3600.0,
                "d" => number * 86_400.0,
                _ => return None,
            }
        }
        _ => return None,
    };
    std::time::Duration::try_from_secs_f64(seconds)
        .ok()
        .and_then(|length| u64::try_from(length.as_millis()).ok())
}
