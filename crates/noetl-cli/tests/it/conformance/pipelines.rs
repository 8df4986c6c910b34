//! C29–C35: pipelines and rules.

use serde_json::json;

use super::plane::run;

#[tokio::test]
async fn c29_a_task_that_succeeds_at_its_third_attempt_runs_three_times() {
    let ended = run("
  - step: a
    tool:
      - name: flaky
        kind: shell
        env: {N: '{{ _attempt }}'}
        command: 'test $N = 3 && printf %s $N'
        spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\",
          then: {do: retry, attempts: 5, delay: 0, set: {ctx.failed: '{{ ctx.failed | default(0) + 1 }}'}}}]}}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop, result: ['{{ ctx.failed }}', '{{ a.stdout }}']}}
")
    .await
    .expect_completed();
    assert_eq!((ended.result(), ended.issued("a")), (&json!([2, "3"]), 1));
}

#[tokio::test]
async fn c30_exhausted_attempts_fail_with_their_number() {
    let ended = run("
  - step: a
    tool:
      kind: shell
      command: exit 9
      spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 3, delay: 0}}]}}
")
    .await;
    let (step, failure) = ended.failure();
    assert_eq!((step, failure.kind.as_str()), ("a", "exit_code"));
    assert_eq!(failure.details.as_ref().unwrap()["attempts"], json!(3));
}

#[tokio::test]
async fn c31_a_jump_fetches_ten_pages() {
    let ended = run("
  - step: a
    tool:
      - {name: fetch, kind: noop, result: {page: '{{ ctx.page | default(0) + 1 }}'},
         set: {ctx.page: '{{ output.page }}', ctx.fetched: '{{ ctx.fetched | default([]) + [output.page] }}'}}
      - name: more
        kind: noop
        spec: {policy: {rules: [{when: '{{ fetch.page < 10 }}', then: {do: jump, to: fetch}}]}}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop, result: '{{ ctx.fetched }}'}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!((1..=10).collect::<Vec<_>>()));
}

#[tokio::test]
async fn c32_break_skips_later_tasks() {
    let ended = run("
  - step: a
    tool:
      - {name: first, kind: noop, result: {v: 1}, spec: {policy: {rules: [{when: true, then: {do: break}}]}}}
      - {name: later, kind: shell, command: exit 1}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop, result: '{{ a }}'}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!({"v": 1}));
}

#[tokio::test]
async fn c33_a_rule_fails_a_task_that_succeeded() {
    let ended = run("
  - {step: a, tool: {kind: noop, result: {n: 0},
     spec: {policy: {rules: [{when: '{{ output.data.n == 0 }}', then: {do: fail}}]}}}}
")
    .await;
    assert_eq!(ended.failure().0, "a");
}

#[tokio::test]
async fn c34_the_next_task_sees_values_set_by_a_rule() {
    let ended = run("
  - step: a
    tool:
      - {name: one, kind: noop, result: {v: 5},
         spec: {policy: {rules: [{else: {then: {do: continue, set: {ctx.seen: '{{ output.data.v }}'}}}}]}}}
      - {name: two, kind: noop, result: {got: '{{ ctx.seen + 1 }}'}}
")
    .await
    .expect_completed();
    assert_eq!(ended.result()["got"], json!(6));
}

#[tokio::test]
async fn c35_rules_of_a_single_tool_are_executed() {
    let ended = run("
  - step: a
    tool:
      kind: shell
      command: exit 3
      spec: {policy: {rules: [{when: '{{ output.error.exit_code == 3 }}',
        then: {do: continue, set: {ctx.code: '{{ output.error.exit_code }}'}}}]}}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop, result: '{{ ctx.code }}'}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!(3));
}
