//! Tests of the outcome of a pipeline.

use super::*;
use crate::pipeline::{failed_value, loop_result, select};
use crate::tool::Selection;

fn plain(labels: &[&str]) -> Value {
    labels.iter().map(|label| json!({"name": label, "kind": "x"})).collect()
}

#[test]
fn the_result_of_one_task_is_its_data() {
    for data in [json!(null), json!([1]), json!({"a": {"b": 1.0}}), json!("x")] {
        let (_, end) = transcript(plain(&["a"]), Scope::default(), vec![Ok(data.clone())]);
        assert_eq!(end.outcome, Ok(data));
    }
}

#[test]
fn results_of_several_tasks_are_merged_and_later_ones_win() {
    let answers =
        vec![Ok(json!({"x": 1, "y": 1, "c": "own"})), Ok(json!([1])), Ok(json!({"y": 3}))];
    let (_, end) = transcript(plain(&["a", "b", "c"]), Scope::default(), answers);
    let expected = r#"{"x":1,"y":3,"c":"own","a":{"x":1,"y":1,"c":"own"},"b":[1]}"#;
    assert_eq!(end.outcome.unwrap().to_string(), expected);
}

#[test]
fn the_result_has_the_data_of_the_last_task_run() {
    let tasks = json!([
        {"name": "a", "kind": "x"},
        {"name": "b", "kind": "x", "rules": [{"when": "output.data.back", "do": "jump", "to": "a"},
                                             {"do": "break"}]},
    ]);
    let answers = vec![
        Ok(json!({"v": "a1"})),
        Ok(json!({"v": "b1", "back": true})),
        Ok(json!({"v": "a2"})),
        Ok(json!({"v": "b2"})),
    ];
    let (_, end) = transcript(tasks, Scope::default(), answers);
    assert_eq!(end.outcome.unwrap()["v"], json!("b2"));
    let tasks = json!([
        {"name": "a", "kind": "x", "rules": [{"when": "output.data.stop", "do": "break"}]},
        {"name": "b", "kind": "x", "rules": [{"do": "jump", "to": "a"}]},
    ]);
    let answers =
        vec![Ok(json!({"v": "a1"})), Ok(json!({"v": "b1"})), Ok(json!({"v": "a2", "stop": true}))];
    let (_, end) = transcript(tasks, Scope::default(), answers);
    assert_eq!(end.outcome.unwrap()["v"], json!("a2"));
}

#[test]
fn selected_fields_are_added_to_the_fields_of_the_result() {
    let tasks = json!([{"name": "a", "kind": "x",
        "select": [{"name": "total", "path": ["meta", "total"]},
                   {"name": "last", "path": ["rows", "-1", "id"]},
                   {"name": "none", "path": ["meta", "nothing"]}],
        "set": [{"scope": "ctx", "path": ["t"], "value": "{{ output.total }}"}]}]);
    let data = json!({"meta": {"total": 9}, "rows": [{"id": 1}, {"id": 2}]});
    let (_, end) = transcript(tasks, Scope::default(), vec![Ok(data)]);
    let expected =
        json!({"meta": {"total": 9}, "rows": [{"id": 1}, {"id": 2}], "total": 9, "last": 2});
    assert_eq!(end.outcome, Ok(expected));
    assert_eq!(end.ctx["t"], json!(9));
}

#[test]
fn a_selection_skips_values_beyond_its_limit() {
    let pick = [Selection { name: "n".into(), path: vec!["0".into()] }];
    for data in [json!([1, 2]), json!("text"), json!(null), json!({"x": 1})] {
        let mut picked = data.clone();
        select(&mut picked, &pick);
        assert_eq!(picked, data);
    }
}

#[test]
fn a_failed_task_has_the_same_form_as_a_failed_step() {
    let failure =
        Failure::new(FailureKind::NotFound, "no").with_details(json!({"status_code": 404}));
    let error =
        json!({"status_code": 404, "kind": "not_found", "message": "no", "retryable": false});
    let expected = json!({"status_code": 404, "status": "error", "ok": false, "error": error});
    assert_eq!(failed_value(&failure), expected);
}

#[test]
fn the_outcome_is_returned_once_and_late_results_are_ignored() {
    let mut run = PipelineRun::new(pipeline(plain(&["a"])), Scope::default());
    run.answered(Ok(json!("early")), 0);
    assert!(matches!(run.turn(), PipelineRequest::Call(_)));
    assert!(matches!(run.turn(), PipelineRequest::Call(call) if &*call.label == "a"));
    run.answered(Ok(json!(1)), 0);
    run.answered(Ok(json!("twice")), 0);
    assert!(matches!(run.turn(), PipelineRequest::Done(end) if end.outcome == Ok(json!(1))));
    run.answered(Ok(json!("late")), 0);
    assert!(matches!(run.turn(), PipelineRequest::Done(end) if end.outcome.is_err()));
}

#[test]
fn a_failure_names_its_task_where_there_are_several() {
    let (_, end) = transcript(plain(&["a"]), Scope::default(), vec![refused(FailureKind::Auth)]);
    assert_eq!(failure(end).details, None);
    let answers = vec![Ok(json!(1)), refused(FailureKind::Auth)];
    let (_, end) = transcript(plain(&["a", "b"]), Scope::default(), answers);
    assert_eq!(*failure(end).details.unwrap(), json!({"task": "b"}));
}

#[test]
fn the_results_of_a_loop_are_in_item_order() {
    let bad = Failure::new(FailureKind::Auth, "no");
    let items = vec![Some(Ok(json!({"n": 1}))), Some(Err(bad)), None, Some(Ok(json!(null)))];
    let error = json!({"kind": "auth", "message": "no", "retryable": false});
    let expected = json!({
        "results": [{"n": 1}, null, null, null],
        "stats": {"total": 4, "success": 2, "failed": 1, "skipped": 1},
        "errors": [{"index": 1, "error": error}],
    });
    assert_eq!(loop_result(items), expected);
    assert_eq!(noetl_template::items_of(&loop_result(Vec::new())).map(Vec::len), Some(0));
}
