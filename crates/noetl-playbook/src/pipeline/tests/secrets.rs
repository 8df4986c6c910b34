//! Entries of the keychain: asked for when they are touched, refused when they are not there.

use noetl_model::FailureKind;
use noetl_template::{KeychainNames, from_json_owned};

use super::*;

/// Returns a scope whose keychain declares these entries.
fn declaring(names: &[&str]) -> Scope {
    let keychain = KeychainNames::new(names.iter().map(|name| Arc::from(*name)));
    Scope { keychain: Some(Arc::new(keychain)), ..scope(json!({"which": "b"})) }
}

/// Runs tasks, gives what is asked for, and answers every call with its input.
fn run(
    tasks: Value,
    scope: Scope,
    secrets: &dyn Fn(&str) -> Result<Value, Failure>,
) -> (Vec<String>, PipelineEnd) {
    let mut run = PipelineRun::new(pipeline(tasks), scope);
    let mut lines = Vec::new();
    loop {
        match run.turn() {
            PipelineRequest::Call(call) => {
                lines.push(format!("{}#{}", call.label, call.attempt));
                run.answered(Ok(Value::Object(call.input)), 1);
            }
            PipelineRequest::Secrets(names) => {
                for name in names {
                    lines.push(format!("secret {name}"));
                    run.secret(name.clone(), secrets(&name).map(from_json_owned));
                }
            }
            PipelineRequest::Done(end) => return (lines, *end),
            other => panic!("{other:?}"),
        }
    }
}

fn token(name: &str) -> Result<Value, Failure> {
    Ok(json!({"token": format!("of {name}"), "n": 1}))
}

#[test]
fn a_keychain_entry_is_requested_only_when_a_task_reads_it() {
    let tasks = json!([
        {"name": "x", "kind": "noop", "input": {"v": "{{ 'no' if true else keychain.never.x }}"}},
        {"name": "y", "kind": "noop", "input": {"v": "{{ keychain.a.token }}", "n": "{{ keychain.a.n }}"}},
        {"name": "z", "kind": "noop", "input": {"v": "{{ keychain[workload.which].token ~ keychain.a.n }}"}},
    ]);
    let (lines, end) = run(tasks, declaring(&["a", "b", "never"]), &token);
    assert_eq!(lines, ["x#1", "secret a", "y#1", "secret b", "z#1"]);
    let result = end.outcome.expect("it went well");
    assert_eq!(result["y"], json!({"v": "of a", "n": 1}));
    assert_eq!(result["z"], json!({"v": "of b1"}));
}

#[test]
fn a_missing_keychain_entry_fails_the_task_and_its_rules_decide() {
    let cases = [
        ("{{ keychain.a.nothing }}", "the keychain's 'a' has no field 'nothing'; it has token, n"),
        (
            "{{ keychain.c.token }}",
            "the playbook's keychain declares no 'c'; this step may use a, b",
        ),
        ("{{ keychain }}", "the keychain cannot be used as a whole"),
        ("{{ keychain.a.nothing is defined }}", "has no field 'nothing'"),
        ("{{ keychain.a.nothing | default('x') }}", "has no field 'nothing'"),
        ("{{ keychain[7] }}", "the keychain cannot be used as a whole"),
    ];
    for (template, expected) in cases {
        let tasks = json!([{"name": "x", "kind": "noop", "input": {"v": template}}]);
        let (_, end) = run(tasks, declaring(&["a", "b"]), &token);
        let failure = failure(end);
        assert_eq!(failure.kind, FailureKind::Auth, "{template}");
        assert!(failure.message.contains(expected), "{template}: {}", failure.message);
    }
    let rule = json!({"when": "output.error.kind == 'auth'", "do": "continue"});
    let tasks = json!([
        {"name": "x", "kind": "noop", "input": {"v": "{{ keychain.c.d }}"}, "rules": [rule]},
        {"name": "y", "kind": "noop", "input": {"why": "{{ x.error.kind }}"}},
    ]);
    let (lines, end) = run(tasks, declaring(&[]), &token);
    assert_eq!(lines, ["y#1"]);
    assert_eq!(end.outcome.expect("accepted")["why"], "auth");
}

#[test]
fn a_failed_keychain_lookup_fails_the_task_and_can_be_retried() {
    let tries = std::cell::Cell::new(0);
    let secrets = |_: &str| {
        tries.set(tries.get() + 1);
        match tries.get() {
            1 => Err(Failure::new(FailureKind::Connection, "away")),
            _ => Ok(json!({"token": "t"})),
        }
    };
    let rule = json!({"when": "output.error", "do": "retry", "attempts": 3, "delay": 0});
    let tasks = json!([{"name": "x", "kind": "noop", "input": {"v": "{{ keychain.a.token }}"},
                        "rules": [rule]}]);
    let (lines, end) = run(tasks, declaring(&["a"]), &secrets);
    assert_eq!(lines, ["secret a", "secret a", "x#2"]);
    assert_eq!(end.outcome, Ok(json!({"v": "t"})));
    let never = |_: &str| Err(Failure::new(FailureKind::Auth, "no such thing"));
    let endless = json!([{"name": "x", "kind": "noop", "input": {"v": "{{ keychain.a.token }}"},
                          "rules": [{"do": "jump", "to": "x"}]}]);
    let mut run = PipelineRun::new(pipeline(endless), declaring(&["a"])).with_limit(10);
    let end = loop {
        match run.turn() {
            PipelineRequest::Secrets(names) => run.secret(names[0].clone(), never("")),
            PipelineRequest::Done(end) => break end,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(failure(*end).kind.as_str(), "task_limit");
}

#[test]
fn values_that_a_check_rejects_are_not_set_and_end_the_pipeline() {
    for place in ["set", "rule"] {
        let set = json!([{"scope": "ctx", "path": ["a"], "value": "fine"},
                         {"scope": "ctx", "path": ["b"], "value": "{{ keychain.a.n }}"}]);
        let task = match place {
            "set" => json!({"name": "x", "kind": "noop", "set": set}),
            _ => json!({"name": "x", "kind": "noop", "rules": [{"do": "continue", "set": set}]}),
        };
        let mut run = PipelineRun::new(pipeline(json!([task])), declaring(&["a"]))
            .with_write_check(|it| {
                let is_secret = it.value == json!(1);
                is_secret.then(|| Failure::new(FailureKind::Config, it.path.join(".")))
            });
        let end = loop {
            match run.turn() {
                PipelineRequest::Call(_) => run.answered(Ok(json!({})), 1),
                PipelineRequest::Secrets(names) => {
                    run.secret(names[0].clone(), token("a").map(from_json_owned));
                }
                PipelineRequest::Done(end) => break end,
                other => panic!("{other:?}"),
            }
        };
        assert!(end.ctx.is_empty(), "{place}");
        let failure = failure(*end);
        assert_eq!((failure.kind, &*failure.message), (FailureKind::Config, "b"), "{place}");
    }
}

#[test]
fn a_keychain_prints_no_secret() {
    let mut keychain = KeychainNames::new([Arc::from("a")]);
    keychain.insert("a".into(), from_json_owned(json!({"token": "hunter2-hunter2"})));
    let debug = format!("{:?}", Scope { keychain: Some(Arc::new(keychain)), ..Scope::default() });
    assert!(debug.contains("Keychain") && !debug.contains("hunter2"), "{debug}");
}
