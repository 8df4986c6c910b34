use std::collections::BTreeMap;

use noetl_model::{CatalogId, ExecutionId, Failure, FailureKind};

use super::*;
use crate::{ExecutionIdentity, StepOutput};

fn response() -> Value {
    json!({
        "status_code": 200,
        "headers": {"etag": "x"},
        "data": {"meta": {"next": 2}, "data": [1], "items": "body"},
        "body": {"meta": {"next": 2}},
    })
}

fn completed(data: Value) -> Scope {
    Scope {
        output: Some(StepOutput {
            data: from_json(&data).into(),
            failure: None,
            envelope_first: false,
        }),
        event: Some("step.done"),
        ..Scope::default()
    }
}

#[track_caller]
fn check_in(scope: &Scope, expression: &str, expected: Value) {
    let template = format!("{{{{ {expression} }}}}");
    assert_eq!(render_in(scope, &template), expected, "{template}");
}

#[test]
fn unqualified_names_prefer_ctx_then_results_then_the_workload() {
    let scope = Scope {
        ctx: names(json!({"a": "ctx"})),
        results: names(json!({"a": "step", "b": "step"})),
        workload: names(json!({"a": "workload", "b": "workload", "c": "workload", "path": "mine"})),
        ..Scope::default()
    };
    check_in(&scope, "[a, b, c]", json!(["ctx", "step", "workload"]));
    check_in(&scope, "path", json!("mine"));
    check_in(&scope, "[workload.a, ctx.a, steps.a]", json!(["workload", "ctx", "step"]));
}

#[test]
fn ctx_falls_back_to_the_workload_but_not_to_results() {
    let scope = Scope {
        ctx: names(json!({"set": null})),
        results: names(json!({"s": 1})),
        workload: names(json!({"page": 1, "set": 2})),
        ..Scope::default()
    };
    check_in(&scope, "ctx.page", json!(1));
    check_in(&scope, "ctx.set", json!(null));
    check_in(&scope, "ctx.s is defined", json!(false));
    check_in(&scope, "ctx", json!({"set": null}));
    check_in(&scope, "workload", json!({"page": 1, "set": 2}));
}

#[test]
fn a_result_exposes_the_keys_of_its_envelope() {
    let scope = Scope {
        results: names(json!({
            "a": {"x": 1},
            "own": {"status": "late", "data": {"x": 2}},
            "n": 4,
            "rows": [1, 2],
            "p/q": {"x": 3},
        })),
        ..Scope::default()
    };
    check_in(&scope, "a.x", json!(1));
    check_in(&scope, "a.data.x", json!(1));
    check_in(&scope, "a.result.data.x", json!(1));
    check_in(&scope, "a.status", json!("ok"));
    check_in(&scope, "a.data", json!({"x": 1}));
    check_in(&scope, "a", json!({"x": 1}));
    check_in(&scope, "[own.status, own.data.x]", json!(["late", 2]));
    check_in(&scope, "steps.own.status", json!("late"));
    check_in(&scope, "n + n.data + n.result", json!(12));
    check_in(&scope, "rows.results", json!([1, 2]));
    check_in(&scope, "steps['p/q'].x", json!(3));
    check_in(&scope, "steps['p/' ~ 'q'].data.x", json!(3));
    check_in(&scope, "steps.missing.data.x", json!(null));
    check_in(&scope, "a.nothing is defined", json!(false));
}

#[test]
fn a_response_exposes_the_fields_of_its_body() {
    let scope = Scope { results: names(json!({"fetch": response()})), ..Scope::default() };
    check_in(&scope, "fetch.data.meta.next", json!(2));
    check_in(&scope, "fetch.meta.next", json!(2));
    check_in(&scope, "fetch.body.meta.next", json!(2));
    check_in(&scope, "fetch.status_code", json!(200));
    check_in(&scope, "fetch.data.data", json!([1]));
    check_in(&scope, "fetch", response());
}

#[test]
fn output_is_the_data_as_a_whole_and_an_envelope_by_key() {
    let scope = completed(json!({"rows": [1], "name": "n"}));
    check_in(&scope, "output", json!({"rows": [1], "name": "n"}));
    check_in(&scope, "output.rows", json!([1]));
    check_in(&scope, "output.data.rows", json!([1]));
    check_in(&scope, "output.data", json!({"rows": [1], "name": "n"}));
    check_in(&scope, "[output.status, output.ok]", json!(["ok", true]));
    check_in(&scope, "output.error is defined", json!(false));
    check_in(&scope, "result.name", json!("n"));
    check_in(&scope, "result.data.name", json!("n"));
    check_in(&scope, "event.name", json!("step.done"));
    check_in(&completed(json!({"status": "own"})), "output.status", json!("own"));
    check_in(&completed(json!(5)), "output + output.data", json!(10));
}

#[test]
fn output_of_a_response_has_body_fields_under_both_names() {
    let scope = completed(response());
    check_in(&scope, "output.data.data.meta.next", json!(2));
    check_in(&scope, "output.data.meta.next", json!(2));
    check_in(&scope, "output.meta.next", json!(2));
    check_in(&scope, "output.data.status_code", json!(200));
    check_in(&scope, "output.http.status", json!(200));
    check_in(&scope, "output.http.headers.etag", json!("x"));
}

#[test]
fn a_failure_shows_its_kind_message_and_details() {
    let mut failure = Failure::new(FailureKind::Other("http_error".into()), "answered 503");
    failure.retryable = true;
    let failure = failure.with_details(json!({"http": {"status": 503}, "kind": "hidden"}));
    let scope = Scope {
        output: Some(StepOutput {
            data: from_json(&json!(null)).into(),
            failure: Some(Arc::new(failure)),
            envelope_first: false,
        }),
        event: Some("step.failed"),
        ..Scope::default()
    };
    check_in(&scope, "[output.status, output.ok]", json!(["error", false]));
    check_in(&scope, "output.error.kind", json!("http_error"));
    check_in(&scope, "output.error.message", json!("answered 503"));
    check_in(&scope, "output.error.retryable", json!(true));
    check_in(&scope, "output.error.http.status", json!(503));
    check_in(&scope, "output.http.status", json!(503));
    check_in(&scope, "output", json!(null));
}

#[test]
fn result_is_the_previous_step_in_a_tool_input() {
    let scope = Scope { previous: Some(from_json(&json!({"x": 1})).into()), ..Scope::default() };
    check_in(&scope, "result.x", json!(1));
    check_in(&scope, "result.data.x", json!(1));
    check_in(&scope, "output is defined", json!(false));
    check("result is defined", json!(false));
}

#[test]
fn identity_names_are_text_and_always_defined() {
    let scope = Scope {
        identity: ExecutionIdentity {
            execution: ExecutionId::new(9_007_199_254_740_993),
            catalog: CatalogId::new(7),
            path: "a/b".into(),
            version: 3,
            parent: Some(ExecutionId::new(5)),
        },
        ..Scope::default()
    };
    check_in(&scope, "execution_id", json!("9007199254740993"));
    check_in(&scope, "job.uuid == job.execution_id == execution_id", json!(true));
    check_in(&scope, "[catalog_id, path, version]", json!(["7", "a/b", 3]));
    check_in(&scope, "parent_execution_id", json!("5"));
    check("parent_execution_id is none", json!(true));
}

#[test]
fn payload_spec_step_and_env_come_from_the_scope_alone() {
    let scope = Scope {
        payload: Some(from_json(&json!({"id": 1}))),
        spec: Some(from_json(&json!({"x": 2}))),
        step: names(json!({"tries": 3})),
        env: Arc::new(BTreeMap::from([("REGION".to_owned(), "eu".to_owned())])),
        ..Scope::default()
    };
    check_in(&scope, "[payload.id, input.id, spec.x, step.tries]", json!([1, 1, 2, 3]));
    check_in(&scope, "env.REGION", json!("eu"));
    check_in(&scope, "env.HOME | default('none')", json!("none"));
    check_in(&scope, "env", json!({"REGION": "eu"}));
    check_in(&scope, "tries is defined", json!(false));
}

#[test]
fn a_key_takes_precedence_over_a_method() {
    let scope =
        Scope { results: names(json!({"start": {"items": [1], "get": "g"}})), ..Scope::default() };
    check_in(&scope, "start.items", json!([1]));
    check_in(&scope, "start.items()", json!([["items", [1]], ["get", "g"]]));
    check_in(&scope, "start.get('items')", json!([1]));
}

#[test]
fn referenced_names_are_listed_without_rendering() {
    let template = "{% for x in rows %}{{ x.a }}{{ loop.index }}{{ ctx[key] }}{% endfor %}\
                    {% set y = start.id %}{{ y | default(workload.z) }}{{ now() }}{{ token() }}";
    let template = Template::parse(template).unwrap();
    let names: Vec<_> = template.names().into_iter().collect();
    assert_eq!(names, ["ctx", "key", "rows", "start", "token", "workload"]);
}
