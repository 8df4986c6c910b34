use noetl_model::{Failure, FailureKind};
use serde_json::json;

use super::harness::{Run, check};
use crate::{Fail, Input, Status};

#[test]
fn an_unhandled_failure_fails_the_execution() {
    check(
        "\
- {step: start, tool: {kind: noop}, next: {arcs: [{step: a}]}}
- {step: a, tool: {kind: noop}}",
        "start; fail start",
        "\
start
  playbook_started
  step.enter start #1
  command.issued start attempt 1
fail start
  command.failed start unknown: it broke
  step.exit start failed: unknown: it broke -> nowhere
  playbook.failed at start unknown: it broke
",
    );
}

#[test]
fn an_error_arc_handles_the_failure_and_the_execution_completes() {
    check(
        "\
- {step: start, tool: {kind: noop}, next: {arcs: [{step: h, on: error}, {step: a}]}}
- {step: a, tool: {kind: noop}}
- {step: h, tool: {kind: noop, input: {why: '{{ start.error.message }}'}}}",
        "start; fail start; complete h \"ok\"",
        "\
start
  playbook_started
  step.enter start #1
  command.issued start attempt 1
fail start
  command.failed start unknown: it broke
  step.exit start failed, handled: unknown: it broke -> h
  step.enter h #1
  command.issued h attempt 1
complete h \"ok\"
  call.done h \"ok\"
  command.completed h
  step.exit h done -> nowhere
  playbook.completed \"ok\"
",
    );
}

#[test]
fn a_condition_on_failure_handles_the_failure() {
    for guard in [
        "event.name == 'step.failed'",
        "event.name == 'call.error'",
        "output.status == 'error'",
        "output.error.kind == 'unknown'",
        "not output.ok",
    ] {
        let steps = format!(
            "\
- {{step: start, tool: {{kind: noop}}, next: {{arcs: [{{step: h, when: \"{guard}\"}}, {{step: a}}]}}}}
- {{step: h, tool: {{kind: noop}}}}
- {{step: a, tool: {{kind: noop}}}}"
        );
        let mut run = Run::started(&steps);
        run.fail("start");
        assert_eq!(run.open(), ["h"], "{guard}");
        let mut run = Run::started(&steps);
        run.complete("start", json!(1));
        assert_eq!(run.open(), ["a"], "{guard}");
    }
}

#[test]
fn a_handled_failure_satisfies_a_join() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}
- {step: a, tool: {kind: noop}, next: {arcs: [{step: j, on: error}, {step: j}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: j}]}}
- {step: j, tool: {kind: noop}}",
    );
    run.complete("start", json!(1));
    run.fail("a");
    run.complete("b", json!(1));
    assert_eq!(run.open(), ["j"]);
    run.complete("j", json!(1));
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn a_failing_execution_waits_for_running_commands_and_cancels_pending_ones() {
    check(
        "\
- {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}}
- {step: a, tool: {kind: noop}, next: {arcs: [{step: d}]}}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}
- {step: d, tool: {kind: noop}}",
        "start; complete s 1; claim a w; claim b w; fail b; complete a 1",
        "\
start
  playbook_started
  step.enter s #1
  command.issued s attempt 1
complete s 1
  call.done s 1
  command.completed s
  step.exit s done -> a, b, c
  step.enter a #1
  command.issued a attempt 1
  step.enter b #1
  command.issued b attempt 1
  step.enter c #1
  command.issued c attempt 1
claim a w
  command.claimed a by w
claim b w
  command.claimed b by w
fail b
  command.failed b unknown: it broke
  step.exit b failed: unknown: it broke -> nowhere
  command.cancelled c
complete a 1
  call.done a 1
  command.completed a
  step.exit a done -> nowhere
  playbook.failed at b unknown: it broke
",
    );
}

#[test]
fn a_failing_execution_can_abandon_running_commands() {
    check(
        "\
- {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}
- {step: a, tool: {kind: noop}}
- {step: b, tool: {kind: noop}}",
        "start; abandon; complete s 1; claim a w; fail b; abandon; late complete a 1",
        "\
start
  playbook_started
  step.enter s #1
  command.issued s attempt 1
abandon
  nothing
complete s 1
  call.done s 1
  command.completed s
  step.exit s done -> a, b
  step.enter a #1
  command.issued a attempt 1
  step.enter b #1
  command.issued b attempt 1
claim a w
  command.claimed a by w
fail b
  command.failed b unknown: it broke
  step.exit b failed: unknown: it broke -> nowhere
abandon
  command.cancelled a
  playbook.failed at b unknown: it broke
late complete a 1
  nothing
",
    );
}

#[test]
fn on_error_continue_takes_the_success_arcs() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, spec: {on_error: continue}, next: {arcs: [{step: a}]}}
- {step: a, tool: {kind: noop, input: {ok: '{{ start.status }}'}}}",
    );
    run.fail("start");
    assert_eq!(run.open(), ["a"]);
    let (_, open) = run.state.open_commands().next().unwrap();
    assert_eq!(open.issued.input["ok"], json!("error"));
}

#[test]
fn a_division_by_zero_fails_its_step_with_the_location() {
    let run = Run::started("- {step: start, tool: {kind: noop, input: {x: '{{ 1 / 0 }}'}}}");
    assert_eq!(run.state.status(), Status::Failed);
    let error = run.state.summary().error.unwrap();
    assert!(error.starts_with("template_error: "), "{error}");
    assert!(error.contains("1 / 0"), "{error}");
}

#[test]
fn a_condition_that_fails_to_evaluate_fails_its_step() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {arcs: [{step: a, when: 'output.n > \"x\"'}]}}
- {step: a, tool: {kind: noop}}",
    );
    run.complete("start", json!({"n": 1}));
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().starts_with("template_error: "));
}

#[test]
fn a_template_error_in_set_can_be_handled_by_an_error_arc() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, set: {ctx.x: '{{ 1 / 0 }}'}, next: {arcs: [{step: h, on: error}]}}
- {step: h, tool: {kind: noop}}",
    );
    run.complete("start", json!(1));
    assert_eq!(run.open(), ["h"]);
}

#[test]
fn later_steps_see_a_failed_step_as_its_arcs_do() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, set: {}, next: {arcs: [{step: b, on: error, set: {
    ctx.kind: '{{ output.error.kind }}', ctx.code: '{{ output.error.exit_code }}'}}]}}
- {step: b, tool: {kind: noop, input: {
    same: '{{ a.error.kind == ctx.kind and a.error.exit_code == ctx.code }}',
    code: '{{ a.exit_code }}', ok: '{{ a.ok }}', retryable: '{{ a.error.retryable }}'}}}",
    );
    let failure = Failure::new(FailureKind::ExitCode, "it ended with 4");
    let failure = failure.with_details(json!({"exit_code": 4}));
    let command = run.command("a");
    run.input(Input::Fail(Fail {
        command,
        failure,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
    }))
    .unwrap();
    let (_, open) = run.state.open_commands().next().unwrap();
    let expected = json!({"same": true, "code": 4, "ok": false, "retryable": false});
    assert_eq!(serde_json::Value::Object(open.issued.input.clone()), expected);
}

#[test]
fn a_condition_on_a_missing_value_is_false() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b, when: output.missing > 3}, {step: c}]}}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}",
    );
    run.complete("a", json!({}));
    assert_eq!(run.open(), ["c"]);
}
