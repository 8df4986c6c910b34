//! Conditions, and warnings about common mistakes in them.

use noetl_template::Guard;

use super::context::Context;
use super::cursor::Cursor;
use super::value;
use crate::yaml::NodeKind;

/// Expressions whose presence in a condition makes its arc a candidate after a failure.
const FAILURE_WORDS: &[&str] = &[
    "step.failed",
    "call.error",
    "output.status",
    "output.error",
    "output.ok",
    "outcome.status",
    "outcome.error",
    "outcome.ok",
];

#[derive(Debug)]
pub(super) struct Condition {
    pub(super) guard: Guard,
    /// Whether the text refers to the failure status.
    pub(super) speaks_of_failure: bool,
}

/// Decodes a condition: text, or a YAML boolean or integer.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Condition> {
    let constant =
        |answer| Some(Condition { guard: Guard::Constant(answer), speaks_of_failure: false });
    let text = match &at.node.kind {
        NodeKind::Bool(answer) => return constant(*answer),
        NodeKind::Int(number) => return constant(*number != 0),
        NodeKind::Large(_) => return constant(true),
        NodeKind::Text(text, _) if !text.trim().is_empty() => text.trim_end(),
        NodeKind::Null | NodeKind::Text(..) => {
            let help = "write a condition, or leave the key out for one that always holds";
            cx.error("E009", at, "the condition is empty", help);
            return None;
        }
        NodeKind::Float(_) | NodeKind::List(_) | NodeKind::Map(_) => {
            cx.expected(at, "a condition", "write an expression: when: \"{{ ctx.n > 3 }}\"");
            return None;
        }
    };
    if let Some(answer) = yaml_1_1_bool(text) {
        let message = format!("'{text}' is text in YAML 1.2; it is taken as {answer}");
        cx.warning("W113", at, message, format!("write {answer}"));
        return constant(answer);
    }
    lint(cx, at, text);
    match Guard::parse(&canonical_events(text)) {
        Ok(guard) => {
            if let Some(template) = guard.template() {
                value::names(cx, at, template);
            }
            let speaks_of_failure = FAILURE_WORDS.iter().any(|word| text.contains(word));
            Some(Condition { guard, speaks_of_failure })
        }
        Err(error) => {
            cx.syntax(at, &error);
            None
        }
    }
}

fn yaml_1_1_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" => Some(true),
        "no" | "off" => Some(false),
        _ => None,
    }
}

fn lint(cx: &mut Context<'_>, at: &Cursor<'_>, text: &str) {
    if !text.contains("{%") && combines_text(text.trim()) {
        let message =
            "the condition is text around templates, not one expression, and so almost always true";
        let help = "put the whole expression into one pair of braces: \"{{ a and b }}\"";
        cx.warning("W104", at, message, help);
    }
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let compares =
        ["status=='success'", "status==\"success\"", "status!='success'", "status!=\"success\""];
    let of_output = |word: &&str| {
        ["output", "outcome"].iter().any(|name| dense.contains(&format!("{name}.{word}")))
    };
    if compares.iter().any(of_output) {
        let message = "output.status is 'ok' or 'error', never 'success'";
        cx.warning("W111", at, message, "write output.status == 'ok', or just output.ok");
    }
}

/// Returns `true` if a condition has braces but is not a single expression in a single pair of
/// them.
fn combines_text(text: &str) -> bool {
    match text.matches("{{").count() {
        0 => false,
        1 => !(text.starts_with("{{") && text.ends_with("}}")),
        _ => true,
    }
}

/// Replaces deprecated event names, so that `event.name` has a single spelling at run time.
fn canonical_events(text: &str) -> String {
    if !text.contains("event.name") {
        return text.to_owned();
    }
    let pairs = [("call.done", "step.done"), ("call.error", "step.failed")];
    pairs.iter().fold(text.to_owned(), |text, (older, name)| {
        text.replace(&format!("'{older}'"), &format!("'{name}'"))
            .replace(&format!("\"{older}\""), &format!("\"{name}\""))
    })
}
