//! Tests of assignments by tasks and of the names in their templates.

use std::collections::BTreeSet;

use noetl_model::scope::{CommandScope, IterationScope};
use noetl_model::{CatalogId, ExecutionId};
use noetl_template::Iteration;

use super::*;
use crate::pipeline::scope_of;

fn assign(scope: &str, path: &[&str], value: &str) -> Value {
    json!({"scope": scope, "path": path, "value": value})
}

#[test]
fn a_tasks_set_sees_raw_data_and_its_rules_the_envelope() {
    let tasks = json!([{
        "name": "a", "kind": "x",
        "set": [assign("ctx", &["raw"], "{{ output }}"), assign("ctx", &["own"], "{{ output.status }}")],
        "rules": [{"do": "continue", "set": [
            assign("ctx", &["status"], "{{ output.status }}"),
            assign("ctx", &["meta"], "{{ output.meta }}"),
            assign("ctx", &["seen"], "{{ ctx.own }}")]}],
    }]);
    let (_, end) = transcript(tasks, Scope::default(), vec![Ok(json!({"status": "mine"}))]);
    let expected = json!({
        "raw": {"status": "mine"}, "own": "mine", "status": "ok",
        "meta": {"attempt": 1, "duration_ms": 5}, "seen": "mine",
    });
    assert_eq!(Value::Object(end.ctx), expected);
}

#[test]
fn assignments_of_one_block_do_not_see_each_other() {
    let tasks = json!([
        {"name": "a", "kind": "x",
         "set": [assign("ctx", &["x"], "{{ ctx.y }}"), assign("ctx", &["y"], "{{ ctx.x }}")]},
        {"name": "b", "kind": "x", "input": {"x": "{{ ctx.x }}", "y": "{{ y }}"}},
    ]);
    let scope = Scope { ctx: names(json!({"x": 1, "y": 2})), ..Scope::default() };
    let (lines, _) = transcript(tasks, scope, vec![Ok(json!(0)), Ok(json!(0))]);
    assert_eq!(lines[1], r#"b#1 {"x":2,"y":1}"#);
}

#[test]
fn a_failed_run_sets_nothing_of_the_task() {
    let tasks = json!([{
        "name": "a", "kind": "x", "set": [assign("ctx", &["n"], "{{ output.n }}")],
        "rules": [{"when": "output.error", "do": "continue"}],
    }]);
    let (_, end) = transcript(tasks.clone(), Scope::default(), vec![Ok(json!({"n": 3}))]);
    assert_eq!(Value::Object(end.ctx), json!({"n": 3}));
    let (_, end) = transcript(tasks, Scope::default(), vec![refused(FailureKind::Timeout)]);
    assert_eq!(Value::Object(end.ctx), json!({}));
}

#[test]
fn writes_are_nested_and_reported_in_an_order_that_reproduces_the_values() {
    let set = |path: &[&str], value: &str| assign("ctx", path, value);
    let tasks = json!([
        {"name": "a", "kind": "x", "set": [set(&["m", "n"], "1"), set(&["other"], "x")]},
        {"name": "b", "kind": "x", "input": {"m": "{{ ctx.m }}"}, "set": [set(&["m"], "2")]},
        {"name": "c", "kind": "x", "input": {"m": "{{ ctx.m }}"}, "set": [set(&["m", "k"], "3")]},
        {"name": "d", "kind": "x", "input": {"m": "{{ ctx.m }}"}},
    ]);
    let answers = (0..4).map(|_| Ok(json!(0))).collect();
    let (lines, end) = transcript(tasks, Scope::default(), answers);
    assert_eq!(
        lines[1..],
        [r#"b#1 {"m":{"n":"1"}}"#, r#"c#1 {"m":"2"}"#, r#"d#1 {"m":{"k":"3"}}"#]
    );
    let written: Vec<_> = end.ctx.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(written, [r#"other="x""#, r#"m="2""#, r#"m.k="3""#]);
}

#[test]
fn step_and_iter_variables_last_as_long_as_the_pipeline() {
    let tasks = json!([
        {"name": "a", "kind": "x",
         "set": [assign("step", &["s"], "{{ output }}"), assign("iter", &["i"], "{{ output }}")]},
        {"name": "b", "kind": "x", "input": {"s": "{{ step.s }}", "i": "{{ iter.i }}", "c": "{{ ctx }}"}},
    ]);
    let (lines, end) = transcript(tasks, Scope::default(), vec![Ok(json!(1)), Ok(json!(2))]);
    assert_eq!(lines[1], r#"b#1 {"s":1,"i":1,"c":{}}"#);
    assert_eq!(
        [Value::Object(end.step), Value::Object(end.iter)],
        [json!({"s": 1}), json!({"i": 1})]
    );
    assert!(end.ctx.is_empty());
}

#[test]
fn values_set_before_a_failure_are_reported() {
    let tasks = json!([
        {"name": "a", "kind": "x", "set": [assign("ctx", &["n"], "{{ output }}")]},
        {"name": "b", "kind": "x"},
    ]);
    let answers = vec![Ok(json!(1)), refused(FailureKind::Auth)];
    let (_, end) = transcript(tasks, Scope::default(), answers);
    assert_eq!(Value::Object(end.ctx.clone()), json!({"n": 1}));
    assert_eq!(failure(end).kind, FailureKind::Auth);
}

#[test]
fn python_gets_the_item_unless_the_author_sets_the_input() {
    let item = Iteration {
        name: "user".into(),
        item: from_json_owned(json!({"id": 1})).into(),
        index: 2,
        total: Some(4),
        vars: names(json!({"page": 1})),
    };
    let tasks = json!([
        {"name": "a", "kind": "python"},
        {"name": "b", "kind": "python", "input": {"user": "{{ user.id }}", "p": "{{ iter.page }}"}},
        {"name": "c", "kind": "http"},
    ]);
    let scope = Scope { iteration: Some(item), ..Scope::default() };
    let answers = (0..3).map(|_| Ok(json!(0))).collect();
    let (lines, _) = transcript(tasks, scope, answers);
    let expected = [
        r#"a#1 {"user":{"id":1},"_index":2,"_total":4}"#,
        r#"b#1 {"user":1,"p":1,"_index":2,"_total":4}"#,
        "c#1",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_template_that_cannot_be_rendered_names_task_key_and_expression() {
    let bad = "{{ 1 + 'a' }}";
    for (task, key) in [
        (json!({"config": {"headers": {"x": [0, bad]}}}), "headers.x.1"),
        (json!({"input": {"page": bad}}), "input.page"),
        (json!({"set": [assign("ctx", &["a", "b"], bad)]}), "set ctx.a.b"),
        (
            json!({"rules": [{"when": "{{ false }}", "do": "fail"}, {"when": bad, "do": "fail"}]}),
            "rule 2 when",
        ),
        (
            json!({"rules": [{"do": "break", "set": [assign("iter", &["n"], bad)]}]}),
            "rule 1 set iter.n",
        ),
        (json!({"rules": [{"do": "retry", "attempts": bad}]}), "rule 1 attempts"),
    ] {
        let mut whole = json!({"name": "a", "kind": "x"});
        whole.as_object_mut().unwrap().extend(task.as_object().unwrap().clone());
        let runs = task.get("config").is_none() && task.get("input").is_none();
        let answers = if runs { vec![Ok(json!(1))] } else { Vec::new() };
        let (_, end) = transcript(json!([whole]), Scope::default(), answers);
        let failure = failure(end);
        assert_eq!(failure.kind, FailureKind::TemplateError);
        assert!(
            failure.message.starts_with(&format!("task 'a', {key}: cannot compute")),
            "{failure}"
        );
        let details = failure.details.unwrap();
        assert_eq!(*details, json!({"task": "a", "key": key, "expression": bad}));
    }
}

#[test]
fn an_input_other_than_a_map_is_rejected() {
    let tasks = json!([{"name": "a", "kind": "x", "input": "{{ workload.given }}"}]);
    let (lines, _) =
        transcript(tasks.clone(), scope(json!({"given": {"k": 1}})), vec![Ok(json!(1))]);
    assert_eq!(lines, [r#"a#1 {"k":1}"#]);
    let (_, end) = transcript(tasks, scope(json!({"given": [1]})), Vec::new());
    let failure = failure(end);
    assert_eq!(failure.message, "task 'a', input: it is a map of named values, and this is a list");
}

#[test]
fn the_state_slice_of_a_command_contains_the_names_in_its_templates() {
    let carried = CommandScope {
        workload: json!({"w": 1}).as_object().unwrap().clone(),
        ctx: json!({"c": 2}).as_object().unwrap().clone(),
        steps: json!({"before": {"s": 3}}).as_object().unwrap().clone(),
        tasks: [("before".into(), "first".into())].into(),
        step: json!({"v": 8}).as_object().unwrap().clone(),
        previous: Some(json!({"p": 4})),
        iteration: Some(IterationScope {
            name: "row".into(),
            item: json!(5),
            index: 6,
            total: None,
        }),
        spec: Some(json!({"x": 7})),
        env: [("REGION".to_owned(), "eu".to_owned())].into(),
        keychain: noetl_model::Map::new(),
        blobs: Vec::new(),
        earlier: noetl_model::Map::new(),
        split: None,
        catalog: CatalogId::new(8),
        path: "a/b".into(),
        version: 9,
        parent: Some(ExecutionId::new(10)),
    };
    let all = "{{ [workload.w, ctx.c, before.s, result.p, row, _index, spec.x, env.REGION, \
               step.v, before.first.s, before.results.first.s] }}";
    let who = "{{ [execution_id, catalog_id, path, version, parent_execution_id] }}";
    let tasks = json!([{"name": "a", "kind": "x", "input": {"all": all, "who": who}}]);
    let (lines, _) = transcript(tasks, scope_of(ExecutionId::new(1), carried), vec![Ok(json!(1))]);
    let expected = r#"a#1 {"all":[1,2,3,4,5,6,7,"eu",8,3,3],"who":["1","8","a/b",9,"10"]}"#;
    assert_eq!(lines, [expected]);
}

fn mentioned(tasks: Value) -> BTreeSet<String> {
    let pipeline = pipeline(tasks);
    pipeline.mentions().iter().map(|mention| mention.name.to_string()).collect()
}

#[test]
fn only_names_that_the_pipeline_does_not_bind_are_state() {
    let tasks = json!([
        {"name": "a", "kind": "x", "input": {"v": "{{ a.x }} {{ b.y }} {{ row.id }} {{ iter.n }}"}},
        {"name": "b", "kind": "x", "config": {"v": "{{ a.x }}{{ ctx.c }}{{ before.s }}"},
         "rules": [{"when": "b.ok", "do": "continue"}]},
    ]);
    // The first task's own name leads to an earlier result, and so does that of a later task.
    let names = ["a", "b", "before", "ctx", "row"].map(str::to_owned);
    assert_eq!(mentioned(tasks), BTreeSet::from(names));
    let after = json!([
        {"name": "a", "kind": "x", "set": [assign("ctx", &["c"], "{{ a.x }}")]},
        {"name": "b", "kind": "x", "input": {"v": "{{ a.x }}"}},
    ]);
    assert_eq!(mentioned(after), BTreeSet::new());
    let skipping = json!([
        {"name": "a", "kind": "x", "rules": [{"do": "jump", "to": "c"}]},
        {"name": "b", "kind": "x"},
        {"name": "c", "kind": "x", "input": {"v": "{{ b.x }}"}},
    ]);
    assert_eq!(mentioned(skipping), BTreeSet::from(["b".to_owned()]));
}
