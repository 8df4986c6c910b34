//! Schedules from the command line.

use insta::assert_snapshot;

use super::Site;
use crate::noetl::one_step;

#[test]
fn a_schedule_is_created_listed_run_and_deleted() {
    let site = Site::new();
    site.home.write("a.yaml", one_step("{kind: noop}"));
    assert_eq!(site.raw(&["register", "playbook", "-f", "a.yaml"]).code, Some(0));
    let made = site.raw(&[
        "schedule",
        "create",
        "tests/test",
        "--name",
        "new year",
        "--cron",
        "0 0 1 1 *",
        "--timezone",
        "Europe/Berlin",
        "--overlap",
        "skip",
        "--set",
        "who=Ada",
        "--json",
    ]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let made = made.json();
    assert_eq!(made["payload"]["who"], "Ada");
    assert!(made["next_run_at"].as_str().unwrap().ends_with("-12-31T23:00:00Z"), "{made}");
    let id = made["schedule_id"].as_str().unwrap();
    let listed = site.raw(&["schedule", "list"]).stdout;
    assert!(listed.contains("0 0 1 1 * (Europe/Berlin)") && listed.contains("ACTIVE"), "{listed}");
    let paused = site.raw(&["schedule", "pause", id]).stdout;
    assert!(paused.contains("PAUSED"), "{paused}");
    assert_eq!(site.raw(&["schedule", "resume", id]).code, Some(0));
    let started = site.raw(&["schedule", "run", id, "--json"]).json();
    let whole = site.raw(&["schedule", "get", id, "--json"]).json();
    assert_eq!(whole["last_execution_id"], started["execution_id"]);
    assert_snapshot!(site.noetl(&["schedule", "delete", id]).transcript(), @r"
    exit: 0
    --- stdout
    schedule [id]: deleted
    --- stderr
    ");
    assert_snapshot!(site.noetl(&["schedule", "list"]).transcript(), @r"
    exit: 0
    --- stdout
    no schedules
    --- stderr
    ");
    let gone = site.noetl(&["schedule", "get", id]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
}

#[test]
fn errors_of_a_schedule_are_reported() {
    let site = Site::new();
    for call in [
        &["schedule", "create", "a/b"][..],
        &["schedule", "create", "a/b", "--every", "1m", "--cron", "* * * * *"],
        &["schedule", "create", "a/b", "--every", "1m", "--timezone", "UTC"],
        &["schedule", "get", "x"],
    ] {
        assert_eq!(site.raw(call).code, Some(2), "{call:?}");
    }
    let output = site.raw(&["schedule", "create", "a/b", "--cron", "0 25 * * *"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("hour: '25' is out of range"), "{}", output.stderr);
}
