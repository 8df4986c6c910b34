//! Limits that are known only when a step is entered.

use noetl_model::event::ReportedEvent;
use serde_json::json;

use super::harness::{Run, playbook, start_with, timers_of};
use crate::{Input, RecordReport, Rejection, Status, TimerKind, ValueLimits};

fn started(workflow: &str, payload: serde_json::Value, limits: ValueLimits) -> Run {
    let mut run = Run::within(playbook(workflow), limits);
    run.input(start_with(payload.as_object().unwrap().clone())).unwrap();
    run
}

fn run(workflow: &str, payload: serde_json::Value) -> Run {
    started(workflow, payload, ValueLimits::default())
}

/// Returns the timers of a run: their kinds, and their seconds after its first event.
fn due(run: &Run) -> Vec<(String, i64)> {
    let since = run.log[0].at.as_micros();
    let due = timers_of(&run.state, &run.log).into_iter();
    due.map(|due| {
        let name = match due.kind {
            TimerKind::StepTimeout { .. } => "timeout",
            TimerKind::Wake { .. } => "wake",
            other => panic!("{other:?}"),
        };
        (name.to_owned(), (due.at.as_micros() - since) / 1_000_000)
    })
    .collect()
}

const STEP: &str = "- {step: a, tool: {kind: noop}, spec: {timeout: '{{ workload.t }}', \
                    policy: {lifecycle: {timeout_s: 90}}}}\n";

#[test]
fn the_timeout_of_a_step_can_be_a_template() {
    for limits in [ValueLimits::NONE, ValueLimits { value_bytes: 0, total_bytes: 0 }] {
        for t in [json!("2m"), json!(200)] {
            let run = started(STEP, json!({ "t": t }), limits);
            assert_eq!(due(&run), [("timeout".to_owned(), 90)], "the shortest counts");
        }
        for t in [json!(5), json!(5.5), json!("5"), json!("5s")] {
            let mut run = started(STEP, json!({ "t": t }), limits);
            assert_eq!(due(&run), [("timeout".to_owned(), 5)], "{t}");
            run.timeout("a");
            let error = run.state.summary().error.unwrap();
            assert!(error.starts_with("timeout: step 'a' took longer than its limit"), "{error}");
        }
    }
}

#[test]
fn an_invalid_duration_fails_the_step() {
    for (t, gives) in [
        (json!(null), "nothing"),
        (json!(0), "the number 0"),
        (json!(-3), "the number -3"),
        (json!(1e300), "the number 1e+300"),
        (json!("soon"), "the text 'soon'"),
        (json!(true), "the truth value true"),
        (json!([1]), "a list"),
        (json!({"s": 1}), "a map"),
        (json!("x".repeat(99)), "a long text"),
    ] {
        let run = run(STEP, json!({ "t": t }));
        assert_eq!(run.state.status(), Status::Failed);
        assert_eq!(
            run.state.summary().error.unwrap(),
            format!(
                "config: spec.timeout of step 'a' must be a length of time up to a year, such as \
                 30, 0.5 or 5m, and {{{{ workload.t }}}} gives {gives}"
            )
        );
        assert!(run.open().is_empty());
    }
}

#[test]
fn a_timeout_that_fails_to_render_can_be_handled() {
    let text = "- {step: a, tool: {kind: noop}, spec: {timeout: \"{{ 1 + 'x' }}\"}, \
                next: {arcs: [{step: b, on: error}]}}\n\
                - {step: b, tool: {kind: noop, result: '{{ a.error }}'}}\n";
    let run = run(text, json!({}));
    assert_eq!(run.open(), ["b"]);
    let (_, open) = run.state.open_commands().next().unwrap();
    assert_eq!(open.issued.config["result"]["kind"], json!("template_error"));
    let message = open.issued.config["result"]["message"].as_str().unwrap();
    assert!(message.ends_with("at spec.timeout"), "{message}");
}

#[test]
fn the_timeout_of_a_skipped_step_is_not_rendered() {
    let text =
        "- {step: a, when: '{{ false }}', tool: {kind: noop}, spec: {timeout: '{{ none }}'}}\n";
    assert_eq!(run(text, json!({})).state.status(), Status::Completed);
}

#[test]
fn the_timeout_of_a_call_or_an_approval_can_be_a_template() {
    for tool in [
        "{kind: playbook, path: p, return_result: true, timeout: '{{ t }}'}",
        "{kind: approval, timeout_seconds: '{{ t }}'}",
    ] {
        let text = format!("- {{step: a, tool: {tool}}}\n");
        let waits = run(&text, json!({"t": "7s"}));
        let until = waits.awaited("a").as_micros() - waits.log[0].at.as_micros();
        assert_eq!(until / 1_000_000, 7);
        let fails = run(&text, json!({"t": [7]}));
        assert_eq!(fails.state.status(), Status::Failed);
        let error = fails.state.summary().error.unwrap();
        assert!(error.starts_with("config: tool.timeout of step 'a' must be a length"), "{error}");
        assert!(error.ends_with("{{ t }} gives a list"), "{error}");
    }
}

#[test]
fn each_item_can_have_its_own_timeout() {
    let text = "- {step: a, loop: {in: [5, 9], iterator: x, spec: {mode: parallel}}, \
                tool: {kind: approval, timeout: '{{ x }}'}}\n";
    let run = run(text, json!({}));
    let wakes: Vec<i64> = due(&run).into_iter().map(|(_, seconds)| seconds).collect();
    assert_eq!(wakes, [5, 9]);
}

const CURSOR: &str = "- {step: a, loop: {cursor: {kind: postgres, auth: pg, \
     claim: 'claim {{ __frame_max_rows }}'}, iterator: row, spec: {mode: cursor, \
     frame: {max_rows: '{{ workload.n }}', row_concurrency: '{{ workload.k }}', \
     max_attempts: '{{ ctx.tries | default(2) }}'}}}, \
     tool: {kind: noop}}\n";

#[test]
fn frame_sizes_can_be_templates() {
    let mut run = run(CURSOR, json!({"n": 3, "k": "2"}));
    let (_, claim) = run.state.open_commands().next().unwrap();
    assert_eq!(claim.issued.config["query"], json!("claim 3"));
    let rows =
        json!({"columns": ["id"], "rows": [{"id": 1}, {"id": 2}, {"id": 3}], "row_count": 3});
    run.complete("a:claim", rows);
    assert_eq!(run.open().len(), 2, "two rows at a time");
    // Kept over a snapshot: they are not rendered again.
    let bytes = run.state.to_snapshot();
    let restored = crate::Execution::from_snapshot_within(run.state.id(), &bytes, run.state.limits);
    let step_run_key = ("a".into(), 1);
    assert_eq!(restored.unwrap().loops[&step_run_key].frame, run.state.loops[&step_run_key].frame);
    run.claim("a:1", "w");
    run.fail("a:0");
    assert_eq!(run.open().len(), 2, "a row is tried twice");
    run.fail("a:0");
    assert_eq!(run.open().len(), 1);
    run.complete("a:1", json!(1));
    assert_eq!(run.state.status(), Status::Failed);
}

#[test]
fn an_invalid_frame_size_fails_the_step() {
    for (n, gives) in [
        (json!(0), "the number 0"),
        (json!(2.5), "the number 2.5"),
        (json!("many"), "the text 'many'"),
        (json!(1_u64 << 40), "the number 1099511627776"),
        (json!(null), "nothing"),
    ] {
        let run = run(CURSOR, json!({"n": n, "k": 1}));
        assert_eq!(run.state.status(), Status::Failed);
        assert_eq!(
            run.state.summary().error.unwrap(),
            format!(
                "config: loop.spec.frame.max_rows of step 'a' must be a whole number from 1, and \
                 {{{{ workload.n }}}} gives {gives}"
            )
        );
    }
}

#[test]
fn an_execution_with_too_many_events_fails_and_rejects_reports() {
    const CYCLE: &str = "\
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: b}]}
- step: b
  tool: {kind: noop}
  next: {arcs: [{step: a}]}
";
    let mut run = Run::new(playbook(CYCLE));
    run.caps.events = 60;
    run.input(super::harness::start()).unwrap();
    for step in ["a", "b"].into_iter().cycle().take(60) {
        if run.state.status() != Status::Running {
            break;
        }
        run.complete(step, json!({}));
    }
    assert_eq!(run.state.status(), Status::Failed);
    let error = run.state.summary().error.unwrap();
    assert!(error.contains("may have 60 (NOETL_EVENTS_MAX)"), "{error}");
    assert!(run.log.len() < 80, "{}", run.log.len());
    assert_eq!(run.state.open_commands().count(), 0, "nothing runs on");
    let report = ReportedEvent {
        event_type: "note".to_owned(),
        step: "a".into(),
        status: "OK".to_owned(),
        payload: None,
        meta: None,
        worker: None,
        key: None,
        columns: None,
    };
    let refused =
        run.input(Input::Keep(Box::new(RecordReport { said: report, id: None, key: None })));
    assert_eq!(refused.unwrap_err(), Rejection::AlreadyFinished(Status::Failed));
}
