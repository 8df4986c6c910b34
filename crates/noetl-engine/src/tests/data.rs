use serde_json::json;

use super::harness::{Run, playbook, start, start_with};
use crate::{Complete, Input, Status};

fn input(run: &Run, name: &str) -> serde_json::Value {
    let (_, open) = run.state.open_commands().next().unwrap();
    open.issued.input[name].clone()
}

#[test]
fn step_set_is_visible_to_the_arcs_and_to_later_steps() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, set: {ctx.total: '{{ output.n * 2 }}', step.local: 1},
   next: {arcs: [{step: b, when: ctx.total == 10 and step.local == 1}]}}
- {step: b, tool: {kind: noop, input: {t: '{{ ctx.total }}', gone: '{{ step.local }}'}}}",
    );
    run.complete("a", json!({"n": 5}));
    assert_eq!(input(&run, "t"), json!(10));
    assert_eq!(input(&run, "gone"), json!(null));
}

/// With inline and stored values, and with a restored snapshot.
#[test]
fn step_values_set_by_a_command_are_visible_to_the_arcs_only() {
    let text = "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b, when: step.x.y == 'yes' and step.z}]}}
- {step: b, tool: {kind: noop, input: {gone: '{{ step.x is defined }}'}}}";
    for limits in [crate::ValueLimits::NONE, crate::ValueLimits { value_bytes: 0, total_bytes: 0 }]
    {
        let mut run = Run::within(playbook(text), limits);
        run.input(start()).unwrap();
        let command = run.command("a");
        let step = json!({"x.y": "yes", "z": [1]}).as_object().unwrap().clone();
        let answer = Complete {
            command,
            data: Some(json!(1)),
            reference: None,
            is_final: false,
            ctx: noetl_model::Map::new(),
            step,
            run: None,
        };
        run.input(Input::Complete(answer)).unwrap();
        let bytes = run.state.to_snapshot();
        let restored = crate::Execution::from_snapshot_within(run.state.id(), &bytes, limits);
        assert_eq!(restored.unwrap(), run.state);
        run.script("complete a").unwrap();
        assert_eq!(run.open(), ["b"]);
        assert_eq!(input(&run, "gone"), json!(false));
    }
}

#[test]
fn arc_set_lasts_beyond_the_next_step() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b, set: {ctx.label: 'from {{ output.n }}'}}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop, input: {l: '{{ ctx.label }}'}}}",
    );
    run.complete("a", json!({"n": 5}));
    run.complete("b", json!(1));
    assert_eq!(input(&run, "l"), json!("from 5"));
}

#[test]
fn nested_paths_are_written_into_maps() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, set: {ctx.a.b: 1, ctx.a.c: 2}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop, input: {a: '{{ ctx.a }}', b: '{{ ctx.a.b }}'}}}",
    );
    run.complete("a", json!(1));
    assert_eq!(input(&run, "a"), json!({"b": 1, "c": 2}));
    assert_eq!(input(&run, "b"), json!(1));
}

#[test]
fn a_set_block_is_applied_atomically() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, set: {ctx.x: 1, ctx.y: 2}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, set: {ctx.x: '{{ ctx.y }}', ctx.y: '{{ ctx.x }}'}, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop, input: {x: '{{ ctx.x }}', y: '{{ ctx.y }}'}}}",
    );
    run.complete("a", json!(1));
    run.complete("b", json!(1));
    assert_eq!((input(&run, "x"), input(&run, "y")), (json!(2), json!(1)));
}

#[test]
fn text_that_looks_like_a_number_or_a_template_stays_text() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop, input: {zip: '{{ a.zip }}', t: '{{ a.t }}', lit: '00501'}}}",
    );
    run.complete("a", json!({"zip": "00501", "t": "{{ 1 / 0 }}"}));
    assert_eq!(input(&run, "zip"), json!("00501"));
    assert_eq!(input(&run, "t"), json!("{{ 1 / 0 }}"));
    assert_eq!(input(&run, "lit"), json!("00501"));
}

#[test]
fn the_payload_is_merged_deeply_over_the_workload() {
    let checked = noetl_playbook::check(
        "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: t}
workload: {who: world, deep: {a: 1, b: [1, 2]}, greeting: 'hi {{ payload.who | default(\"you\") }}'}
workflow:
  - {step: a, tool: {kind: noop, input: {w: '{{ workload }}', id: '{{ execution_id }}'}}}
",
    );
    let mut run = Run::new(checked.playbook.unwrap());
    let payload = json!({"who": "Ada", "deep": {"b": [3]}}).as_object().cloned().unwrap();
    run.input(start_with(payload)).unwrap();
    assert_eq!(
        input(&run, "w"),
        json!({"who": "Ada", "deep": {"a": 1, "b": [3]}, "greeting": "hi Ada"})
    );
    assert_eq!(input(&run, "id"), json!("1"));
}

#[test]
fn identifiers_drawn_in_one_decision_differ() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, set: {ctx.x: '{{ uuid4() }}', ctx.y: '{{ uuid4() }}'}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop, input: {x: '{{ ctx.x }}', y: '{{ ctx.y }}', z: '{{ uuid4() }}'}}}",
    );
    run.complete("a", json!(1));
    let drawn = [input(&run, "x"), input(&run, "y"), input(&run, "z")];
    assert_ne!(drawn[0], drawn[1]);
    assert_ne!(drawn[1], drawn[2]);
}

#[test]
fn result_in_a_tools_input_is_the_data_of_the_previous_step() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop, input: {r: '{{ result.x }}'}}}",
    );
    run.complete("a", json!({"x": 4}));
    assert_eq!(input(&run, "r"), json!(4));
}

#[test]
fn a_workload_that_fails_to_render_prevents_the_start() {
    let mut playbook = playbook("- {step: a, tool: {kind: noop}}");
    playbook.workload =
        noetl_template::ValueTemplate::compile(json!({"x": "{{ 1 / 0 }}"})).unwrap();
    let mut run = Run::new(playbook);
    let refusal = run.input(start()).unwrap_err();
    assert!(refusal.to_string().contains("1 / 0"), "{refusal}");
    assert_eq!(run.state.status(), Status::Absent);
}

#[test]
fn initial_variables_are_rendered_with_the_workload_or_prevent_the_start() {
    let document = |vars: &str| {
        let text = format!(
            "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t}}\nworkload: {{n: 2}}\n\
             vars: {{x: '{vars}'}}\nworkflow:\n  \
             - {{step: a, tool: {{kind: noop, input: {{x: '{{{{ ctx.x }}}}'}}}}}}\n"
        );
        Run::new(noetl_playbook::check(&text).playbook.unwrap())
    };
    let mut run = document("{{ workload.n + 1 }}");
    run.input(start()).unwrap();
    assert_eq!(input(&run, "x"), json!(3));
    // The harness checks that a refusal leaves the state as it was.
    let mut run = document("{{ 1 / 0 }}");
    run.input(start()).unwrap_err();
}

/// Returns the execution data that the open command's code can read.
fn read(run: &Run) -> serde_json::Value {
    let (_, open) = run.state.open_commands().next().unwrap();
    let Some(scope) = open.issued.scope.as_deref() else { return json!(null) };
    assert!(scope.env.is_empty() && scope.keychain.is_empty(), "only templates name these");
    json!({"steps": scope.steps, "ctx": scope.ctx, "workload": scope.workload})
}

#[test]
fn python_code_gets_the_execution_names_it_uses() {
    let text = |code: &str| {
        format!(
            "\
- {{step: a, tool: {{kind: noop}}, set: {{ctx.total: 7}}, next: {{arcs: [{{step: b}}]}}}}
- {{step: b, tool: {{kind: python, code: \"{code}\"}}}}"
        )
    };
    let issued = |code: &str| {
        let mut run = Run::started(&text(code));
        run.complete("a", json!({"n": 5}));
        read(&run)
    };
    let a = json!({"n": 5});
    for (code, expected) in [
        ("result = 1", json!(null)),
        ("result = context.get('nobody')", json!(null)),
        ("result = context.get('env')", json!(null)),
        ("result = context.get('a')", json!({"steps": {"a": a}, "ctx": {}, "workload": {}})),
        ("result = context['ctx']", json!({"steps": {}, "ctx": {"total": 7}, "workload": {}})),
        ("result = context", json!({"steps": {"a": a}, "ctx": {"total": 7}, "workload": {"n": 3}})),
    ] {
        assert_eq!(issued(code), expected, "{code}");
    }
}

#[test]
fn python_code_with_computed_names_gets_a_bounded_context() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: python, code: 'result = len(context)'}}",
    );
    run.complete("a", json!("x".repeat(300 * 1024)));
    run.complete("b", json!("small"));
    assert_eq!(read(&run)["steps"], json!({"b": "small"}));
}
