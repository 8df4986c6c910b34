//! Commands in the words of published workers, rendered once more as those do.

use std::sync::Arc;

use noetl_control::lower::{Dialect, Found, Lowered, lacking, lower, raised, raised_failure};
use noetl_model::event::{BlobRef, Issued, LoopItem};
use noetl_model::scope::{CommandScope, IterationScope, ScopeBlob, ScopePart};
use noetl_model::{CatalogId, ExecutionId, FailureKind, Map, Value};
use noetl_test_app::published_worker::render;
use serde_json::json;

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no map"),
    }
}

fn issued(tool: &str, config: Value, input: Value) -> Issued {
    Issued {
        step: Arc::from("s"),
        generation: 1,
        attempt: 1,
        tool: Arc::from(tool),
        config: map(config),
        input: map(input),
        timeout_ms: None,
        scope: None,
        item: None,
        idempotent: true,
        pool: None,
        trace: None,
    }
}

fn scope() -> CommandScope {
    CommandScope {
        workload: map(json!({"base": "http://x", "n": 5})),
        ctx: map(json!({"page": 2})),
        steps: map(json!({"load": {"rows": [1]}})),
        tasks: std::collections::BTreeMap::new(),
        step: Map::new(),
        previous: Some(json!({"ok": 1})),
        iteration: None,
        spec: None,
        env: std::collections::BTreeMap::new(),
        keychain: Map::new(),
        blobs: Vec::new(),
        catalog: CatalogId::new(7),
        path: Arc::from("a/b"),
        version: 1,
        parent: None,
    }
}

fn lowered(issued: &Issued) -> Lowered {
    lowered_with(issued, &Found::default())
}

fn lowered_with(issued: &Issued, found: &Found) -> Lowered {
    lower(ExecutionId::new(12), issued, found, Dialect::Worker552).expect("it can run")
}

/// The settings as the tool of a published worker sees them.
fn seen(lowered: &Lowered) -> Value {
    render(&lowered.tool_config, &lowered.render_context).expect("it renders")
}

fn task(task: Value) -> Issued {
    let mut made = issued("task_sequence", json!({ "tasks": [task] }), json!({}));
    made.scope = Some(Box::new(scope()));
    made
}

/// The settings of the only task, not rendered.
fn spec(lowered: &Lowered, label: &str) -> Value {
    lowered.tool_config[0][label].clone()
}

/// What a template of a task comes to there.
fn comes_to(value: &Value, lowered: &Lowered) -> Value {
    render(value, &lowered.render_context).expect("it renders")
}

#[test]
fn text_that_looks_like_a_template_survives() {
    for text in [
        "{{ workload.n }}",
        "{% raw %}",
        "a {{ b",
        "{{",
        "}}{{{%",
        "{\"a\": \"{{ x }}\"}",
        "\"{{ quoted }}\"",
        "{{ 1 + 1 }}",
        "line\n{{ \\n \u{1F600} <b>'\" }}\n",
        "{# no {{ comment #}",
    ] {
        let config = json!({"result": {"deep": [text, {"k": text}]}, "plain": "12"});
        let made = lowered(&issued("noop", config.clone(), json!({})));
        assert_eq!(seen(&made), config, "{text:?}");
        let made = lowered(&issued("python", json!({"code": "x"}), json!({ "text": text })));
        let args = render(&Value::Object(made.args), &made.render_context).unwrap();
        assert_eq!(args, json!({ "text": text }), "{text:?}");
    }
}

#[test]
fn what_needs_nothing_is_told_as_it_is() {
    let made = lowered(&issued("python", json!({"code": "result = a"}), json!({"a": "00501"})));
    assert_eq!(made.action, "python");
    assert_eq!(made.tool_config, json!({"code": "result = a"}));
    assert_eq!(made.args, map(json!({"a": "00501"})));
    assert!(made.render_context.is_empty());
}

#[test]
fn python_gets_what_it_does_not_import() {
    let code = "result = json.dumps(pd.x(now())) + myjson.x";
    let libs = json!({"pd": "pandas", "now": {"from": "datetime", "import": "datetime"}});
    let config = json!({"code": code, "libs": libs, "raw": true});
    let made = lowered(&issued("python", config, json!({})));
    let imports = "import json; import pandas as pd; from datetime import datetime as now";
    assert_eq!(made.tool_config, json!({"code": format!("{imports}\n{code}")}));
    let inline = json!({"script": {"source": {"type": "inline", "code": "result = 1"}}});
    let made = lowered(&issued("python", inline, json!({})));
    assert_eq!(made.tool_config, json!({"code": "result = 1"}));
    let there = json!({"script": {"source": {"type": "file", "path": "a.py"}}});
    let made = lowered(&issued("python", there, json!({})));
    let expected = json!({"script": {"source": {"type": "file"}, "uri": "a.py"}});
    assert_eq!(made.tool_config, expected);
}

#[test]
fn shell_gets_one_text_and_its_surroundings() {
    let config = json!({"cmds": ["false", "echo no"], "env": {"N": 5, "T": "{{ x }}", "Z": null}});
    let mut command = issued("shell", config, json!({"a": 1}));
    command.timeout_ms = Some(1500);
    let made = seen(&lowered(&command));
    assert_eq!(made["command"], "{ false\n} && { echo no\n}");
    assert_eq!(made["timeout_seconds"], 2);
    assert_eq!(
        made["env"],
        json!({"N": "5", "T": "{{ x }}", "NOETL_EXECUTION_ID": "12", "NOETL_STEP": "s",
               "NOETL_ATTEMPT": "1", "NOETL_INPUT": "{\"a\":1}"})
    );
}

#[test]
fn http_gets_its_body_under_the_name_of_its_form() {
    let of = |config: Value, input: Value| seen(&lowered(&issued("http", config, input)));
    let made = of(json!({"endpoint": "http://x", "method": "post"}), json!({"a": 1}));
    assert_eq!(made, json!({"url": "http://x", "method": "POST", "json": {"a": 1}}));
    let made = of(json!({"url": "http://x"}), json!({"a": 1}));
    assert_eq!(made, json!({"url": "http://x", "method": "GET"}), "no body, no input sent");
    let made = of(json!({"url": "u", "method": "PUT", "data": {"k": [1]}}), json!({}));
    assert_eq!(made["json"], json!({"k": [1]}));
    let made = of(json!({"url": "u", "method": "PUT", "payload": "raw {{ text"}), json!({}));
    assert_eq!((&made["body"], made.get("json")), (&json!("raw {{ text"), None));
    let form = json!({"Content-Type": "application/x-www-form-urlencoded"});
    let config = json!({"url": "u", "method": "POST", "headers": form, "data": {"a": 1}});
    assert_eq!(of(config, json!({}))["form"], json!({"a": "1"}));
    let made = of(json!({"url": "u?x=1", "params": {"a": ["b c", 2], "n": null}}), json!({}));
    assert_eq!(made["url"], "u?x=1&a=b%20c&a=2");
    let made = of(json!({"url": "u", "params": {"a": 1}, "timeout": "500ms"}), json!({}));
    assert_eq!((&made["params"], &made["timeout_seconds"]), (&json!({"a": "1"}), &json!(1)));
    assert_eq!(made.get("timeout"), None, "a text there would make the command unreadable");
    let made = of(json!({"url": "u", "data": {"query": {"q": "z"}}}), json!({}));
    assert_eq!(made["params"], json!({"q": "z"}));
}

#[test]
fn credentials_are_named_by_their_alias() {
    for auth in [
        json!("pg"),
        json!({"type": "bearer", "credential": "pg"}),
        json!({"key": "pg"}),
        json!({"main": {"type": "bearer", "credential": "pg"}}),
    ] {
        let made = lowered(&issued("http", json!({"url": "u", "auth": auth}), json!({})));
        assert_eq!(made.tool_config["auth"], "pg", "{auth}");
    }
    let spelled = json!({"type": "bearer", "token": "t"});
    let made = lowered(&issued("http", json!({"url": "u", "auth": spelled}), json!({})));
    assert_eq!(made.tool_config["auth"], spelled);
}

#[test]
fn databases_get_their_names() {
    let config = json!({"connection": "postgres://x", "commands": ["first", "second"]});
    let made = lowered(&issued("postgres", config, json!({})));
    let expected = json!({"connection_string": "postgres://x", "query": "first;\nsecond"});
    assert_eq!(made.tool_config, expected);
    let config = json!({"action": "publish", "subject": "a", "payload": "hi"});
    let made = lowered(&issued("nats", config, json!({})));
    let expected = json!({"operation": "js_publish", "subject": "a", "data": "hi"});
    assert_eq!(made.tool_config, expected);
}

#[test]
fn what_they_lack_is_said() {
    let lacks = |tool: &str, config: Value| lacking(&issued(tool, config, json!({})));
    for (tool, config) in [
        ("sqlite", json!({})),
        ("secrets", json!({})),
        ("transfer", json!({})),
        ("postgres", json!({"params": {"a": 1}})),
        ("postgres", json!({"sslmode": "require"})),
        ("postgres", json!({"commands": [{"query": "x", "params": [1]}]})),
        ("artifact", json!({"action": "put"})),
        ("nats", json!({"action": "request"})),
        ("nats", json!({"action": "kv_put", "revision": 3})),
        ("python", json!({"limits": {"memory_mb": 1}})),
        ("task_sequence", json!({"tasks": [{"name": "a", "kind": "sqlite"}]})),
        ("task_sequence", json!({"tasks": [{"name": "a", "kind": "noop"}], "loop": {}})),
    ] {
        let why = lacks(tool, config.clone());
        assert!(why.is_some_and(|why| why.contains("published workers")), "{tool} {config}");
    }
    assert_eq!(lacks("postgres", json!({"params": [1], "query": "x"})), None);
    assert_eq!(lacks("noop", json!({})), None);
    let claims = LoopItem { index: 0, total: None, frame: Some(1), claims: true };
    let claim = Issued { item: Some(claims), ..issued("noop", json!({}), json!({})) };
    assert!(lacking(&claim).is_some());
    let refused = lower(ExecutionId::new(1), &claim, &Found::default(), Dialect::Worker552);
    assert!(refused.is_err());
}

#[test]
fn a_template_of_a_task_comes_to_the_type_it_has_here() {
    for (template, expected) in [
        ("{{ workload.n }}", json!(5)),
        ("{{ workload.n }}{{ workload.n }}", json!("55")),
        ("{{ workload.n | string }}", json!("5")),
        ("{{ '00501' }}", json!("00501")),
        ("{{ '12' }}", json!("12")),
        ("n={{ workload.n }}", json!("n=5")),
        ("{{ load.rows }}", json!([1])),
        ("{{ load.data.rows[0] }}", json!(1)),
        ("{{ ctx.page }}", json!(2)),
        ("{{ ctx.n }}", json!(5)),
        ("{{ page + n }}", json!(7)),
        ("{{ nobody.knows }}", json!(null)),
        ("{{ true if n > 1 else false }}", json!(true)),
        ("{% for i in range(3) %}{{ i }}{% endfor %}", json!("012")),
        ("plain 12", json!("plain 12")),
        ("{{ execution_id }}", json!("12")),
    ] {
        let made = lowered(&task(json!({
            "name": "t", "kind": "noop", "config": {"result": template},
        })));
        assert_eq!(comes_to(&spec(&made, "t")["result"], &made), expected, "{template}");
    }
}

#[test]
fn settings_that_are_texts_stay_texts() {
    let config = json!({"command": "{{ workload.n }}", "env": {"N": "{{ workload.n }}"}});
    let made = lowered(&task(json!({"name": "t", "kind": "shell", "config": config})));
    let spec = comes_to(&spec(&made, "t"), &made);
    assert_eq!((&spec["command"], &spec["env"]["N"]), (&json!("5"), &json!("5")));
}

#[test]
fn raw_settings_are_no_templates() {
    let code = "result = '{{ not mine }}' + json.dumps(1)";
    let made = lowered(&task(json!({
        "name": "t", "kind": "python", "config": {"code": code, "raw": true}, "raw": ["code"],
    })));
    let spec = comes_to(&spec(&made, "t"), &made);
    assert_eq!(spec["code"], format!("import json\n{code}"));
}

#[test]
fn what_a_task_sets_is_told_by_a_rule() {
    let made = lowered(&task(json!({
        "name": "t", "kind": "noop",
        "set": [{"scope": "ctx", "path": ["a", "b"], "value": "{{ output.x }}"}],
        "rules": [{"when": "output.status == 'error'", "do": "retry", "attempts": 2, "delay": 0.5,
                   "backoff": "exponential", "set": [{"scope": "ctx", "path": ["r"], "value": 1}]}],
    })));
    let spec = spec(&made, "t");
    assert_eq!(spec["kind"], "noop");
    assert!(spec["set"].get("ctx.a.b").is_some());
    let rules = spec["spec"]["policy"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 3);
    let mut names = made.render_context.clone();
    names.insert("output".to_owned(), json!({"status": "success", "data": {"x": "9"}}));
    let told = |value: &Value| render(value, &names).unwrap();
    assert_eq!(told(&rules[0]["when"]), json!(false));
    assert_eq!(told(&rules[1]["when"]), json!(false));
    assert_eq!(told(&rules[2]["when"]), json!(true));
    assert_eq!(told(&rules[2]["then"]["set"]["ctx.a.b"]), json!("9"), "as text, as it was");
    names.insert("output".to_owned(), json!({"status": "error", "data": {}}));
    let told = |value: &Value| render(value, &names).unwrap();
    assert_eq!(told(&rules[0]["when"]), json!(false), "what failed sets nothing");
    assert_eq!(told(&rules[1]["when"]), json!(true));
    assert_eq!(rules[1]["then"]["set"], json!({"ctx.r": 1}));
    let then = json!({"do": "retry", "attempts": 2, "delay": 0.5, "backoff": "exponential",
                      "set": {"ctx.r": 1}});
    assert_eq!(rules[1]["then"], then);
}

#[test]
fn a_rule_without_a_condition_always_applies() {
    let made = lowered(&task(json!({
        "name": "t", "kind": "noop", "rules": [{"do": "jump", "to": "t"}, {"do": "break"}],
    })));
    let rules = spec(&made, "t")["spec"]["policy"]["rules"].clone();
    assert_eq!(
        rules,
        json!([{"when": true, "then": {"do": "jump", "to": "t"}},
               {"when": true, "then": {"do": "break"}}])
    );
}

#[test]
fn an_item_is_at_hand_for_templates_and_for_code() {
    let mut command = task(json!({"name": "t", "kind": "python", "config": {"code": "x"}}));
    if let Some(scope) = &mut command.scope {
        let (name, item) = (Arc::from("price"), json!({"text": "{{ 7"}));
        scope.iteration = Some(IterationScope { name, item, index: 1, total: Some(3) });
    }
    let made = lowered(&command);
    let input = comes_to(&spec(&made, "t")["input"], &made);
    assert_eq!(input, json!({"price": {"text": "{{ 7"}, "_index": 1, "_total": 3}));
    assert_eq!(made.render_context["iter"]["index"], 1);
}

#[test]
fn what_was_looked_up_is_at_hand() {
    let mut command = task(json!({"name": "t", "kind": "noop"}));
    let reference = Arc::new(BlobRef {
        digest: Arc::from("sha256:0"),
        bytes: 9,
        media_type: Arc::from("application/json"),
    });
    if let Some(scope) = &mut command.scope {
        let blob = |among, name: &str| ScopeBlob {
            among,
            name: Arc::from(name),
            reference: reference.clone(),
            fields: Value::Null,
        };
        scope.blobs = vec![blob(ScopePart::Steps, "big"), blob(ScopePart::Workload, "in")];
        scope.keychain = map(json!({"api": {"kind": "bearer"}}));
    }
    let found = Found {
        blobs: vec![json!({"count": 3}), json!("large")],
        keychain: map(json!({"api": {"token": "t0ken"}})),
    };
    let names = lowered_with(&command, &found).render_context;
    assert_eq!(names["big"]["count"], 3);
    assert_eq!(names["steps"]["big"]["data"], json!({"count": 3}));
    assert_eq!((&names["in"], &names["workload"]["in"]), (&json!("large"), &json!("large")));
    assert_eq!(names["keychain"]["api"]["token"], "t0ken");
    assert_eq!(names["result"]["ok"], 1);
}

#[test]
fn the_answer_of_a_pipeline_is_what_it_is_here() {
    let tasks = json!([
        {"name": "a", "kind": "noop", "select": [{"name": "first", "path": ["rows", "0"]}]},
        {"name": "b", "kind": "noop"},
    ]);
    let both = issued("task_sequence", json!({ "tasks": tasks }), json!({}));
    let data = raised(&both, json!({"a": {"rows": [7]}, "b": {"n": 1}}));
    let expected = json!({"rows": [7], "first": 7, "n": 1, "a": {"rows": [7], "first": 7},
                          "b": {"n": 1}});
    assert_eq!(data, expected);
    assert_eq!(raised(&both, expected.clone()), expected, "what is in our shape stays");
    let one = task(json!({"name": "only", "kind": "noop"}));
    assert_eq!(raised(&one, json!({"only": {"x": 1}})), json!({"x": 1}));
    let plain = issued("noop", json!({}), json!({}));
    assert_eq!(raised(&plain, json!({"only": 1})), json!({"only": 1}));
}

#[test]
fn a_failure_has_the_kind_it_has_here() {
    for (answer, kind) in [
        (json!({"status": "timeout", "error": "x"}), FailureKind::Timeout),
        (json!({"status": "error", "data": {"status_code": 404}}), FailureKind::NotFound),
        (json!({"status": "error", "data": {"status_code": 503}}), FailureKind::ServerError),
        (
            json!({"status": "error", "exit_code": 3, "data": {"exit_code": 3}}),
            FailureKind::ExitCode,
        ),
        (json!({"status": "error", "error": {"kind": "auth", "message": "m"}}), FailureKind::Auth),
        (json!({"status": "error", "error": "?"}), FailureKind::Unknown),
    ] {
        assert_eq!(raised_failure(&map(answer.clone())).kind, kind, "{answer}");
    }
    let answer = json!({"status": "error", "error": "Python script exited with code 1",
                        "exit_code": 1, "data": {"stdout": "", "stderr": "Traceback\nKeyError: 'a'\n"}});
    let failure = raised_failure(&map(answer));
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Schema, "KeyError: 'a'"));
}
