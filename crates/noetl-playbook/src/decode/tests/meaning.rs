//! Tests of the meaning of valid documents.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use super::{HEAD, arcs, check, playbook, report, shown};
use crate::assignment::SetScope;
use crate::document::{JoinRule, OnError, Step, StepWork};

fn assignments(step: &Step) -> String {
    let mut text = String::new();
    for assignment in &step.set {
        let scope = match assignment.scope {
            SetScope::Ctx => "ctx",
            SetScope::Step => "step",
            SetScope::Iter => "iter",
        };
        let path = assignment.path.join("/");
        text.push_str(&format!("{scope} {path} = {}\n", shown(&assignment.value)));
    }
    text
}

#[test]
fn the_smallest_playbook_has_no_diagnostics() {
    assert_snapshot!(report("\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: greet, path: demo/greet}
workload: {who: world}
workflow:
  - step: start
    tool: {kind: python, input: {who: \"{{ workload.who }}\"}, code: 'result = {\"msg\": \"hi \" + who}'}
    set: {ctx.msg: \"{{ output.data.msg }}\"}
    next: {spec: {mode: exclusive}, arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
"), @"");
}

#[test]
fn execution_starts_at_the_entry_step_else_at_start_else_at_the_first() {
    let steps = "  - {step: a, tool: {kind: noop}}\n  - {step: start, tool: {kind: noop}}\n  - {step: b, tool: {kind: noop}}\n";
    let entry = |head: &str, steps: &str| {
        let playbook = check(&format!("{head}{HEAD}{steps}")).playbook.expect("no errors");
        playbook.step(playbook.entry).name.to_string()
    };
    assert_eq!(entry("executor: {spec: {entry_step: b}}\n", steps), "b");
    assert_eq!(entry("", steps), "start");
    assert_eq!(entry("", "  - {step: x, tool: {kind: noop}}\n"), "x");
}

#[test]
fn names_default_and_flags_are_read() {
    let text = format!(
        "executor: {{spec: {{no_next_is_error: true}}}}\n{HEAD}  - {{step: a, tool: {{kind: noop}}}}\n"
    );
    let playbook = check(&text).playbook.expect("no errors");
    assert_eq!((&*playbook.name, &*playbook.path), ("test", "test"));
    assert!(playbook.no_next_is_error);
    assert_eq!(playbook.find("a").map(|ix| ix.0), Some(0));
    assert_eq!(playbook.find("b"), None);
}

#[test]
fn an_end_that_no_arc_leads_to_is_implicit() {
    let implicit = |steps: &str| {
        let playbook = playbook(steps);
        playbook.implicit_end.map(|ix| playbook.step(ix).name.to_string())
    };
    assert_eq!(
        implicit("  - {step: start, tool: {kind: noop}}\n  - {step: end, tool: {kind: noop}}\n"),
        Some("end".to_owned())
    );
    assert_eq!(
        implicit(
            "  - {step: start, next: {arcs: [{step: end}]}}\n  - {step: end, tool: {kind: noop}}\n"
        ),
        None
    );
    assert_eq!(implicit("  - {step: end, tool: {kind: noop}}\n"), None);
    assert_eq!(implicit("  - {step: start, tool: {kind: noop}}\n"), None);
}

#[test]
fn conditions_decide_after_which_outcomes_an_arc_applies() {
    let playbook = playbook(
        "
  - step: start
    tool: {kind: noop}
    next:
      spec: {mode: inclusive, on_no_match: fail}
      arcs:
        - {step: a}
        - {step: a, when: true}
        - {step: a, when: false}
        - {step: a, when: ctx.n > 3}
        - {step: a, on: error}
        - {step: a, on: success, when: \"{{ output.status == 'ok' }}\"}
        - {step: a, when: \"{{ output.status == 'error' }}\", set: {ctx.e: 1, step.f: 2}}
        - {step: a, when: \"event.name == 'call.error'\"}
        - {step: a, when: \"event.name in ('call.done', \\\"call.error\\\")\"}
        - {step: a, when: \"ctx.x == 'call.done'\"}
  - {step: a, tool: {kind: noop}}
",
    );
    assert_snapshot!(arcs(&playbook, &playbook.steps[0]).replace(" a", "\na"), @r#"
    inclusive (or fails)
    a
    a
    a[never]
    a[ctx.n > 3]
    a!
    a[{{ output.status == 'ok' }}]
    a[{{ output.status == 'error' }}]!?+2
    a[event.name == 'step.failed']!?
    a[event.name in ('step.done', "step.failed")]!?
    a[ctx.x == 'call.done']
    "#);
}

#[test]
fn assignments_write_into_their_scope() {
    let playbook = playbook(
        "
  - step: start
    vars: {v: 1}
    set_ctx: {ctx.w: 2}
    set: {ctx.a.b: '{{ output }}', step.c: [1, '{{ x }}'], ctx: {d: null}, bare: 3}
    tool: {kind: noop}
",
    );
    assert_snapshot!(assignments(&playbook.steps[0]), @r#"
    ctx v = 1
    ctx w = 2
    ctx a/b = "<{{ output }}>"
    step c = [1,"<{{ x }}>"]
    ctx d = null
    ctx bare = 3
    "#);
}

#[test]
fn arguments_of_the_tool_override_those_of_the_step() {
    let playbook = playbook(
        "
  - step: start
    input: {a: step, b: '{{ step }}'}
    tool: {kind: noop, input: {b: tool, c: 3}}
  - step: whole
    tool: {kind: noop, input: '{{ ctx.all }}'}
  - step: none
    tool: {kind: noop}
",
    );
    let input = |index: usize| playbook.steps[index].tool().map(|tool| shown(&tool.input));
    assert_eq!(input(0), Some(json!({"a": "step", "b": "tool", "c": 3})));
    assert_eq!(input(1), Some(json!("<{{ ctx.all }}>")));
    assert_eq!(input(2), Some(json!({})));
}

#[test]
fn keys_that_the_engine_does_not_read_are_tool_settings() {
    let playbook = playbook(
        "
  - step: start
    tool:
      kind: http
      name: label
      url: 'http://x/{{ ctx.page }}'
      auth: {type: bearer, token: k}
      timeout: 5
      timeout_seconds: 6
      input: {a: 1}
      idempotent: true
      output: {select: [a]}
      spec: {headers: {a: '{{ b }}'}, url: ignored}
",
    );
    // What picks from its result is a pipeline of one.
    let StepWork::Pipeline(pipeline) = &playbook.steps[0].work else { panic!("a pipeline") };
    let tool = &pipeline.tasks[0].tool;
    let expected = json!({
        "url": "<http://x/{{ ctx.page }}>",
        "auth": {"type": "bearer", "token": "k"},
        "headers": {"a": "<{{ b }}>"},
    });
    assert_eq!(shown(&tool.config), expected);
}

#[test]
fn code_is_a_template_unless_it_is_raw() {
    let code = |raw: &str| {
        let playbook = playbook(&format!(
            "  - {{step: a, tool: {{kind: python, {raw}code: 'x = \"{{{{ y }}}}\"'}}}}\n"
        ));
        playbook.steps[0].tool().map(|tool| shown(&tool.config))
    };
    assert_eq!(code(""), Some(json!({"code": "<x = \"{{ y }}\">"})));
    assert_eq!(code("raw: false, "), Some(json!({"code": "<x = \"{{ y }}\">"})));
    assert_eq!(code("raw: true, "), Some(json!({"code": "x = \"{{ y }}\""})));
}

#[test]
fn the_innermost_timeout_applies() {
    let timeout = |tool: &str, step: &str| {
        let playbook = playbook(&format!("  - {{step: a, tool: {{kind: noop{tool}}}{step}}}\n"));
        playbook.steps[0].tool().and_then(|tool| tool.timeout)
    };
    let step = ", spec: {timeout: 1h}";
    assert_eq!(timeout("", ""), None);
    assert_eq!(timeout("", step), Some(Duration::from_secs(3600)));
    assert_eq!(timeout(", spec: {timeout: 5m}", step), Some(Duration::from_secs(300)));
    assert_eq!(
        timeout(", timeout_seconds: 30, spec: {timeout: 5m}", step),
        Some(Duration::from_secs(30))
    );
    assert_eq!(
        timeout(", timeout: 500ms, timeout_seconds: 30", step),
        Some(Duration::from_millis(500))
    );
    assert_eq!(timeout(", timeout: 1.5", ""), Some(Duration::from_millis(1500)));
    assert_eq!(timeout(", timeout: '30'", ""), Some(Duration::from_secs(30)));
}

#[test]
fn joins_and_on_error_are_read() {
    let playbook = playbook(
        "
  - {step: a, tool: {kind: noop}, join: each, spec: {on_error: continue}}
  - {step: b, tool: {kind: noop}, join: any, spec: {on_error: fail}}
  - {step: c, tool: {kind: noop}, join: all}
",
    );
    let read: Vec<_> = playbook.steps.iter().map(|step| (step.join, step.on_error)).collect();
    assert_eq!(
        read,
        [
            (JoinRule::Each, OnError::Continue),
            (JoinRule::Any, OnError::Fail),
            (JoinRule::All, OnError::Fail)
        ]
    );
}

#[test]
fn a_workload_keeps_literals_and_compiles_templates() {
    let text = format!(
        "workload: {{zip: '00501', n: 1.50, big: 18446744073709551615, t: '{{{{ env.X }}}}', on: off}}\n{HEAD}  - {{step: a, tool: {{kind: noop}}}}\n"
    );
    let playbook = check(&text).playbook.expect("no errors");
    assert_eq!(
        shown(&playbook.workload),
        json!({"zip": "00501", "n": 1.5, "big": 18446744073709551615u64, "t": "<{{ env.X }}>", "on": "off"})
    );
}

#[test]
fn a_timeout_template_is_a_tool_setting() {
    let playbook = playbook(
        "
  - {step: a, tool: {kind: noop, timeout_seconds: '{{ workload.t }}'}, spec: {timeout: 5}}
  - {step: b, tool: {kind: noop, spec: {timeout: '{{ workload.t }}'}}}
",
    );
    for step in &playbook.steps {
        let tool = step.tool().expect("a tool");
        assert_eq!(tool.timeout, None);
        assert_eq!(shown(&tool.config), json!({"timeout": "<{{ workload.t }}>"}));
    }
}
