use noetl_model::FailureKind;
use serde_json::json;

use crate::harness::{call, registry, run};

#[tokio::test]
async fn a_healthy_report_has_no_problems() {
    let answer = run("noop", json!({})).await;
    assert_eq!(answer, Ok(json!({"status": "ok", "message": "noop"})));
    let answer = run("noop", json!({"message": "hello"})).await;
    assert_eq!(answer, Ok(json!({"status": "ok", "message": "hello"})));
}

#[tokio::test]
async fn noop_returns_its_result_even_if_it_is_null() {
    let answer = run("noop", json!({"result": [1], "message": "unused"})).await;
    assert_eq!(answer, Ok(json!([1])));
    assert_eq!(run("noop", json!({"result": null})).await, Ok(json!(null)));
}

#[tokio::test]
async fn an_unknown_kind_and_a_cancelled_call_fail() {
    let failure = run("nope", json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ToolMissing);
    let cancelled = call(json!({}));
    cancelled.cancel.cancel();
    let failure = registry().run("noop", cancelled).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn a_result_that_nests_too_deeply_is_rejected() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert!(run("noop", json!({"result": nested(100)})).await.is_ok());
    let failure = run("noop", json!({"result": nested(101)})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Schema);
}
