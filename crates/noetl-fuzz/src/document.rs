//! YAML of strangers: playbooks, subscriptions, schedules and plain data.

use noetl_playbook::fix::fix;
use noetl_playbook::{
    Diagnostic, Severity, check, check_schedule, check_subscription, describe, is_schedule,
    is_subscription, read_data, ui_schema,
};

/// Reads any text as every kind of document.
///
/// A document is compiled exactly when nothing about it is an error, every finding points into the
/// text, and what a fix writes can be fixed no further.
pub fn document(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let playbook = check(text);
    agree("a playbook", text, playbook.playbook.is_some(), &playbook.diagnostics);
    let subscription = check_subscription(text);
    agree("a subscription", text, subscription.subscription.is_some(), &subscription.diagnostics);
    let schedule = check_schedule(text);
    agree("a schedule", text, schedule.schedule.is_some(), &schedule.diagnostics);
    let _ = (is_subscription(text), is_schedule(text));
    for findings in [read_data(text).err(), describe(text).err(), ui_schema(text).err()] {
        let Some(findings) = findings else { continue };
        agree("data", text, false, &findings);
    }
    let fixed = fix(text);
    if !fixed.changes.is_empty() {
        let again = fix(&fixed.text);
        assert_eq!(again.text, fixed.text, "a fix leaves nothing to fix");
    }
}

fn agree(what: &str, text: &str, is_compiled: bool, findings: &[Diagnostic]) {
    let has_errors = findings.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(is_compiled, !has_errors, "{what} is there exactly without errors: {findings:?}");
    // A finding about something that is missing points behind the end.
    let lines = text.split(['\n', '\r']).count() + 1;
    for finding in findings {
        assert!((1..=lines).contains(&finding.line), "{what}: {finding:?} is in no line");
        assert!(finding.column >= 1, "{what}: {finding:?} is in no column");
    }
}
