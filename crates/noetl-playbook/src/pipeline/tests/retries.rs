//! Tests of retries.

use noetl_template::Entropy;

use super::*;

/// Returns a task that is retried after every failure.
fn task(retry: Value) -> Value {
    let mut rule = json!({"when": "output.status == 'error'", "do": "retry"});
    rule.as_object_mut().unwrap().extend(retry.as_object().unwrap().clone());
    json!([{"name": "a", "kind": "x", "rules": [rule]}])
}

fn failing(times: usize) -> Vec<Result<Value, Failure>> {
    (0..times).map(|_| refused(FailureKind::Connection)).collect()
}

#[track_caller]
fn pauses(retry: Value, times: usize, expected: &[&str]) {
    let (lines, end) = transcript(task(retry), Scope::default(), failing(times));
    let pauses: Vec<_> = lines.iter().filter(|line| line.starts_with("pause")).collect();
    assert_eq!(pauses, expected);
    assert_eq!(failure(end).details.unwrap()["attempts"], json!(times));
}

#[test]
fn a_second_attempt_can_succeed() {
    let answers = vec![refused(FailureKind::Connection), Ok(json!({"n": 1}))];
    let (lines, end) = transcript(task(json!({})), Scope::default(), answers);
    assert_eq!(lines, ["a#1", "pause 1", "a#2"]);
    assert_eq!(end.outcome, Ok(json!({"n": 1})));
}

#[test]
fn the_default_is_three_attempts_one_second_apart() {
    pauses(json!({}), 3, &["pause 1", "pause 1"]);
}

#[test]
fn attempts_include_the_first_run() {
    pauses(json!({"attempts": 1}), 1, &[]);
    pauses(json!({"attempts": 2, "delay": 0.5}), 2, &["pause 0.5"]);
    pauses(json!({"attempts": "{{ 1 + 1 }}", "delay": "{{ '0.25' }}"}), 2, &["pause 0.25"]);
    pauses(json!({"attempts": 3, "delay": 0}), 3, &[]);
}

#[test]
fn delays_grow_by_their_backoff_up_to_the_maximum() {
    let all = json!({"attempts": 5, "delay": 2});
    let with = |more: Value| {
        let mut all = all.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    for backoff in ["none", "fixed"] {
        pauses(with(json!({"backoff": backoff})), 5, &["pause 2"; 4]);
    }
    pauses(with(json!({"backoff": "linear"})), 5, &["pause 2", "pause 4", "pause 6", "pause 8"]);
    let doubled = with(json!({"backoff": "exponential"}));
    pauses(doubled, 5, &["pause 2", "pause 4", "pause 8", "pause 16"]);
    let capped = with(json!({"backoff": "exponential", "max_delay": 5}));
    pauses(capped, 5, &["pause 2", "pause 4", "pause 5", "pause 5"]);
}

#[test]
fn retry_after_of_a_response_is_the_minimum_delay() {
    let asked = |seconds: Value| {
        let failure = Failure::new(FailureKind::RateLimit, "slow down");
        Err(failure.with_details(json!({ "retry_after": seconds })))
    };
    let answers = vec![
        asked(json!(7)),
        asked(json!("9")),
        asked(json!(0.1)),
        asked(json!(-3)),
        asked(json!("soon")),
        Ok(json!(1)),
    ];
    let retry = json!({"attempts": 9, "delay": 1, "max_delay": 2});
    let (lines, _) = transcript(task(retry), Scope::default(), answers);
    let pauses: Vec<_> = lines.iter().filter(|line| line.starts_with("pause")).collect();
    assert_eq!(pauses, ["pause 7", "pause 9", "pause 1", "pause 1", "pause 1"]);
}

#[test]
fn delays_are_bounded_for_any_backoff_and_retry_after() {
    let tasks = task(json!({"attempts": 3000, "delay": 1, "backoff": "exponential"}));
    let mut run = PipelineRun::new(pipeline(tasks), Scope::default());
    let huge = || {
        let failure = Failure::new(FailureKind::RateLimit, "slow down");
        Err(failure.with_details(json!({"retry_after": 1e300})))
    };
    for _ in 0..2500 {
        match run.turn() {
            PipelineRequest::Call(_) => run.answered(huge(), 0),
            PipelineRequest::Pause { seconds } => assert_eq!(seconds, 30.0 * 24.0 * 3600.0),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn jitter_shortens_a_delay_and_comes_from_the_scope() {
    let drawn = |seed| {
        let scope = Scope { entropy: Entropy::new(seed), ..Scope::default() };
        let retry = json!({"attempts": 20, "delay": 10, "jitter": 0.5});
        let (lines, _) = transcript(task(retry), scope, failing(20));
        let seconds = lines.iter().filter_map(|line| line.strip_prefix("pause "));
        seconds.map(|text| text.parse().unwrap()).collect::<Vec<f64>>()
    };
    let pauses = drawn(1);
    assert!(pauses.iter().all(|pause| (5.0..=10.0).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause < 7.0) && pauses.iter().any(|pause| *pause > 8.0));
    assert_eq!(pauses, drawn(1));
    assert_ne!(pauses, drawn(2));
}

#[test]
fn retries_of_a_success_are_limited() {
    let rule = json!({"when": "not output.data.ready", "do": "retry", "attempts": 2, "delay": 0});
    let tasks = json!([{"name": "poll", "kind": "x", "rules": [rule]}]);
    let waits = || Ok(json!({"ready": false}));
    let (lines, end) = transcript(tasks.clone(), Scope::default(), vec![waits(), waits()]);
    let failure = failure(end);
    assert_eq!(lines, ["poll#1", "poll#2"]);
    assert_eq!(failure.kind.as_str(), "attempts_exhausted");
    assert_eq!(failure.details.unwrap()["attempts"], json!(2));
    let answers = vec![waits(), Ok(json!({"ready": true}))];
    assert_eq!(transcript(tasks, Scope::default(), answers).1.outcome, Ok(json!({"ready": true})));
}

#[test]
fn attempts_restart_at_one_each_time_a_task_is_entered() {
    let tasks = json!([
        {"name": "pull", "kind": "x", "input": {"try": "{{ _attempt }}"},
         "rules": [{"when": "output.error", "do": "retry", "attempts": 2, "delay": 0}]},
        {"name": "more", "kind": "x", "rules": [{"when": "output.data", "do": "jump", "to": "pull"}]},
    ]);
    let flaky = || refused(FailureKind::Connection);
    let answers =
        vec![flaky(), Ok(json!(1)), Ok(json!(true)), flaky(), Ok(json!(1)), Ok(json!(false))];
    let (lines, _) = transcript(tasks, Scope::default(), answers);
    let tries = [r#"pull#1 {"try":1}"#, r#"pull#2 {"try":2}"#];
    assert_eq!(lines, [tries[0], tries[1], "more#1", tries[0], tries[1], "more#1"]);
}

#[test]
fn an_invalid_retry_setting_is_reported_with_its_path() {
    for (retry, place, reason) in [
        (json!({"attempts": 0}), "rule 1 attempts", "0 is not a whole number from 1"),
        (json!({"attempts": 1.5}), "rule 1 attempts", "1.5 is not a whole number from 1"),
        (json!({"attempts": "{{ 'many' }}"}), "rule 1 attempts", "\"many\" is not a number"),
        (json!({"delay": -1}), "rule 1 delay", "-1 is not a number of seconds from 0"),
        (json!({"max_delay": [1]}), "rule 1 max_delay", "[1] is not a number"),
        (json!({"jitter": 2}), "rule 1 jitter", "2 is not between 0 and 1"),
    ] {
        let (_, end) = transcript(task(retry), Scope::default(), failing(1));
        let failure = failure(end);
        assert_eq!(failure.kind, FailureKind::TemplateError);
        assert_eq!(failure.message, format!("task 'a', {place}: {reason}"));
    }
}
