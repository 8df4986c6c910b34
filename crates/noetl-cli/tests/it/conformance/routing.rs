//! C01–C16, C56: which steps run, how often, and when an execution is over.

use serde_json::json;

use super::plane::{run, run_graph};

#[tokio::test]
async fn c01_a_chain_runs_each_step_once() {
    assert_eq!(run_graph("start -> end").await.expect_completed().entered(), "start end");
}

#[tokio::test]
async fn c02_a_single_leaf_step_completes() {
    assert_eq!(run_graph("start").await.expect_completed().entered(), "start");
}

#[tokio::test]
async fn c03_a_branch_ends_if_no_arc_matches() {
    assert_eq!(run_graph("start -> a[false]").await.expect_completed().entered(), "start");
}

#[tokio::test]
async fn c04_the_matching_arc_is_taken() {
    assert_eq!(run_graph("start -> a[false] | b").await.expect_completed().entered(), "start b");
}

#[tokio::test]
async fn c05_exclusive_mode_takes_the_first_matching_arc() {
    assert_eq!(
        run_graph("start -> a[true] | b[true]").await.expect_completed().entered(),
        "start a"
    );
}

#[tokio::test]
async fn c06_inclusive_mode_takes_exactly_the_matching_arcs() {
    let ended = run_graph("start => a[true] | b[false] | c[true]").await.expect_completed();
    assert_eq!(ended.entered(), "start a c");
}

#[tokio::test]
async fn c07_a_join_of_all_branches_runs_once_after_them() {
    let ended = run_graph("start => a | b; a -> j; b -> j").await.expect_completed();
    assert_eq!(ended.entered(), "start a b j");
    assert!(ended.entry_of("j") > ended.exit_of("a") && ended.entry_of("j") > ended.exit_of("b"));
}

#[tokio::test]
async fn c08_a_merge_of_one_branch_runs_once() {
    let ended = run_graph("start -> a[false] | b; a -> j; b -> j").await.expect_completed();
    assert_eq!(ended.entered(), "start b j");
}

#[tokio::test]
async fn c09_a_join_does_not_wait_for_branches_not_taken() {
    let text = "start => a[true] | b[false] | c[false]; a -> j; b -> j; c -> j";
    assert_eq!(run_graph(text).await.expect_completed().entered(), "start a j");
}

#[tokio::test]
async fn c10_a_join_waits_for_the_longest_branch() {
    let ended =
        run_graph("start => a | b; a -> a2; a2 -> a3; a3 -> j; b -> j").await.expect_completed();
    assert_eq!((ended.runs("j"), ended.row.steps_completed), (1, 6));
    assert!(ended.entry_of("j") > ended.exit_of("a3"));
}

#[tokio::test]
async fn c11_the_end_of_a_short_branch_does_not_end_a_longer_one() {
    let ended = run_graph("start => leaf | l1; l1 -> l2; l2 -> l3").await.expect_completed();
    assert_eq!(ended.row.steps_completed, 5);
    assert!(ended.log.last().is_some_and(|event| event.seq > ended.exit_of("l3")));
}

#[tokio::test]
async fn c12_a_path_that_ends_early_does_not_block_a_join() {
    let text = "start => a | d1; d1 -> d2[false]; d2 -> d3; d3 -> d4; d4 -> d5; d5 -> j; a -> j";
    let ended = run_graph(text).await.expect_completed();
    assert_eq!((ended.runs("j"), ended.runs("d2"), ended.runs("d5")), (1, 0, 0));
}

#[tokio::test]
async fn c13_a_step_skipped_by_one_branch_runs_for_another() {
    let ended =
        run_graph("start => a | b; a -> t[false]; b -> b2; b2 -> t[true]").await.expect_completed();
    assert_eq!(ended.runs("t"), 1);
    assert!(ended.entry_of("t") > ended.exit_of("b2"));
}

#[tokio::test]
async fn c14_a_cycle_runs_until_its_condition_is_false() {
    let ended = run("
  - {step: a, tool: {kind: noop, result: {n: '{{ ctx.n | default(0) + 1 }}'}},
     set: {ctx.n: '{{ output.n }}'}, next: {arcs: [{step: b}]}}
  - {step: b, tool: {kind: noop}, next: {arcs: [{step: a, when: 'ctx.n < 3'}, {step: end}]}}
  - {step: end, tool: {kind: noop, result: {last: '{{ a.n }}'}}}
")
    .await
    .expect_completed();
    assert_eq!(ended.entered(), "a b a b a b end");
    assert_eq!(*ended.result(), json!({"last": 3}));
}

#[tokio::test]
async fn c15_an_arc_to_the_step_itself_runs_it_again() {
    let ended = run("
  - {step: a, tool: {kind: noop}, set: {ctx.n: '{{ ctx.n | default(0) + 1 }}'},
     next: {arcs: [{step: a, when: 'ctx.n < 5'}]}}
")
    .await
    .expect_completed();
    assert_eq!(ended.entered(), "a a a a a");
}

#[tokio::test]
async fn c16_conditions_in_a_cycle_are_evaluated_in_each_iteration() {
    let ended = run("
  - {step: a, tool: {kind: noop}, set: {ctx.n: '{{ ctx.n | default(0) + 1 }}'},
     next: {arcs: [{step: end, when: 'ctx.n > 4'}, {step: x, when: 'ctx.n is odd'}, {step: y}]}}
  - {step: x, tool: {kind: noop}, next: {arcs: [{step: a}]}}
  - {step: y, tool: {kind: noop}, next: {arcs: [{step: a}]}}
  - {step: end, tool: {kind: noop}}
")
    .await
    .expect_completed();
    assert_eq!(ended.entered(), "a x a y a x a y a end");
}

#[tokio::test]
async fn c56_a_join_fires_after_a_failure_that_was_handled() {
    let ended = run("
  - {step: start, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}
  - {step: a, tool: {kind: shell, command: exit 1}, next: {arcs: [{step: j, on: error}]}}
  - {step: b, tool: {kind: noop}, next: {arcs: [{step: j}]}}
  - {step: j, tool: {kind: noop, result: {a: '{{ a.status }}'}}}
")
    .await
    .expect_completed();
    assert_eq!((ended.runs("j"), ended.result()), (1, &json!({"a": "error"})));
    assert!(ended.failed_step("a").1 && ended.entry_of("j") > ended.exit_of("a"));
}
