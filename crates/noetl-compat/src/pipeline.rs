//! Translates a pipeline: the tasks of one command, each with its policy rules.
//!
//! A published worker renders the settings of a task twice, and its input three times, the last two
//! with names that the input itself defines. So each template of a setting renders to text that a
//! second rendering leaves unchanged, and a template of an input is evaluated in the first
//! rendering only; later ones copy the value that the first one defined.

mod rules;

use noetl_model::event::CommandSpec;
use noetl_model::{ExecutionId, Map, Value};
use serde_json::json;

use self::rules::CompatRules;
use super::settings;
use super::template_text::{
    COPIED, Texts, as_text_twice, is_name, is_template, typed_copy, typed_twice,
};

/// Label of the only task in the translation of a pipeline without tasks.
pub(super) const MERGE: &str = "_noetl_merge";

/// Settings whose templates always render to text.
const TEXTS: [&str; 6] = ["command", "code", "url", "query", "cwd", "subject"];

/// Settings that are maps of text.
const TEXT_MAPS: [&str; 3] = ["env", "headers", "params"];

pub(super) fn lacking(task: &Value) -> Option<String> {
    let kind = task.get("kind").and_then(Value::as_str).unwrap_or_default();
    let none = Map::new();
    let config = task.get("config").and_then(Value::as_object).unwrap_or(&none);
    // Published workers resolve the credential and then leave it out of the request.
    let has = |name: &str| config.get(name).is_some_and(|value| !value.is_null());
    if kind == "http" && (has("auth") || has("credential")) {
        let why = "published workers send no credential with an HTTP request of a pipeline";
        return Some(why.to_owned());
    }
    settings::lacking(kind, config)
}

/// Returns the tasks as a list of labeled settings.
pub(super) fn lowered(execution: ExecutionId, issued: &CommandSpec, texts: &mut Texts) -> Value {
    let tasks = issued.config.get("tasks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if tasks.is_empty() {
        // The command only merges earlier results, which are added when its result is translated
        // back.
        return json!([{ MERGE: { "kind": "noop" } }]);
    }
    let labels: Vec<&str> =
        tasks.iter().filter_map(|task| task.get("name").and_then(Value::as_str)).collect();
    let lowered = tasks.iter().enumerate().map(|(index, task)| {
        let task = CompatTask { execution, issued, task, index, labels: &labels };
        task.lowered(texts)
    });
    lowered.collect()
}

/// A task of a pipeline, with its command.
struct CompatTask<'a> {
    execution: ExecutionId,
    issued: &'a CommandSpec,
    task: &'a Value,
    index: usize,
    labels: &'a [&'a str],
}

impl CompatTask<'_> {
    fn text(&self, name: &str) -> &str {
        self.task.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn map(&self, name: &str) -> Map {
        self.task.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.task.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    }

    fn lowered(&self, texts: &mut Texts) -> Value {
        let kind = self.text("kind");
        let rules =
            CompatRules::new(kind, self.text("name"), self.index, self.list("rules"), self.labels);
        let call = settings::ToolCallSpec {
            kind,
            execution: self.execution,
            step: &self.issued.step,
            attempt: self.issued.attempt,
            timeout_ms: self.task.get("timeout_ms").and_then(Value::as_u64),
            is_rendered: false,
        };
        let mut input = self.map("input");
        if kind == "python" {
            add_item(self.issued, &mut input);
        }
        let (mut config, mut input) = call.lowered(self.map("config"), input);
        // If the input contains a template, a marker tells the renderings apart.
        if input.values().any(has_template) {
            input.insert(COPIED.to_owned(), true.into());
            if kind == "python" {
                settings::hide_from_code(&mut config, COPIED);
            }
        }
        let mut spec = Map::new();
        for (name, value) in config {
            let is_raw = self.list("raw").iter().any(|raw| raw.as_str() == Some(&name));
            let value =
                if is_raw { texts.keep_twice(value) } else { setting(&name, value, &rules) };
            spec.insert(name, value);
        }
        spec.insert("kind".to_owned(), kind.into());
        if !input.is_empty() {
            let copied = |(name, value): (String, Value)| {
                let prelude = rules.attempt_prelude(&value);
                let value = match is_name(&name) {
                    true => typed_copy(value, &name, &prelude),
                    false => typed_twice(value, &prelude),
                };
                (name, value)
            };
            let input: Map = input.into_iter().map(copied).collect();
            spec.insert("input".to_owned(), Value::Object(input));
        }
        let rules = rules.lowered(self.list("set"));
        if !rules.is_empty() {
            spec.insert("spec".to_owned(), json!({ "policy": { "rules": rules } }));
        }
        Value::Object(Map::from_iter([(self.text("name").to_owned(), Value::Object(spec))]))
    }
}

fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(map) => map.values().any(has_template),
        _ => false,
    }
}

/// Adds the loop item to the input, because code in a loop uses it without declaring it.
fn add_item(issued: &CommandSpec, input: &mut Map) {
    let Some(iteration) = issued.scope.as_deref().and_then(|scope| scope.iteration.as_ref()) else {
        return;
    };
    for name in [&*iteration.name, "_index", "_total"] {
        input.entry(name).or_insert_with(|| format!("{{{{ {name} }}}}").into());
    }
}

/// Returns a setting whose templates render to the type that its tool expects.
fn setting(name: &str, value: Value, rules: &CompatRules<'_>) -> Value {
    let prelude = rules.attempt_prelude(&value);
    let texts = |value: Value| match value {
        Value::String(text) => Value::String(as_text_twice(&text, &prelude)),
        other => other,
    };
    match value {
        Value::String(text) if TEXTS.contains(&name) => {
            Value::String(as_text_twice(&text, &prelude))
        }
        Value::Object(map) if TEXT_MAPS.contains(&name) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, texts(value))).collect())
        }
        other => typed_twice(other, &prelude),
    }
}
