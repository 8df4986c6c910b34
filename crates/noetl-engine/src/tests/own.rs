//! Tests of control-plane tools, admission, and deadlines.

use noetl_model::{Fact, Failure, FailureKind};
use serde_json::json;

use super::harness::{Run, check, timers_of};
use crate::{ChildOutcome, Status, TimerKind};

const WAIT: &str = "- {step: a, tool: {kind: wait, seconds: 5}, next: {arcs: [{step: b}]}}\n\
                    - {step: b, tool: {kind: noop}}\n";

#[test]
fn a_wait_ends_when_its_timer_fires() {
    check(
        WAIT,
        "start; wake a",
        "\
start
  playbook_started
  step.enter a #1
  command.issued a attempt 1
  command.claimed a by control-plane
  command.parked a until a time
wake a
  call.done a {\"status\":\"ok\",\"until\":\"2024-01-01T00:00:05.1Z\"}
  command.completed a
  step.exit a done -> b
  step.enter b #1
  command.issued b attempt 1
",
    );
}

fn due(run: &Run) -> Vec<TimerKind> {
    timers_of(&run.state, &run.log).into_iter().map(|due| due.kind).collect()
}

#[test]
fn a_wait_creates_a_timer() {
    let run = Run::started(WAIT);
    let command = run.command("a");
    assert_eq!(due(&run), [TimerKind::Wake { command, at: run.awaited("a") }]);
}

const CALL: &str = "- {step: a, tool: {kind: playbook, path: other/one, return_step: end, \
     input: {n: '{{ workload.n }}'}}, next: {arcs: [{step: b}]}}\n\
     - {step: b, tool: {kind: noop, result: '{{ a.v }}'}}\n";

#[test]
fn the_result_of_a_called_playbook_completes_its_step() {
    let mut run = Run::started(CALL);
    let asked = due(&run);
    let [TimerKind::StartChild { child, payload, command, .. }] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(*command, run.command("a"));
    assert_eq!(child.path.as_deref(), Some("other/one"));
    assert_eq!(child.returns.as_deref(), Some("end"));
    assert_eq!((child.waits, child.depth), (true, 1));
    assert_eq!(json!(payload), json!({"n": 3}));
    run.script("child a {\"v\": 7}").unwrap();
    let (_, open) = run.state.open_commands().next().unwrap();
    assert_eq!(open.issued.config["result"], json!(7));
}

#[test]
fn a_called_playbook_that_fails_fails_its_step() {
    let mut run = Run::started(CALL);
    run.script("childfails a").unwrap();
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().starts_with("child_failed: "));
}

#[test]
fn variables_of_a_failed_child_do_not_hide_its_failure() {
    let child = noetl_model::ExecutionId::new(9);
    let why = Failure::new(FailureKind::Timeout, "too slow");
    for (outcome, status) in
        [(ChildOutcome::Failed(why), "FAILED"), (ChildOutcome::Cancelled(None), "CANCELLED")]
    {
        let failure = outcome.answer(child).0.unwrap_err();
        let seen = crate::values::failed_value(&failure);
        assert_eq!(
            (&seen["status"], &seen["error"]["kind"]),
            (&json!("error"), &json!("child_failed"))
        );
        assert_eq!(seen["_meta"]["status"], json!(status));
        assert_eq!(seen["_meta"]["execution_id"], json!("9"));
        // In a step's own arcs the details are looked at before the envelope.
        let details = failure.details.unwrap();
        assert!(details.get("status").is_none() && details.get("error").is_none(), "{details}");
    }
}

#[test]
fn a_call_without_waiting_completes_once_the_child_is_started() {
    let run = Run::started("- {step: a, tool: {kind: playbook, path: other/one}}\n");
    assert_eq!(run.state.status(), Status::Completed);
    let asked = due(&run);
    assert!(
        matches!(&asked[..], [TimerKind::StartChild { child, .. }] if !child.waits),
        "{asked:?}"
    );
    assert_eq!(run.result("a")["async"], json!(true));
}

#[test]
fn a_cancelled_execution_cancels_its_children() {
    let mut run = Run::started(CALL);
    let child = run.child("a");
    let asked = run.decide(crate::Input::Cancel(crate::Cancel::default())).unwrap().timers;
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].target, child);
    assert!(matches!(asked[0].kind, TimerKind::CancelChild { .. }));
}

#[test]
fn a_rule_retries_a_call_after_a_delay() {
    check(
        "- {step: a, tool: {kind: playbook, path: p, return_result: true, \
         spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\", \
         then: {do: retry, attempts: 2, delay: 3}}]}}}}\n",
        "start; childfails a; wake a; childfails a",
        "\
start
  playbook_started
  step.enter a #1
  command.issued a attempt 1
  command.claimed a by control-plane
  command.parked a on a child
childfails a
  command.failed a child_failed: it broke
  command.issued a attempt 2
  command.claimed a by control-plane
  command.parked a until the next try
wake a
  command.parked a on a child
childfails a
  command.failed a child_failed: it broke
  step.exit a failed: child_failed: it broke -> nowhere
  playbook.failed at a child_failed: it broke
",
    );
}

#[test]
fn the_call_depth_of_playbooks_is_limited() {
    let mut run = Run::new(super::harness::playbook(CALL));
    let crate::Input::Start(mut start) = super::harness::start() else { unreachable!() };
    start.depth = 32;
    run.input(crate::Input::Start(start)).unwrap();
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().contains("NOETL_PLAYBOOK_DEPTH_MAX"));
}

#[test]
fn an_approval_waits_for_its_answer() {
    let text = "- {step: a, tool: {kind: approval}, next: {arcs: [\
                {step: b, when: '{{ output.approved }}'}, {step: c}]}}\n\
                - {step: b, tool: {kind: noop}}\n- {step: c, tool: {kind: noop}}\n";
    let mut run = Run::started(text);
    assert!(run.script("guess a {\"approved\": true}").is_err(), "a guessed token is refused");
    run.script("approve a {\"approved\": true}").unwrap();
    assert_eq!(run.open(), ["b"]);
    // No answer arrived.
    let mut run = Run::started(text);
    run.script("wake a").unwrap();
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().starts_with("timeout: "));
}

#[test]
fn a_failing_execution_does_not_wait_for_parked_commands() {
    let text = "- {step: a, tool: {kind: noop}, next: {spec: {mode: inclusive}, \
                arcs: [{step: w}, {step: b}]}}\n\
                - {step: w, tool: {kind: wait, seconds: 500}}\n- {step: b, tool: {kind: noop}}\n";
    let mut run = Run::started(text);
    run.complete("a", json!(1));
    run.fail("b");
    assert_eq!(run.state.status(), Status::Failed);
}

#[test]
fn with_best_effort_other_branches_finish_and_the_execution_still_fails() {
    let text = "- {step: a, tool: {kind: noop}, next: {spec: {mode: inclusive}, \
                arcs: [{step: b}, {step: c}]}}\n\
                - {step: b, tool: {kind: noop}, spec: {policy: {failure: {mode: best_effort}}}}\n\
                - {step: c, tool: {kind: noop}, next: {arcs: [{step: d}]}}\n\
                - {step: d, tool: {kind: noop}}\n";
    let mut run = Run::started(text);
    run.complete("a", json!(1));
    run.fail("b");
    assert_eq!(run.open(), ["c"]);
    run.complete("c", json!(1));
    run.complete("d", json!(1));
    assert_eq!(run.state.status(), Status::Failed);
    assert_eq!(run.state.summary().error.unwrap(), "unknown: it broke");
}

fn with_final(text: &str) -> Run {
    with_final_step(text, "- {step: last, tool: {kind: noop}}\n")
}

/// Starts a playbook whose final step is `last`.
pub(super) fn with_final_step(text: &str, last: &str) -> Run {
    let text = format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t}}\n\
         executor: {{spec: {{final_step: last}}}}\nworkflow:\n{text}{last}"
    );
    let checked = noetl_playbook::check(&text);
    let playbook = checked.playbook.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
    let mut run = Run::new(playbook);
    run.input(super::harness::start()).unwrap();
    run
}

#[test]
fn the_final_step_runs_after_success_and_after_failure() {
    let mut run = with_final("- {step: a, tool: {kind: noop}}\n");
    run.complete("a", json!("the result"));
    assert_eq!(run.open(), ["last"]);
    run.complete("last", json!("cleaned"));
    assert_eq!(run.state.status(), Status::Completed);
    let Some(Fact::PlaybookCompleted { result, .. }) = run.log.last().map(|e| &e.fact) else {
        panic!("it completed");
    };
    assert_eq!(*result, json!("the result"), "what cleans up is no result");

    let mut run = with_final("- {step: a, tool: {kind: noop}}\n");
    run.fail("a");
    assert_eq!(run.open(), ["last"]);
    run.claim("last", "w");
    run.script("abandon").unwrap();
    assert_eq!(run.open(), ["last"], "it began after the failure and is waited for");
    run.complete("last", json!(null));
    assert_eq!(run.state.status(), Status::Failed);
    assert_eq!(run.state.summary().error.unwrap(), "unknown: it broke");
}

#[test]
fn a_denied_token_ends_and_a_waiting_one_is_admitted_later() {
    let admit = |mode: &str| {
        format!(
            "- {{step: a, tool: {{kind: noop}}, next: {{spec: {{mode: inclusive}}, \
             arcs: [{{step: b}}, {{step: c}}]}}}}\n\
             - {{step: b, tool: {{kind: noop}}, spec: {{policy: {{admit: {{{mode}rules: [\
             {{when: '{{{{ ctx.open }}}}', then: {{allow: true}}}}, \
             {{else: {{then: {{allow: false}}}}}}]}}}}}}}}\n\
             - {{step: c, tool: {{kind: noop}}, set: {{ctx.open: true}}}}\n"
        )
    };
    let mut run = Run::started(&admit(""));
    run.complete("a", json!(1));
    assert_eq!(run.open(), ["c"]);
    run.complete("c", json!(1));
    assert_eq!((run.state.status(), run.step_runs("b")), (Status::Completed, 0));

    let mut run = Run::started(&admit("mode: wait, deadline_s: 60, "));
    run.complete("a", json!(1));
    assert_eq!(run.open(), ["c"]);
    run.complete("c", json!(1));
    assert_eq!(run.open(), ["b"], "the variable it waits for was set");
    run.complete("b", json!(1));
    assert_eq!(run.state.status(), Status::Completed);

    let mut run = Run::started(&admit("mode: wait, deadline_s: 60, "));
    run.complete("a", json!(1));
    run.fail("c");
    assert_eq!(run.state.status(), Status::Failed, "what waits to be let in holds up no failure");
}

#[test]
fn a_token_past_its_admission_timeout_is_denied() {
    let mut run = Run::started(
        "- {step: b, tool: {kind: noop}, spec: {policy: {admit: {mode: wait, deadline_s: 60, \
         rules: [{when: '{{ true }}', then: {allow: false}}]}}}}\n",
    );
    assert_eq!(run.state.status(), Status::Running);
    assert!(matches!(&due(&run)[..], [TimerKind::AdmissionTimeout { .. }]));
    run.script("refuse b").unwrap();
    assert_eq!((run.state.status(), run.step_runs("b")), (Status::Completed, 0));
}

#[test]
fn a_step_with_a_false_condition_is_skipped() {
    let mut run = Run::started(
        "- {step: a, when: '{{ workload.n > 5 }}', tool: {kind: noop}, \
         next: {arcs: [{step: b}]}}\n- {step: b, tool: {kind: noop}}\n",
    );
    assert_eq!(run.open(), ["b"]);
    run.complete("b", json!(1));
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn deadlines_and_operators_end_an_execution() {
    let mut run = Run::started(WAIT);
    run.script("deadline").unwrap();
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().contains("deadline"));
    let mut run = Run::started(WAIT);
    run.script("finalize").unwrap();
    assert_eq!(run.state.status(), Status::Completed);
    let mut run = Run::started(WAIT);
    run.script("finalize x by hand").unwrap();
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.script("finalize").is_err(), "once");
}
