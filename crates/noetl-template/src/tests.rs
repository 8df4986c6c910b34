//! Tests of templates by topic.

mod away;
mod conditions;
mod filters;
mod functions;
mod iterations;
mod limits;
mod names;
mod operators;
mod properties;
mod results;
mod statements;
mod syntax;
mod typing;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Guard, Names, Scope, Template, from_json, from_json_owned};

/// Returns a scope with this workload.
fn scope(workload: Value) -> Scope {
    Scope { workload: names(workload), ..Scope::default() }
}

fn names(value: Value) -> Arc<Names> {
    let Value::Object(map) = value else { panic!("names are a map") };
    let names = map.into_iter().map(|(key, value)| (Arc::from(key), from_json_owned(value).into()));
    Arc::new(names.collect())
}

/// Renders in a scope; an error is its text.
fn render_in(scope: &Scope, template: &str) -> Value {
    match Template::parse(template) {
        Ok(template) => match template.render(scope) {
            Ok(value) => value,
            Err(error) => Value::String(format!("error: {error}")),
        },
        Err(error) => {
            Value::String(format!("syntax error at {}:{}: {error}", error.line, error.column))
        }
    }
}

/// Renders against a workload.
fn render(workload: Value, template: &str) -> Value {
    render_in(&scope(workload), template)
}

/// Checks an expression without any scope.
#[track_caller]
fn check(expression: &str, expected: Value) {
    let template = format!("{{{{ {expression} }}}}");
    assert_eq!(render(json!({}), &template), expected, "{template}");
}

/// Returns the error message of an expression that fails to evaluate.
#[track_caller]
fn error_of(workload: Value, template: &str) -> String {
    let template = Template::parse(template).unwrap();
    template.render(&scope(workload)).unwrap_err().message
}
