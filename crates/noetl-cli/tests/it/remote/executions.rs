use insta::assert_snapshot;

use super::Site;
use crate::noetl::{one_step, playbook};

const PRINTS: &str = "  - step: start
    tool: {kind: shell, cmds: ['echo out', 'echo oops >&2', 'echo more']}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
";

#[test]
fn an_execution_is_started_and_followed_until_it_completes() {
    let site = Site::new();
    site.register(&playbook("{who: nobody}", PRINTS));
    assert_snapshot!(site.noetl(&["execute", "tests/test"]).transcript(), @r"
    exit: 0
    --- stdout
    execution [id] started
    --- stderr
    see `noetl status [id] --follow`
    ");
    let output = site.noetl(&["execute", "tests/test", "--set", "who=Ada", "--follow"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_snapshot!(without_durations(&output.stdout), @r"
    ============================================================
    Execution: [id]
    Status: COMPLETED
    Steps: 2 completed
    Started: [time]
    Ended: [time]
    Completed steps:
      - start
      - end
    ============================================================
    ");
    assert!(
        output.stderr.starts_with("execution [id] started\n    1  [clock]  "),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("playbook.completed"), "{}", output.stderr);

    let payload = r#"{"who": "Grace"}"#;
    let output = site.raw(&["execute", "tests/test", "--payload", payload, "--version", "1", "-j"]);
    let id = output.json()["execution_id"].as_str().unwrap().to_owned();
    let status = site.raw(&["status", &id, "--follow", "--json"]);
    assert_eq!(status.json()["completed"], true, "{status:?}");
    let events = site.raw(&["events", &id, "--json", "--limit", "1"]);
    assert_eq!(events.json()["events"][0]["context"]["workload"]["who"], "Grace", "{events:?}");
    assert!(events.stderr.contains("more: go on with --after 1"), "{}", events.stderr);
}

#[test]
fn executions_are_listed_by_status_and_path() {
    let site = Site::new();
    site.register(&one_step("{kind: noop}"));
    site.finished();
    let output = site.noetl(&["executions", "--status", "completed", "--path", "TEST"]);
    let lines: Vec<Vec<&str>> =
        output.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "STATUS", "PATH", "VERSION", "STARTED", "DURATION", "ERROR"]);
    assert_eq!(lines[1][..5], ["[id]", "COMPLETED", "tests/test", "1", "[time]"]);
    let none = site.noetl(&["executions", "--status", "failed"]);
    assert_snapshot!(none.transcript(), @r"
    exit: 0
    --- stdout
    no executions
    --- stderr
    ");
    let all = site.raw(&["executions", "--limit", "5", "--json"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
    let wrong = site.noetl(&["executions", "--status", "odd"]);
    assert_snapshot!(wrong.transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: status must be RUNNING, COMPLETED, FAILED or CANCELLED
    ");
}

#[test]
fn a_failed_execution_exits_with_1_and_can_be_explained_and_retried() {
    let site = Site::new();
    site.register(&one_step("{kind: shell, cmds: ['exit 3']}"));
    let id = site.finished();
    let output = site.noetl(&["status", &id]);
    assert_eq!(output.code, Some(1));
    assert_snapshot!(without_durations(&output.stdout), @r"
    ============================================================
    Execution: [id]
    Status: FAILED
    Steps: 0 completed, 1 failed
    Started: [time]
    Ended: [time]
    Error: exit_code: the command ended with exit code 3
    ============================================================
    ");
    assert_snapshot!(site.noetl(&["why", &id]).transcript(), @r"
    exit: 0
    --- stdout
    FAILED: step 'start' failed and nothing handled it: exit_code: the command ended with exit code 3
      step start
      kind exit_code
      message the command ended with exit code 3
      event [id]
    --- stderr
    ");
    assert_eq!(site.raw(&["why", &id, "--json"]).json()["status"], "FAILED");
    assert_snapshot!(site.noetl(&["retry", &id]).transcript(), @r"
    exit: 0
    --- stdout
    execution [id] started with the past of [id] up to event 4
    --- stderr
    see `noetl status [id] --follow`
    ");
    assert_snapshot!(site.noetl(&["rerun", &id, "--set", "n=1"]).transcript(), @r"
    exit: 0
    --- stdout
    execution [id] started
    --- stderr
    see `noetl status [id] --follow`
    ");
    assert_snapshot!(site.noetl(&["fork", &id, "--at", "1"]).transcript(), @r"
    exit: 0
    --- stdout
    execution [id] started with the workload of [id]
    --- stderr
    see `noetl status [id] --follow`
    ");
    let forked = site.raw(&["fork", &id, "--at", "1", "--json"]).json();
    assert_eq!(forked["forked_from"]["execution_id"].as_str(), Some(id.as_str()));
}

#[test]
fn an_execution_is_replayed_to_any_event() {
    let site = Site::new();
    site.register(&one_step("{kind: noop}"));
    let id = site.finished();
    let output = site.noetl(&["replay", &id]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let shown: Vec<&str> = output.stdout.lines().take(2).collect();
    assert_eq!(shown, ["execution   [id]", "status      COMPLETED"]);
    let events = site.raw(&["events", &id, "--json"]).json();
    let first = &events["events"][0]["event_id"];
    let first = first.as_str().map_or_else(|| first.to_string(), str::to_owned);
    let early = site.raw(&["replay", &id, "--at-event", &first, "--json"]).json();
    assert_eq!(early["event_count"], 1, "{early}");
    let wrong = site.noetl(&["replay", &id, "--at-time", "yesterday"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn running_executions_are_cancelled_and_finished_ones_are_reported() {
    let site = Site::new();
    site.register(&one_step("{kind: wait, seconds: 600}"));
    let id = site.execute();
    let output = site.noetl(&["cancel", &id, "-r", "enough", "--cascade"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 0
    --- stdout
    execution [id]: Execution cancellation requested
    --- stderr
    ");
    assert_eq!(site.raw(&["status", &id]).code, Some(1));
    let again = site.raw(&["cancel", &id, "--json"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{again:?}");
    assert!(again.stderr.starts_with("warning: "), "{again:?}");

    site.execute();
    let output = site.noetl(&["cleanup", "--older-than-minutes", "0", "--dry-run"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 0
    --- stdout
    1 executions older than 0 minutes would be cancelled
      [id]
    --- stderr
    ");
    let output = site.raw(&["cleanup", "--older-than-minutes", "0", "--json"]);
    assert_eq!(output.json()["cancelled_count"], 1, "{output:?}");
}

#[test]
fn output_of_steps_goes_to_its_original_stream() {
    let site = Site::new();
    site.register(&playbook("{}", PRINTS));
    let id = site.finished();
    let output = site.noetl(&["logs", &id, "--follow"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 0
    --- stdout
    out
    more
    --- stderr
    oops
    ");
    let read = site.raw(&["logs", &id, "--json"]).json();
    let lines = read["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 3, "{read}");
    let command = lines[0]["command_id"].as_str().unwrap();
    let output = site.noetl(&["logs", &id, "--command", command, "--limit", "1"]);
    // Which of the two streams is read first is chance.
    let printed = output.stdout.lines().chain(output.stderr.lines()).count();
    assert_eq!((output.code, printed), (Some(0), 1), "{output:?}");
    let none = site.noetl(&["logs", &id, "--command", "4711"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    let output = site.raw(&["logs", &id, "--follow", "--json"]);
    let texts: Vec<String> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].to_string())
        .collect();
    assert_eq!(texts.len(), 3, "{output:?}");
}

/// The lines of a status but for how long it took.
fn without_durations(text: &str) -> String {
    text.lines()
        .filter(|line| !line.starts_with("Duration"))
        .map(|line| format!("{line}\n"))
        .collect()
}
