//! Tests of the keys that results have in addition to their own.

use noetl_model::event::BlobRef;
use noetl_model::{ExecutionId, Failure, FailureKind};

use super::*;
use crate::{
    ExecutionIdentity, StepOutput, TaskScope, ValueSlot, ValueSource, blob_of_ref, items_of,
    result_ref,
};

#[track_caller]
fn check_in(scope: &Scope, expression: &str, expected: Value) {
    let template = format!("{{{{ {expression} }}}}");
    assert_eq!(render_in(scope, &template), expected, "{template}");
}

fn looped() -> Value {
    json!({
        "results": [{"n": 1}, {"n": 2}],
        "stats": {"total": 2, "success": 2, "failed": 0, "skipped": 0},
        "errors": [],
    })
}

fn rows() -> Value {
    json!({"columns": ["id"], "rows": [{"id": 4}, {"id": 5}], "row_count": 2,
           "command_0": {"row_count": 2}})
}

fn results(value: Value) -> Scope {
    Scope { results: names(value), ..Scope::default() }
}

#[test]
fn a_loop_result_is_a_map_and_the_list_of_item_results() {
    let scope = results(json!({ "each": looped() }));
    check_in(&scope, "each | length", json!(2));
    check_in(&scope, "[len(each), each | count]", json!([2, 2]));
    check_in(&scope, "[each[0].n, each[-1].n]", json!([1, 2]));
    check_in(&scope, "each[5] is defined", json!(false));
    check_in(&scope, "each[1:]", json!([{"n": 2}]));
    check_in(&scope, "[(each | first).n, (each | last).n]", json!([1, 2]));
    check_in(&scope, "each | map(attribute='n') | sum", json!(3));
    check_in(&scope, "each | selectattr('n', 'gt', 1) | list", json!([{"n": 2}]));
    assert_eq!(render_in(&scope, "{% for x in each %}{{ x.n }}{% endfor %}"), json!("12"));
    check_in(&scope, "[each.stats.total, each.results[1].n]", json!([2, 2]));
    check_in(&scope, "each.data", json!([{"n": 1}, {"n": 2}]));
    check_in(
        &scope,
        "[each.data | length, each.data[0].n, each.data.stats.failed]",
        json!([2, 1, 0]),
    );
    check_in(&scope, "each", looped());
    check_in(&scope, "each | tojson | fromjson == each", json!(true));
    check_in(&scope, "'stats' in each", json!(true));
}

#[test]
fn a_result_is_available_under_the_label_of_the_only_task_that_ran() {
    let tasks = Arc::new([("p".into(), "first".into())].into());
    let of = |value: Value| Scope { tasks: Arc::clone(&tasks), ..results(json!({ "p": value })) };
    let scope = of(json!({"n": 1}));
    check_in(&scope, "[p.results.first.n, p.first.n, p.data.first.n]", json!([1, 1, 1]));
    check_in(&scope, "p.results.first", json!({"n": 1}));
    check_in(&scope, "[p.results.second is defined, p.p is defined]", json!([false, false]));
    check_in(&of(json!([7, 8])), "[p.results.first[1], p.results[0]]", json!([8, 7]));
    check_in(&of(json!("text")), "p.results.first", json!("text"));
    // After several tasks every label is a key.
    let several = of(json!({"n": 2, "first": 5, "second": {"n": 2}}));
    check_in(&several, "[p.results.first, p.results.second.n, p.n]", json!([5, 2, 2]));
    // A key of the data is meant before a label.
    check_in(&of(json!({"first": null})), "p.results.first is none", json!(true));
    check_in(&of(looped()), "p.first is defined", json!(false));
    // A tool by itself is called like its step.
    let alone = results(json!({"q": {"n": 3}}));
    check_in(&alone, "[q.results.q.n, q.results.n]", json!([3, 3]));
    check_in(&alone, "q.q is defined", json!(false));
}

#[test]
fn an_sql_result_is_a_map_and_the_list_of_its_rows() {
    let scope = results(json!({ "q": rows() }));
    check_in(
        &scope,
        "[q | length, q[0].id, q.rows[1].id, q.data.rows | length]",
        json!([2, 4, 5, 2]),
    );
    check_in(&scope, "[q.row_count, q.command_0.row_count]", json!([2, 2]));
    assert_eq!(render_in(&scope, "{% for r in q %}{{ r.id }} {% endfor %}"), json!("4 5 "));
    check_in(&scope, "q", rows());
}

#[test]
fn a_map_that_only_resembles_a_result_stays_a_map() {
    let alike = json!({
        "few": {"results": [1], "errors": []},
        "more": {"results": [1], "errors": [], "stats": {"total": 1}, "mine": 1},
        "text": {"columns": "a", "rows": [1], "row_count": 1},
    });
    let scope = results(alike.clone());
    check_in(&scope, "[few | length, more | length, text | length]", json!([2, 4, 3]));
    check_in(&scope, "more[0] is defined", json!(false));
    for (name, value) in alike.as_object().unwrap() {
        assert_eq!(items_of(value), None, "{name}");
    }
    assert_eq!(items_of(&looped()).map(Vec::len), Some(2));
    assert_eq!(items_of(&rows()).map(Vec::len), Some(2));
    assert_eq!(items_of(&json!([1])), None);
}

#[test]
fn a_pipelines_result_has_its_labels_under_results() {
    let scope = results(json!({"p": {"n": 1, "pull": {"n": 1}}, "own": {"results": {"x": 3}}}));
    check_in(&scope, "[p.n, p.pull.n, p.results.pull.n, p.data.pull.n]", json!([1, 1, 1, 1]));
    check_in(&scope, "own.results.x", json!(3));
}

#[test]
fn the_reference_of_a_blob_is_available_without_loading_it() {
    let away = |bytes| {
        let reference =
            BlobRef { digest: "d1".into(), bytes, media_type: "application/json".into() };
        ValueSlot::away(ValueSource::Blob {
            reference: Arc::new(reference),
            fields: from_json(&json!({})),
        })
    };
    let slots = [("small", away(70_000)), ("big", away(20_000_000))];
    let mut all: Names = slots.into_iter().map(|(name, slot)| (Arc::from(name), slot)).collect();
    all.insert("inline".into(), from_json(&json!({"x": 1})).into());
    let own = all["big"].clone();
    let scope = Scope {
        results: Arc::new(all),
        output: Some(StepOutput { data: own.clone(), failure: None, envelope_first: false }),
        own: Some(("big".into(), own)),
        identity: ExecutionIdentity {
            execution: ExecutionId::new(5),
            ..ExecutionIdentity::default()
        },
        ..Scope::default()
    };
    let name = "noetl://execution/5/result/big/d1-20000000";
    check_in(
        &scope,
        "[big._ref, big._uri, steps.big._ref, output._ref]",
        json!([name, name, name, name]),
    );
    check_in(&scope, "[small._store, big._store]", json!(["kv", "disk"]));
    check_in(&scope, "inline._ref is defined or inline._store is defined", json!(false));
    assert!(scope.reach.needed().is_empty());
}

#[test]
fn a_reference_resolves_to_its_content() {
    let blob = BlobRef {
        digest: "0a".repeat(32).into(),
        bytes: 70_000,
        media_type: "application/json".into(),
    };
    // A step's name may hold anything.
    let name = result_ref(ExecutionId::new(5), "a/b-1", &blob);
    assert_eq!(blob_of_ref(&name), Some(blob));
    for other in
        ["noetl://execution/5/result/a/9", "noetl://execution/5/result/a/xyz-9", "s3://b/k", ""]
    {
        assert_eq!(blob_of_ref(other), None, "{other}");
    }
}

fn failed(envelope_first: bool, details: Value) -> Scope {
    let failure = Failure::new(FailureKind::RateLimit, "slow down").with_details(details.clone());
    let data = from_json(&details).into();
    Scope {
        output: Some(StepOutput { data, failure: Some(Arc::new(failure)), envelope_first }),
        task: Some(TaskScope {
            label: "pull".into(),
            attempt: 2,
            previous: None,
            iter: Arc::default(),
            duration_ms: Some(31),
        }),
        ..Scope::default()
    }
}

#[test]
fn rules_see_the_envelope_before_the_data() {
    let data = json!({"status": "mine", "ok": "mine", "data": {"x": 1}, "meta": "mine", "n": 5});
    let scope = |envelope_first| {
        let output = StepOutput { data: from_json(&data).into(), failure: None, envelope_first };
        Scope { output: Some(output), ..Scope::default() }
    };
    check_in(&scope(true), "[output.status, output.ok, output.n]", json!(["ok", true, 5]));
    check_in(&scope(true), "output.data", data.clone());
    check_in(&scope(true), "[output.data.status, output.response.n]", json!(["mine", 5]));
    check_in(&scope(true), "output", json!({"status": "ok", "ok": true, "data": data}));
    check_in(
        &scope(false),
        "[output.status, output.ok, output.meta]",
        json!(["mine", "mine", "mine"]),
    );
    check_in(&scope(false), "[output.data, output.response.n]", json!([{"x": 1}, 5]));
    check_in(&scope(false), "output", data.clone());
}

#[test]
fn an_error_has_the_keys_that_policies_match() {
    let http = failed(true, json!({"http": {"status": 429, "headers": {}}, "retry_after": 7}));
    check_in(
        &http,
        "[output.status, output.ok, output.error.kind]",
        json!(["error", false, "rate_limit"]),
    );
    check_in(&http, "[output.error.retryable, output.error.message]", json!([true, "slow down"]));
    check_in(
        &http,
        "[output.http.status, output.error.status_code, output.error.http_status]",
        json!([429, 429, 429]),
    );
    check_in(&http, "[output.error.retry_after, output.error.code]", json!([7, 429]));
    check_in(&http, "[output.meta.attempt, output.meta.duration_ms]", json!([2, 31]));
    let pg = failed(true, json!({"pg": {"code": "40001", "detail": "d"}}));
    check_in(
        &pg,
        "[output.pg.code, output.pg.sqlstate, output.error.pg_code]",
        json!(["40001", "40001", "40001"]),
    );
    check_in(&pg, "output.pg.detail", json!("d"));
    let py = failed(true, json!({"exception_type": "KeyError", "traceback": "t"}));
    check_in(
        &py,
        "[output.py.exception_type, output.error.exception_type]",
        json!(["KeyError", "KeyError"]),
    );
    check_in(&py, "output.http is defined or output.pg is defined", json!(false));
}
