//! C26–C28, C42, C46–C48: failures, timeouts, cancellation.

use noetl_model::{ExecutionId, Fact};
use noetl_store::{ExecutionFilter, ExecutionStatus};
use serde_json::json;

use super::plane::{TestPlane, run};

const RAISES: &str = "kind: python, code: \"raise KeyError('no such order')\"";

#[tokio::test]
async fn c26_an_exception_fails_the_execution_with_its_message() {
    let ended = run(&format!(
        "  - {{step: a, tool: {{{RAISES}}}, next: {{arcs: [{{step: b}}]}}}}
  - {{step: b, tool: {{kind: noop}}}}\n"
    ))
    .await;
    let (step, failure) = ended.failure();
    assert_eq!((step, failure.kind.as_str()), ("a", "schema"));
    assert!(failure.message.contains("KeyError: 'no such order'"), "{failure}");
    assert!(ended.row.error.as_ref().is_some_and(|error| error.contains("no such order")));
    assert_eq!(ended.runs("b"), 0, "an unconditional arc does not speak of failure");
}

#[tokio::test]
async fn c27_an_error_arc_handles_an_exception() {
    let ended = run(&format!(
        "  - {{step: a, tool: {{{RAISES}}}, next: {{arcs: [{{step: ok}}, \
             {{step: handler, when: \"{{{{ output.status == 'error' }}}}\"}}]}}}}
  - {{step: ok, tool: {{kind: noop}}}}
  - {{step: handler, tool: {{kind: noop, result: '{{{{ a.error.exception_type }}}}'}}}}\n"
    ))
    .await
    .expect_completed();
    assert_eq!((ended.entered().as_str(), ended.result()), ("a handler", &json!("KeyError")));
    assert!(ended.failed_step("a").1);
}

#[tokio::test]
async fn c28_a_rule_accepts_an_exception() {
    let ended = run(&format!(
        "  - {{step: a, tool: {{{RAISES}, spec: {{policy: {{rules: \
             [{{when: \"{{{{ output.status == 'error' }}}}\", then: {{do: continue}}}}]}}}}}}, \
             next: {{arcs: [{{step: b}}]}}}}
  - {{step: b, tool: {{kind: noop}}}}\n"
    ))
    .await
    .expect_completed();
    assert_eq!((ended.entered().as_str(), ended.issued("a")), ("a b", 1));
}

/// The template that is wrong wherever it stands: text and a number have no order.
const WRONG: &str = "'{{ workload.n > 3 }}'";

#[tokio::test]
async fn c42_a_failed_rendering_fails_its_step_with_the_location() {
    let cases = [
        (
            "tool: {kind: noop}, next: {arcs: [{step: b, when: false}, {step: b, when: W}]}",
            "next.arcs[1].when",
        ),
        (
            "tool: {kind: noop}, next: {arcs: [{step: b, set: {ctx.x: W}}]}",
            "next.arcs[0].set.ctx.x",
        ),
        ("tool: {kind: noop}, set: {ctx.x.y: W}, next: {arcs: [{step: b}]}", "set.ctx.x.y"),
        ("tool: {kind: noop, result: {a: [1, W]}}, next: {arcs: [{step: b}]}", "tool.result.a.1"),
        ("tool: {kind: noop, input: {a: W}}, next: {arcs: [{step: b}]}", "tool.input.a"),
        ("tool: {kind: noop}, loop: {in: W, iterator: it}, next: {arcs: [{step: b}]}", "loop.in"),
        (
            "tool: {kind: noop}, spec: {policy: {admit: {rules: [{when: W, then: {allow: true}}]}}}",
            "spec.policy.admit.rules[0].when",
        ),
    ];
    let plane = TestPlane::open().await;
    for (step, place) in cases {
        let step = step.replace('W', WRONG);
        let id = plane
            .start(&format!(
                "workload: {{n: 'x'}}\nworkflow:\n  - {{step: a, {step}}}\n  \
                 - {{step: b, tool: {{kind: noop}}}}\n"
            ))
            .await;
        let ended = plane.ended(id).await;
        let (at, failure) = ended.failure();
        assert_eq!((at, failure.kind.as_str(), ended.runs("b")), ("a", "template_error", 0));
        let expected = format!(
            "cannot order \"x\" (string) and 3 (number) in `{}` at {place}",
            WRONG.trim_matches('\'')
        );
        assert_eq!(failure.message, expected);
    }
    plane.close().await;
}

const FAILING_CHILD: &str = "
  - {step: start, tool: {kind: shell, command: exit 7}}
";

#[tokio::test]
async fn c46_a_failed_child_fails_the_step_that_called_it() {
    let plane = TestPlane::open().await;
    plane.register("child", FAILING_CHILD).await;
    let id = plane
        .start(
            "
  - {step: call, tool: {kind: playbook, path: child, return_step: start}, next: {arcs: [{step: b}]}}
  - {step: b, tool: {kind: noop}}
",
        )
        .await;
    let ended = plane.ended(id).await;
    let (step, failure) = ended.failure();
    assert_eq!((step, failure.kind.as_str(), ended.runs("b")), ("call", "child_failed", 0));
    let id = plane
        .start("
  - {step: call, tool: {kind: playbook, path: child, wait: true},
     next: {arcs: [{step: b, when: \"{{ output.status == 'error' and output.error.kind == 'child_failed' }}\"}]}}
  - {step: b, tool: {kind: noop, result: '{{ call._meta.error.kind }}'}}
")
        .await;
    assert_eq!(*plane.ended(id).await.expect_completed().result(), json!("exit_code"));
    plane.close().await;
}

/// The children of an execution.
async fn children(plane: &TestPlane, of: ExecutionId) -> Vec<ExecutionId> {
    let all = ExecutionFilter { limit: 100, ..ExecutionFilter::default() };
    let all = plane.control.journal.executions.list(&plane.tenant, &all).await;
    all.unwrap().iter().filter(|row| row.parent == Some(of)).map(|row| row.id).collect()
}

#[tokio::test]
async fn c47_a_cancel_stops_a_loop_and_its_child_execution() {
    let plane = TestPlane::open().await;
    plane.register("child", "  - {step: ask, tool: {kind: approval}}\n").await;
    let mut events = plane.control.journal.watch.events();
    let id = plane
        .start("
  - {step: each, loop: {in: [1, 2, 3], iterator: it}, tool: {kind: playbook, path: child, return_result: true}}
")
        .await;
    let child = loop {
        let event = events.recv().await.unwrap();
        if matches!(event.fact, Fact::PlaybookStarted(_)) && event.execution != id {
            break event.execution;
        }
    };
    plane.until_asked(child).await;
    plane
        .control
        .journal
        .executions
        .cancel(&plane.tenant, id, Some("enough".into()))
        .await
        .unwrap();
    let ended = plane.ended(id).await;
    assert_eq!((ended.row.status, ended.issued("each")), (ExecutionStatus::Cancelled, 1));
    assert_eq!(plane.ended(child).await.row.status, ExecutionStatus::Cancelled);
    assert_eq!(children(&plane, id).await, [child]);
    plane.close().await;
}

#[tokio::test]
async fn c48_a_step_that_exceeds_its_timeout_fails() {
    let ended = run("
  - {step: a, tool: {kind: shell, command: sleep 600}, spec: {timeout: 200ms}}
")
    .await;
    let (step, failure) = ended.failure();
    assert_eq!((step, failure.kind.as_str()), ("a", "timeout"));
    let times: Vec<_> = ended.log.iter().map(|event| event.at).collect();
    let took = times.last().unwrap().since(times[0]);
    assert!(took.as_secs() < 60, "the tool was waited for: {took:?}");
}
