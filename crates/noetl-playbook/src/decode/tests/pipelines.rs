//! Pipelines: every form they are written in, and what their source says.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{playbook, report_steps};
use crate::document::{ControlToolKind, Playbook, Segment, StepWork};

/// Returns the source of a step's pipeline.
fn source(playbook: &Playbook, step: usize) -> Value {
    match &playbook.steps[step].work {
        StepWork::Pipeline(pipeline) => (*pipeline.source).clone(),
        other => panic!("not a pipeline: {other:?}"),
    }
}

#[test]
fn a_list_of_tasks_is_a_pipeline() {
    let playbook = playbook(
        "
  - step: start
    input: {a: step, b: step}
    spec: {timeout: 1h}
    tool:
      - name: pull
        kind: http
        url: '{{ workload.base }}?page={{ ctx.page }}'
        timeout: 500ms
        idempotent: false
        auth: api
        set: {ctx.seen: '{{ output }}', iter.n: 1}
        select: {total: meta.total}
        spec:
          policy:
            rules:
              - when: \"{{ output.error.retryable }}\"
                then: {do: retry, attempts: '{{ ctx.tries }}', delay: 500ms, backoff: exponential, max_delay: 1m, jitter: 0.2}
              - else: {then: {do: continue, set: {ctx.page: '{{ ctx.page + 1 }}', step.x: null}}}
      - kind: python
        input: {b: own, page: '{{ pull.data }}'}
        raw: true
        code: 'result = f\"{{x}}\"'
",
    );
    let expected = json!({"tasks": [
        {
            "name": "pull",
            "kind": "http",
            "config": {"url": "{{ workload.base }}?page={{ ctx.page }}", "auth": "api"},
            "input": {"a": "step", "b": "step"},
            "timeout_ms": 500,
            "idempotent": false,
            "set": [
                {"scope": "ctx", "path": ["seen"], "value": "{{ output }}"},
                {"scope": "iter", "path": ["n"], "value": 1},
            ],
            "select": [{"name": "total", "path": ["meta", "total"]}],
            "rules": [
                {"do": "retry", "attempts": "{{ ctx.tries }}", "delay": 0.5, "max_delay": 60,
                 "jitter": 0.2, "backoff": "exponential", "when": "{{ output.error.retryable }}"},
                {"do": "continue", "set": [
                    {"scope": "ctx", "path": ["page"], "value": "{{ ctx.page + 1 }}"},
                    {"scope": "step", "path": ["x"], "value": null},
                ]},
            ],
        },
        {
            "name": "task_1",
            "kind": "python",
            "config": {"code": "result = f\"{{x}}\""},
            "input": {"a": "step", "b": "own", "page": "{{ pull.data }}"},
            "raw": ["code"],
            "timeout_ms": 3_600_000,
        },
    ]});
    assert_eq!(source(&playbook, 0), expected);
}

#[test]
fn a_single_tool_with_a_policy_or_assignments_is_a_pipeline_of_one() {
    let playbook = playbook(
        "
  - step: policy
    tool: {kind: noop, spec: {policy: {rules: [{when: true, then: {do: jump, to: policy}}]}}}
  - step: set
    tool: {kind: noop, set: {ctx.a: '{{ output }}'}}
  - step: labelled
    tool: [{name: label, kind: noop, set: {ctx.a: 1}}]
  - step: secret
    tool: {kind: noop, result: '{{ keychain.a.b }}'}
  - step: plain
    tool: {kind: noop}
",
    );
    let labels: Vec<_> =
        (0..4).map(|step| source(&playbook, step)["tasks"][0]["name"].clone()).collect();
    assert_eq!(labels, ["policy", "set", "label", "secret"]);
    assert!(matches!(playbook.steps[4].work, StepWork::Tool(_)));
}

#[test]
fn a_nested_label_is_the_tasks_name() {
    let steps = "
  - step: start
    tool:
      - one: {kind: noop, set: {ctx.a: 1}}
      - two: {kind: noop}
  - step: single
    tool: {only: {kind: noop, set: {ctx.a: 1}}}
";
    let playbook = playbook(steps);
    let names = |step: usize| {
        let source = source(&playbook, step);
        let tasks = source["tasks"].as_array().cloned().unwrap_or_default();
        tasks.iter().map(|task| task["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(0), ["one", "two"]);
    assert_eq!(names(1), ["only"]);
    assert_snapshot!(report_steps(steps), @r"
    warning[W101] at 8:9, workflow[0].tool[0].one: the tool is nested under its label
      help: write '{name: one, kind: …}'
    warning[W101] at 9:9, workflow[0].tool[1].two: the tool is nested under its label
      help: write '{name: two, kind: …}'
    warning[W103] at 10:11, workflow[1].step: no path leads to step 'single'
      help: lead an arc to it, or remove it
    warning[W101] at 11:12, workflow[1].tool.only: the tool is nested under its label
      help: write '{name: only, kind: …}'
    ");
}

#[test]
fn labels_and_shapes_are_checked() {
    assert_snapshot!(report_steps("
  - step: start
    tool:
      - {name: pull, kind: noop}
      - {name: pull, kind: noop}
      - {name: task_3, kind: noop}
      - {kind: noop}
      - {name: 5, kind: noop}
      - text
      - {a: {kind: noop}, b: {kind: noop}}
      - {url: x}
"), @r"
    error[E013] at 9:9, workflow[0].tool[1]: the label 'pull' is taken on line 8 already
      help: give every task of a step a name of its own
    error[E013] at 11:9, workflow[0].tool[3]: the label 'task_3' is taken on line 10 already
      help: give every task of a step a name of its own
    error[E012] at 12:16, workflow[0].tool[4].name: the label of a task is text
      help: write a name, in quotes if it looks like a number
    error[E012] at 13:9, workflow[0].tool[5]: a tool is a mapping, found text
      help: write 'tool: {kind: …}'
    error[E012] at 14:9, workflow[0].tool[6]: the task has several labels
      help: write each task as '- {name: label, kind: …}'
    error[E011] at 15:9, workflow[0].tool[7]: the tool has no 'kind'
      help: add 'kind: python', or another kind
    ");
}

#[test]
fn control_plane_tools_are_separate_steps() {
    let playbook = playbook(
        "
  - step: child
    tool: {kind: playbook, path: demo/child, payload: {a: '{{ ctx.a }}'}, return_step: end, timeout_seconds: 60, spec: {policy: {rules: [{when: output.error, then: {do: continue}}]}}, set: {ctx.b: '{{ output }}'}}
  - step: pause
    tool: {kind: wait, seconds: '{{ ctx.n }}'}
  - step: ask
    tool: [{kind: approval, input: {who: ops}}]
  - step: older
    tool: {kind: playbooks, catalog_id: 7, args: {x: 1}}
",
    );
    let kinds: Vec<_> = playbook
        .steps
        .iter()
        .map(|step| match &step.work {
            StepWork::Own(own) => (own.kind, own.rules.len(), step.set.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (ControlToolKind::Playbook, 1, 1),
            (ControlToolKind::Wait, 0, 0),
            (ControlToolKind::Approval, 0, 0),
            (ControlToolKind::Playbook, 0, 0),
        ]
    );
    assert_snapshot!(report_steps("
  - step: start
    tool:
      - {name: fetch, kind: noop}
      - {name: pause, kind: wait, seconds: 5}
      - {name: ask, kind: approval}
  - step: jumps
    tool: {kind: wait, seconds: 5, spec: {policy: {rules: [{when: true, then: {do: jump, to: jumps}}]}}}
  - step: local
    loop: {in: [1], iterator: i, spec: {policy: {exec: local}}}
    tool: {kind: wait, seconds: 5}
  - step: looped
    loop: {in: [1], iterator: i}
    tool: {kind: wait, seconds: 5, set: {ctx.a: 1}}
"), @r#"
    error[E018] at 9:9, workflow[0].tool[1]: 'wait' is done by the control plane, not within a pipeline
      help: make it a step of its own: '- {step: …, tool: {kind: wait}}'
    error[E018] at 10:9, workflow[0].tool[2]: 'approval' is done by the control plane, not within a pipeline
      help: make it a step of its own: '- {step: …, tool: {kind: approval}}'
    error[E040] at 12:79, workflow[1].tool.spec.policy.rules[0].then: there is no other task to jump to
      help: lead an arc to the step that does it
    error[E018] at 15:11, workflow[2].tool: 'wait' is done by the control plane, not within one worker
      help: write 'loop: {spec: {policy: {exec: distributed}}}', or leave 'exec' out
    error[E018] at 18:11, workflow[3].tool: assignments beside this tool would be made once per item
      help: assign in a rule: 'rules: [{when: "{{ output.ok }}", then: {do: continue, set: {…}}}]'
    "#);
}

#[test]
fn pipelines_are_split_at_playbook_calls() {
    let playbook = playbook(
        "
  - step: start
    tool:
      - {name: pull, kind: noop, set: {iter.n: 1, step.n: 1}}
      - {name: again, kind: noop, n: '{{ iter.n }}', spec: {policy: {rules: [{when: '{{ step.n }}', then: {do: jump, to: pull}}]}}}
      - {name: one, kind: playbook, path: a, timeout: '{{ ctx.limit }}'}
      - {name: two, kind: playbook, path: b, spec: {policy: {rules: [{when: true, then: {do: retry}}]}}}
      - {name: store, kind: noop, n: '{{ pull.n }}', set: {iter.later: 1}, spec: {policy: {rules: [{when: '{{ iter.later }}', then: {do: jump, to: store}}]}}}
",
    );
    let StepWork::Split(split) = &playbook.steps[0].work else { panic!("{:?}", playbook.steps[0]) };
    let shape: Vec<String> = split
        .segments
        .iter()
        .map(|segment| match segment {
            Segment::Tasks(pipeline) => {
                let labels: Vec<&str> = pipeline.tasks.iter().map(|task| &*task.label).collect();
                labels.join(" ")
            }
            Segment::Call(call) => {
                format!("call {} limited {}", call.task().label, call.limit.is_some())
            }
        })
        .collect();
    assert_eq!(shape, ["pull again", "call one limited true", "call two limited false", "store"]);
    assert_eq!(playbook.first_tasks["start"], "pull".into());
}

#[test]
fn only_results_cross_a_call() {
    let jump = |to: &str| {
        format!("spec: {{policy: {{rules: [{{when: true, then: {{do: jump, to: {to}}}}}]}}}}")
    };
    let (back, over, before, itself) = (jump("pull"), jump("store"), jump("previous"), jump("run"));
    assert_snapshot!(report_steps(&format!("
  - step: jumps
    tool:
      - {{name: pull, kind: noop, {over}}}
      - {{name: run, kind: playbook, path: a, {itself}}}
      - {{name: store, kind: noop, {before}}}
      - {{name: last, kind: noop, {back}}}
  - step: out
    tool:
      - {{name: pull, kind: noop}}
      - {{name: run, kind: playbook, path: a, {back}}}
  - step: reads
    tool:
      - name: pull
        kind: noop
        set: {{iter.page: 1, step.seen: 2, iter.free: 3}}
      - {{name: run, kind: playbook, path: a, input: {{x: '{{{{ step.seen }}}}'}}, set: {{iter.own: 1}}, spec: {{policy: {{rules: [{{when: '{{{{ iter.own }}}}', then: {{do: continue, set: {{step.late: 1}}}}}}]}}}}}}
      - {{name: store, kind: noop, page: '{{{{ page }}}}'}}
      - {{name: last, kind: noop, page: '{{{{ step }}}}'}}
  - step: local
    loop: {{in: [1], iterator: i, spec: {{policy: {{exec: local}}}}}}
    tool:
      - {{name: pull, kind: noop}}
      - {{name: run, kind: playbook, path: a}}
")), @r#"
    error[E018] at 8:92, workflow[0].tool[0].spec.policy.rules[0].then.to: the jump from task 'pull' to task 'store' crosses playbook call 'run'
      help: move the call to a step of its own and lead an arc back, or jump within one side of the call
    error[E018] at 9:104, workflow[0].tool[1].spec.policy.rules[0].then.to: the jump of playbook call 'run' leads to the call itself
      help: write 'do: retry'
    error[E018] at 10:93, workflow[0].tool[2].spec.policy.rules[0].then.to: the jump from task 'store' to playbook call 'run' crosses the call
      help: move the call to a step of its own and lead an arc back, or jump within one side of the call
    error[E018] at 11:92, workflow[0].tool[3].spec.policy.rules[0].then.to: the jump from task 'last' to task 'pull' crosses playbook call 'run'
      help: move the call to a step of its own and lead an arc back, or jump within one side of the call
    error[E018] at 15:104, workflow[1].tool[1].spec.policy.rules[0].then.to: the jump from playbook call 'run' to task 'pull' crosses the call
      help: move the call to a step of its own and lead an arc back, or jump within one side of the call
    error[E018] at 20:26, workflow[2].tool[0].set["iter.page"]: 'iter.page' is set by task 'pull' and read by task 'store', across playbook call 'run'
      help: write 'ctx.page', read the result of the task by its label, or move the call to a step of its own
    error[E018] at 20:40, workflow[2].tool[0].set["step.seen"]: 'step.seen' is set by task 'pull' and read by playbook call 'run'
      help: write 'ctx.seen', read the result of the task by its label, or move the call to a step of its own
    error[E018] at 21:93, workflow[2].tool[1].set["iter.own"]: 'iter.own' is set and read by playbook call 'run'
      help: write 'ctx.own', read the result of the task by its label, or move the call to a step of its own
    error[E018] at 21:184, workflow[2].tool[1].spec.policy.rules[0].then.set["step.late"]: 'step.late' is set by playbook call 'run' and read by task 'last'
      help: write 'ctx.late', read the result of the task by its label, or move the call to a step of its own
    error[E018] at 27:7, workflow[3].tool: 'playbook' is done by the control plane, not within one worker
      help: write 'loop: {spec: {policy: {exec: distributed}}}', or leave 'exec' out
    "#);
    let calls: String =
        (0..9).map(|n| format!("      - {{name: c{n}, kind: playbook, path: a}}\n")).collect();
    assert_snapshot!(report_steps(&format!("  - step: many\n    tool:\n{calls}")), @r"
    error[E018] at 7:7, workflow[0].tool: the pipeline calls 9 playbooks, more than 8
      help: move some of the calls to steps of their own
    ");
}

#[test]
fn fields_are_selected_from_results() {
    let playbook = playbook(
        "
  - step: a
    output: {select: [meta.total, '$.rows[0].id']}
    tool: {kind: noop, output_select: {x: \"$['a b'].c\"}}
  - step: b
    select: [id]
    tool: [{kind: noop}, {kind: noop}]
",
    );
    assert_eq!(
        source(&playbook, 0)["tasks"][0]["select"],
        json!([
            {"name": "x", "path": ["a b", "c"]},
            {"name": "total", "path": ["meta", "total"]},
            {"name": "id", "path": ["rows", "0", "id"]},
        ])
    );
    let source = source(&playbook, 1);
    assert_eq!(source["tasks"][0].get("select"), None);
    assert_eq!(source["tasks"][1]["select"], json!([{"name": "id", "path": ["id"]}]));
    assert_snapshot!(report_steps("
  - step: a
    output: {store: {kind: kv}, select: [a.id, b.id, '$', 'a..b', 'a[*]', 'a[-1]', 5]}
    tool: {kind: noop, select: text, spec: {result: {inline: true}}}
  - step: b
    select: [a]
    next: {arcs: [{step: a}]}
"), @r"
    warning[W114] at 7:14, workflow[0].output.store: 'store' of an output has no effect
      help: remove it; a large result is kept beside the log by itself
    error[E016] at 7:48, workflow[0].output.select[1]: two of the selected fields are called 'id'
      help: name each: 'select: {first: a.id, second: b.id}'
    error[E009] at 7:54, workflow[0].output.select[2]: this is not a path to a field
      help: write names joined by dots: meta.total, rows[0].id, $.a.b
    error[E009] at 7:59, workflow[0].output.select[3]: this is not a path to a field
      help: write names joined by dots: meta.total, rows[0].id, $.a.b
    error[E009] at 7:67, workflow[0].output.select[4]: this is not a path to a field
      help: write names joined by dots: meta.total, rows[0].id, $.a.b
    error[E009] at 7:75, workflow[0].output.select[5]: this is not a path to a field
      help: write names joined by dots: meta.total, rows[0].id, $.a.b
    error[E009] at 7:84, workflow[0].output.select[6]: this is not a path to a field
      help: write names joined by dots: meta.total, rows[0].id, $.a.b
    error[E009] at 8:32, workflow[0].tool.select: expected a list of paths or a mapping, found text
      help: write '[meta.total]' or '{total: meta.total}'
    warning[W114] at 8:45, workflow[0].tool.spec.result: 'result' under 'spec' has no effect
      help: remove it; a large result is kept beside the log by itself
    warning[W114] at 10:13, workflow[1].select: a step without a tool has no result to select from
      help: remove it, or add the tool it is for
    ");
}

#[test]
fn expansion_of_shared_arguments_is_bounded() {
    let value = "x".repeat(300_000);
    let tasks = "      - {kind: noop}\n".repeat(100);
    let steps = format!("  - step: start\n    input: {{a: {value}}}\n    tool:\n{tasks}");
    assert_snapshot!(report_steps(&steps), @r"
    error[E007] at 6:12, workflow[0].input: shared settings unfold to more than 16777216 bytes
      help: repeat less, or pass the data as workload
    ");
}

#[test]
fn storage_settings_of_published_playbooks_have_no_effect() {
    let steps = "
  - step: a
    tool: {kind: noop, output_select: {strategy: reference, threshold_kb: 64}}
";
    let diagnostics = report_steps(steps);
    assert_eq!(diagnostics.matches("warning[W114]").count(), 2, "{diagnostics}");
    assert!(!diagnostics.contains("error"), "{diagnostics}");
    assert!(report_steps(&steps.replace(", threshold_kb: 64", "")).is_empty(), "a field's path");
}
