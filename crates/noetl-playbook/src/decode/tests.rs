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

/// Returns the diagnostics of a document, one per line with its help below.
fn report(text: &str) -> String {
    let checked = check(text);
    rendered(checked.diagnostics, checked.playbook.is_some())
}

/// Renders diagnostics, one per line with its help below. Checks that a document decodes or has
/// errors, never both.
fn rendered(diagnostics: Vec<Diagnostic>, has_meaning: bool) -> String {
    let has_errors =
        diagnostics.iter().any(|diagnostic| diagnostic.severity == crate::Severity::Error);
    assert_eq!(has_meaning, !has_errors);
    let mut report = String::new();
    for diagnostic in diagnostics {
        report.push_str(&format!("{diagnostic}\n"));
        if let Some(help) = diagnostic.help {
            report.push_str(&format!("  help: {help}\n"));
        }
    }
    report
}

/// Returns the diagnostics of a playbook with these steps.
fn report_steps(steps: &str) -> String {
    report(&format!("{HEAD}{steps}"))
}

/// Returns the playbook with these steps. Panics if it has errors.
fn playbook(steps: &str) -> Playbook {
    let text = format!("{HEAD}{steps}");
    check(&text).playbook.unwrap_or_else(|| panic!("{}", report(&text)))
}

/// Renders a compiled value as JSON, with `<…>` around templates.
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

/// Renders a step's arcs as text: `exclusive a[when] b`.
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
