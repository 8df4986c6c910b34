//! Documents in, findings or meaning out.

mod builds;
mod loops;
mod meaning;
mod mistakes;
mod older;
mod pipelines;
mod policies;
mod properties;
mod roots;
mod routing;
mod schedules;
mod steps;
mod subscriptions;
mod templates;
mod unsupported;
mod warnings;
mod workbooks;

use noetl_template::ValueTemplate;
use serde_json::{Value, json};

use super::check;
use crate::Diagnostic;
use crate::document::{Playbook, Step};

/// Four lines in front of the steps of a test, so that its first step is on line 5.
const HEAD: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: test}\nworkflow:\n";

/// Everything found in a document, one finding per line with its help below.
fn report(text: &str) -> String {
    let checked = check(text);
    told(checked.diagnostics, checked.playbook.is_some())
}

/// Findings, one per line with its help below. What was found has a meaning or errors, never both.
fn told(found: Vec<Diagnostic>, has_meaning: bool) -> String {
    let has_errors = found.iter().any(|found| found.severity == crate::Severity::Error);
    assert_eq!(has_meaning, !has_errors);
    let mut report = String::new();
    for found in found {
        report.push_str(&format!("{found}\n"));
        if let Some(help) = found.help {
            report.push_str(&format!("  help: {help}\n"));
        }
    }
    report
}

/// Everything found in a playbook with these steps.
fn report_steps(steps: &str) -> String {
    report(&format!("{HEAD}{steps}"))
}

/// The playbook with these steps, which must be free of errors.
fn playbook(steps: &str) -> Playbook {
    let text = format!("{HEAD}{steps}");
    check(&text).playbook.unwrap_or_else(|| panic!("{}", report(&text)))
}

/// A compiled value as JSON, with `<…>` around templates.
fn shown(value: &ValueTemplate) -> Value {
    match value {
        ValueTemplate::Literal(value) => value.clone(),
        ValueTemplate::Template(template) => json!(format!("<{}>", template.source())),
        ValueTemplate::List(items) => items.iter().map(shown).collect(),
        ValueTemplate::Map(entries) => Value::Object(
            entries.iter().map(|(name, value)| (name.clone(), shown(value))).collect(),
        ),
    }
}

/// A step's arcs as text: `exclusive a[when] b`.
fn arcs(playbook: &Playbook, step: &Step) -> String {
    use crate::document::{OnNoMatch, RoutingMode};
    use noetl_template::Guard;

    let mut text = match step.router.mode {
        RoutingMode::Exclusive => "exclusive".to_owned(),
        RoutingMode::Inclusive => "inclusive".to_owned(),
    };
    if step.router.on_no_match == OnNoMatch::Fail {
        text.push_str(" (or fails)");
    }
    for arc in &step.router.arcs {
        text.push_str(&format!(" {}", playbook.step(arc.to).name));
        match &arc.when {
            Guard::Constant(true) => {}
            Guard::Constant(false) => text.push_str("[never]"),
            Guard::Template(template) => text.push_str(&format!("[{}]", template.source())),
        }
        match (arc.on_success, arc.on_failure) {
            (true, false) => {}
            (true, true) => text.push_str("!?"),
            (false, _) => text.push('!'),
        }
        if !arc.set.is_empty() {
            text.push_str(&format!("+{}", arc.set.len()));
        }
    }
    text
}
