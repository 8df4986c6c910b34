//! Pipelines from the playbook to the result: issued by the engine, run by the worker.

use std::sync::Arc;

use noetl_model::{ExecutionId, Fact, Map};
use noetl_store::ExecutionStatus;
use noetl_test_app::FaultyStore;
use serde_json::json;

use crate::plane::{Gate, TestPlane, count};

/// Runs a workflow to its end; how it ended, and what each command answered by step.
async fn run(workflow: &str) -> (ExecutionStatus, Map, Vec<noetl_model::Event>) {
    let plane = TestPlane::open(&Arc::new(FaultyStore::default()), 2, &Gate::new()).await;
    let id: ExecutionId = plane.start(workflow).await;
    let row = plane.finished(id).await;
    let log = plane.log(id).await;
    plane.close().await;
    let answers = log.iter().filter_map(|event| match &event.fact {
        Fact::CallDone { step, data, .. } => Some((step.to_string(), data.clone())),
        _ => None,
    });
    (row.status, answers.collect(), log)
}

#[tokio::test]
async fn values_set_by_tasks_are_seen_by_later_tasks_arcs_and_steps() {
    let (status, answers, log) = run("
  - step: start
    tool:
      - name: first
        kind: python
        code: x
        input: {n: 20}
        set: {ctx.n: '{{ output.n }}'}
      - name: second
        kind: python
        code: x
        input: {m: '{{ first.n + 1 }}', seen: '{{ ctx.n }}'}
        spec:
          policy:
            rules:
              - when: '{{ output.data.m > 20 }}'
                then: {do: continue, set: {ctx.big: true}}
    next: {arcs: [{step: small, when: 'not ctx.big'}, {step: after, when: 'ctx.big'}]}
  - step: small
    tool: {kind: noop}
  - step: after
    tool: {kind: python, code: x, input: {n: '{{ ctx.n }}', m: '{{ start.m }}', l: '{{ start.results.first.n }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    let start = json!({"n": 20, "m": 21, "seen": 20, "first": {"n": 20},
                       "second": {"m": 21, "seen": 20}});
    assert_eq!(answers["start"], start);
    assert_eq!(answers["after"], json!({"n": 20, "m": 21, "l": 20}));
    assert_eq!(answers.get("small"), None);
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandIssued(_))), 2);
}

#[tokio::test]
async fn a_single_tool_runs_under_its_policy() {
    let (status, answers, _) = run("
  - step: start
    tool:
      kind: http
      url: http://localhost
      spec:
        policy:
          rules:
            - when: \"{{ output.status == 'error' and output.error.kind == 'tool_missing' }}\"
              then: {do: continue, set: {ctx.why: '{{ output.error.kind }}'}}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: python, code: x, input: {why: '{{ ctx.why }}', status: '{{ start.status }}'}}
")
    .await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(answers["after"], json!({"why": "tool_missing", "status": "error"}));
}

#[tokio::test]
async fn a_failed_pipeline_retains_values_set_by_its_tasks() {
    let (status, answers, _) = run("
  - step: start
    tool:
      - {name: mark, kind: python, code: x, input: {n: 1}, set: {ctx.reached: '{{ output.n }}'}}
      - {name: bad, kind: http, url: 'http://localhost'}
    next: {arcs: [{step: handle, when: \"{{ event.name == 'step.failed' }}\"}]}
  - step: handle
    tool: {kind: python, code: x, input: {reached: '{{ ctx.reached }}', task: '{{ start.error.task }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(answers["handle"], json!({"reached": 1, "task": "bad"}));
}

#[tokio::test]
async fn a_blob_value_is_loaded_by_the_task_that_uses_it() {
    let (status, answers, _) = run("
  - step: start
    tool: {kind: python, code: x, input: {text: '{{ \"x\" * 70000 }}', n: 7}}
    next: {arcs: [{step: read}]}
  - step: read
    tool:
      - {name: known, kind: python, code: x, input: {n: '{{ start.n }}', kept: '{{ start._ref is defined }}'}}
      - {name: whole, kind: python, code: x, input: {length: '{{ start.text | length }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    let expected = json!({"n": 7, "kept": true, "length": 70_000});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(answers["read"][key], *value, "{key}");
    }
}

#[tokio::test]
async fn a_loop_run_by_one_worker_is_one_command() {
    for mode in ["sequential", "parallel"] {
        let (status, answers, log) = run(&format!("
  - step: start
    loop:
      in: [3, 4, 5]
      iterator: x
      spec: {{mode: {mode}, max_in_flight: 2, policy: {{exec: local}}}}
    tool:
      - {{name: a, kind: python, code: x, input: {{v: '{{{{ x * 2 }}}}', at: '{{{{ _index }}}}'}},
         set: {{ctx.last: '{{{{ x }}}}'}}}}
    next: {{arcs: [{{step: after, when: \"{{{{ event.name == 'loop.done' }}}}\"}}]}}
  - step: after
    tool: {{kind: python, code: x, input: {{last: '{{{{ ctx.last }}}}', n: '{{{{ start | length }}}}',
           first: '{{{{ start[0].v }}}}', all: '{{{{ start.data | map(attribute=\"v\") | list }}}}',
           total: '{{{{ start.stats.total }}}}'}}}}
")).await;
        assert_eq!(status, ExecutionStatus::Completed, "{mode}");
        let expected = json!({"last": 5, "n": 3, "first": 6, "all": [6, 8, 10], "total": 3});
        assert_eq!(answers["after"], expected, "{mode}");
        assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandIssued(_))), 2, "{mode}");
    }
}

#[tokio::test]
async fn a_loop_of_pipelines_has_equal_results_with_one_command_per_item() {
    let (status, answers, log) = run("
  - step: start
    loop: {in: [3, 4], iterator: x, spec: {mode: parallel}}
    tool:
      - {name: a, kind: python, code: x, input: {v: '{{ iter.x + 1 }}'}, set: {iter.w: '{{ output.v }}'}}
      - {name: b, kind: python, code: x, input: {w: '{{ iter.w }}'}}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: python, code: x, input: {w: '{{ start | map(attribute=\"w\") | list }}', gone: '{{ iter is defined }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(answers["after"], json!({"w": [4, 5], "gone": false}));
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandIssued(_))), 3);
}

#[tokio::test]
async fn step_values_set_by_tasks_are_seen_by_the_arcs_only() {
    let (status, answers, _) = run("
  - step: start
    tool:
      - {name: a, kind: python, code: x, input: {v: 5}, set: {step.v: '{{ output.v }}', step.in.deep: 1}}
    set: {ctx.twice: '{{ step.v * 2 }}'}
    next: {arcs: [{step: other}, {step: after, when: '{{ step.v == 5 and step.in.deep == 1 }}'}], spec: {mode: inclusive}}
  - step: other
    tool: {kind: noop}
  - step: after
    tool: {kind: python, code: x, input: {twice: '{{ ctx.twice }}', gone: '{{ step.v is defined }}', label: '{{ start.results.a.v }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(answers["after"], json!({"twice": 10, "gone": false, "label": 5}));
}

#[tokio::test]
async fn step_values_set_by_an_item_are_seen_by_the_next_item_and_the_arcs() {
    let (status, answers, _) = run("
  - step: start
    loop: {in: [3, 4], iterator: x, spec: {mode: sequential}}
    tool:
      - {name: a, kind: python, code: x, input: {before: '{{ step.last | default(0) }}'}, set: {step.last: '{{ x }}'}}
      - {name: b, kind: noop}
    next: {arcs: [{step: after, when: 'step.last == 4'}]}
  - step: after
    tool: {kind: python, code: x, input: {b: '{{ start | map(attribute=\"before\") | list }}'}}
").await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(answers["after"], json!({"b": [0, 3]}));
}

#[tokio::test]
async fn step_values_persist_after_the_step_failed() {
    let (status, answers, _) = run("
  - step: start
    tool:
      - {name: a, kind: python, code: x, input: {v: 5}, set: {step.v: '{{ output.v }}'}}
      - {name: b, kind: python, code: x, input: {v: \"{{ 1 + 'a' }}\"}}
    next: {arcs: [{step: after, on: error, when: '{{ step.v == 5 }}'}]}
  - {step: after, tool: {kind: python, code: x, input: {ok: true}}}
")
    .await;
    assert_eq!(status, ExecutionStatus::Completed);
    assert_eq!(answers["after"], json!({"ok": true}));
}

#[tokio::test]
async fn a_failed_rendering_fails_its_step_with_the_location() {
    let (status, _, log) = run("
  - step: start
    tool:
      - {name: a, kind: python, code: x, input: {v: \"{{ 1 + 'a' }}\"}}
      - {name: b, kind: noop}
")
    .await;
    assert_eq!(status, ExecutionStatus::Failed);
    let failure = log.iter().find_map(|event| match &event.fact {
        Fact::CallFailed { failure, .. } | Fact::CommandFailed { failure, .. } => Some(failure),
        _ => None,
    });
    let message = &failure.unwrap().message;
    assert!(message.starts_with("task 'a', input.v: cannot compute"), "{message}");
}
