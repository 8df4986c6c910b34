//! C17–C25, C39: loops.

use std::collections::HashSet;

use noetl_model::Fact;
use noetl_store::{ExecutionFilter, ExecutionStatus};
use serde_json::{Value, json};

use super::manual::ManualWorker;
use super::plane::{FinishedRun, TestPlane, run};

/// Runs a loop over `items` and gives what it came to.
async fn result_over(items: &str) -> Value {
    let steps = format!(
        "  - {{step: each, loop: {{in: {items}, iterator: it}}, \
             tool: {{kind: noop, result: '{{{{ it }}}}'}}, next: {{arcs: [{{step: end}}]}}}}
  - {{step: end, tool: {{kind: noop, result: '{{{{ each.results }}}}'}}}}\n"
    );
    run(&steps).await.expect_completed().result().clone()
}

/// Returns the largest number of items of a step that were in flight at once.
fn most_at_a_time(ended: &FinishedRun, step: &str) -> usize {
    let (mut open, mut most) = (HashSet::new(), 0);
    for event in &ended.log {
        match &event.fact {
            Fact::CommandIssued(issued) if &*issued.step == step => {
                open.insert(event.id.get());
                most = most.max(open.len());
            }
            Fact::CommandCompleted { command, .. } | Fact::CommandFailed { command, .. } => {
                open.remove(&command.get());
            }
            _ => {}
        }
    }
    most
}

#[tokio::test]
async fn c17_a_loop_in_a_cycle_runs_all_items_in_each_step_run() {
    let ended = run("
  - {step: each, loop: {in: [a, b, c], iterator: it}, tool: {kind: noop, result: '{{ it }}'},
     set: {ctx.n: '{{ ctx.n | default(0) + 1 }}', ctx.all: '{{ ctx.all | default([]) + output.results }}'},
     next: {arcs: [{step: each, when: 'ctx.n < 2'}, {step: end}]}}
  - {step: end, tool: {kind: noop, result: '{{ ctx.all }}'}}
")
    .await
    .expect_completed();
    assert_eq!((ended.runs("each"), ended.issued("each")), (2, 6));
    assert_eq!(*ended.result(), json!(["a", "b", "c", "a", "b", "c"]));
}

#[tokio::test]
async fn c18_a_sequential_loop_is_strictly_ordered() {
    let ended = run("
  - {step: each, loop: {in: '{{ range(20) | list }}', iterator: it},
     tool: {kind: noop, result: '{{ it }}', set: {ctx.seen: '{{ ctx.seen | default([]) + [it] }}'}},
     next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: '{{ ctx.seen }}'}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!((0..20).collect::<Vec<_>>()));
    assert_eq!(most_at_a_time(&ended, "each"), 1);
}

#[tokio::test]
async fn c19_a_parallel_loop_stays_within_max_in_flight() {
    let ended = run("
  - {step: each, loop: {in: [1, 2, 3, 4, 5, 6], iterator: it, spec: {mode: parallel, max_in_flight: 2}},
     tool: {kind: shell, command: 'true'}}
")
    .await
    .expect_completed();
    assert_eq!((ended.issued("each"), most_at_a_time(&ended, "each")), (6, 2));
}

#[tokio::test]
async fn c20_a_loop_over_an_empty_list_completes_at_once() {
    let ended = run("
  - {step: each, loop: {in: [], iterator: it}, tool: {kind: shell, command: exit 1},
     next: {arcs: [{step: end, when: \"{{ event.name == 'loop.done' }}\"}]}}
  - {step: end, tool: {kind: noop, result: {r: '{{ each.results }}', n: '{{ each.stats.total }}'}}}
")
    .await
    .expect_completed();
    assert_eq!(ended.issued("each"), 0);
    assert_eq!(*ended.result(), json!({"r": [], "n": 0}));
}

#[tokio::test]
async fn c21_a_loop_over_a_single_value_has_one_item() {
    let pairs = json!([{"key": "x", "value": 1}, {"key": "y", "value": 2}]);
    assert_eq!(result_over("'{{ {\"x\": 1, \"y\": 2} }}'").await, pairs);
    assert_eq!(result_over("'{{ 3 }}'").await, json!([0, 1, 2]));
    assert_eq!(result_over("'{{ \"[4, 5]\" }}'").await, json!([4, 5]));
    assert_eq!(result_over("'{{ \"a, b\" }}'").await, json!(["a, b"]));
    assert_eq!(result_over("'{{ none }}'").await, json!([]));
    assert_eq!(result_over("'{{ nothing.there }}'").await, json!([]));
    let ended = run("
  - {step: each, loop: {in: '{{ true }}', iterator: it}, tool: {kind: noop}}
")
    .await;
    assert_eq!((ended.failure().0, ended.issued("each")), ("each", 0));
}

#[tokio::test]
async fn c22_fail_fast_starts_nothing_after_a_failure() {
    let manual = ManualWorker::start("
  - {step: each, loop: {in: '{{ range(20) | list }}', iterator: it, spec: {mode: parallel, max_in_flight: 2}},
     tool: {kind: noop}}
")
    .await;
    let first = manual.open().await;
    assert_eq!(first.len(), 2);
    for &command in &first {
        manual.claim(command).await;
    }
    manual.complete(first[0], json!({})).await;
    let second = manual.open().await;
    assert_eq!((second.len(), second[0]), (2, first[1]), "the next took the place of the first");
    manual.claim(second[1]).await;
    manual.say("command.failed", second[0], json!({"error": "refused"})).await;
    assert_eq!(manual.open().await, second[1..], "what runs is waited for, and nothing is added");
    manual.complete(second[1], json!({})).await;
    let ended = manual.plane.ended(manual.id).await;
    let (step, failure) = ended.failure();
    assert_eq!((step, ended.issued("each")), ("each", 3));
    assert!(failure.message.contains("refused"), "{failure}");
    manual.plane.close().await;
}

#[tokio::test]
async fn c23_best_effort_runs_all_items_and_counts_failures() {
    let ended = run("
  - {step: each, loop: {in: '{{ range(5) | list }}', iterator: it,
     spec: {mode: parallel, policy: {failure: {mode: best_effort}}}},
     tool: {kind: shell, env: {N: '{{ it }}'}, command: 'test $N != 3 && printf %s $N'},
     next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {stats: '{{ each.stats }}', errors: '{{ each.errors | length }}',
     last: '{{ each.results[4].stdout }}'}}}
")
    .await
    .expect_completed();
    let stats = json!({"total": 5, "success": 4, "failed": 1, "skipped": 0});
    assert_eq!(*ended.result(), json!({"stats": stats, "errors": 1, "last": "4"}));
}

#[tokio::test]
async fn c24_results_are_in_item_order_regardless_of_completion_order() {
    let plane = TestPlane::open().await;
    let id = plane
        .start(
            "
  - {step: each, loop: {in: [a, b, c, d], iterator: it, spec: {mode: parallel}},
     tool: {kind: approval, message: '{{ it }}'}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: '{{ each.results | map(attribute=\"n\") | list }}'}}
",
        )
        .await;
    let asked = plane.asked(id).await;
    assert_eq!(asked.len(), 4);
    for place in [2, 0, 3, 1] {
        plane.answer(id, &asked[place], json!({ "n": place })).await;
    }
    let ended = plane.ended(id).await.expect_completed();
    assert_eq!(*ended.result(), json!([0, 1, 2, 3]));
    plane.close().await;
}

#[tokio::test]
async fn c25_a_loop_over_playbook_calls_starts_one_child_per_item() {
    let plane = TestPlane::open().await;
    plane
        .register("inner", "workload: {of: 0}
workflow:
  - {step: each, loop: {in: [1, 2], iterator: it}, tool: {kind: noop, result: '{{ workload.of * 10 + it }}'},
     next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {found: '{{ each.results }}'}}}
")
        .await;
    let id = plane
        .start(
            "
  - {step: each, loop: {in: [1, 2, 3], iterator: of, spec: {mode: parallel}},
     tool: {kind: playbook, path: inner, payload: {of: '{{ of }}'}, return_step: end},
     next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: '{{ each.results | map(attribute=\"found\") | list }}'}}
",
        )
        .await;
    let ended = plane.ended(id).await.expect_completed();
    assert_eq!(*ended.result(), json!([[11, 12], [21, 22], [31, 32]]));
    let all = ExecutionFilter { limit: 100, ..ExecutionFilter::default() };
    let all = plane.control.journal.executions.list(&plane.tenant, &all).await;
    let children: Vec<_> = all.unwrap().into_iter().filter(|row| row.parent == Some(id)).collect();
    assert_eq!(children.len(), 3);
    assert!(children.iter().all(|row| row.status == ExecutionStatus::Completed));
    plane.close().await;
}

#[tokio::test]
async fn c39_iteration_variables_end_with_the_loop() {
    let ended = run("
  - {step: each, loop: {in: [1, 2], iterator: it},
     tool: {kind: noop, result: '{{ it }}', set: {iter.seen: '{{ it }}'}}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result:
     ['{{ iter.seen is defined }}', '{{ iter.it is defined }}', '{{ it is defined }}', '{{ seen is defined }}']}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!([false, false, false, false]));
}
