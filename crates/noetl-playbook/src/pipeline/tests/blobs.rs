//! Values that are not at hand.

use noetl_model::event::BlobRef;
use noetl_model::scope::{CommandScope, ScopeBlob, ScopePart};
use noetl_model::{CatalogId, ExecutionId};
use noetl_template::ValueRef;

use super::*;
use crate::pipeline::scope_of;

fn blob(among: ScopePart, name: &str, digest: &str, fields: Value) -> ScopeBlob {
    let reference =
        BlobRef { digest: digest.into(), bytes: 90_000, media_type: "application/json".into() };
    ScopeBlob { among, name: name.into(), reference: Arc::new(reference), fields }
}

fn carried(blobs: Vec<ScopeBlob>) -> Scope {
    let carried = CommandScope {
        workload: noetl_model::Map::new(),
        ctx: noetl_model::Map::new(),
        steps: noetl_model::Map::new(),
        tasks: std::collections::BTreeMap::new(),
        step: noetl_model::Map::new(),
        previous: None,
        iteration: None,
        spec: None,
        env: std::collections::BTreeMap::new(),
        keychain: noetl_model::Map::new(),
        blobs,
        earlier: noetl_model::Map::new(),
        split: None,
        catalog: CatalogId::new(1),
        path: "p".into(),
        version: 1,
        parent: None,
    };
    scope_of(ExecutionId::new(3), carried)
}

fn needed(turn: PipelineRequest) -> Vec<ValueRef> {
    match turn {
        PipelineRequest::Need(places) => places,
        other => panic!("{other:?}"),
    }
}

fn digest(place: &ValueRef) -> String {
    match place {
        ValueRef::Blob(reference) => reference.digest.to_string(),
        ValueRef::Event { .. } => panic!("no event is named"),
    }
}

#[test]
fn a_value_is_requested_only_when_a_template_reads_it() {
    let scope = carried(vec![
        blob(ScopePart::Steps, "big", "d1", json!({"n": 7})),
        blob(ScopePart::Ctx, "list", "d2", json!(null)),
        blob(ScopePart::Workload, "unused", "d3", json!(null)),
        blob(ScopePart::Previous, "", "d4", json!(null)),
    ]);
    let tasks = json!([
        {"name": "a", "kind": "x", "input": {"n": "{{ big.n }}", "ref": "{{ big._ref }}"}},
        {"name": "b", "kind": "x", "input": {"id": "{{ uuid4() }}", "v": "{{ big.rows[0] }}",
                                              "l": "{{ ctx.list | length }}"},
         "rules": [{"when": "result.x == 1", "do": "continue"}]},
        {"name": "c", "kind": "x", "input": {"p": "{{ result.x }}"}},
    ]);
    let mut run = PipelineRun::new(pipeline(tasks), scope);
    let PipelineRequest::Call(call) = run.turn() else { panic!("nothing is needed yet") };
    let reference = "noetl://execution/3/result/big/d1-90000";
    assert_eq!(Value::Object(call.input), json!({"n": 7, "ref": reference}));
    run.answered(Ok(json!(1)), 0);
    let places = needed(run.turn());
    assert_eq!(places.iter().map(digest).collect::<Vec<_>>(), ["d1", "d2"]);
    run.supply(&places[0], Ok(from_json_owned(json!({"n": 7, "rows": ["first"]}))));
    assert_eq!(needed(run.turn()).len(), 1);
    run.supply(&places[1], Ok(from_json_owned(json!([1, 2]))));
    let PipelineRequest::Call(call) = run.turn() else { panic!("everything is there") };
    assert_eq!([&call.input["v"], &call.input["l"]], [&json!("first"), &json!(2)]);
    run.answered(Ok(json!({"x": 1})), 0);
    let places = needed(run.turn());
    assert_eq!(digest(&places[0]), "d4");
    run.supply(&places[0], Ok(from_json_owned(json!({"x": "previous"}))));
    let PipelineRequest::Call(call) = run.turn() else { panic!("everything is there") };
    assert_eq!(Value::Object(call.input), json!({"p": "previous"}));
}

#[test]
fn random_values_do_not_depend_on_loaded_values() {
    let tasks =
        json!([{"name": "a", "kind": "x", "input": {"id": "{{ uuid4() }}", "v": "{{ big.v }}"}}]);
    let id = |scope: Scope| {
        let mut run = PipelineRun::new(pipeline(tasks.clone()), scope);
        loop {
            match run.turn() {
                PipelineRequest::Call(call) => return call.input["id"].clone(),
                PipelineRequest::Need(places) => {
                    run.supply(&places[0], Ok(from_json_owned(json!({"v": 1}))))
                }
                other => panic!("{other:?}"),
            }
        }
    };
    let away = id(carried(vec![blob(ScopePart::Steps, "big", "d1", json!(null))]));
    assert_eq!(away, id(carried(Vec::new())));
}

#[test]
fn an_unreadable_value_fails_the_task_that_needs_it() {
    let scope = carried(vec![blob(ScopePart::Steps, "big", "d1", json!(null))]);
    let tasks = json!([{"name": "a", "kind": "x", "input": {"v": "{{ big.v }}"}}]);
    let mut run = PipelineRun::new(pipeline(tasks), scope);
    let places = needed(run.turn());
    run.supply(&places[0], Err("it is gone".to_owned()));
    let PipelineRequest::Done(end) = run.turn() else { panic!("nothing else can happen") };
    let failure = failure(*end);
    assert_eq!(failure.message, "task 'a': a value it names cannot be read: it is gone");
}
