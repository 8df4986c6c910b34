//! Older forms: their meaning, and the suggested rewrites.

use insta::assert_snapshot;

use super::{HEAD, arcs, playbook, report, report_steps};

/// Returns the arcs of the first of three steps with this `next`, and the diagnostics.
fn next(next: &str) -> String {
    let steps = format!(
        "  - step: start\n    tool: {{kind: noop}}\n    {next}\n  - {{step: a, tool: {{kind: noop}}}}\n  - {{step: b, tool: {{kind: noop}}}}\n  - {{step: c, tool: {{kind: noop}}}}\n"
    );
    let playbook = playbook(&steps);
    let diagnostics = report_steps(&steps);
    let relevant =
        diagnostics.lines().filter(|line| !line.contains("W103") && !line.contains("lead an arc"));
    let relevant: Vec<_> = relevant.collect();
    format!("{}\n{}", arcs(&playbook, &playbook.steps[0]), relevant.join("\n"))
}

#[test]
fn next_as_a_name_is_one_arc() {
    assert_snapshot!(next("next: a"), @r"
    exclusive a
    warning[W101] at 7:11, workflow[0].next: 'next' is a bare name
      help: write 'next: {arcs: [{step: name}]}'
    ");
}

#[test]
fn next_as_a_list_of_names_takes_all_of_them() {
    assert_snapshot!(next("next: [a, b]"), @r"
    inclusive a b
    warning[W101] at 7:11, workflow[0].next: 'next' is a list; every arc of it that matches is taken
      help: write 'next: {spec: {mode: inclusive}, arcs: […]}'
    ");
}

#[test]
fn next_as_a_list_of_names_obeys_next_mode() {
    assert_snapshot!(next("next: [a, b]\n    spec: {next_mode: exclusive}"), @r"
    exclusive a b
    warning[W101] at 7:11, workflow[0].next: 'next' is a list; the first arc of it that matches is taken
      help: write 'next: {spec: {mode: exclusive}, arcs: […]}'
    warning[W106] at 7:12, workflow[0].next[0]: this arc is always taken, so those after it never are
      help: move it to the end, give it a 'when', or use 'spec: {mode: inclusive}'
    warning[W101] at 8:12, workflow[0].spec.next_mode: 'next_mode' is the older place of the mode
      help: write 'next: {spec: {mode: …}}'
    ");
}

#[test]
fn next_as_a_list_of_arcs_takes_the_first_that_matches() {
    assert_snapshot!(next("next: [{step: a, when: ctx.x}, {step: b}]"), @r"
    exclusive a[ctx.x] b
    warning[W101] at 7:11, workflow[0].next: 'next' is a list; the first arc of it that matches is taken
      help: write 'next: {spec: {mode: exclusive}, arcs: […]}'
    ");
}

#[test]
fn next_as_a_list_of_arcs_obeys_next_mode() {
    assert_snapshot!(next("next: [{step: a, when: ctx.x}, b]\n    spec: {next_mode: inclusive}"), @r"
    inclusive a[ctx.x] b
    warning[W101] at 7:11, workflow[0].next: 'next' is a list; every arc of it that matches is taken
      help: write 'next: {spec: {mode: inclusive}, arcs: […]}'
    warning[W101] at 8:12, workflow[0].spec.next_mode: 'next_mode' is the older place of the mode
      help: write 'next: {spec: {mode: …}}'
    ");
}

#[test]
fn next_as_a_single_arc_is_that_arc() {
    assert_snapshot!(next("next: {step: a, set: {ctx.x: 1}}"), @r"
    exclusive a+1
    warning[W101] at 7:11, workflow[0].next: 'next' is a single arc without 'arcs'
      help: write 'next: {arcs: [{step: name}]}'
    ");
}

#[test]
fn next_as_a_when_then_else_list_is_an_exclusive_router() {
    assert_snapshot!(next("next: [{when: x, then: [{step: a}]}, {when: y, then: b}, {else: [{step: c, set: {ctx.a: 1}}]}]"), @r#"
    exclusive a[x] b[y] c+1
    warning[W101] at 7:11, workflow[0].next: 'next' is a when/then/else list
      help: write 'next: {arcs: [{step: a, when: "…"}, {step: b}]}'
    warning[W108] at 7:19, workflow[0].next[0].when: nothing in this playbook gives 'x' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W108] at 7:49, workflow[0].next[1].when: nothing in this playbook gives 'y' a value
      help: declare it under 'workload', or assign it with 'set'
    "#);
    assert_snapshot!(next("next: [{when: output.error, then: {step: a}}, {else: {then: b}}]"), @r#"
    exclusive a[output.error]!? b
    warning[W101] at 7:11, workflow[0].next: 'next' is a when/then/else list
      help: write 'next: {arcs: [{step: a, when: "…"}, {step: b}]}'
    "#);
    assert_snapshot!(next("next: {when: x, then: [a, b]}"), @r#"
    inclusive a[x] b[x]
    warning[W101] at 7:11, workflow[0].next: 'next' is a when/then/else list
      help: write 'next: {arcs: [{step: a, when: "…"}, {step: b}]}'
    warning[W108] at 7:18, workflow[0].next.when: nothing in this playbook gives 'x' a value
      help: declare it under 'workload', or assign it with 'set'
    "#);
}

#[test]
fn an_empty_next_is_a_leaf() {
    for empty in ["next: {}", "next: []", "next: {arcs: []}", "next:", "next: {arcs: }"] {
        assert_eq!(next(empty), "exclusive\n", "{empty}");
    }
}

#[test]
fn arcs_have_older_keys() {
    assert_snapshot!(next("next: {mode: inclusive, on_no_match: fail, arcs: [{step: a, cond: x, args: {k: 1}}, {step: b, condition: y}, c]}"), @r"
    inclusive (or fails) a[x]+1 b[y] c
    warning[W101] at 7:12, workflow[0].next.mode: 'mode' stands beside 'arcs'
      help: write it under 'spec': 'next: {spec: {mode: …}}'
    warning[W101] at 7:29, workflow[0].next.on_no_match: 'on_no_match' stands beside 'arcs'
      help: write it under 'spec': 'next: {spec: {on_no_match: …}}'
    warning[W101] at 7:65, workflow[0].next.arcs[0].cond: 'cond' is taken as 'when': this arc is guarded here, while other engines ignore 'cond' and always take it
      help: write 'when' instead of 'cond'
    warning[W108] at 7:71, workflow[0].next.arcs[0].cond: nothing in this playbook gives 'x' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W101] at 7:74, workflow[0].next.arcs[0].args: 'args' is the older name of 'set' into ctx
      help: write 'set: {ctx.name: value}'
    warning[W101] at 7:99, workflow[0].next.arcs[1].condition: 'condition' is taken as 'when': this arc is guarded here, while other engines ignore 'condition' and always take it
      help: write 'when' instead of 'condition'
    warning[W108] at 7:110, workflow[0].next.arcs[1].condition: nothing in this playbook gives 'y' a value
      help: declare it under 'workload', or assign it with 'set'
    ");
}

#[test]
fn step_and_tool_arguments_have_older_names() {
    assert_snapshot!(report_steps("
  - step: start
    args: {a: 1}
    vars: {v: '{{ result.x }}'}
    set_ctx: {w: 1}
    set: {plain: 2}
    tool: {kind: noop, args: {b: 2}}
"), @r"
    warning[W101] at 7:5, workflow[0].args: 'args' is the older name of 'input'
      help: write 'input'
    warning[W101] at 8:5, workflow[0].vars: 'vars' is the older name of 'set' into ctx
      help: write 'set: {ctx.name: value}'
    warning[W101] at 9:5, workflow[0].set_ctx: 'set_ctx' is the older name of 'set' into ctx
      help: write 'set: {ctx.name: value}'
    warning[W101] at 10:18, workflow[0].set.plain: the target 'plain' names no scope and is taken as ctx.plain
      help: write 'ctx.plain'
    warning[W101] at 11:24, workflow[0].tool.args: 'args' is the older name of 'input'
      help: write 'input'
    ");
}

#[test]
fn arguments_under_two_names_are_rejected() {
    assert_snapshot!(report_steps("
  - step: start
    args: {a: 1}
    input: {a: 2}
    tool: {kind: noop, input: {b: 2}, args: {b: 3}}
"), @r"
    error[E016] at 7:5, workflow[0].args: 'args' repeats the step's arguments
      help: keep everything under 'input'
    error[E016] at 9:39, workflow[0].tool.args: 'args' repeats the tool's arguments
      help: keep everything under 'input'
    ");
}

#[test]
fn root_vars_and_spec_are_decoded_with_a_warning() {
    let text = format!(
        "vars: {{n: '{{{{ workload.n }}}}'}}\nspec: {{state: ready}}\n{HEAD}  - {{step: a, tool: {{kind: noop}}}}\n"
    );
    assert_snapshot!(report(&text), @r"
    warning[W101] at 1:1, vars: 'vars' is an older section; its names begin as ctx variables
      help: put constants into 'workload', and assign with 'set'
    warning[W101] at 2:1, spec: the root key 'spec' is data that templates see as 'spec'
      help: put it into 'workload'
    ");
    let playbook = super::check(&text).playbook.expect("warnings only");
    assert_eq!(playbook.vars[0].0, "n");
    assert_eq!(playbook.spec, Some(serde_json::json!({"state": "ready"})));
}

#[test]
fn tasks_in_a_list_of_one_or_under_a_label_are_that_tool() {
    let kinds = playbook(
        "
  - {step: a, tool: [{name: x, kind: noop}], next: {arcs: [{step: b}]}}
  - {step: b, tool: [{label: {kind: noop}}], next: {arcs: [{step: c}]}}
  - {step: c, tool: {label: {kind: noop}}}
",
    );
    assert!(kinds.steps.iter().all(|step| step.tool().is_some_and(|tool| &*tool.kind == "noop")));
    assert_snapshot!(report_steps("  - {step: b, tool: [{label: {kind: noop}}]}\n"), @r"
    warning[W101] at 5:23, workflow[0].tool[0].label: the tool is nested under its label
      help: write '{name: label, kind: …}'
    ");
}

#[test]
fn settings_under_spec_are_the_tools_own() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: http, method: GET, spec: {endpoint: 'http://x', method: POST, timeout: 5}}
"), @r"
    warning[W101] at 7:43, workflow[0].tool.spec: settings of the tool stand under 'spec': endpoint
      help: write them beside 'kind'
    ");
}
