//! Finds the credentials that a command names.

use std::collections::BTreeSet;

use noetl_model::event::CommandSpec;
use noetl_model::{Map, Value};
use noetl_work::keychain_settings as settings;

/// Settings that name a credential.
const KEYS: [&str; 2] = ["auth", "credential"];

/// Keys that name a stored credential in an `auth` map.
const ALIAS_KEYS: [&str; 2] = ["credential", "key"];

/// Settings and arguments in which a `secrets` tool names its credential.
const SECRETS_KEYS: [&str; 5] = ["credential", "name", "alias", "key", "auth"];

/// Maximum number of nested maps between a list of tasks and the settings of a tool.
const TASK_LEVELS: usize = 3;

/// Names of credentials in one command.
///
/// Of a name that a template renders on the worker, only the literal text around the template is
/// known, so `pg_{{ region }}` stands for every name that starts with `pg_`.
#[derive(Debug, Default)]
pub(super) struct NamedCredentials {
    names: BTreeSet<String>,
    templates: BTreeSet<String>,
}

impl NamedCredentials {
    /// Collects the names in `auth` and in the keychain. Placeholders name nothing: a worker
    /// presents the placeholder itself, and its tag is verified.
    pub(super) fn in_command(issued: &CommandSpec) -> Self {
        let mut named = Self::default();
        named.add_settings(&issued.tool, &issued.config, &issued.input);
        if let Some(Value::Array(tasks)) = issued.config.get("tasks") {
            tasks.iter().for_each(|task| named.add_task(task, TASK_LEVELS));
        }
        if let Some(scope) = issued.scope.as_deref() {
            for (name, entry) in &scope.keychain {
                named.add(name);
                if let Some(alias) = entry.as_object().and_then(settings::alias) {
                    named.add(alias);
                }
            }
        }
        named
    }

    /// Returns `true` if the command names this credential, or has a template that can render to
    /// its name.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.names.contains(name)
            || self.templates.iter().any(|template| can_render(template, name))
    }

    fn add(&mut self, name: &str) {
        let name = name.trim();
        if name.contains("{{") || name.contains("{%") {
            self.templates.insert(name.to_owned());
        } else if !name.is_empty() {
            self.names.insert(name.to_owned());
        }
    }

    /// Adds the names in the settings of one tool.
    fn add_settings(&mut self, kind: &str, config: &Map, input: &Map) {
        match kind {
            "secrets" => {
                for map in [config, input] {
                    let found = SECRETS_KEYS.iter().filter_map(|key| map.get(*key));
                    found.filter_map(Value::as_str).for_each(|name| self.add(name));
                }
            }
            "transfer" => {
                let sides = ["source", "target"].map(|side| config.get(side));
                for side in sides.into_iter().flatten().filter_map(Value::as_object) {
                    self.add_auth(side);
                }
            }
            _ => {}
        }
        self.add_auth(config);
    }

    fn add_auth(&mut self, settings: &Map) {
        for auth in KEYS.iter().filter_map(|key| settings.get(*key)) {
            match auth {
                Value::String(name) => self.add(name),
                Value::Object(spec) => {
                    self.add_aliases(spec);
                    for several in spec.values() {
                        match several {
                            Value::String(name) => self.add(name),
                            Value::Object(spec) => self.add_aliases(spec),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add_aliases(&mut self, spec: &Map) {
        let found = ALIAS_KEYS.iter().filter_map(|key| spec.get(*key));
        found.filter_map(Value::as_str).for_each(|name| self.add(name));
    }

    /// Adds the names in one task of a pipeline, whatever the form of the task.
    fn add_task(&mut self, task: &Value, levels: usize) {
        let Value::Object(map) = task else { return };
        let empty = Map::new();
        let input = map.get("input").and_then(Value::as_object).unwrap_or(&empty);
        let kind = ["kind", "tool"].iter().find_map(|key| map.get(*key)?.as_str());
        let config = map.get("config").and_then(Value::as_object).unwrap_or(map);
        self.add_settings(kind.unwrap_or_default(), config, input);
        if levels > 0 {
            let deeper = map.iter().filter(|(key, _)| *key != "input");
            deeper.for_each(|(_, value)| self.add_task(value, levels - 1));
        }
    }
}

/// Returns `true` if a template can render to a text: its literal parts occur in the text, in order.
fn can_render(template: &str, text: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = template;
    while let Some(begin) = ["{{", "{%"].iter().filter_map(|mark| rest.find(mark)).min() {
        literals.push(&rest[..begin]);
        let close = if rest[begin..].starts_with("{{") { "}}" } else { "%}" };
        let Some(end) = rest[begin..].find(close) else { return false };
        rest = &rest[begin + end + close.len()..];
    }
    let Some((first, between)) = literals.split_first() else { return template == text };
    let Some(mut left) = text.strip_prefix(*first).and_then(|left| left.strip_suffix(rest)) else {
        return false;
    };
    for literal in between {
        let Some(at) = left.find(literal) else { return false };
        left = &left[at + literal.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(tool: &str, config: Value, input: Value) -> NamedCredentials {
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        let mut found = NamedCredentials::default();
        let (config, input) = (map(config), map(input));
        found.add_settings(tool, &config, &input);
        if let Some(Value::Array(tasks)) = config.get("tasks") {
            tasks.iter().for_each(|task| found.add_task(task, TASK_LEVELS));
        }
        found
    }

    #[test]
    fn a_command_names_the_credentials_of_its_auth() {
        let cases = [
            ("postgres", json!({"auth": "pg"}), json!({})),
            ("postgres", json!({"credential": " pg "}), json!({})),
            ("http", json!({"auth": {"type": "bearer", "credential": "pg"}}), json!({})),
            ("http", json!({"auth": {"a": "pg", "b": {"key": "other"}}}), json!({})),
            ("secrets", json!({}), json!({"name": "pg"})),
            ("transfer", json!({"source": {"kind": "postgres", "auth": "pg"}}), json!({})),
            ("task_sequence", json!({"tasks": [{"a": {"kind": "http", "auth": "pg"}}]}), json!({})),
            (
                "task_sequence",
                json!({"tasks": [{"name": "a", "kind": "secrets", "config": {"alias": "pg"}}]}),
                json!({}),
            ),
        ];
        for (tool, config, input) in cases {
            let found = named(tool, config.clone(), input);
            assert!(found.matches("pg"), "{tool} {config}");
            assert!(!found.matches("prod"), "{tool} {config}");
        }
    }

    #[test]
    fn data_of_a_caller_names_no_credential() {
        for (tool, config, input) in [
            ("http", json!({"json": {"auth": "pg", "credential": "pg"}}), json!({})),
            ("python", json!({"code": "pg"}), json!({"auth": "pg", "credential": "pg"})),
            ("task_sequence", json!({"tasks": [{"a": {"input": {"auth": "pg"}}}]}), json!({})),
            ("shell", json!({"cmd": "echo «secret:pg.password»"}), json!({})),
            ("shell", json!({"cmd": "«secret:pg.x~1.AAAAAAAAAAAAAAAAAAAAAA»"}), json!({})),
        ] {
            assert!(!named(tool, config.clone(), input).matches("pg"), "{tool} {config}");
        }
    }

    #[test]
    fn a_template_matches_the_names_it_can_produce() {
        let found = named("http", json!({"auth": "pg_{{ region }}_{{ n }}_ro"}), json!({}));
        for name in ["pg_eu_1_ro", "pg___ro"] {
            assert!(found.matches(name), "{name}");
        }
        for name in ["pg_eu_ro", "mysql_eu_1_ro", "pg_eu_1_rw", "pg_ro", ""] {
            assert!(!found.matches(name), "{name}");
        }
        assert!(named("http", json!({"auth": "{{ a }}"}), json!({})).matches("anything"));
        assert!(!named("http", json!({"auth": "{{ a"}), json!({})).matches("anything"));
    }
}
