//! Schedule documents: what they mean, and what is wrong with them.

use insta::assert_snapshot;
use serde_json::json;

use super::rendered;
use crate::schedule::{MissedRunPolicy, OverlapPolicy, Trigger};
use crate::{Schedule, check_schedule, is_schedule};

/// Three lines in front of the spec of a test, so that its first key is on line 5.
const HEAD: &str = "apiVersion: noetl.io/v1\nkind: Schedule\nmetadata: {name: nightly, path: sched/nightly}\nspec:\n";

/// Returns the diagnostics of a document, one per line with its help below.
fn report(text: &str) -> String {
    let checked = check_schedule(text);
    rendered(checked.diagnostics, checked.schedule.is_some())
}

fn report_spec(spec: &str) -> String {
    report(&format!("{HEAD}{spec}"))
}

fn schedule(spec: &str) -> Schedule {
    let text = format!("{HEAD}{spec}");
    check_schedule(&text).schedule.unwrap_or_else(|| panic!("{}", report(&text)))
}

#[test]
fn a_minimal_schedule_has_defaults() {
    let decoded = schedule("  playbook: a/b\n  cron: '0 2 * * *'\n");
    assert_eq!((decoded.name.as_str(), decoded.path.as_str()), ("nightly", "sched/nightly"));
    assert_eq!((decoded.playbook.as_str(), decoded.version), ("a/b", None));
    assert_eq!(
        (decoded.missed, decoded.overlap, decoded.enabled),
        (MissedRunPolicy::One, OverlapPolicy::Allow, None)
    );
    assert!(decoded.payload.is_empty() && decoded.execution_pool.is_none());
    let Trigger::Cron { cron, zone } = decoded.when else { panic!("{:?}", decoded.when) };
    assert_eq!((cron.as_str(), zone.name()), ("0 2 * * *", "UTC"));
}

#[test]
fn every_field_is_read() {
    let decoded = schedule(
        "  playbook: a/b\n  version: 3\n  every: 15m\n  missed: all\n  overlap: cancel_previous\n  \
         enabled: false\n  payload: {a: [1]}\n  execution_pool: fast\n",
    );
    assert_eq!((decoded.version, decoded.when), (Some(3), Trigger::Every { seconds: 900 }));
    assert_eq!(
        (decoded.missed, decoded.overlap),
        (MissedRunPolicy::All, OverlapPolicy::CancelPrevious)
    );
    assert_eq!((decoded.enabled, decoded.execution_pool.as_deref()), (Some(false), Some("fast")));
    assert_eq!(Some(&decoded.payload), json!({"a": [1]}).as_object());
    let once = schedule("  playbook: a/b\n  at: '2030-01-01T12:00:00+01:00'\n");
    let at = "2030-01-01T11:00:00Z".parse().expect("a time");
    assert_eq!(once.when, Trigger::Once { at });
    assert_eq!(schedule("  playbook: a/b\n  every: 60\n").when, Trigger::Every { seconds: 60 });
}

#[test]
fn all_missing_keys_are_reported_at_once() {
    assert_snapshot!(report("kind: Schedule\n"), @r"
    error[E003] at 1:1: the schedule has no 'metadata'
      help: add 'metadata: {name: nightly, path: schedules/nightly}'
    error[E080] at 1:1: the schedule has no 'spec'
      help: add 'spec: {playbook: …, cron: …}'
    ");
    assert_snapshot!(report("kind: Playbook\nmetadata: {}\nspec: {missed: never, overlap: yes, version: 0}\n"), @r#"
    error[E002] at 1:7, kind: the document is not a Schedule
      help: write 'kind: Schedule'
    error[E003] at 2:11, metadata: the schedule has neither name nor path
      help: add 'metadata: {name: nightly, path: schedules/nightly}'
    error[E080] at 3:7, spec: 'playbook' is missing
      help: say what is started: 'playbook: path/of/playbook'
    error[E080] at 3:7, spec: nothing says when the schedule runs
      help: add 'cron: "0 2 * * *"', 'every: 15m' or 'at: 2030-01-01T12:00:00Z'
    error[E081] at 3:16, spec.missed: 'never' is not possible here
      help: write skip, one or all
    error[E081] at 3:32, spec.overlap: 'yes' is not possible here
      help: write allow, skip, queue or cancel_previous
    error[E081] at 3:46, spec.version: 'version' is out of range
      help: write a whole number from 1 to 4294967295
    "#);
    assert_snapshot!(report("[]"), @r"
    error[E009] at 1:1: expected a mapping, found a list
      help: a schedule begins with 'apiVersion: noetl.io/v1' and 'kind: Schedule'
    ");
}

#[test]
fn an_invalid_time_is_reported_with_its_position() {
    assert_snapshot!(report_spec("  playbook: a/b\n  cron: '0 25 * * *'\n  timezone: Europe/Berln\n"), @r"
    error[E081] at 6:9, spec.cron: hour: '25' is out of range
      help: write numbers from 0 to 23, as *, 1, 1-5, */10 or 1,2
    error[E081] at 7:13, spec.timezone: there is no time zone 'Europe/Berln'
      help: did you mean 'Europe/Berlin'? write a name of the IANA database, as Europe/Berlin
    ");
    assert_snapshot!(report_spec("  playbook: a/b\n  cron: '* * *'\n  every: 5m\n"), @r"
    error[E081] at 7:3, spec.every: 'cron' and 'every' exclude each other
      help: keep the one that says when the schedule runs
    ");
    assert_snapshot!(report_spec("  playbook: a/b\n  every: 1.5\n  timezone: UTC\n"), @r"
    error[E081] at 6:10, spec.every: this is no interval of 1 s to a year, in whole seconds
      help: write seconds (900) or a number with a unit: 30s, 15m, 6h
    warning[W114] at 7:3, spec.timezone: 'timezone' has no effect without 'cron'
      help: remove it
    ");
    assert_snapshot!(report_spec("  playbook: a/b\n  every: 2y\n"), @r"
    error[E081] at 6:10, spec.every: this is no interval of 1 s to a year, in whole seconds
      help: write seconds (900) or a number with a unit: 30s, 15m, 6h
    ");
    assert_snapshot!(report_spec("  playbook: a/b\n  at: tomorrow\n"), @r"
    error[E081] at 6:7, spec.at: 'tomorrow' is no time
      help: write it with its offset, as '2030-01-01T12:00:00Z' or '…+01:00'
    ");
    assert_snapshot!(report_spec("  playbook: a/b\n  at: '2030-01-01T12:00:00'\n"), @r"
    error[E081] at 6:7, spec.at: '2030-01-01T12:00:00' is no time
      help: write it with its offset, as '2030-01-01T12:00:00Z' or '…+01:00'
    ");
    assert_snapshot!(report_spec("  playbook: a/b\n  cron: 7\n  payload: [1]\n  crn: 1\n"), @r"
    error[E009] at 6:9, spec.cron: expected text, found a number
      help: put it in quotes
    error[E009] at 7:12, spec.payload: expected a mapping, found a list
      help: write 'payload: {name: value}'
    warning[W102] at 8:3, spec.crn: unknown key 'crn', which has no effect
      help: did you mean 'cron'?
    ");
}

#[test]
fn a_schedule_is_decoded_completely() {
    assert!(is_schedule("kind: schedule") && is_schedule(HEAD));
    assert!(!is_schedule("kind: Playbook") && !is_schedule("") && !is_schedule("[1"));
}
