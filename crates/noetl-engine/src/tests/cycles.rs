use serde_json::json;

use super::harness::{Run, check};
use crate::Status;

#[test]
fn a_cycle_numbers_each_step_run() {
    check(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: a, when: output.again}]}}",
        "start; complete a 1; complete b {\"again\":true}; complete a 2; complete b {\"again\":false}",
        "\
start
  playbook_started
  step.enter a #1
  command.issued a attempt 1
complete a 1
  call.done a 1
  command.completed a
  step.exit a done -> b
  step.enter b #1
  command.issued b attempt 1
complete b {\"again\":true}
  call.done b {\"again\":true}
  command.completed b
  step.exit b done -> a again
  step.enter a #2
  command.issued a attempt 1
complete a 2
  call.done a 2
  command.completed a
  step.exit a done -> b
  step.enter b #2
  command.issued b attempt 1
complete b {\"again\":false}
  call.done b {\"again\":false}
  command.completed b
  step.exit b done -> nowhere
  playbook.completed {\"again\":false}
",
    );
}

#[test]
fn a_self_arc_repeats_its_step_until_its_condition_is_false() {
    let mut run = Run::started(
        "\
- {step: s, tool: {kind: noop}, set: {ctx.visits: '{{ ctx.visits | default(0) + 1 }}'},
   next: {arcs: [{step: s, when: ctx.visits < 5}, {step: done}]}}
- {step: done, tool: {kind: noop, input: {n: '{{ ctx.visits }}'}}}",
    );
    for _ in 0..5 {
        assert_eq!(run.open(), ["s"]);
        run.complete("s", json!(0));
    }
    assert_eq!(run.open(), ["done"]);
    assert_eq!(run.step_runs("s"), 5);
}

#[test]
fn a_choice_in_a_cycle_ignores_decisions_of_earlier_step_runs() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [
    {step: x, when: output.way == 'x'}, {step: y, when: output.way == 'y'}, {step: done}]}}
- {step: x, tool: {kind: noop}, next: {arcs: [{step: a}]}}
- {step: y, tool: {kind: noop}, next: {arcs: [{step: a}]}}
- {step: done, tool: {kind: noop}}",
    );
    for way in ["x", "y", "x"] {
        run.complete("a", json!({ "way": way }));
        assert_eq!(run.open(), [way]);
        run.complete(way, json!(1));
        assert_eq!(run.open(), ["a"]);
    }
    run.complete("a", json!({"way": "out"}));
    run.complete("done", json!(1));
    assert_eq!(run.state.status(), Status::Completed);
    assert_eq!((run.step_runs("a"), run.step_runs("x"), run.step_runs("y")), (4, 2, 1));
}

#[test]
fn templates_see_the_result_of_the_latest_step_run() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: a, when: a.n < 2}, {step: b}]}}
- {step: b, tool: {kind: noop, input: {n: '{{ a.n }}'}}}",
    );
    run.complete("a", json!({"n": 1}));
    run.complete("a", json!({"n": 2}));
    let (_, open) = run.state.open_commands().next().unwrap();
    assert_eq!(open.issued.input["n"], json!(2));
}
