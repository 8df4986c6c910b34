//! Tests of the actions of rules.

use super::*;

fn rule(when: &str, action: &str) -> Value {
    json!({"when": when, "do": action})
}

#[test]
fn tasks_run_in_order_and_see_earlier_results() {
    let tasks = json!([
        {"name": "pull", "kind": "http", "config": {"url": "{{ workload.base }}/x"}},
        {"name": "shape", "kind": "python",
         "input": {"n": "{{ pull.data.n }}", "p": "{{ _prev.n }}", "r": "{{ results.pull.n }}"},
         "config": {"code": "{{ raw }}"}, "raw": ["code"]},
    ]);
    let answers = vec![Ok(json!({"n": 4})), Ok(json!({"m": 5}))];
    let (lines, end) = transcript(tasks, scope(json!({"base": "b"})), answers);
    assert_eq!(
        lines,
        [r#"pull#1 {"url":"b/x"}"#, r#"shape#1 {"code":"{{ raw }}"} {"n":4,"p":4,"r":4}"#]
    );
    let merged = json!({"n": 4, "m": 5, "pull": {"n": 4}, "shape": {"m": 5}});
    assert_eq!(end.outcome, Ok(merged));
}

#[test]
fn continue_accepts_an_error() {
    let tasks = json!([
        {"name": "a", "kind": "x", "rules": [rule("{{ output.status == 'error' }}", "continue")]},
        {"name": "b", "kind": "x", "input": {"ok": "{{ a.ok }}", "kind": "{{ a.error.kind }}"}},
    ]);
    let answers = vec![refused(FailureKind::NotFound), Ok(json!({"y": 1}))];
    let (lines, end) = transcript(tasks, Scope::default(), answers);
    assert_eq!(lines, ["a#1", r#"b#1 {"ok":false,"kind":"not_found"}"#]);
    let result = end.outcome.unwrap();
    assert_eq!(result["y"], json!(1));
    assert_eq!(result["a"]["error"]["kind"], json!("not_found"));
    // The pipeline itself went well.
    assert_eq!(result.get("status"), None);
    assert_eq!(result.get("error"), None);
}

#[test]
fn break_succeeds_and_skips_later_tasks() {
    let tasks = json!([
        {"name": "a", "kind": "x", "rules": [rule("output.data.n > 1", "break")]},
        {"name": "b", "kind": "x"},
    ]);
    let (lines, end) = transcript(tasks.clone(), Scope::default(), vec![Ok(json!({"n": 2}))]);
    assert_eq!((lines.len(), end.outcome), (1, Ok(json!({"n": 2}))));
    let answers = vec![Ok(json!({"n": 1})), Ok(json!(null))];
    assert_eq!(transcript(tasks, Scope::default(), answers).0.len(), 2);
}

#[test]
fn break_on_an_error_succeeds_with_the_error_as_result() {
    let tasks = json!([{"name": "a", "kind": "x", "rules": [rule("output.error", "break")]}]);
    let (_, end) = transcript(tasks, Scope::default(), vec![refused(FailureKind::Timeout)]);
    let result = end.outcome.unwrap();
    assert_eq!([&result["status"], &result["error"]["kind"]], [&json!("error"), &json!("timeout")]);
}

#[test]
fn fail_turns_a_result_into_a_failure_that_names_the_rule() {
    let rules = json!([rule("output.data.n == 0", "continue"), rule("true", "fail")]);
    let tasks = json!([{"name": "a", "kind": "x", "rules": rules}, {"name": "b", "kind": "x"}]);
    let (lines, end) = transcript(tasks.clone(), Scope::default(), vec![Ok(json!({"n": 1}))]);
    let failure = failure(end);
    assert_eq!(lines.len(), 1);
    assert_eq!(failure.kind.as_str(), "policy");
    assert!(failure.message.contains("task 'a': its rule 2"), "{failure}");
    let (_, end) = transcript(tasks, Scope::default(), vec![refused(FailureKind::Auth)]);
    assert_eq!(super::failure(end).kind, FailureKind::Auth);
}

#[test]
fn an_error_without_a_matching_rule_fails_and_a_success_continues() {
    let rules = json!([rule("output.error.kind == 'timeout'", "continue")]);
    let tasks = json!([{"name": "a", "kind": "x", "rules": rules}, {"name": "b", "kind": "x"}]);
    let (lines, end) =
        transcript(tasks.clone(), Scope::default(), vec![refused(FailureKind::Auth)]);
    assert_eq!((lines.len(), failure(end).kind), (1, FailureKind::Auth));
    let (lines, _) = transcript(tasks, Scope::default(), vec![Ok(json!(1)), Ok(json!(2))]);
    assert_eq!(lines.len(), 2);
}

#[test]
fn the_first_matching_rule_applies() {
    let rules = json!([
        {"when": "{{ false }}", "do": "fail"},
        {"when": "output.ok", "do": "break", "set": [
            {"scope": "ctx", "path": ["by"], "value": "{{ _task }}"}]},
        {"do": "fail", "set": [{"scope": "ctx", "path": ["by"], "value": "nobody"}]},
    ]);
    let tasks = json!([{"name": "a", "kind": "x", "rules": rules}]);
    let (_, end) = transcript(tasks, Scope::default(), vec![Ok(json!(1))]);
    assert_eq!(end.outcome, Ok(json!(1)));
    assert_eq!(Value::Object(end.ctx), json!({"by": "a"}));
}

#[test]
fn jumps_repeat_until_a_rule_continues() {
    let more = json!({
        "when": "{{ output.data.next is not none }}", "do": "jump", "to": "pull",
        "set": [{"scope": "iter", "path": ["page"], "value": "{{ output.data.next }}"}],
    });
    let tasks = json!([
        {"name": "pull", "kind": "http", "config": {"page": "{{ iter.page | default(1) }}"}},
        {"name": "check", "kind": "x", "rules": [more]},
        {"name": "last", "kind": "x", "input": {"page": "{{ page }}"}},
    ]);
    let page = |next: Value| Ok(json!({ "next": next }));
    let answers = vec![
        Ok(json!(1)),
        page(json!(2)),
        Ok(json!(1)),
        page(json!(3)),
        Ok(json!(1)),
        page(json!(null)),
        Ok(json!(0)),
    ];
    let (lines, end) = transcript(tasks, Scope::default(), answers);
    let pulls: Vec<_> = lines.iter().filter(|line| line.starts_with("pull")).collect();
    assert_eq!(pulls, [r#"pull#1 {"page":1}"#, r#"pull#1 {"page":2}"#, r#"pull#1 {"page":3}"#]);
    assert_eq!(lines.last().unwrap(), r#"last#1 {"page":3}"#);
    assert_eq!(Value::Object(end.iter), json!({"page": 3}));
    assert!(end.ctx.is_empty());
}

#[test]
fn a_jump_can_skip_tasks_and_return_to_the_previous_one() {
    let tasks = json!([
        {"name": "a", "kind": "x", "rules": [{"when": "output.data", "do": "jump", "to": "c"}]},
        {"name": "b", "kind": "x"},
        {"name": "c", "kind": "x", "input": {"b": "{{ b is defined }}"},
         "rules": [{"when": "output.data == 'again'", "do": "jump", "to": "@previous"}]},
    ]);
    let answers = vec![Ok(json!(true)), Ok(json!("again")), Ok(json!(1)), Ok(json!(2))];
    let (lines, end) = transcript(tasks, Scope::default(), answers);
    assert_eq!(lines, ["a#1", r#"c#1 {"b":false}"#, "b#1", r#"c#1 {"b":true}"#]);
    assert_eq!(end.outcome, Ok(json!({"a": true, "b": 1, "c": 2})));
}

#[test]
fn endless_jumps_are_stopped() {
    let tasks = json!([{"name": "a", "kind": "x", "rules": [{"do": "jump", "to": "a"}]}]);
    let mut run = PipelineRun::new(pipeline(tasks), Scope::default()).with_limit(50);
    let mut calls = 0;
    let end = loop {
        match run.turn() {
            PipelineRequest::Call(call) => {
                assert_eq!(call.attempt, 1);
                calls += 1;
                run.answered(Ok(json!(calls)), 0);
            }
            PipelineRequest::Done(end) => break end,
            other => panic!("{other:?}"),
        }
    };
    let failure = failure(*end);
    assert_eq!((calls, failure.kind.as_str()), (50, "task_limit"));
    assert!(failure.message.contains("ran 50 tasks"), "{failure}");
}
