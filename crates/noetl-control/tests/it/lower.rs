//! Commands in the words of published workers, rendered once more as those do.

use std::sync::Arc;

use noetl_compat::{
    CompatCommand, Dialect, ResolvedValues, decode_failure, decode_result, encode_command,
    unsupported_reason,
};
use noetl_model::event::{BlobRef, CommandSpec, LoopItem};
use noetl_model::scope::{
    CommandScope, EarlierSegment, IterationScope, ScopeBlob, ScopePart, SplitScope,
};
use noetl_model::{CatalogId, ExecutionId, FailureKind, Map, Value};
use noetl_test_app::published_worker::render;
use serde_json::json;

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no map"),
    }
}

fn issued(tool: &str, config: Value, input: Value) -> CommandSpec {
    CommandSpec {
        step: Arc::from("s"),
        run: 1,
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
        earlier: Map::new(),
        split: None,
        catalog: CatalogId::new(7),
        path: Arc::from("a/b"),
        version: 1,
        parent: None,
    }
}

fn lowered(issued: &CommandSpec) -> CompatCommand {
    lowered_with(issued, &ResolvedValues::default())
}

fn lowered_with(issued: &CommandSpec, values: &ResolvedValues) -> CompatCommand {
    encode_command(ExecutionId::new(12), issued, values, Dialect::Worker552).expect("it can run")
}

/// The settings as the tool of a published worker sees them.
fn seen(lowered: &CompatCommand) -> Value {
    render(&lowered.tool_config, &lowered.render_context).expect("it renders")
}

fn task(task: Value) -> CommandSpec {
    let mut made = issued("task_sequence", json!({ "tasks": [task] }), json!({}));
    made.scope = Some(Box::new(scope()));
    made
}

/// The settings of the only task, not rendered.
fn spec(lowered: &CompatCommand, label: &str) -> Value {
    lowered.tool_config[0][label].clone()
}

/// Renders a template of a task as the published worker does.
fn comes_to(value: &Value, lowered: &CompatCommand) -> Value {
    render(value, &lowered.render_context).expect("it renders")
}

/// Settings of a task as its tool sees them: rendered by the pipeline, then by the tool.
fn comes_to_twice(value: &Value, lowered: &CompatCommand) -> Value {
    comes_to(&comes_to(value, lowered), lowered)
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
fn commands_without_special_needs_are_encoded_unchanged() {
    let made = lowered(&issued("python", json!({"code": "result = a"}), json!({"a": "00501"})));
    assert_eq!(made.action, "python");
    assert_eq!(made.tool_config, json!({"code": "result = a"}));
    assert_eq!(made.args, map(json!({"a": "00501"})));
    assert!(made.render_context.is_empty());
}

#[test]
fn python_code_gets_its_libraries_as_imports() {
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
fn shell_commands_are_joined_and_get_their_environment() {
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
fn http_bodies_are_encoded_under_the_key_of_their_content_type() {
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
fn credentials_are_encoded_as_their_alias() {
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
fn database_settings_are_encoded_under_published_names() {
    let config = json!({"connection": "postgres://x", "commands": ["first", "second"]});
    let made = lowered(&issued("postgres", config, json!({})));
    let expected = json!({"connection_string": "postgres://x", "query": "first;\nsecond"});
    assert_eq!(made.tool_config, expected);
    let write = "insert";
    let returning = format!("{write} into t values ($1) returning id");
    for (query, expected) in [
        (format!("{returning}; "), format!("with _noetl_rows as ({returning}) table _noetl_rows")),
        (format!("{write} into t values (1)"), format!("{write} into t values (1)")),
        (format!("{returning}; commit"), format!("{returning}; commit")),
        ("select 'returning' as word".to_owned(), "select 'returning' as word".to_owned()),
    ] {
        let made = lowered(&issued("postgres", json!({ "query": query }), json!({})));
        assert_eq!(made.tool_config["query"], expected);
    }
    let config = json!({"action": "publish", "subject": "a", "payload": "hi"});
    let made = lowered(&issued("nats", config, json!({})));
    let expected = json!({"operation": "js_publish", "subject": "a", "data": "hi"});
    assert_eq!(made.tool_config, expected);
}

#[test]
fn unsupported_features_are_reported() {
    let lacks = |tool: &str, config: Value| unsupported_reason(&issued(tool, config, json!({})));
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
        (
            "task_sequence",
            json!({"tasks": [{"name": "a", "kind": "http", "config": {"url": "u", "auth": "api"}}]}),
        ),
    ] {
        let why = lacks(tool, config.clone());
        assert!(why.is_some_and(|why| why.contains("published workers")), "{tool} {config}");
    }
    assert_eq!(lacks("postgres", json!({"params": [1], "query": "x"})), None);
    assert_eq!(lacks("noop", json!({})), None);
    let claims = LoopItem { index: 0, total: None, frame: Some(1), claims: true };
    let claim = CommandSpec { item: Some(claims), ..issued("noop", json!({}), json!({})) };
    assert!(unsupported_reason(&claim).is_some());
    let refused =
        encode_command(ExecutionId::new(1), &claim, &ResolvedValues::default(), Dialect::Worker552);
    assert!(refused.is_err());
}

#[test]
fn task_templates_render_to_the_type_of_local_workers() {
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
fn text_settings_stay_text() {
    let config = json!({"command": "{{ workload.n }}", "env": {"N": "{{ workload.n }}"}});
    let made = lowered(&task(json!({"name": "t", "kind": "shell", "config": config})));
    let spec = comes_to(&spec(&made, "t"), &made);
    assert_eq!((&spec["command"], &spec["env"]["N"]), (&json!("5"), &json!("5")));
}

#[test]
fn raw_settings_are_not_rendered() {
    let code = "result = '{{ not mine }}' + json.dumps(1)";
    let made = lowered(&task(json!({
        "name": "t", "kind": "python", "config": {"code": code, "raw": true}, "raw": ["code"],
    })));
    let spec = comes_to_twice(&spec(&made, "t"), &made);
    assert_eq!(spec["code"], format!("import json\n{code}"));
}

#[test]
fn task_values_survive_two_renderings() {
    for text in ["{{ 7 * 7 }}", "{% if %}", "}} {{ ü '\"\n\\", "{\"a\": \"{{ b }}\"}", "12", "{{"]
    {
        for value in [json!(text), json!({"deep": [text, null, true, -1.5], "{{ k }}": text})] {
            let mut command = task(json!({
                "name": "t", "kind": "noop", "config": {"result": "{{ load }}", "message": "{{ load }}"},
            }));
            if let Some(scope) = &mut command.scope {
                scope.workload.insert("load".to_owned(), value.clone());
                scope.steps.clear();
            }
            let made = lowered(&command);
            assert_eq!(comes_to_twice(&spec(&made, "t")["result"], &made), value, "{text:?}");
        }
    }
}

#[test]
fn inputs_of_a_task_are_evaluated_once() {
    let made = lowered(&task(json!({
        "name": "t", "kind": "python", "config": {"code": "result = n"},
        "input": {"n": "{{ n + 1 }}", "deep": {"of": ["{{ n }}"]}, "text": "{{ '{{ 7' }}"},
    })));
    let input = spec(&made, "t")["input"].clone();
    let first = map(comes_to(&input, &made));
    let expected = json!({"n": 6, "deep": {"of": [5]}, "text": "{{ 7", "_noetl_input": true});
    assert_eq!(Value::Object(first.clone()), expected);
    let mut names = made.render_context.clone();
    names.extend(first);
    let second = render(&render(&input, &names).unwrap(), &names).unwrap();
    assert_eq!(second, expected, "beside the names that the input defines");
    let code = spec(&made, "t")["code"].as_str().unwrap().to_owned();
    assert!(code.starts_with("[a.pop('_noetl_input', None) for a in"), "{code}");
}

#[test]
fn an_argument_named_input_data_is_preserved() {
    let config = json!({"code": "result = input_data"});
    let made = lowered(&issued("python", config, json!({"input_data": 1})));
    let expected = "input_data = args['input_data']\nresult = input_data";
    assert_eq!(made.tool_config, json!({ "code": expected }));
}

#[test]
fn artifacts_are_fetched_over_http() {
    let made = lowered(&issued("artifact", json!({"action": "get"}), json!({"ref": "noetl://x"})));
    assert_eq!(made.tool_config, json!({"action": "get", "prefer": "http"}));
    assert_eq!(made.args, map(json!({"result_ref": "noetl://x"})));
}

/// The rule that a published worker would apply, and what it sets.
fn applied(made: &CompatCommand, label: &str, output: &Value, iter: &Value) -> (Value, Map) {
    let rules = spec(made, label)["spec"]["policy"]["rules"].as_array().unwrap().clone();
    let mut names = made.render_context.clone();
    names.insert("output".to_owned(), output.clone());
    names.insert("iter".to_owned(), iter.clone());
    let rendered = |value: &Value| render(value, &names).unwrap_or_else(|e| panic!("{e}: {value}"));
    let rule = rules.into_iter().find(|rule| rendered(&rule["when"]) == json!(true)).unwrap();
    let set = rule["then"].get("set").map(rendered).unwrap_or_else(|| json!({}));
    let mut then = map(rule["then"].clone());
    then.remove("set");
    (Value::Object(then), map(set))
}

fn succeeded(data: Value) -> Value {
    json!({"status": "success", "data": data, "error": {"retryable": false}})
}

fn failed(data: Value) -> Value {
    json!({"status": "error", "data": data, "error": {"retryable": false}})
}

#[test]
fn a_successful_task_sets_variables_with_and_without_their_scope() {
    let made = lowered(&task(json!({
        "name": "t", "kind": "noop",
        "set": [{"scope": "ctx", "path": ["a", "b"], "value": "{{ output.x }}"},
                {"scope": "ctx", "path": ["own"], "value": "{{ t.x }}"},
                {"scope": "ctx", "path": ["workload"], "value": 1}],
    })));
    assert_eq!(spec(&made, "t").get("set"), None, "it would be applied after a failure, too");
    let (then, set) = applied(&made, "t", &succeeded(json!({"x": "9"})), &json!({}));
    assert_eq!(then, json!({"do": "continue"}));
    let expected =
        json!({"ctx.a.b": "9", "a.b": "9", "ctx.own": "9", "own": "9", "ctx.workload": 1});
    assert_eq!(Value::Object(set), expected);
    let (then, set) = applied(&made, "t", &failed(json!({})), &json!({}));
    assert_eq!((then, set), (json!({"do": "fail"}), Map::new()));
}

#[test]
fn rules_see_values_set_by_the_task_and_its_result() {
    let made = lowered(&task(json!({
        "name": "t", "kind": "noop",
        "set": [{"scope": "ctx", "path": ["page"], "value": "{{ output.next }}"}],
        "rules": [{"when": "ctx.page == 3 and page == 3 and t.next == 3 and t.data.next == 3",
                   "do": "jump", "to": "t",
                   "set": [{"scope": "iter", "path": ["at"], "value": "{{ ctx.page + 1 }}"}]}],
    })));
    let (then, set) = applied(&made, "t", &succeeded(json!({"next": 3})), &json!({}));
    assert_eq!(then, json!({"do": "jump", "to": "t"}));
    assert_eq!(Value::Object(set), json!({"ctx.page": 3, "page": 3, "iter.at": 4}));
    let (then, _) = applied(&made, "t", &succeeded(json!({"next": 4})), &json!({}));
    assert_eq!(then, json!({"do": "continue"}));
}

#[test]
fn rules_see_the_error_of_a_task() {
    let seen = "{{ [output.status, output.ok, output.error.kind, output.error.retryable] }}";
    let of = |kind: &str, data: &Value, value: &str| {
        let made = lowered(&task(json!({
            "name": "t", "kind": kind, "config": {"url": "u", "code": "x", "command": "x"},
            "rules": [{"do": "continue", "set": [{"scope": "ctx", "path": ["seen"], "value": value}]}],
        })));
        applied(&made, "t", &failed(data.clone()), &json!({})).1["ctx.seen"].clone()
    };
    let status =
        |status: u64| json!({"status_code": status, "headers": {"a": "b"}, "data": {"k": 1}});
    for (kind, data, expected) in [
        ("http", status(503), json!(["error", false, "server_error", true])),
        ("http", status(404), json!(["error", false, "not_found", false])),
        ("http", status(429), json!(["error", false, "rate_limit", true])),
        ("http", status(401), json!(["error", false, "auth", false])),
        ("http", status(418), json!(["error", false, "client_error", false])),
        ("shell", json!({"exit_code": 3}), json!(["error", false, "exit_code", false])),
        ("shell", Value::Null, json!(["error", false, "timeout", true])),
        (
            "python",
            json!({"stderr": "Trace\nKeyError: 'a'\n"}),
            json!(["error", false, "schema", false]),
        ),
        ("python", json!({"stderr": "Trace\nOdd: b"}), json!(["error", false, "unknown", false])),
        ("python", Value::Null, json!(["error", false, "timeout", true])),
    ] {
        assert_eq!(of(kind, &data, seen), expected, "{kind} {data}");
    }
    let fields = "{{ [output.http.status, output.error.status_code, output.http.headers.a, \
                  output.data.k, output.data.data.k, output.status_code] }}";
    assert_eq!(of("http", &status(503), fields), json!([503, 503, "b", 1, 1, 503]));
    let fields = "{{ [output.error.exit_code, output.exit_code, output.data.exit_code] }}";
    assert_eq!(of("shell", &json!({"exit_code": 3}), fields), json!([3, 3, 3]));
}

#[test]
fn attempts_are_counted_from_the_last_jump() {
    let made = lowered(&task(json!({
        "name": "t", "kind": "noop", "config": {"result": "{{ _attempt }}"},
        "rules": [{"when": "output.status == 'error'", "do": "retry", "attempts": 3, "delay": 0.5,
                   "backoff": "fixed", "set": [{"scope": "ctx", "path": ["r"], "value": "{{ _attempt }}"}]}],
    })));
    let again = json!({"do": "retry", "attempts": u32::MAX, "delay": 0.5, "backoff": "fixed"});
    for (ended, expected, count) in [(0, &again, json!(1)), (1, &again, json!(2))] {
        let iter = json!({ "_noetl_runs_0": ended });
        let (then, set) = applied(&made, "t", &failed(json!({})), &iter);
        assert_eq!(&then, expected);
        assert_eq!((&set["iter._noetl_runs_0"], &set["ctx.r"]), (&count, &count));
        let mut names = made.render_context.clone();
        names.insert("iter".to_owned(), iter);
        assert_eq!(render(&spec(&made, "t")["result"], &names).unwrap(), count);
    }
    let (then, _) = applied(&made, "t", &failed(json!({})), &json!({"_noetl_runs_0": 2}));
    assert_eq!(then, json!({"do": "fail"}), "the third attempt is the last");
    let (then, set) = applied(&made, "t", &succeeded(json!({})), &json!({"_noetl_runs_0": 2}));
    assert_eq!(then, json!({"do": "continue"}));
    assert_eq!(set["iter._noetl_runs_0"], json!(0), "the next time it starts from one");
}

#[test]
fn conditions_have_the_truth_value_of_local_workers() {
    let holds = |when: Value| {
        let made = lowered(&task(json!({
            "name": "t", "kind": "noop", "rules": [{"when": when, "do": "break"}],
        })));
        applied(&made, "t", &succeeded(json!({})), &json!({})).0["do"] == "break"
    };
    for when in
        ["{{ [] }}", "{{ 'no' }}", "{{ '' }}", "false", "{{ nobody }}", "{% if n %}off{% endif %}"]
    {
        assert!(!holds(json!(when)), "{when}");
    }
    for when in ["{{ [1] }}", "n == 5", "{{ n }}", "{% if n %}yes{% endif %}"] {
        assert!(holds(json!(when)), "{when}");
    }
    assert!(holds(json!(true)) && holds(Value::Null) && !holds(json!(false)));
}

#[test]
fn a_timeout_fails_a_task_without_rules() {
    let made = lowered(&task(json!({"name": "t", "kind": "shell", "config": {"command": "x"}})));
    assert_eq!(applied(&made, "t", &failed(Value::Null), &json!({})).0, json!({"do": "fail"}));
    let made = lowered(&task(json!({"name": "t", "kind": "noop"})));
    assert_eq!(spec(&made, "t").get("spec"), None);
}

#[test]
fn the_loop_item_is_available_to_templates_and_code() {
    let mut command = task(json!({"name": "t", "kind": "python", "config": {"code": "x"}}));
    if let Some(scope) = &mut command.scope {
        let (name, item) = (Arc::from("price"), json!({"text": "{{ 7"}));
        scope.iteration = Some(IterationScope { name, item, index: 1, total: Some(3) });
    }
    let made = lowered(&command);
    let input = comes_to(&spec(&made, "t")["input"], &made);
    let expected =
        json!({"price": {"text": "{{ 7"}, "_index": 1, "_total": 3, "_noetl_input": true});
    assert_eq!(input, expected);
    assert_eq!(made.render_context["iter"]["index"], 1);
}

#[test]
fn resolved_values_are_available_to_templates() {
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
    let values = ResolvedValues {
        blobs: vec![json!({"count": 3}), json!("large")],
        keychain: map(json!({"api": {"token": "t0ken"}})),
    };
    let names = lowered_with(&command, &values).render_context;
    assert_eq!(names["big"]["count"], 3);
    assert_eq!(names["steps"]["big"]["data"], json!({"count": 3}));
    assert_eq!((&names["in"], &names["workload"]["in"]), (&json!("large"), &json!("large")));
    assert_eq!(names["keychain"]["api"]["token"], "t0ken");
    assert_eq!(names["result"]["ok"], 1);
}

#[test]
fn pipeline_results_decode_to_the_shape_of_local_workers() {
    let tasks = json!([
        {"name": "a", "kind": "noop", "select": [{"name": "first", "path": ["rows", "0"]}]},
        {"name": "b", "kind": "noop"},
    ]);
    let both = issued("task_sequence", json!({ "tasks": tasks }), json!({}));
    let data = decode_result(&both, json!({"a": {"rows": [7]}, "b": {"n": 1}}));
    let expected = json!({"rows": [7], "first": 7, "n": 1, "a": {"rows": [7], "first": 7},
                          "b": {"n": 1}});
    assert_eq!(data, expected);
    assert_eq!(decode_result(&both, expected.clone()), expected, "what is in our shape stays");
    let one = task(json!({"name": "only", "kind": "noop"}));
    assert_eq!(decode_result(&one, json!({"only": {"x": 1}})), json!({"x": 1}));
    let plain = issued("noop", json!({}), json!({}));
    assert_eq!(decode_result(&plain, json!({"only": 1})), json!({"only": 1}));
    for (config, name) in [
        (json!({"query": "select 1 as n;"}), Some("command_0")),
        (json!({"commands": ["a", "b"]}), Some("command_1")),
        (json!({"query": "select 1 as n; select 2 as n"}), None),
    ] {
        let rows = json!({"rows": [1]});
        let mut expected = map(rows.clone());
        expected.extend(name.map(|name| (name.to_owned(), rows.clone())));
        let query = issued("postgres", config.clone(), json!({}));
        assert_eq!(
            decode_result(&query, rows.clone()),
            Value::Object(expected.clone()),
            "{config}"
        );
        let query = task(json!({"name": "q", "kind": "postgres", "config": config}));
        assert_eq!(decode_result(&query, json!({ "q": rows })), Value::Object(expected));
    }
}

#[test]
fn failures_decode_to_the_kinds_of_local_workers() {
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
        assert_eq!(decode_failure(&map(answer.clone())).kind, kind, "{answer}");
    }
    let answer = json!({"status": "error", "error": "Python script exited with code 1",
                        "exit_code": 1, "data": {"stdout": "", "stderr": "Traceback\nKeyError: 'a'\n"}});
    let failure = decode_failure(&map(answer));
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Schema, "KeyError: 'a'"));
}

#[test]
fn a_failed_pipeline_has_the_kind_and_the_fields_of_its_failed_task() {
    let results = json!({"before": {"n": 1}, "call": {"status_code": 404, "body": "no"}});
    let answer = json!({"status": "error", "error": "HTTP 404 response", "exit_code": 1,
                        "data": {"labeled_results": results, "failed_task": 1}});
    let failure = decode_failure(&map(answer));
    assert_eq!(failure.kind, FailureKind::NotFound);
    let details = failure.details.unwrap();
    assert_eq!((&details["status_code"], &details["body"]), (&json!(404), &json!("no")));
    let data = json!({"labeled_results": {"a": {"exit_code": 4}}, "failed_task": 0});
    let answer = json!({"status": "error", "error": "Command exited with code 4", "exit_code": 4, "data": data});
    let failure = decode_failure(&map(answer));
    assert_eq!(
        (failure.kind, &failure.details.unwrap()["exit_code"]),
        (FailureKind::ExitCode, &json!(4))
    );
    let answer = json!({"status": "error", "error": "Execution timed out after 1 seconds",
                        "data": {"labeled_results": {}, "failed_task": 0}});
    assert_eq!(decode_failure(&map(answer)).kind, FailureKind::Timeout);
}

/// A segment of a split pipeline, after a task `pull` and a call `run`.
fn segment(tasks: Value, partial: bool) -> CommandSpec {
    let earlier = map(json!({
        "0": {"break": false, "tasks": [{"name": "pull", "data": {"n": 1}}]},
        "1": {"v": 7},
    }));
    let call = EarlierSegment::Call { name: Arc::from("run"), failed: false };
    let kinds = vec![EarlierSegment::Tasks, call];
    let split = SplitScope { segment: 2, partial, from: None, attempt: 1, tasks: kinds };
    let scope = CommandScope { earlier, split: Some(Box::new(split)), ..scope() };
    let issued = issued("task_sequence", json!({ "tasks": tasks }), json!({}));
    CommandSpec { scope: Some(Box::new(scope)), ..issued }
}

#[test]
fn a_segment_sees_earlier_tasks_and_merges_their_results() {
    let tasks = json!([{"name": "store", "kind": "shell", "config": {"command": "echo {{ run.v }} {{ pull.n }}"}}]);
    let last = segment(tasks.clone(), false);
    let lowered = lowered(&last);
    assert_eq!(seen(&lowered)[0]["store"]["command"], json!("echo 7 1"));
    let merged =
        json!({"n": 1, "v": 7, "exit": 0, "pull": {"n": 1}, "run": {"v": 7}, "store": {"exit": 0}});
    assert_eq!(decode_result(&last, json!({"store": {"exit": 0}})), merged);
    let answer = json!({"break": false, "tasks": [{"name": "store", "data": {"exit": 0}}]});
    assert_eq!(decode_result(&segment(tasks, true), json!({"store": {"exit": 0}})), answer);
    // Nothing is left to run: a task stands for the merge.
    let merge = segment(json!([]), false);
    assert_eq!(unsupported_reason(&merge), None);
    assert_eq!(seen(&self::lowered(&merge))[0]["_noetl_merge"]["kind"], json!("noop"));
    let merged = json!({"n": 1, "v": 7, "pull": {"n": 1}, "run": {"v": 7}});
    assert_eq!(decode_result(&merge, json!({"_noetl_merge": {}})), merged);
}

#[test]
fn an_unsupported_segment_names_the_reason() {
    let task = |more: Value| {
        let mut task = map(json!({"name": "store", "kind": "noop"}));
        task.extend(map(more));
        json!([task])
    };
    let breaks = task(json!({"rules": [{"do": "break"}]}));
    assert!(
        unsupported_reason(&segment(breaks.clone(), true)).unwrap().contains("ended a pipeline")
    );
    assert_eq!(unsupported_reason(&segment(breaks, false)), None);
    let previous = task(json!({"config": {"result": "{{ _prev.v }}"}}));
    assert!(unsupported_reason(&segment(previous, false)).unwrap().contains("`_prev`"));
    let mut large = segment(task(json!({})), false);
    let scope = large.scope.as_mut().unwrap();
    scope.earlier.remove("1");
    scope.blobs.push(ScopeBlob {
        among: ScopePart::Earlier,
        name: Arc::from("1"),
        reference: Arc::new(BlobRef {
            digest: Arc::from("d"),
            bytes: 1,
            media_type: Arc::from("application/json"),
        }),
        fields: Value::Null,
    });
    assert!(unsupported_reason(&large).unwrap().contains("64 KiB"));
}
