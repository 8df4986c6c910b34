//! Translates the policy rules of a task to the names that published workers give to rules.
//!
//! In a published worker, `output` has the status and the data, but no error. A rule sees neither
//! the task's own result under its label nor the variables the task just set. Only variables set by
//! a rule are reported. The attempt counter is never reset, and a task that times out without a
//! matching rule continues. Each translated template therefore starts with a prelude that defines
//! the names it mentions, a variable of the iteration counts attempts, and the last two rules spell
//! out the default action.

use noetl_model::{Map, Value};
use serde_json::json;

use super::super::template_text::{is_name, is_template, single, typed};

/// Template statement that sets `_noetl_ok` to whether the task succeeded.
const WENT_WELL: &str = "{% set _noetl_ok = output.status == 'success' %}";

/// Default number of attempts of a retry rule.
const ATTEMPTS: u64 = 3;

/// Texts that are false as conditions.
const FALSE_WORDS: &str = "['', 'false', 'no', 'off', 'none', 'null', '0']";

/// Names that a variable must not shadow.
const RESERVED: [&str; 10] = [
    "workload",
    "ctx",
    "steps",
    "iter",
    "step",
    "env",
    "keychain",
    "output",
    "result",
    "execution_id",
];

/// Template expression for the failure kind of an HTTP status, as in the control plane.
const HTTP_KIND: &str = "'auth' if _noetl_status in [401, 403] \
     else 'not_found' if _noetl_status == 404 else 'rate_limit' if _noetl_status == 429 \
     else 'server_error' if _noetl_status >= 500 else 'client_error'";

/// Template expression for the failure kind of a Python exception, as in the control plane.
const PYTHON_KIND: &str = "'timeout' if _noetl_data is none \
     else 'schema' if _noetl_name in ['TypeError', 'ValueError', 'KeyError', 'IndexError'] \
     else 'config' if _noetl_name in ['SyntaxError', 'IndentationError'] \
     else 'tool_missing' if _noetl_name in ['ModuleNotFoundError', 'ImportError'] else 'unknown'";

/// Failure kinds worth another attempt.
const RETRYABLE: &str = "['connection', 'db_deadlock', 'rate_limit', 'server_error', 'timeout']";

pub(super) struct CompatRules<'a> {
    kind: &'a str,
    label: &'a str,
    index: usize,
    rules: &'a [Value],
    labels: &'a [&'a str],
}

impl<'a> CompatRules<'a> {
    pub(super) fn new(
        kind: &'a str,
        label: &'a str,
        index: usize,
        rules: &'a [Value],
        labels: &'a [&'a str],
    ) -> Self {
        Self { kind, label, index, rules, labels }
    }

    /// Returns `true` if a rule retries the task, so its attempts have to be counted.
    fn retries(&self) -> bool {
        self.rules.iter().any(|rule| rule.get("do").is_some_and(|action| action == "retry"))
    }

    /// Returns the variable that counts the finished attempts of this iteration.
    fn counter(&self) -> String {
        format!("iter._noetl_runs_{}", self.index)
    }

    fn attempt(&self) -> String {
        match self.retries() {
            true => format!("{{% set _attempt = ({} | default(0)) + 1 %}}", self.counter()),
            false => "{% set _attempt = 1 %}".to_owned(),
        }
    }

    /// Returns a prelude that defines `_attempt`, if a setting mentions it: published workers
    /// define it for rules only.
    pub(super) fn attempt_prelude(&self, value: &Value) -> String {
        match mentions(value, "_attempt") {
            true => self.attempt(),
            false => String::new(),
        }
    }

    /// Returns the rules, followed by the default action. Returns none if published workers apply
    /// that default anyway.
    pub(super) fn lowered(&self, set: &[Value]) -> Vec<Value> {
        // Published workers count a shell or Python task that exceeds its timeout as a success.
        if set.is_empty() && self.rules.is_empty() && !matches!(self.kind, "shell" | "python") {
            return Vec::new();
        }
        let told = self.told(set);
        let mut lowered = Vec::new();
        for rule in self.rules {
            self.rule(rule, set, &told, &mut lowered);
        }
        let then = self.then(json!({"do": "continue"}), told, false);
        lowered.push(json!({"when": format!("{WENT_WELL}{{{{ 'true' if _noetl_ok else 'false' }}}}"), "then": then}));
        lowered.push(json!({"when": true, "then": {"do": "fail"}}));
        lowered
    }

    /// Translates one rule: a copy for a task that succeeded, which includes the task's own
    /// assignments, and one for any other. A retry is followed by a failure for when no attempts
    /// are left.
    fn rule(&self, rule: &Value, set: &[Value], told: &Map, into: &mut Vec<Value>) {
        let when = rule.get("when").unwrap_or(&Value::Null);
        let own = rule.get("set").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let own = self.assigned(own, |value| self.in_rule(value, set));
        let with_own = |told: &Map| {
            let mut all = told.clone();
            all.extend(own.clone());
            all
        };
        let narrow = (!told.is_empty()).then(|| ("_noetl_ok", with_own(told)));
        for (condition, set_by_rule) in narrow.into_iter().chain([("true", with_own(&Map::new()))])
        {
            let action = action(rule);
            if action["do"] == "retry" {
                let attempts = match rule.get("attempts") {
                    Some(Value::String(text)) => single(text).unwrap_or(text).to_owned(),
                    Some(Value::Number(number)) => number.to_string(),
                    _ => ATTEMPTS.to_string(),
                };
                let left = format!("{condition} and _attempt < (({attempts}) | int)");
                let then = self.then(action, set_by_rule.clone(), true);
                into.push(json!({"when": self.when(when, &left, set), "then": then}));
                let then = self.then(json!({"do": "fail"}), set_by_rule, false);
                into.push(json!({"when": self.when(when, condition, set), "then": then}));
            } else {
                let then = self.then(action, set_by_rule, false);
                into.push(json!({"when": self.when(when, condition, set), "then": then}));
            }
        }
    }

    /// Returns an action with its assignments, and with the update of the attempt counter.
    fn then(&self, action: Value, mut set: Map, is_retry: bool) -> Value {
        if is_retry {
            set.insert(self.counter(), format!("{}{{{{ _attempt }}}}", self.attempt()).into());
        } else if self.retries() && action["do"] != "fail" {
            set.insert(self.counter(), 0.into());
        }
        let mut then = match action {
            Value::Object(then) => then,
            _ => Map::new(),
        };
        if !set.is_empty() {
            then.insert("set".to_owned(), Value::Object(set));
        }
        Value::Object(then)
    }

    /// Returns a condition combined with another one, with the control plane's rules of truth.
    fn when(&self, when: &Value, and: &str, set: &[Value]) -> Value {
        let (prelude, condition) = match when {
            Value::Null | Value::Bool(true) if and == "true" => return Value::Bool(true),
            Value::Null | Value::Bool(true) => {
                (self.attempt(), "{% set _noetl_c = true %}".to_owned())
            }
            Value::String(text) => {
                let prelude = format!("{}{}", self.attempt(), self.prelude(text, set));
                let condition = match single(text) {
                    Some(expression) => format!("{{% set _noetl_c = ({expression}) %}}"),
                    None if is_template(text) => {
                        format!("{{% set _noetl_c %}}{text}{{% endset %}}")
                    }
                    None => format!("{{% set _noetl_c = ({text}) %}}"),
                };
                (prelude, condition)
            }
            other => return other.clone(),
        };
        let is_true =
            format!("_noetl_c and (_noetl_c | string | trim | lower) not in {FALSE_WORDS}");
        Value::String(format!(
            "{WENT_WELL}{prelude}{condition}{{{{ 'true' if ({and}) and {is_true} else 'false' }}}}"
        ))
    }

    /// Returns the task's assignments as assignments of a rule, where its result is under `data`.
    fn told(&self, set: &[Value]) -> Map {
        self.assigned(set, |value| {
            let prelude = match mentions(&value, "output") || mentions(&value, self.label) {
                true => {
                    format!("{}{{% set output = output.data %}}", self.own_label("output.data"))
                }
                false => String::new(),
            };
            preceded(typed(value.clone()), &format!("{}{prelude}", self.attempt_prelude(&value)))
        })
    }

    /// Returns a value that a rule assigns.
    fn in_rule(&self, value: Value, set: &[Value]) -> Value {
        let text = value.to_string();
        let attempt = match text.contains("_attempt") || text.contains("output") {
            true => self.attempt(),
            false => String::new(),
        };
        let prelude = format!("{WENT_WELL}{attempt}{}", self.prelude(&text, set));
        preceded(typed(value), &prelude)
    }

    /// Returns assignments in the published workers' form, dotted name to value. A variable of
    /// `ctx` is written twice, because templates find it with and without its scope.
    fn assigned(&self, list: &[Value], lowered: impl Fn(Value) -> Value) -> Map {
        let mut made = Map::new();
        for assignment in list {
            let Some((scope, path)) = target(assignment) else { continue };
            let value = lowered(assignment.get("value").cloned().unwrap_or_default());
            let first = path.split('.').next().unwrap_or_default();
            if scope == "ctx" && !RESERVED.contains(&first) && !self.labels.contains(&first) {
                made.insert(path.clone(), value.clone());
            }
            made.insert(format!("{scope}.{path}"), value);
        }
        made
    }

    /// Returns a prelude that defines the names a rule's template mentions: the task's result under
    /// its label, the variables it just set, and `output` with its error.
    fn prelude(&self, text: &str, set: &[Value]) -> String {
        let mut prelude = String::new();
        if text.contains(self.label) {
            prelude.push_str(&self.own_label("output.data"));
        }
        let names_set = set.iter().filter_map(|assignment| self.just_set(assignment, text));
        let names_set: String = names_set.collect();
        let envelope = text.contains("output");
        if envelope || !names_set.is_empty() {
            prelude.push_str("{% set _noetl_out = output %}{% set _noetl_data = output.data %}");
            prelude.push_str("{% set output = _noetl_data %}");
            prelude.push_str(&names_set);
        }
        if envelope {
            prelude.push_str(&self.envelope());
        }
        prelude
    }

    /// Returns a prelude that defines the task's own result under its label.
    fn own_label(&self, data: &str) -> String {
        let label = self.label;
        match is_name(label) {
            true => format!(
                "{{% set {label} = ({data} | chain({{'data': {data}}})) if {data} is mapping else {data} %}}"
            ),
            false => String::new(),
        }
    }

    /// Returns a prelude that defines a variable the task just set, if the text mentions it.
    fn just_set(&self, assignment: &Value, text: &str) -> Option<String> {
        let (scope, path) = target(assignment)?;
        if !is_name(&path) || !text.contains(&path) || !matches!(scope.as_str(), "ctx" | "iter") {
            return None;
        }
        let own = self.own_label("_noetl_data");
        let value = assignment.get("value").unwrap_or(&Value::Null);
        let (before, value) = match value {
            Value::String(text) if is_template(text) => match single(text) {
                Some(expression) => (String::new(), expression.to_owned()),
                None => {
                    let made = format!("{{% set _noetl_made %}}{text}{{% endset %}}");
                    (made, "_noetl_made".to_owned())
                }
            },
            Value::Null => (String::new(), "none".to_owned()),
            Value::Array(_) | Value::Object(_) => return None,
            plain => (String::new(), plain.to_string()),
        };
        let bare = match scope == "ctx" && !RESERVED.contains(&path.as_str()) {
            true => format!("{{% set {path} = ctx.{path} %}}"),
            false => String::new(),
        };
        Some(format!(
            "{{% if _noetl_ok %}}{own}{before}\
             {{% set {scope} = ({scope} | default({{}})) | chain({{'{path}': ({value})}}) %}}{bare}{{% endif %}}"
        ))
    }

    /// Returns a prelude that defines `output` as in the control plane: the envelope, then the keys
    /// of the data.
    fn envelope(&self) -> String {
        let (before, error) = match self.kind {
            "http" => (
                format!(
                    "{{% set _noetl_status = _noetl_data.status_code | default(0) %}}\
                     {{% set _noetl_kind = {HTTP_KIND} %}}\
                     {{% set _noetl_http = {{'status': _noetl_status, 'headers': _noetl_data.headers}} %}}\
                     {{% set _noetl_more = {{'http': _noetl_http}} %}}"
                ),
                "'message': 'HTTP ' ~ _noetl_status ~ ' response', 'status_code': _noetl_status, \
                 'http_status': _noetl_status, 'code': _noetl_status, 'http': _noetl_http, \
                 'body': _noetl_data.body",
            ),
            "python" => (
                format!(
                    "{{% set _noetl_line = (_noetl_data.stderr | default('')) | trim | split('\\n') | last %}}\
                     {{% set _noetl_name = _noetl_line | split(':') | first %}}\
                     {{% set _noetl_kind = {PYTHON_KIND} %}}{{% set _noetl_more = {{}} %}}"
                ),
                "'message': _noetl_line, 'exception_type': _noetl_name, \
                 'stdout': _noetl_data.stdout, 'stderr': _noetl_data.stderr",
            ),
            "shell" => (
                "{% set _noetl_kind = 'timeout' if _noetl_data is none else 'exit_code' %}\
                 {% set _noetl_more = {} %}"
                    .to_owned(),
                "'message': 'Command exited with code ' ~ _noetl_data.exit_code, \
                 'exit_code': _noetl_data.exit_code, 'stdout': _noetl_data.stdout, \
                 'stderr': _noetl_data.stderr",
            ),
            _ => (
                "{% set _noetl_kind = 'unknown' %}{% set _noetl_more = {} %}".to_owned(),
                "'message': ''",
            ),
        };
        // A field of an HTTP body is found with and without a leading `data`.
        let data = match self.kind {
            "http" => {
                "(_noetl_data.data | chain(_noetl_data)) if _noetl_data.data is mapping else _noetl_data"
            }
            _ => "_noetl_data",
        };
        format!(
            "{before}{{% set _noetl_error = {{}} if _noetl_ok else {{'error': {{'kind': _noetl_kind, \
             'retryable': _noetl_kind in {RETRYABLE}, {error}}}}} %}}\
             {{% set output = (_noetl_data if _noetl_data is mapping else {{}}) | chain(_noetl_more, \
             _noetl_error, {{'status': 'ok' if _noetl_ok else 'error', 'ok': _noetl_ok, 'data': {data}, \
             'meta': {{'attempt': _attempt}}}}) %}}"
        )
    }
}

/// Returns `true` if a template in a value contains a word.
fn mentions(value: &Value, word: &str) -> bool {
    match value {
        Value::String(text) => is_template(text) && text.contains(word),
        Value::Array(items) => items.iter().any(|item| mentions(item, word)),
        Value::Object(map) => map.values().any(|value| mentions(value, word)),
        _ => false,
    }
}

/// Returns a value whose templates start with the prelude.
fn preceded(value: Value, prelude: &str) -> Value {
    match value {
        Value::String(text) if is_template(&text) => Value::String(format!("{prelude}{text}")),
        Value::Array(items) => items.into_iter().map(|item| preceded(item, prelude)).collect(),
        Value::Object(map) => Value::Object(
            map.into_iter().map(|(key, value)| (key, preceded(value, prelude))).collect(),
        ),
        plain => plain,
    }
}

/// Returns the scope and dotted path of an assignment.
fn target(assignment: &Value) -> Option<(String, String)> {
    let scope = assignment.get("scope")?.as_str()?.to_owned();
    let path = assignment.get("path")?.as_array()?.iter().filter_map(Value::as_str);
    Some((scope, path.collect::<Vec<_>>().join(".")))
}

/// Returns the action of a rule, without its assignments.
fn action(rule: &Value) -> Value {
    let mut then = Map::new();
    let action = rule.get("do").cloned().unwrap_or_else(|| "continue".into());
    if action == "retry" {
        // The rule's condition counts attempts.
        then.insert("attempts".to_owned(), u32::MAX.into());
        then.extend(rule.get("delay").cloned().map(|delay| ("delay".to_owned(), delay)));
        let growth = rule.get("backoff").and_then(Value::as_str).unwrap_or("fixed");
        then.insert("backoff".to_owned(), if growth == "none" { "fixed" } else { growth }.into());
    }
    then.extend(rule.get("to").cloned().map(|to| ("to".to_owned(), to)));
    then.insert("do".to_owned(), action);
    Value::Object(then)
}
