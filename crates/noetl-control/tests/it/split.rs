//! Pipelines that call playbooks: issued segment by segment, run by the worker and by the control
//! plane.

use std::sync::Arc;

use noetl_model::{Event, Fact, Value};
use noetl_store::ExecutionStatus;
use noetl_test_app::FaultyStore;
use serde_json::json;

use crate::own::{of_path, register};
use crate::plane::{Gate, TestPlane, count};

const CHILD: &str = "  - {step: end, tool: {kind: noop, result: {v: '{{ workload.n + 1 }}'}}}\n";
const HELD: &str = "  - {step: end, tool: {kind: shell, command: x}}\n";

/// Runs a workflow with these playbooks in the catalog until it ends.
async fn run(workflow: &str) -> (ExecutionStatus, Value, Vec<Event>) {
    let plane = TestPlane::open(&Arc::new(FaultyStore::default()), 2, &Gate::new()).await;
    register(&plane, "other/child", CHILD).await;
    register(&plane, "other/failing", "  - {step: end, tool: {kind: http, url: x}}\n").await;
    let id = plane.start(workflow).await;
    let row = plane.finished(id).await;
    let log = plane.log(id).await;
    plane.close().await;
    (row.status, result_of(&log), log)
}

/// The result of an execution, inline.
fn result_of(log: &[Event]) -> Value {
    match log.last().map(|event| &event.fact) {
        Some(Fact::PlaybookCompleted { result, .. }) => result.clone(),
        Some(Fact::PlaybookFailed { failure, .. }) => json!(failure),
        _ => Value::Null,
    }
}

fn issued(log: &[Event]) -> usize {
    count(log, |fact| matches!(fact, Fact::CommandIssued(_)))
}

fn exits(log: &[Event]) -> usize {
    count(log, |fact| matches!(fact, Fact::StepExited { .. }))
}

#[tokio::test]
async fn tasks_after_a_call_see_results_of_tasks_before_it() {
    let (status, result, log) = run("
  - step: start
    tool:
      - {name: pull, kind: python, code: x, input: {n: 4}, set: {ctx.pulled: '{{ output.n }}'}}
      - {name: run, kind: playbook, path: other/child, return_step: end, payload: {n: '{{ pull.n }}'}, set: {ctx.child: '{{ output.v }}'}}
      - {name: store, kind: python, code: x, input: {
          label: '{{ run.v }}', previous: '{{ _prev.v }}', first: '{{ results.pull.n }}', ctx: '{{ ctx.pulled + ctx.child }}', meta: '{{ run._meta.status }}'}}
    set: {ctx.all: '{{ output.label }}'}
    next: {arcs: [{step: end, when: '{{ output.run.v == 5 }}'}]}
  - step: end
    tool: {kind: python, code: x, input: {whole: '{{ start }}', of: '{{ start.results.pull.n }}', all: '{{ ctx.all }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    let store = json!({"label": 5, "previous": 5, "first": 4, "ctx": 9, "meta": "COMPLETED"});
    let whole = &result["whole"];
    assert_eq!(whole["store"], store);
    assert_eq!((&whole["pull"], &whole["run"]["v"]), (&json!({"n": 4}), &json!(5)));
    assert_eq!((&whole["n"], &whole["v"], &whole["ctx"]), (&json!(4), &json!(5), &json!(9)));
    assert_eq!((&result["of"], &result["all"]), (&json!(4), &json!(5)));
    assert_eq!((issued(&log), exits(&log)), (4, 2));
}

#[tokio::test]
async fn a_pipeline_may_start_and_end_with_calls() {
    let (status, result, log) = run("
  - step: start
    tool:
      - {name: one, kind: playbook, path: other/child, return_result: true, payload: {n: 1}}
      - {name: two, kind: playbook, path: other/child, return_result: true, payload: {n: '{{ one.v }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(
        (&result["v"], &result["one"]["v"], &result["two"]["v"]),
        (&json!(3), &json!(2), &json!(3))
    );
    assert_eq!(exits(&log), 1);
}

#[tokio::test]
async fn a_failure_names_its_task() {
    for (tasks, task, kind) in [
        (
            "{name: a, kind: http, url: x}, {name: b, kind: playbook, path: other/child}",
            "a",
            "tool_missing",
        ),
        (
            "{name: a, kind: noop}, {name: b, kind: playbook, path: other/failing, wait: true}, {name: c, kind: noop}",
            "b",
            "child_failed",
        ),
        (
            "{name: a, kind: playbook, path: other/child}, {name: b, kind: http, url: x}",
            "b",
            "tool_missing",
        ),
    ] {
        let (status, result, log) = run(&format!("
  - {{step: start, tool: [{tasks}], next: {{arcs: [{{step: end, on: error}}]}}}}
  - {{step: end, tool: {{kind: python, code: x, input: {{task: '{{{{ start.error.task }}}}', kind: '{{{{ start.error.kind }}}}'}}}}}}
")).await;
        assert_eq!(status, ExecutionStatus::Completed, "{tasks}");
        assert_eq!((&result["task"], &result["kind"]), (&json!(task), &json!(kind)), "{tasks}");
        assert_eq!(exits(&log), 2, "{tasks}");
    }
}

#[tokio::test]
async fn rules_of_a_call_are_evaluated_on_its_outcome() {
    let (status, result, _) = run("
  - step: start
    tool:
      - name: run
        kind: playbook
        path: other/failing
        wait: true
        spec: {policy: {rules: [{when: \"{{ output.status == 'error' and _attempt < 2 }}\", then: {do: retry, delay: 0}},
                                {when: \"{{ output.status == 'error' }}\", then: {do: continue, set: {ctx.tries: '{{ _attempt }}'}}}]}}
      - {name: store, kind: python, code: x, input: {kind: '{{ run.error.kind }}', tries: '{{ ctx.tries }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(result["store"], json!({"kind": "child_failed", "tries": 2}));
    assert_eq!(result.get("error"), None, "an accepted failure is found under its label alone");
}

#[tokio::test]
async fn a_break_before_a_call_skips_it() {
    let (status, result, log) = run("
  - step: start
    tool:
      - {name: pull, kind: python, code: x, input: {n: 1}, spec: {policy: {rules: [{when: '{{ output.n == 1 }}', then: {do: break}}]}}}
      - {name: run, kind: playbook, path: other/child}
").await;
    assert_eq!((status, result), (ExecutionStatus::Completed, json!({"n": 1})));
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandParked { .. })), 0);
}

#[tokio::test]
async fn each_item_of_a_loop_makes_its_own_call() {
    let (status, result, log) = run("
  - step: start
    loop: {in: [10, 20, 30, 40], iterator: i, spec: {mode: parallel, max_in_flight: 2}}
    tool:
      - {name: pull, kind: python, code: x, input: {n: '{{ i }}'}}
      - {name: run, kind: playbook, path: other/child, return_result: true, payload: {n: '{{ pull.n + iter.index }}'}}
      - {name: store, kind: python, code: x, input: {sum: '{{ pull.n + run.v + i }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    let sums: Vec<_> = (0..4).map(|item| result["results"][item]["sum"].clone()).collect();
    assert_eq!(sums, [json!(31), json!(62), json!(93), json!(124)]);
    assert_eq!(result["stats"], json!({"total": 4, "success": 4, "failed": 0, "skipped": 0}));
    assert_eq!((issued(&log), exits(&log)), (12, 1));
}

#[tokio::test]
async fn tasks_after_a_call_see_large_results_stored_as_blobs() {
    let plane = TestPlane::open(&Arc::new(FaultyStore::default()), 2, &Gate::new()).await;
    let child =
        "  - {step: end, tool: {kind: noop, result: {text: '{{ workload.text }}', n: 3}}}\n";
    register(&plane, "other/large", child).await;
    for last in [
        ", {name: store, kind: python, code: x, input: {length: '{{ run.text | length + pull.text | length }}'}}",
        "",
    ] {
        let id = plane
            .start(&format!("
  - step: start
    tool:
      - {{name: pull, kind: python, code: x, input: {{text: \"{{{{ 'x' * 100000 }}}}\"}}}}
      - {{name: run, kind: playbook, path: other/large, return_result: true, payload: {{text: '{{{{ pull.text }}}}'}}, set: {{ctx.n: '{{{{ output.n + output.text | length }}}}'}}}}
{}
    next: {{arcs: [{{step: end}}]}}
  - {{step: end, tool: {{kind: python, code: x, input: {{n: '{{{{ ctx.n }}}}', pull: '{{{{ start.pull.text | length }}}}', run: '{{{{ start.run.text | length }}}}', length: '{{{{ start.length }}}}'}}}}}}
", last.replace(", {", "      - {")))
            .await;
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
        let length = if last.is_empty() { Value::Null } else { json!(200_000) };
        let expected = json!({"n": 100_003, "pull": 100_000, "run": 100_000, "length": length});
        assert_eq!(result_of(&plane.log(id).await), expected);
    }
    plane.close().await;
}

#[tokio::test]
async fn cancelling_cancels_the_called_playbook() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    register(&plane, "other/held", HELD).await;
    let id = plane.start(AROUND_HELD).await;
    gate.begun(1).await;
    let child = of_path(&plane, "other/held").await[0].id;
    plane.control.journal.executions.cancel(&plane.tenant, id, None).await.unwrap();
    assert_eq!(plane.finished(child).await.status, ExecutionStatus::Cancelled);
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Cancelled);
    plane.close().await;
}

const AROUND_HELD: &str = "
  - step: start
    tool:
      - {name: pull, kind: python, code: x, input: {n: 4}}
      - {name: run, kind: playbook, path: other/held, return_result: true}
      - {name: store, kind: python, code: x, input: {n: '{{ pull.n }}'}}
";

#[tokio::test]
async fn a_restart_between_segments_repeats_no_segment() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    register(&plane, "other/held", HELD).await;
    let id = plane.start(AROUND_HELD).await;
    gate.begun(1).await;
    plane.close().await;
    let plane = TestPlane::open(&store, 2, &gate).await;
    gate.begun(1).await;
    gate.open.add_permits(1);
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let log = plane.log(id).await;
    assert_eq!(result_of(&log)["store"], json!({"n": 4}));
    assert_eq!((issued(&log), exits(&log)), (3, 1));
    plane.close().await;
}
