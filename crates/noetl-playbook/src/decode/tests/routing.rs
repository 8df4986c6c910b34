//! Mistakes in `next` and its arcs.

use insta::assert_snapshot;

use super::report_steps;

#[test]
fn an_arc_to_a_missing_step_is_rejected() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: finsh}, {step: nowhere}]}
  - step: finish
    tool: {kind: noop}
"), @r"
    error[E020] at 8:26, workflow[0].next.arcs[0].step: there is no step named 'finsh'
      help: did you mean 'finish'?
    error[E020] at 8:41, workflow[0].next.arcs[1].step: there is no step named 'nowhere'
      help: add a step named 'nowhere', or lead the arc to one that exists
    ");
}

#[test]
fn invalid_forms_of_next_are_rejected() {
    assert_snapshot!(report_steps("
  - step: a
    tool: {kind: noop}
    next: 5
  - step: b
    next: {mode: inclusive}
  - step: c
    next: {arcs: {step: a}}
  - step: d
    next: {arcs: [{when: true}, 7, {step: [a]}]}
  - step: e
    next: {spec: {on_no_match: explode}, arcs: [{step: a, on: failure}]}
  - step: f
    next: [{when: x, then: [a, b]}, {else: c}]
  - step: g
    next: [{when: x, then: {step: a, when: y}}]
  - step: h
    next: {arcs: [{step: a, when: x, cond: y}, {step: a, when: }, {step: b, when: [1]}, {step: '{{ c }}'}]}
"), @r#"
    error[E021] at 8:11, workflow[0].next: 'next' is a number
      help: write 'next: {arcs: [{step: name}]}'
    error[E021] at 10:11, workflow[1].next: 'next' has neither 'arcs' nor 'step'
      help: write 'next: {arcs: [{step: name, when: "…"}]}'
    error[E021] at 12:18, workflow[2].next.arcs: 'arcs' is a list, found a mapping
      help: begin each arc with a dash: '- step: name'
    error[E023] at 14:19, workflow[3].next.arcs[0]: the arc has no 'step'
      help: name the step it leads to: '- {step: name, when: "…"}'
    error[E023] at 14:33, workflow[3].next.arcs[1]: an arc is a mapping, found a number
      help: write '- step: name'
    error[E009] at 14:43, workflow[3].next.arcs[2].step: expected the name of a step, found a list
      help: write the name as text
    error[E009] at 16:32, workflow[4].next.spec.on_no_match: 'explode' is not possible here
      help: write complete, quiet or fail
    error[E009] at 16:63, workflow[4].next.arcs[0].on: 'failure' is not possible here
      help: write error or success
    warning[W101] at 18:11, workflow[5].next: 'next' is a when/then/else list
      help: write 'next: {arcs: [{step: a, when: "…"}, {step: b}]}'
    error[E021] at 18:12, workflow[5].next[0]: a branch among others leads to several steps
      help: write 'next: {spec: {mode: inclusive}, arcs: […]}' with a 'when' on every arc
    warning[W108] at 18:19, workflow[5].next[0].when: nothing in this playbook gives 'x' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W101] at 20:11, workflow[6].next: 'next' is a when/then/else list
      help: write 'next: {arcs: [{step: a, when: "…"}, {step: b}]}'
    error[E021] at 20:28, workflow[6].next[0].then: a branch has a condition inside its condition
      help: combine both in one 'when' with 'and'
    error[E016] at 22:38, workflow[7].next.arcs[0].cond: the arc has two conditions
      help: keep 'when' and combine the two with 'and'
    error[E009] at 22:62, workflow[7].next.arcs[1].when: the condition is empty
      help: write a condition, or leave the key out for one that always holds
    error[E009] at 22:83, workflow[7].next.arcs[2].when: expected a condition, found a list
      help: write an expression: when: "{{ ctx.n > 3 }}"
    error[E020] at 22:96, workflow[7].next.arcs[3].step: there is no step named '{{ c }}'
      help: targets are fixed; write one arc per step and choose with 'when'
    "#);
}
