//! Protects text from a second rendering.
//!
//! A published worker treats text as a template if it contains `{{` or `{%`, and parses the
//! rendered text as JSON if possible. Each template is therefore rewritten to render to JSON:
//! exactly the text, or exactly the value, that it has in the control plane.

use noetl_model::{Map, Value};

/// Name under which literal texts are passed along.
const KEPT: &str = "_noetl_text";

/// Input that is defined once the input of a task has been rendered.
pub(super) const COPIED: &str = "_noetl_input";

/// Renders `_noetl_value` to JSON that a second rendering leaves unchanged: a value with text that
/// looks like a template becomes a template whose only literal is that value.
const TWICE: &str = "{% set _noetl_json = _noetl_value | tojson %}\
    {% if '{{' in _noetl_json or '{%' in _noetl_json %}\
    {{ ('{{ ' ~ _noetl_json ~ ' | tojson }}') | tojson }}{% else %}{{ _noetl_json }}{% endif %}";

/// Returns `true` if a published worker treats the text as a template.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Texts that look like templates but are literal.
#[derive(Default)]
pub(super) struct Texts(Vec<Value>);

impl Texts {
    /// Returns a value whose texts are unchanged by one rendering.
    pub(super) fn escape(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) if is_template(&text) => {
                let place = self.0.len();
                self.0.push(Value::String(text));
                Value::String(format!("{{{{ {KEPT}[{place}] | tojson }}}}"))
            }
            Value::Array(items) => items.into_iter().map(|item| self.escape(item)).collect(),
            Value::Object(map) => Value::Object(self.keep_map(map)),
            plain => plain,
        }
    }

    /// Like [`keep`](Self::keep), for a value that is rendered twice.
    pub(super) fn keep_twice(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) if is_template(&text) => {
                let index = self.0.len();
                self.0.push(Value::String(text));
                Value::String(format!("{{% set _noetl_value = {KEPT}[{index}] %}}{TWICE}"))
            }
            Value::Array(items) => items.into_iter().map(|item| self.keep_twice(item)).collect(),
            Value::Object(map) => Value::Object(
                map.into_iter().map(|(key, value)| (key, self.keep_twice(value))).collect(),
            ),
            plain => plain,
        }
    }

    /// Like [`keep`](Self::keep), for a map. Keys are not rendered.
    pub(super) fn keep_map(&mut self, map: Map) -> Map {
        map.into_iter().map(|(key, value)| (key, self.escape(value))).collect()
    }

    /// Adds the literal texts to the template names.
    pub(super) fn add_to(self, names: &mut Map) {
        if !self.0.is_empty() {
            names.insert(KEPT.to_owned(), Value::Array(self.0));
        }
    }
}

/// Returns a value whose templates render to the types they have in the control plane: a single
/// expression to its own type, any other template to text.
pub(super) fn typed(value: Value) -> Value {
    match value {
        Value::String(text) if is_template(&text) => Value::String(typed_text(&text)),
        Value::Array(items) => items.into_iter().map(typed).collect(),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, typed(value))).collect())
        }
        plain => plain,
    }
}

fn typed_text(text: &str) -> String {
    match single(text) {
        Some(expression) => format!("{{{{ ({expression}) | tojson }}}}"),
        None => as_text(text),
    }
}

/// Returns a template that always renders to text.
fn as_text(text: &str) -> String {
    if !is_template(text) {
        return text.to_owned();
    }
    format!("{{% set _noetl_made %}}{text}{{% endset %}}{{{{ _noetl_made | tojson }}}}")
}

/// Like [`typed`], for a value that is rendered twice. Each template starts with the prelude.
pub(super) fn typed_twice(value: Value, prelude: &str) -> Value {
    match value {
        Value::String(text) if is_template(&text) => {
            Value::String(format!("{prelude}{}{TWICE}", evaluated(&text)))
        }
        Value::Array(items) => items.into_iter().map(|item| typed_twice(item, prelude)).collect(),
        Value::Object(map) => Value::Object(
            map.into_iter().map(|(key, value)| (key, typed_twice(value, prelude))).collect(),
        ),
        plain => plain,
    }
}

/// Like [`typed_twice`], for an input: once `at` is defined, copies its value instead of evaluating
/// the template, because the name may by then refer to the input itself.
pub(super) fn typed_copy(value: Value, at: &str, prelude: &str) -> Value {
    match value {
        Value::String(text) if is_template(&text) => Value::String(format!(
            "{{% if {COPIED} is defined %}}{{% set _noetl_value = {at} %}}{TWICE}{{% else %}}{prelude}{}\
             {{{{ _noetl_value | tojson }}}}{{% endif %}}",
            evaluated(&text)
        )),
        Value::Array(items) => {
            let copied = |(index, item)| typed_copy(item, &format!("{at}[{index}]"), prelude);
            items.into_iter().enumerate().map(copied).collect()
        }
        Value::Object(map) => {
            let copied = |(key, value): (String, Value)| {
                let at = format!("{at}[{}]", Value::from(key.as_str()));
                let value = typed_copy(value, &at, prelude);
                (key, value)
            };
            Value::Object(map.into_iter().map(copied).collect())
        }
        plain => plain,
    }
}

/// Like [`typed_twice`], for a template that always renders to text.
pub(super) fn as_text_twice(text: &str, prelude: &str) -> String {
    if !is_template(text) {
        return text.to_owned();
    }
    format!("{prelude}{{% set _noetl_value %}}{text}{{% endset %}}{TWICE}")
}

/// Returns a statement that sets `_noetl_value` to the value the template has in the control plane.
fn evaluated(text: &str) -> String {
    match single(text) {
        Some(expression) => format!("{{% set _noetl_value = ({expression}) %}}"),
        None => format!("{{% set _noetl_value %}}{text}{{% endset %}}"),
    }
}

/// Returns `true` if the text is a valid template name.
pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let starts = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    let is_word = ["and", "or", "not", "in", "is", "if", "else", "true", "false", "none"];
    starts && letters.all(|c| c.is_alphanumeric() || c == '_') && !is_word.contains(&text)
}

/// Returns the expression of a template that consists of a single expression.
pub(super) fn single(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner).trim();
    let is_one = !["{{", "}}", "{%", "%}", "{#"].iter().any(|mark| inner.contains(mark));
    (is_one && !inner.is_empty()).then_some(inner)
}
