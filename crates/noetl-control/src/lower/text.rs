//! Texts that pass through a second rendering.
//!
//! A published worker takes a text for a template if it holds `{{` or `{%`, and reads what comes out
//! as JSON where that is possible. What has the form of JSON is therefore what a template comes to
//! here: its text, or its value, each exactly.

use noetl_model::{Map, Value};

/// The name under which texts that are no templates are handed along.
const KEPT: &str = "_noetl_text";

/// Whether a published worker takes a text for a template.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Texts that look like templates and are none.
#[derive(Default)]
pub(super) struct Texts(Vec<Value>);

impl Texts {
    /// A value all of whose texts come out of a rendering as they are.
    pub(super) fn keep(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) if is_template(&text) => {
                let place = self.0.len();
                self.0.push(Value::String(text));
                Value::String(format!("{{{{ {KEPT}[{place}] | tojson }}}}"))
            }
            Value::Array(items) => items.into_iter().map(|item| self.keep(item)).collect(),
            Value::Object(map) => Value::Object(self.keep_map(map)),
            plain => plain,
        }
    }

    /// The same for a map. Keys are not rendered.
    pub(super) fn keep_map(&mut self, map: Map) -> Map {
        map.into_iter().map(|(key, value)| (key, self.keep(value))).collect()
    }

    /// Hands the texts along.
    pub(super) fn add_to(self, names: &mut Map) {
        if !self.0.is_empty() {
            names.insert(KEPT.to_owned(), Value::Array(self.0));
        }
    }
}

/// A value whose templates a published worker renders to the types they have here: one that is a
/// single expression to the expression's own, any other to text.
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

/// A template that comes to text whatever it names.
pub(super) fn as_text(text: &str) -> String {
    if !is_template(text) {
        return text.to_owned();
    }
    format!("{{% set _noetl_made %}}{text}{{% endset %}}{{{{ _noetl_made | tojson }}}}")
}

/// The expression of a template that is nothing but one.
pub(super) fn single(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner).trim();
    let is_one = !["{{", "}}", "{%", "%}", "{#"].iter().any(|mark| inner.contains(mark));
    (is_one && !inner.is_empty()).then_some(inner)
}

/// A condition as a template. Here its braces may be left out.
pub(super) fn condition(text: &str) -> String {
    if is_template(text) { text.to_owned() } else { format!("{{{{ {text} }}}}") }
}
