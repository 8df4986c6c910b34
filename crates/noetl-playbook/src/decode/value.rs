//! Conversion of user data from nodes to JSON and to compiled values.

use noetl_template::{Template, ValueTemplate};
use serde_json::{Map, Number, Value};

use super::context::Context;
use super::cursor::Cursor;
use crate::yaml::NodeKind;

/// Decodes a value and compiles its templates.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> ValueTemplate {
    match &at.node.kind {
        NodeKind::Text(text, _) if Template::is_template(text) => match Template::parse(text) {
            Ok(template) => {
                names(cx, at, &template);
                ValueTemplate::Template(template)
            }
            Err(error) => {
                cx.syntax(at, &error);
                ValueTemplate::Literal(Value::Null)
            }
        },
        NodeKind::List(_) => list(at.items().map(|item| decode(cx, &item)).collect()),
        NodeKind::Map(_) => {
            let entries = at.entries();
            map(entries.map(|(key, value)| (key.name.to_string(), decode(cx, &value))).collect())
        }
        _ => ValueTemplate::Literal(literal(cx, at)),
    }
}

/// Reports a template's deprecated names and names that would carry a secret into the event log,
/// and records the names that the document must define.
pub(super) fn names(cx: &mut Context<'_>, at: &Cursor<'_>, template: &Template) {
    let names = template.names();
    if names.contains("keychain") && !cx.secrets {
        let message = "a secret cannot be used here, because what is rendered here is recorded";
        let help = "use 'keychain' in the settings or the input of a tool that a worker runs";
        cx.error("E051", at, message, help);
    }
    if names.contains("outcome") {
        cx.older(at.position(), "'outcome' is an older name", "write 'output'");
    }
    cx.names.note(at, template);
}

/// Returns the JSON that a compiled value was compiled from.
pub(super) fn source(value: &ValueTemplate) -> Value {
    match value {
        ValueTemplate::Literal(value) => value.clone(),
        ValueTemplate::Template(template) => Value::from(template.source()),
        ValueTemplate::List(items) => items.iter().map(source).collect(),
        ValueTemplate::Map(entries) => Value::Object(
            entries.iter().map(|(name, value)| (name.clone(), source(value))).collect(),
        ),
    }
}

/// Converts a value to JSON as written, with templates left as text.
pub(super) fn literal(cx: &mut Context<'_>, at: &Cursor<'_>) -> Value {
    match &at.node.kind {
        NodeKind::Null => Value::Null,
        NodeKind::Bool(value) => Value::Bool(*value),
        NodeKind::Int(value) => Value::from(*value),
        NodeKind::Large(value) => Value::from(*value),
        NodeKind::Float(value) => Number::from_f64(*value).map_or_else(
            || {
                let help = "JSON has no such number; write it as text or leave it out";
                cx.error("E009", at, format!("{value} cannot be part of data"), help);
                Value::Null
            },
            Value::Number,
        ),
        NodeKind::Text(text, _) => Value::from(&**text),
        NodeKind::List(_) => at.items().map(|item| literal(cx, &item)).collect(),
        NodeKind::Map(_) => {
            let entries = at.entries();
            Value::Object(
                entries.map(|(key, value)| (key.name.to_string(), literal(cx, &value))).collect(),
            )
        }
    }
}

pub(super) fn empty() -> ValueTemplate {
    ValueTemplate::Literal(Value::Object(Map::new()))
}

/// Builds a mapping of compiled values. Yields a literal if all values are literals.
pub(super) fn map(entries: Vec<(String, ValueTemplate)>) -> ValueTemplate {
    ValueTemplate::map(entries)
}

fn list(items: Vec<ValueTemplate>) -> ValueTemplate {
    if !items.iter().all(|item| matches!(item, ValueTemplate::Literal(_))) {
        return ValueTemplate::List(items);
    }
    let literal = |item| match item {
        ValueTemplate::Literal(value) => Some(value),
        _ => None,
    };
    ValueTemplate::Literal(items.into_iter().filter_map(literal).collect())
}
