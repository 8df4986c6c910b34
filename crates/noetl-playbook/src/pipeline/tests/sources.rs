//! Sources that cannot run.

use super::*;

#[track_caller]
fn refuses(tasks: Value, reason: &str) {
    let error = Pipeline::compile(Arc::new(json!({ "tasks": tasks }))).unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn unsupported_pipelines_are_rejected_with_a_reason() {
    let task = |more: Value| {
        let mut task = json!({"name": "a", "kind": "x"});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([task])
    };
    refuses(json!([]), "it has no task");
    refuses(json!([{"kind": "x"}]), "missing field `name`");
    refuses(
        json!([{"name": "a", "kind": "x"}, {"name": "a", "kind": "y"}]),
        "two tasks are called 'a'",
    );
    refuses(task(json!({"rules": [{"do": "jump", "to": "b"}]})), "it has no task called 'b'");
    refuses(task(json!({"rules": [{"do": "jump"}]})), "a jump names no task");
    refuses(task(json!({"rules": [{"do": "jump", "to": "previous"}]})), "no task before 'a'");
    refuses(task(json!({"rules": [{"do": "dance"}]})), "there is no action 'dance'");
    refuses(task(json!({"rules": [{"do": "fail", "when": 3}]})), "'3' is no condition");
    let nothing = json!([{"scope": "ctx", "path": [], "value": 1}]);
    refuses(task(json!({ "set": nothing })), "an assignment of the task 'a' names nothing");
    refuses(task(json!({"config": {"url": "{{ 1 +"}})), "unexpected");
}

#[test]
fn a_source_survives_a_round_trip() {
    let source = Arc::new(json!({"tasks": [{"name": "a", "kind": "x", "timeout_ms": 50}]}));
    let compiled = Pipeline::compile(source.clone()).unwrap();
    assert_eq!(compiled.source, source);
    assert_eq!(compiled.tasks[0].tool.timeout, Some(std::time::Duration::from_millis(50)));
}
