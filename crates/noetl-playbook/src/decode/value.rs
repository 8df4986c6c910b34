//! User data: from nodes to JSON and to compiled values.

use serde_json::{Map, Number, Value};

use super::context::Context;
use super::cursor::Cursor;
use crate::template::{Template, ValueTemplate};
use crate::yaml::Kind;

/// A value whose templates are compiled.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> ValueTemplate {
    match &at.node.kind {
        Kind::Text(text, _) if Template::is_template(text) => match Template::parse(text) {
            Ok(template) => {
                names(cx, at, &template);
                ValueTemplate::Template(template)
            }
            Err(error) => {
                cx.syntax(at, &error);
                ValueTemplate::Literal(Value::Null)
            }
        },
        Kind::List(_) => list(at.items().map(|item| decode(cx, &item)).collect()),
        Kind::Map(_) => {
            let entries = at.entries();
            map(entries.map(|(key, value)| (key.name.to_string(), decode(cx, &value))).collect())
        }
        _ => ValueTemplate::Literal(literal(cx, at)),
    }
}

/// Says which of a template's names are older, or come with constructs this version does not run.
pub(super) fn names(cx: &mut Context<'_>, at: &Cursor<'_>, template: &Template) {
    let names = template.names();
    if names.contains("keychain") {
        let help = "pass the value in the payload until stored credentials are there";
        cx.unsupported(at.place(), "'keychain' in templates is", help);
    }
    if names.contains("iter") {
        cx.unsupported(at.place(), "'iter' in templates is", "it comes with loops");
    }
    if names.contains("outcome") {
        cx.older(at.place(), "'outcome' is an older name", "write 'output'");
    }
}

/// A value as it is written, templates untouched.
pub(super) fn literal(cx: &mut Context<'_>, at: &Cursor<'_>) -> Value {
    match &at.node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        Kind::Int(value) => Value::from(*value),
        Kind::Large(value) => Value::from(*value),
        Kind::Float(value) => Number::from_f64(*value).map_or_else(
            || {
                let help = "JSON has no such number; write it as text or leave it out";
                cx.error("E009", at, format!("{value} cannot be part of data"), help);
                Value::Null
            },
            Value::Number,
        ),
        Kind::Text(text, _) => Value::from(&**text),
        Kind::List(_) => at.items().map(|item| literal(cx, &item)).collect(),
        Kind::Map(_) => {
            let entries = at.entries();
            Value::Object(
                entries.map(|(key, value)| (key.name.to_string(), literal(cx, &value))).collect(),
            )
        }
    }
}

/// A mapping without entries.
pub(super) fn empty() -> ValueTemplate {
    ValueTemplate::Literal(Value::Object(Map::new()))
}

/// A mapping of compiled values; literal when all of them are.
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
