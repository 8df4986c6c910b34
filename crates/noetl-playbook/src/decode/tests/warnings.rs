//! Documents that work and deserve a second look.

use insta::assert_snapshot;

use super::{report, report_steps};

#[test]
fn unknown_keys_cause_warnings_except_in_tools() {
    assert_snapshot!(report_steps("
  - step: start
    descr: x
    tool: {kind: noop, anything: goes}
    spec: {tiemout: 3}
    next: {spec: {priority: 1}, arcs: [{step: end, wen: x}], colour: red}
  - step: end
    tool: {kind: noop}
"), @r"
    warning[W102] at 7:5, workflow[0].descr: unknown key 'descr', which has no effect
      help: did you mean 'desc'?
    warning[W102] at 9:12, workflow[0].spec.tiemout: unknown key 'tiemout', which has no effect
      help: did you mean 'timeout'?
    warning[W102] at 10:19, workflow[0].next.spec.priority: unknown key 'priority', which has no effect
      help: remove it; known here: mode, on_no_match
    warning[W102] at 10:52, workflow[0].next.arcs[0].wen: unknown key 'wen', which has no effect
      help: did you mean 'when'?
    warning[W102] at 10:62, workflow[0].next.colour: unknown key 'colour', which has no effect
      help: remove it; known here: spec, arcs, desc
    ");
}

#[test]
fn unreachable_steps_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - step: cleanup
    tool: {kind: noop}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: noop}
    next: {arcs: [{step: cleanup}]}
  - step: end
    tool: {kind: noop}
"), @r"
    warning[W103] at 9:11, workflow[1].step: no path leads to step 'cleanup'
      help: lead an arc to it, or remove it
    warning[W103] at 12:11, workflow[2].step: no path leads to step 'after'
      help: lead an arc to it, or remove it
    ");
}

#[test]
fn an_implicit_end_step_is_not_unreachable() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
  - step: end
    tool: {kind: noop}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: noop}
"), @"");
}

#[test]
fn conditions_with_text_around_templates_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
    next:
      arcs:
        - {step: start, when: '{{ a }} and {{ b }}'}
        - {step: start, when: \"{{ a }} == 'x'\"}
        - {step: start, when: '{% if a %}yes{% endif %}'}
        - {step: start, when: \"  {{ a == 'x' }} \"}
        - {step: start, when: \"{{ output.status == 'success' }}\"}
        - {step: start, when: 'outcome.status!=\"success\"'}
        - {step: start, when: yes}
        - {step: start, when: Off}
        - {step: start}
"), @r#"
    warning[W104] at 10:31, workflow[0].next.arcs[0].when: the condition is text around templates, not one expression, and so almost always true
      help: put the whole expression into one pair of braces: "{{ a and b }}"
    warning[W108] at 10:31, workflow[0].next.arcs[0].when: nothing in this playbook gives 'a' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W108] at 10:31, workflow[0].next.arcs[0].when: nothing in this playbook gives 'b' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W104] at 11:31, workflow[0].next.arcs[1].when: the condition is text around templates, not one expression, and so almost always true
      help: put the whole expression into one pair of braces: "{{ a and b }}"
    warning[W111] at 14:31, workflow[0].next.arcs[4].when: output.status is 'ok' or 'error', never 'success'
      help: write output.status == 'ok', or just output.ok
    warning[W101] at 15:31, workflow[0].next.arcs[5].when: 'outcome' is an older name
      help: write 'output'
    warning[W111] at 15:31, workflow[0].next.arcs[5].when: output.status is 'ok' or 'error', never 'success'
      help: write output.status == 'ok', or just output.ok
    warning[W106] at 16:11, workflow[0].next.arcs[6]: this arc is always taken, so those after it never are
      help: move it to the end, give it a 'when', or use 'spec: {mode: inclusive}'
    warning[W113] at 16:31, workflow[0].next.arcs[6].when: 'yes' is text in YAML 1.2; it is taken as true
      help: write true
    warning[W113] at 17:31, workflow[0].next.arcs[7].when: 'Off' is text in YAML 1.2; it is taken as false
      help: write false
    "#);
}

#[test]
fn routers_that_can_match_no_arc_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: b, when: x}]}
  - step: b
    tool: {kind: noop}
    next: {spec: {on_no_match: complete}, arcs: [{step: c, when: x}]}
  - step: c
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: d, when: x}]}
  - step: d
    tool: {kind: noop}
    next: {arcs: [{step: a}, {step: b, on: error, when: x}]}
  - step: a
    tool: {kind: noop}
    next: {arcs: [{step: b, when: \"event.name == 'step.failed'\"}]}
"), @r"
    warning[W105] at 8:19, workflow[0].next.arcs[0]: the last arc has a condition, so it can happen that none is taken
      help: add an arc without 'when' at the end, or say 'spec: {on_no_match: complete}' (or fail)
    warning[W108] at 8:35, workflow[0].next.arcs[0].when: nothing in this playbook gives 'x' a value
      help: declare it under 'workload', or assign it with 'set'
    ");
}

#[test]
fn unreachable_arcs_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: b}, {step: c}]}
  - step: b
    tool: {kind: noop}
    next: {arcs: [{step: c}, {step: d, on: error}, {step: d, when: output.error}]}
  - step: c
    tool: {kind: noop}
    next: {arcs: [{step: d, on: error}, {step: start, on: error}, {step: d}]}
  - step: d
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}
"), @r"
    warning[W106] at 8:19, workflow[0].next.arcs[0]: this arc is always taken, so those after it never are
      help: move it to the end, give it a 'when', or use 'spec: {mode: inclusive}'
    warning[W110] at 12:11, workflow[2].step: step 'c' is led to by 'd' at once and by way of another of its arcs; it runs once, after that
      help: write 'join: all' if that is meant, 'join: each' to run it for both
    warning[W106] at 14:19, workflow[2].next.arcs[0]: this arc is always taken, so those after it never are
      help: move it to the end, give it a 'when', or use 'spec: {mode: inclusive}'
    ");
}

#[test]
fn names_that_shadow_others_cause_warnings() {
    assert_snapshot!(report("\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a}
workload: {fetch: 1}
workflow:
  - {step: fetch, tool: {kind: noop}, next: {arcs: [{step: output}]}}
  - {step: output, tool: {kind: noop}}
"), @r"
    warning[W109] at 6:12, workflow[0].step: step 'fetch' has the name of an input in the workload
      help: rename the step, so that templates cannot mix them up
    warning[W109] at 7:12, workflow[1].step: step 'output' has the name of something templates always see
      help: rename the step, so that templates cannot mix them up
    ");
}

#[test]
fn arguments_of_a_step_without_a_tool_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: start
    input: {a: 1}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
"), @r"
    warning[W114] at 7:12, workflow[0].input: a step without a tool has no use for arguments
      help: remove it, or add the tool it is for
    ");
}

#[test]
fn diagnostics_beyond_the_limit_are_only_counted() {
    let steps: String =
        (0..600).map(|n| format!("  - {{step: s{n}, tool: {{kind: nop}}}}\n")).collect();
    let report = report_steps(&steps);
    assert_eq!(report.matches("E011").count(), 500);
    assert!(
        report.contains("error[E099] at 504:31: 100 more errors are not listed; the first 500 are"),
        "{report}"
    );
}

#[test]
fn undefined_names_cause_warnings() {
    assert_snapshot!(report("\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a}
workload: {limit: 3}
vars: {first: 1}
keychain: [{name: api, kind: static}]
workflow:
  - step: start
    loop: {in: [1], iterator: item}
    input: {given: 1}
    tool:
      - {name: pull, kind: noop, result: '{{ limmit }} {{ limit }} {{ first }} {{ item }} {{ now() }}'}
      - {kind: noop, result: '{{ pull }} {{ later }} {{ step2 }} {{ given }} {% set local = 1 %}{{ local }}'}
      - {kind: http, url: '{{ keychain.api.url }}', headers: {a: '{{ keychain.apo.key }}'}}
    set: {ctx.later: '{{ response.x }}'}
    next: {arcs: [{step: step2, when: \"{{ maybe | default(true) and other is defined }}\"}, {step: step2}]}
  - step: step2
    tool: {kind: noop, result: '{{ limmit }} {{ ctx.anything }} {{ workload.anything }} {{ strt }}'}
"), @r#"
    warning[W101] at 5:1, vars: 'vars' is an older section; its names begin as ctx variables
      help: put constants into 'workload', and assign with 'set'
    warning[W108] at 12:42, workflow[0].tool[0].result: nothing in this playbook gives 'limmit' a value
      help: did you mean 'limit'? declare it under 'workload', or assign it with 'set'
    warning[W108] at 14:66, workflow[0].tool[2].headers.a: the keychain declares no credential 'apo'
      help: add 'keychain: [{name: apo, kind: credential, …}]'
    warning[W108] at 15:22, workflow[0].set["ctx.later"]: nothing in this playbook gives 'response' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W108] at 18:32, workflow[1].tool.result: nothing in this playbook gives 'strt' a value
      help: did you mean 'str'? declare it under 'workload', or assign it with 'set'
    "#);
}

#[test]
fn a_branch_that_returns_to_its_split_causes_a_warning() {
    let split = |join: &str| {
        report_steps(&format!(
            "
  - {{step: start, next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b}}]}}}}
  - {{step: a, tool: {{kind: noop}}, next: {{arcs: [{{step: b}}]}}}}
  - {{step: b, tool: {{kind: noop}}{join}}}
"
        ))
    };
    assert_snapshot!(split(""), @r"
    warning[W110] at 8:12, workflow[2].step: step 'b' is led to by 'start' at once and by way of another of its arcs; it runs once, after that
      help: write 'join: all' if that is meant, 'join: each' to run it for both
    ");
    assert_eq!(split(", join: all"), "");
    assert_snapshot!(report_steps("
  - {step: start, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}
  - {step: a, tool: {kind: noop}, next: {arcs: [{step: end}]}}
  - {step: b, tool: {kind: noop}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop}}
"), @"");
}

#[test]
fn names_of_steps_and_items_that_templates_cannot_use_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: none}, {step: 'true'}, {step: 'not'}, {step: nothing}, {step: a-b}]}
  - {step: none, tool: {kind: noop}}
  - {step: 'true', tool: {kind: noop}}
  - {step: 'not', tool: {kind: noop}}
  - {step: nothing, loop: {in: [1], iterator: 'False'}, tool: {kind: noop}}
  - {step: a-b, tool: {kind: noop}}
"), @r#"
    warning[W118] at 9:12, workflow[1].step: in a template 'none' is a word of its own, never this step
      help: rename the step, or write 'steps["none"]'
    warning[W118] at 10:12, workflow[2].step: in a template 'true' is a word of its own, never this step
      help: rename the step, or write 'steps["true"]'
    warning[W118] at 11:12, workflow[3].step: in a template 'not' is a word of its own, never this step
      help: rename the step, or write 'steps["not"]'
    warning[W118] at 12:47, workflow[4].loop.iterator: in a template 'False' is a word of its own, never this item
      help: name the item otherwise: 'iterator: item'
    "#);
}
