//! What the language has and this version does not run.

use insta::assert_snapshot;

use super::{report, report_steps};

#[test]
fn tool_kinds_that_come_later_are_told_from_unknown_ones() {
    assert_snapshot!(report_steps("
  - step: a
    tool: {kind: postgres, query: select 1}
  - step: b
    tool: {kind: workbook, name: x}
  - step: c
    tool: {kind: postgre}
"), @r"
    error[E090] at 7:18, workflow[0].tool.kind: tool kind 'postgres' is not available in this version
      help: this version runs python, http, shell or noop
    error[E090] at 9:18, workflow[1].tool.kind: tool kind 'workbook' is not available in this version
      help: this version runs python, http, shell or noop
    error[E011] at 11:18, workflow[2].tool.kind: unknown tool kind 'postgre'
      help: did you mean 'postgres'? this version runs python, http, shell or noop
    ");
}

#[test]
fn loops_pipelines_and_policies_are_refused() {
    assert_snapshot!(report_steps("
  - step: a
    loop: {in: '{{ x }}', iterator: i, spec: {mode: paralel, max_in_flight: 0}, collect: y}
    tool: {kind: noop}
    set: {iter.x: 1}
  - step: b
    tool:
      - {name: one, kind: noop}
      - {name: two, kind: nop}
  - step: c
    tool: {kind: noop, eval: [{expr: x, do: fail}]}
    spec: {policy: {admit: {}}}
    set_iter: {x: 1}
  - step: d
    loop: {cursor: {kind: postgres}, in: x}
    tool: {kind: noop}
  - step: e
    loop: {cursor: {kind: postgres}}
    tool: {kind: noop}
  - step: f
    when: '{{ x }}'
    tool: {kind: python, script: {uri: 'file:///x'}}
  - step: g
    output: {select: [a]}
    tool: {kind: noop, output: {store: {kind: kv}}, spec: {result: {inline: true}}}
"), @r#"
    error[E090] at 7:11, workflow[0].loop: a loop is not available in this version
      help: process the whole list in one step, or step by step with an arc back
    error[E030] at 7:53, workflow[0].loop.spec.mode: 'paralel' is not possible here
      help: did you mean 'parallel'? write sequential, parallel or cursor
    error[E030] at 7:77, workflow[0].loop.spec.max_in_flight: 'max_in_flight' is at least 1
      help: write a whole number from 1, or leave it out
    warning[W102] at 7:81, workflow[0].loop.collect: unknown key 'collect', which has no effect
      help: remove it; known here: in, iterator, cursor, spec, mode
    error[E090] at 9:19, workflow[0].set["iter.x"]: assigning to iter is not available in this version
      help: write 'ctx.name'; iter belongs to loops
    error[E090] at 12:7, workflow[1].tool: a pipeline of several tasks is not available in this version
      help: write one step per task, joined by 'next'
    error[E011] at 13:27, workflow[1].tool[1].kind: unknown tool kind 'nop'
      help: did you mean 'noop'? this version runs python, http, shell or noop
    error[E090] at 15:30, workflow[2].tool.eval: a policy is not available in this version
      help: remove it; a failed step is handled by an arc with 'on: error'
    error[E090] at 16:20, workflow[2].spec.policy: a policy is not available in this version
      help: remove it; a failed step is handled by an arc with 'on: error'
    error[E090] at 17:5, workflow[2].set_iter: assigning to iter is not available in this version
      help: write 'ctx.name'; iter belongs to loops
    error[E030] at 19:11, workflow[3].loop: the loop has both 'in' and 'cursor'
      help: keep one of the two
    error[E090] at 19:11, workflow[3].loop: a loop is not available in this version
      help: process the whole list in one step, or step by step with an arc back
    error[E090] at 22:11, workflow[4].loop: a loop is not available in this version
      help: process the whole list in one step, or step by step with an arc back
    error[E031] at 22:20, workflow[4].loop.cursor: the cursor has no 'claim'
      help: a cursor names the statement that claims rows and its credential
    error[E031] at 22:20, workflow[4].loop.cursor: the cursor has no 'auth'
      help: a cursor names the statement that claims rows and its credential
    error[E090] at 25:5, workflow[5].when: a condition on the step itself is not available in this version
      help: put the condition on the arcs that lead to this step
    error[E090] at 26:34, workflow[5].tool.script: a script from outside the playbook is not available in this version
      help: put the program into 'code'
    error[E090] at 28:13, workflow[6].output: selecting parts of a result is not available in this version
      help: select what is needed where it is used: "{{ step.field }}"
    warning[W114] at 29:32, workflow[6].tool.output: 'output' has no effect in this version
      help: remove it; results are kept whole
    warning[W114] at 29:60, workflow[6].tool.spec.result: 'result' under 'spec' has no effect in this version
      help: remove it; results are kept whole
    "#);
}

#[test]
fn root_sections_that_come_later_are_refused_unless_empty() {
    assert_snapshot!(report("\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a}
keychain: [{name: k, kind: static}]
workbook: {tasks: {}}
executor:
  profile: local
  spec: {final_step: a, policy: {}, no_next_is_error: maybe}
workflow:
  - step: a
    tool: {kind: noop}
"), @r"
    error[E090] at 4:11, keychain: a keychain is not available in this version
      help: pass what is needed as workload
    error[E090] at 5:11, workbook: a workbook is not available in this version
      help: write each task as the tool of the steps that use it
    error[E090] at 8:22, executor.spec.final_step: 'final_step' is not available in this version
      help: lead every branch to that step with 'next', or name it 'end'
    error[E090] at 8:33, executor.spec.policy: a policy is not available in this version
      help: remove it; a failed step is handled by an arc with 'on: error'
    error[E009] at 8:55, executor.spec.no_next_is_error: expected true or false, found text
      help: write true or false
    ");
    assert_snapshot!(report("\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a}
keychain: []
workbook: []
workflow: [{step: a, tool: {kind: noop}}]
"), @"");
}
