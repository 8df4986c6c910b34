//! Errors, each at its place and with its remedy.

use insta::assert_snapshot;

use super::{HEAD, report, report_steps};

#[test]
fn duplicate_step_names_are_rejected() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
  - step: start
    tool: {kind: noop}
"), @r"
    error[E005] at 8:11, workflow[1].step: step 'start' is defined on line 6 already
      help: rename one of lines 6 and 8
    ");
}

#[test]
fn a_step_with_neither_tool_nor_next_is_rejected() {
    assert_snapshot!(report_steps("
  - step: start
    desc: nothing here
"), @r"
    error[E010] at 6:5, workflow[0]: step 'start' has neither 'tool' nor 'next'
      help: add 'tool: {kind: noop}' if it does nothing, or 'next' if it only routes
    ");
}

#[test]
fn an_unknown_tool_kind_gets_a_suggestion() {
    assert_snapshot!(report_steps("
  - step: start
    tool:
      kind: pyhton
      code: result = 1
"), @r"
    error[E011] at 8:13, workflow[0].tool.kind: unknown tool kind 'pyhton'
      help: did you mean 'python'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    ");
}

#[test]
fn several_mistakes_are_reported_at_once() {
    assert_snapshot!(report("\
apiVersion: noetl.io/v3
kind: Playbook
metadata: {title: many}
workload: {ratio: .nan, base: {{ env.BASE }}}
workflow:
  - step: start
    tool: {kind: shel, command: ls}
    next: {spec: {mode: exclusiv}, arcs: [{step: fetch}, {when: true}]}
  - step: fecth
    tool: {kind: http, args: {a: 1}, input: {b: 2}}
    spec: {timeout: soon, on_error: ignore}
  - step: run
    tool: python
    join: some
  - step: run
    case: []
  - step: last
    set: {workload.x: 1, ctx..y: 2, cxt.z: 3}
"), @r#"
    error[E001] at 1:13, apiVersion: API version 'noetl.io/v3' is not supported
      help: write 'apiVersion: noetl.io/v2'
    error[E003] at 3:11, metadata: the playbook has no name
      help: add 'name: my-playbook'
    error[E009] at 4:19, workload.ratio: NaN cannot be part of data
      help: JSON has no such number; write it as text or leave it out
    error[E009] at 4:31: a value that begins with a template must be in quotes
      help: write "{{ env.BASE }}"
    error[E011] at 7:18, workflow[0].tool.kind: unknown tool kind 'shel'
      help: did you mean 'shell'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    error[E022] at 8:25, workflow[0].next.spec.mode: 'exclusiv' is not possible here
      help: did you mean 'exclusive'? write exclusive or inclusive
    error[E020] at 8:50, workflow[0].next.arcs[0].step: there is no step named 'fetch'
      help: did you mean 'fecth'?
    error[E023] at 8:58, workflow[0].next.arcs[1]: the arc has no 'step'
      help: name the step it leads to: '- {step: name, when: "…"}'
    error[E015] at 10:11, workflow[1].tool: tool kind 'http' needs 'url'
      help: add 'url: https://…'
    warning[W101] at 10:24, workflow[1].tool.args: 'args' is the older name of 'input'
      help: write 'input'
    error[E016] at 10:38, workflow[1].tool.input: 'input' repeats the tool's arguments
      help: keep everything under 'input'
    error[E009] at 11:21, workflow[1].spec.timeout: this is not a timeout between 1 ns and one year
      help: write seconds (30, 0.5) or a number with a unit: 500ms, 30s, 5m, 1h
    error[E009] at 11:37, workflow[1].spec.on_error: 'ignore' is not possible here
      help: write continue or fail
    error[E012] at 13:11, workflow[2].tool: the tool is a bare word
      help: write 'tool: {kind: python, code: …}'
    error[E009] at 14:11, workflow[2].join: 'some' is not possible here
      help: write all, each or any
    error[E005] at 15:11, workflow[3].step: step 'run' is defined on line 12 already
      help: rename one of lines 12 and 15
    error[E060] at 16:5, workflow[3].case: 'case' is not part of the language
      help: write the branches as arcs: next: {arcs: [{step: a, when: "…"}, {step: b}]}
    error[E010] at 17:5, workflow[4]: step 'last' has neither 'tool' nor 'next'
      help: add 'tool: {kind: noop}' if it does nothing, or 'next' if it only routes
    error[E017] at 18:23, workflow[4].set["workload.x"]: the workload cannot be changed
      help: write 'ctx.name'; the workload is what the execution was started with
    error[E017] at 18:34, workflow[4].set["ctx..y"]: the target has an empty name
      help: a target is a scope and names joined by dots: ctx.name, ctx.a.b, step.name
    error[E017] at 18:44, workflow[4].set["cxt.z"]: unknown scope 'cxt'
      help: did you mean 'ctx'? a target is ctx.name, iter.name or step.name
    "#);
}

#[test]
fn root_sections_are_checked() {
    assert_snapshot!(report("{}"), @r"
    error[E001] at 1:1: the document has no 'apiVersion'
      help: write 'apiVersion: noetl.io/v2'
    error[E002] at 1:1: the document has no 'kind'
      help: add 'kind: Playbook'
    error[E003] at 1:1: the playbook has no 'metadata'
      help: add 'metadata: {name: my-playbook}'
    error[E004] at 1:1: the playbook has no 'workflow'
      help: add 'workflow:' with at least one '- step: name'
    ");
    assert_snapshot!(report("[a, b]"), @r"
    error[E009] at 1:1: expected a mapping, found a list
      help: a playbook begins with 'apiVersion: noetl.io/v2' and 'kind: Playbook'
    ");
    assert_snapshot!(report("apiVersion: 2\nkind: 3\nmetadata: x\nworkload: 4\nworkflow: []\nexecutor: 5\n"), @r"
    error[E001] at 1:13, apiVersion: the API version is not text
      help: write 'apiVersion: noetl.io/v2'
    error[E002] at 2:7, kind: 'kind' is a word, found a number
      help: write 'kind: Playbook'
    error[E009] at 3:11, metadata: expected a mapping, found text
      help: add 'metadata: {name: my-playbook}'
    error[E009] at 4:11, workload: expected a mapping, found a number
      help: name each input: 'workload: {name: value}'
    error[E004] at 5:11, workflow: the workflow is empty
      help: add 'workflow:' with at least one '- step: name'
    error[E009] at 6:11, executor: expected a mapping, found a number
      help: write 'executor: {spec: {entry_step: name}}'
    ");
    assert_snapshot!(report("apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: ''}\nworkflow: {a: b}\n"), @r"
    error[E003] at 3:18, metadata.name: the name or path is empty
      help: write at least one character
    error[E004] at 4:11, workflow: the workflow is a list of steps, found a mapping
      help: begin each step with a dash: '- step: name'
    ");
    assert_snapshot!(report("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a}\nsteps: []\n"), @r"
    error[E004] at 4:1, steps: the steps stand under another name
      help: write 'workflow:'
    ");
}

#[test]
fn a_document_of_another_kind_gets_one_diagnostic() {
    assert_snapshot!(report("apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: a}\n"), @r"
    error[E002] at 2:7, kind: the document is a 'Subscription', not a Playbook
      help: only playbooks can be checked and executed
    ");
}

#[test]
fn a_missing_entry_step_is_rejected() {
    let text = format!(
        "executor: {{spec: {{entry_step: strat}}}}\n{HEAD}  - step: start\n    tool: {{kind: noop}}\n"
    );
    assert_snapshot!(report(&text), @r"
    error[E006] at 1:31, executor.spec.entry_step: there is no step named 'strat' to begin with
      help: did you mean 'start'?
    ");
}

#[test]
fn step_names_are_checked() {
    assert_snapshot!(report_steps("
  - tool: {kind: noop}
  - step: ''
    tool: {kind: noop}
  - step: 5
    tool: {kind: noop}
  - step: \"{{ a }}\"
    tool: {kind: noop}
  - name: b
    tool: {kind: noop}
  - just text
"), @r"
    error[E005] at 6:5, workflow[0]: the step has no name
      help: begin the step with '- step: name'
    error[E005] at 7:11, workflow[1].step: the step's name is empty
      help: begin the step with '- step: name'
    error[E005] at 9:11, workflow[2].step: a step's name is text, found a number
      help: put the name in quotes
    error[E005] at 11:11, workflow[3].step: a step's name cannot be a template
      help: write a fixed name
    error[E005] at 13:5, workflow[4].name: the step's name stands under another key
      help: write 'step:'
    error[E009] at 15:5, workflow[5]: expected a step, found text
      help: write '- step: name' with 'tool' or 'next' below it
    ");
}

#[test]
fn tools_are_checked_for_required_keys() {
    assert_snapshot!(report_steps("
  - step: a
    tool: {kind: python}
  - step: b
    tool: {kind: python, code: '  '}
  - step: c
    tool: {kind: python, code: [a]}
  - step: d
    tool: {kind: http, method: GET}
  - step: e
    tool: {kind: shell}
  - step: f
    tool: {kind: shell, cmds: [ls, pwd]}
  - step: g
    tool: {type: python, code: x}
  - step: h
    tool: []
  - step: i
    tool: [ls]
  - step: j
    tool: {one: {kind: noop}, two: {kind: noop}}
  - step: k
    tool: {kind: {a: b}}
  - step: l
    tool: {kind: noop, input: [1]}
  - step: m
    tool: {kind: noop, input: '{{ x }}'}
    input: {a: 1}
"), @r"
    error[E015] at 7:11, workflow[0].tool: tool kind 'python' needs 'code'
      help: add 'code: |' with the program
    error[E015] at 9:32, workflow[1].tool.code: 'code' of tool kind 'python' is empty
      help: add 'code: |' with the program
    error[E009] at 11:32, workflow[2].tool.code: expected text, found a list
      help: put it in quotes, or write it as a block with '|'
    error[E015] at 13:11, workflow[3].tool: tool kind 'http' needs 'url'
      help: add 'url: https://…'
    error[E015] at 15:11, workflow[4].tool: tool kind 'shell' needs 'command'
      help: add 'command: …'
    error[E011] at 19:11, workflow[6].tool: the tool has no 'kind'
      help: write 'kind: python' instead of 'type: python'
    error[E012] at 21:11, workflow[7].tool: the pipeline is empty
      help: write 'tool: {kind: …}'
    error[E012] at 23:12, workflow[8].tool[0]: a tool is a mapping, found text
      help: write 'tool: {kind: …}'
    error[E012] at 25:11, workflow[9].tool: the task has several labels
      help: write each task as '- {name: label, kind: …}'
    error[E011] at 27:18, workflow[10].tool.kind: a tool kind is a word, found a mapping
      help: write python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    error[E009] at 29:31, workflow[11].tool.input: expected a mapping, found a list
      help: name each argument: 'input: {name: value}'
    error[E009] at 31:31, workflow[12].tool.input: expected a mapping, found text
      help: name each argument: 'input: {name: value}'
    ");
}

#[test]
fn removed_constructs_are_rejected_with_their_replacement() {
    assert_snapshot!(report_steps("
  - step: a
    case: [{when: x, then: y}]
    type: python
    retry: {n: 1}
    sink: {}
    save: {}
    call: {}
    with: {}
    pass: true
    run: ls
  - step: b
    tool: {kind: noop, retry: 3, sink: {}}
"), @r#"
    error[E060] at 7:5, workflow[0].case: 'case' is not part of the language
      help: write the branches as arcs: next: {arcs: [{step: a, when: "…"}, {step: b}]}
    error[E060] at 8:5, workflow[0].type: 'type' is not part of the language
      help: write 'tool: {kind: …}' instead of 'type'
    error[E060] at 9:5, workflow[0].retry: 'retry' is not part of the language
      help: write a rule on the tool: spec: {policy: {rules: [{when: "{{ output.error }}", then: {do: retry, attempts: 3}}]}}
    error[E060] at 10:5, workflow[0].sink: 'sink' is not part of the language
      help: write the result with a step of its own that 'next' leads to
    error[E060] at 11:5, workflow[0].save: 'save' is not part of the language
      help: write the result with a step of its own that 'next' leads to
    error[E060] at 12:5, workflow[0].call: 'call' is not part of the language
      help: write 'tool: {kind: playbook, path: …}' or 'tool: {kind: workbook, name: …}'
    error[E060] at 13:5, workflow[0].with: 'with' is not part of the language
      help: name the arguments under 'input'
    error[E060] at 14:5, workflow[0].pass: 'pass' is not part of the language
      help: remove it; a step without a tool only routes, 'tool: {kind: noop}' does nothing
    error[E060] at 15:5, workflow[0].run: 'run' is not part of the language
      help: write 'tool: {kind: …}' with what it runs
    error[E060] at 17:24, workflow[1].tool.retry: 'retry' is not part of the language
      help: write a rule on the tool: spec: {policy: {rules: [{when: "{{ output.error }}", then: {do: retry, attempts: 3}}]}}
    error[E060] at 17:34, workflow[1].tool.sink: 'sink' is not part of the language
      help: write the result with a step of its own that 'next' leads to
    "#);
}

#[test]
fn timeouts_are_checked() {
    assert_snapshot!(report_steps("
  - step: a
    tool: {kind: noop, timeout: 0}
  - step: b
    tool: {kind: noop, timeout_seconds: 5 parsecs}
  - step: c
    tool: {kind: wait, seconds: 1, timeout: '{{ t'}
  - step: d
    tool: {kind: noop}
    spec: {timeout: 900d}
"), @r"
    error[E009] at 7:33, workflow[0].tool.timeout: this is not a timeout between 1 ns and one year
      help: write seconds (30, 0.5) or a number with a unit: 500ms, 30s, 5m, 1h
    error[E009] at 9:41, workflow[1].tool.timeout_seconds: this is not a timeout between 1 ns and one year
      help: write seconds (30, 0.5) or a number with a unit: 500ms, 30s, 5m, 1h
    error[E050] at 11:49, workflow[2].tool.timeout: the template does not compile: unexpected end of input, expected end of variable block
      help: check the braces, quotes and names of the template
    error[E009] at 14:21, workflow[3].spec.timeout: this is not a timeout between 1 ns and one year
      help: write seconds (30, 0.5) or a number with a unit: 500ms, 30s, 5m, 1h
    ");
}

#[test]
fn an_error_in_an_aliased_value_is_reported_at_the_anchor() {
    assert_snapshot!(report_steps("
  - step: a
    tool: &tool {kind: nop}
  - step: b
    tool: *tool
"), @r"
    error[E011] at 7:24, workflow[0].tool.kind: unknown tool kind 'nop'
      help: did you mean 'noop'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    error[E011] at 7:24, workflow[1].tool.kind: unknown tool kind 'nop'
      help: did you mean 'noop'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    ");
}
