use serde_json::json;

use super::harness::{Run, check};
use crate::Status;

#[test]
fn a_chain_runs_step_by_step_to_its_end() {
    check(
        "\
- {step: start, tool: {kind: noop}, next: {arcs: [{step: end}]}}
- {step: end, tool: {kind: noop}}",
        "start; claim start w; complete start 1; complete end {\"x\":2}",
        "\
start
  playbook_started
  step.enter start #1
  command.issued start attempt 1
claim start w
  command.claimed start by w
complete start 1
  call.done start 1
  command.completed start
  step.exit start done -> end
  step.enter end #1
  command.issued end attempt 1
complete end {\"x\":2}
  call.done end {\"x\":2}
  command.completed end
  step.exit end done -> nowhere
  playbook.completed {\"x\":2}
",
    );
}

#[test]
fn a_branch_without_a_matching_arc_ends() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {arcs: [{step: a, when: '{{ false }}'}]}}
- {step: a, tool: {kind: noop}}",
    );
    run.complete("start", json!(1));
    assert_eq!(run.state.status(), Status::Completed);
    assert_eq!(run.step_runs("a"), 0);
}

#[test]
fn exclusive_takes_only_the_first_matching_arc() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {spec: {mode: exclusive}, arcs: [
    {step: a, when: '{{ output.data.t > 25 }}'}, {step: b, when: '{{ output.t > 5 }}'}, {step: c}]}}
- {step: a, tool: {kind: noop}}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}",
    );
    run.complete("start", json!({"t": 10}));
    assert_eq!(run.open(), ["b"]);
}

#[test]
fn inclusive_takes_every_matching_arc() {
    check(
        "\
- {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [
    {step: a}, {step: b, when: 'false'}, {step: c, when: workload.n == 3}]}}
- {step: a, tool: {kind: noop}}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}",
        "start; complete start 0; complete c 3; complete a 1",
        "\
start
  playbook_started
  step.enter start #1
  command.issued start attempt 1
complete start 0
  call.done start 0
  command.completed start
  step.exit start done -> a, c
  step.enter a #1
  command.issued a attempt 1
  step.enter c #1
  command.issued c attempt 1
complete c 3
  call.done c 3
  command.completed c
  step.exit c done -> nowhere
complete a 1
  call.done a 1
  command.completed a
  step.exit a done -> nowhere
  playbook.completed 1
",
    );
}

#[test]
fn the_same_target_named_twice_is_entered_once() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: a}]}}
- {step: a, tool: {kind: noop}}",
    );
    run.complete("start", json!(1));
    assert_eq!(run.open(), ["a"]);
    run.complete("a", json!(1));
    assert_eq!(run.state.status(), Status::Completed);
    assert_eq!(run.step_runs("a"), 1);
}

#[test]
fn a_step_without_a_tool_routes_at_once() {
    let mut run = Run::started(
        "\
- {step: start, next: {arcs: [{step: a, when: workload.n > 5}, {step: b}]}}
- {step: a, tool: {kind: noop}}
- {step: b, tool: {kind: noop}}",
    );
    assert_eq!(run.open(), ["b"]);
    run.complete("b", json!("x"));
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn an_endless_cycle_of_routers_fails_with_a_reason() {
    let run = Run::started(
        "\
- {step: start, next: {arcs: [{step: b}]}}
- {step: b, next: {arcs: [{step: start}]}}",
    );
    assert_eq!(run.state.status(), Status::Failed);
    let error = run.state.summary().error.unwrap();
    assert!(error.contains("more than 10000 times"), "{error}");
}

#[test]
fn an_implicit_end_runs_once_after_all_other_steps() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}
- {step: a, tool: {kind: noop}}
- {step: b, tool: {kind: noop}}
- {step: end, tool: {kind: noop}}",
    );
    run.complete("start", json!(1));
    run.complete("a", json!(1));
    assert_eq!(run.open(), ["b"]);
    run.complete("b", json!(1));
    assert_eq!(run.open(), ["end"]);
    run.complete("end", json!("the end"));
    assert_eq!(run.state.status(), Status::Completed);
    assert_eq!(run.step_runs("end"), 1);
}

#[test]
fn a_short_branch_does_not_end_a_long_one() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: leaf}, {step: l1}]}}
- {step: leaf, tool: {kind: noop}}
- {step: l1, tool: {kind: noop}, next: {arcs: [{step: l2}]}}
- {step: l2, tool: {kind: noop}}",
    );
    run.complete("start", json!(1));
    run.complete("leaf", json!(1));
    run.complete("l1", json!(1));
    assert_eq!(run.state.status(), Status::Running);
    run.complete("l2", json!(1));
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn on_no_match_fail_fails_a_step_without_a_matching_arc() {
    let mut run = Run::started(
        "\
- {step: start, tool: {kind: noop}, next: {spec: {on_no_match: fail}, arcs: [{step: a, when: 'false'}]}}
- {step: a, tool: {kind: noop}}",
    );
    run.complete("start", json!(1));
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().contains("no arc of step 'start' matched"));
}

#[test]
fn an_endless_cycle_of_routers_cancels_pending_commands() {
    let mut run = Run::started(
        "\
- {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: t}, {step: x}]}}
- {step: t, tool: {kind: noop}}
- {step: x, next: {arcs: [{step: y}]}}
- {step: y, next: {arcs: [{step: x}]}}",
    );
    run.complete("s", json!(1));
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.open().is_empty());
}
