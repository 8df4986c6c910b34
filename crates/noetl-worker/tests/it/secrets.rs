//! Credentials and the keychain, with scripted services.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_model::placeholder::{Tag, placeholders_in, tagged};
use noetl_model::scope::CommandScope;
use noetl_model::{Clock, Failure, FailureKind, Map, Timestamp, Value};
use noetl_tools::{Artifacts, CredentialSource, Tool, ToolCall, ToolCredential, ToolRegistry};
use noetl_work::reveal::value_at;
use noetl_work::{CommandOutcome, ResolvedPlaceholder};
use noetl_worker::{CommandExecutor, CommandTask, Services};
use serde_json::json;

use super::fixture::*;

/// Credentials by alias, how often each was asked for, and what was noted.
#[derive(Clone, Default)]
struct TestCredentials(Arc<Inside>);

#[derive(Default)]
struct Inside {
    credentials: HashMap<String, Value>,
    asked: Mutex<Vec<String>>,
    noted: Mutex<Vec<(String, Value)>>,
    is_away: bool,
}

impl TestCredentials {
    fn with(credentials: Value) -> Self {
        let Value::Object(credentials) = credentials else { panic!("credentials are a map") };
        let credentials = credentials.into_iter().collect();
        Self(Arc::new(Inside { credentials, ..Inside::default() }))
    }

    fn asked(&self) -> Vec<String> {
        self.0.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl CredentialSource for TestCredentials {
    async fn get(&self, alias: &str) -> Result<ToolCredential, Failure> {
        self.0.asked.lock().unwrap().push(alias.to_owned());
        if self.0.is_away {
            return Err(Failure::new(FailureKind::Connection, "the store is away"));
        }
        match self.0.credentials.get(alias) {
            Some(Value::Object(data)) => Ok(ToolCredential {
                name: alias.to_owned(),
                kind: "bearer".to_owned(),
                data: data.clone(),
            }),
            _ => Err(Failure::new(FailureKind::Auth, format!("there is no credential '{alias}'"))),
        }
    }
}

/// A tag as the control plane of these tests makes it.
fn tag() -> Tag {
    Tag { key: 1, mac: "0123456789abcdefghijkl".to_owned() }
}

/// A placeholder as the control plane of these tests makes it.
fn placeholder(alias: &str, field: &str) -> String {
    tagged(alias, field, &tag()).unwrap()
}

#[async_trait]
impl Services for TestCredentials {
    async fn resolve(&self, _: &CommandTask, text: &str) -> Result<ResolvedPlaceholder, Failure> {
        if self.0.is_away {
            return Err(Failure::new(FailureKind::Connection, "the store is away"));
        }
        let placeholder = placeholders_in(text).remove(0);
        if placeholder.tag != Some(tag()) {
            return Ok(ResolvedPlaceholder::Text);
        }
        let named = |(alias, field): (&str, &str)| (alias.to_owned(), field.to_owned());
        for (alias, field) in placeholder.readings() {
            let data = self.0.credentials.get(alias).and_then(Value::as_object);
            if let Some(value) = data.and_then(|data| value_at(data, field)) {
                let ((alias, field), value) = (named((alias, field)), value.clone());
                return Ok(ResolvedPlaceholder::Value { alias, field, value });
            }
        }
        let (alias, field) = named(placeholder.readings().next().unwrap());
        Ok(ResolvedPlaceholder::Named { alias, field })
    }

    fn artifacts(&self, _: &CommandTask) -> Option<Arc<dyn Artifacts>> {
        None
    }

    fn credentials(&self, _: &CommandTask) -> Option<Arc<dyn CredentialSource>> {
        Some(Arc::new(self.clone()))
    }

    async fn note_secret(&self, _: &CommandTask, alias: &str, data: &Value) -> Result<(), Failure> {
        self.0.noted.lock().unwrap().push((alias.to_owned(), data.clone()));
        Ok(())
    }
}

/// An endpoint that gives another token each time.
#[derive(Clone, Default)]
struct Endpoint {
    requests: Arc<Mutex<Vec<Map>>>,
    answer: Arc<Mutex<Option<Result<Value, Failure>>>>,
}

#[async_trait]
impl Tool for Endpoint {
    fn kind(&self) -> &'static str {
        "http"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let mut requests = self.requests.lock().unwrap();
        requests.push(call.config);
        if let Some(answer) = self.answer.lock().unwrap().clone() {
            return answer.map(|data| json!({ "data": data }));
        }
        let token = format!("token-number-{}", requests.len());
        Ok(json!({"status_code": 200, "data": {
            "access_token": token, "expires_in": 600, "token_type": "Bearer", "state": "approved",
        }}))
    }
}

/// A clock the test moves.
#[derive(Clone, Default)]
struct Moved(Arc<AtomicI64>);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed) * 1000)
    }
}

fn holding(keychain: Value) -> CommandScope {
    let Value::Object(keychain) = keychain else { panic!("a keychain is a map") };
    CommandScope { keychain, ..scope(json!({})) }
}

struct Bench {
    tool: ScriptedTool,
    endpoint: Endpoint,
    safe: TestCredentials,
    clock: Moved,
    performer: CommandExecutor,
}

impl Bench {
    fn new(safe: TestCredentials) -> Self {
        Self::with(safe, ScriptedTool::echo())
    }

    fn with(safe: TestCredentials, tool: ScriptedTool) -> Self {
        let (endpoint, clock) = (Endpoint::default(), Moved::default());
        let tools = ToolRegistry::default().with(tool.clone()).with(endpoint.clone());
        let values: Arc<StoredValues> = Arc::default();
        let performer = CommandExecutor::new(tools, values, Arc::new(clock.clone()));
        let performer = performer.with_services(Arc::new(safe.clone()));
        Self { tool, endpoint, safe, clock, performer }
    }

    async fn run(&self, keychain: Value, tasks: Value) -> CommandOutcome {
        let tasks = json!({ "tasks": tasks });
        self.performer.execute(&command("task_sequence", tasks, Some(holding(keychain)))).await
    }

    /// Returns the rendering of `{{ keychain.k.f }}` with this entry `k`.
    async fn field(&self, entry: Value, field: &str) -> Result<Value, Failure> {
        let input = json!({ "v": format!("{{{{ keychain.k.{field} }}}}") });
        let tasks = json!([task("a", json!({ "input": input }))]);
        let ended = self.run(json!({ "k": entry }), tasks).await;
        ended.outcome.map(|data| data["v"].clone())
    }
}

#[tokio::test]
async fn each_kind_of_keychain_entry_has_its_fields() {
    let bench = Bench::new(TestCredentials::with(json!({
        "c": {"token": "stored-token", "deep": {"pin": 7}},
        "k": {"token": "of its own name"},
    })));
    let cases = [
        (json!({"kind": "credential", "credential": "c"}), "token", json!("stored-token")),
        (json!({"kind": "credential", "auth": {"credential": "c"}}), "deep.pin", json!(7)),
        (json!({"kind": "credential"}), "token", json!("of its own name")),
        (json!({"kind": "secret", "credential": "c", "map": {"p": "deep.pin"}}), "p", json!(7)),
        (json!({"kind": "static", "map": {"a": 1}}), "a", json!(1)),
        (json!({"kind": "static", "data": {"a": "x{{ 1 + 1 }}"}}), "a", json!("x2")),
        (json!({"kind": "bearer", "credential": "c"}), "access_token", json!("stored-token")),
        (json!({"kind": "bearer", "token": "spelled-out"}), "token", json!("spelled-out")),
        (json!({"kind": "postgres", "credential": "c"}), "token", json!("stored-token")),
        (
            json!({"kind": "oauth2", "endpoint": "http://t", "data": {"a": 1}}),
            "access_token",
            json!("token-number-1"),
        ),
    ];
    for (entry, field, expected) in cases {
        assert_eq!(bench.field(entry.clone(), field).await, Ok(expected), "{entry}");
    }
}

#[tokio::test]
async fn an_unresolved_secret_fails_the_task_and_is_reported_by_name() {
    let bench = Bench::new(TestCredentials::with(json!({"c": {"user": "u"}})));
    let cases = [
        (json!({"kind": "credential", "credential": "nope"}), "there is no credential 'nope'"),
        (json!({"kind": "credential", "credential": "c"}), "'k' has no field 'token'; it has user"),
        (json!({"kind": "credential", "credential": "c", "map": {"t": "x"}}), "has no field 'x'"),
        (json!({"kind": "credential", "credential": "c", "map": {"t": 1}}), "must name a field"),
        (json!({"kind": "bearer", "credential": "c"}), "there is no token in it"),
        (json!({"kind": "secret_manager", "provider": "gcp"}), "'gcp' is not available here"),
        (json!({"kind": "static"}), "'map' must hold its fields"),
        (json!({"kind": "wishes"}), "there is no kind 'wishes'"),
        (json!({"kind": "oauth2"}), "'endpoint' must be"),
        (json!({"kind": "oauth2", "endpoint": "http://t"}), "has 'client_id'"),
        (
            json!({"kind": "credential", "credential": "{{ keychain.k.a }}"}),
            "it needs itself: k, k",
        ),
        (json!({"kind": "credential", "credential": "{{ keychain.other.a }}"}), "no 'other'"),
        (json!({"kind": "credential", "credential": "{{ 1 + }}"}), "no templates"),
    ];
    for (entry, expected) in cases {
        let failure = bench.field(entry.clone(), "token").await.expect_err("it cannot be had");
        assert_eq!(failure.kind, FailureKind::Auth, "{entry}: {}", failure.message);
        assert!(failure.message.contains(expected), "{entry}: {}", failure.message);
        assert!(failure.message.contains("'k'"), "{entry}: {}", failure.message);
    }
    assert!(bench.tool.inputs().is_empty(), "no tool was called");
    let none = Bench::new(TestCredentials::default());
    let failure = none.field(json!({"kind": "credential"}), "x").await.expect_err("nothing there");
    assert_eq!(failure.kind, FailureKind::Auth);
}

#[tokio::test]
async fn each_used_keychain_entry_is_requested_once() {
    let bench = Bench::new(TestCredentials::with(
        json!({"c": {"t": "stored-secret"}, "d": {"t": "another"}}),
    ));
    let keychain = json!({"a": {"kind": "credential", "credential": "c"},
                          "b": {"kind": "credential", "credential": "d"}});
    let tasks = json!([
        task("x", json!({"input": {"v": "{{ keychain.a.t }}", "w": "{{ keychain.a.t }}"}})),
        task("y", json!({"input": {"v": "{{ keychain.a.t }}"}})),
    ]);
    bench.run(keychain, tasks).await.outcome.unwrap();
    assert_eq!(bench.safe.asked(), ["c"]);
}

#[tokio::test]
async fn a_token_is_obtained_with_another_entry_and_cached_until_it_expires() {
    let bench = Bench::new(TestCredentials::with(json!({
        "client": {"client_id": "me", "client_secret": "the-clients-secret"},
    })));
    let keychain = json!({
        "client": {"kind": "credential"},
        "api": {"kind": "oauth2", "endpoint": "http://t", "data": {
            "id": "{{ keychain.client.client_id }}", "secret": "{{ keychain.client.client_secret }}",
        }},
    });
    let tasks = json!([task("x", json!({"input": {"v": "{{ keychain.api.access_token }}"}}))]);
    for (seconds, expected) in [(0, 1), (569, 1), (571, 2), (580, 2)] {
        bench.clock.0.store(seconds, Ordering::Relaxed);
        let ended = bench.run(keychain.clone(), tasks.clone()).await;
        let expected = json!({ "v": format!("token-number-{expected}") });
        assert_eq!(ended.outcome, Ok(expected), "{seconds}");
    }
    let requests = bench.endpoint.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 2);
    assert_eq!(
        json!(requests[0]),
        json!({"url": "http://t", "method": "POST",
        "form": {"id": "me", "secret": "the-clients-secret"}})
    );
    let noted = bench.safe.0.noted.lock().unwrap().clone();
    let token = json!({"access_token": "token-number-1", "token": "token-number-1"});
    assert_eq!(noted[0], ("keychain.api".to_owned(), token), "and no state of it");
}

#[tokio::test]
async fn a_client_obtains_its_token_with_its_credential() {
    let bench = Bench::new(TestCredentials::with(json!({
        "app": {"client_id": "me", "client_secret": "s", "scope": "read", "token_url": "http://t"},
    })));
    let entry = json!({"kind": "oauth2", "credential": "app", "scope": "global",
                       "headers": {"content-type": "application/json"}});
    assert_eq!(bench.field(entry, "token").await, Ok(json!("token-number-1")));
    let requests = bench.endpoint.requests.lock().unwrap().clone();
    assert_eq!(
        requests[0]["json"],
        json!({"grant_type": "client_credentials", "client_id": "me",
        "client_secret": "s", "scope": "read"})
    );
}

#[tokio::test]
async fn a_rejecting_endpoint_is_an_auth_failure_and_an_unavailable_one_is_retryable() {
    let bench = Bench::new(TestCredentials::default());
    let entry = json!({"kind": "oauth2", "endpoint": "http://t", "data": {}});
    let cases = [
        (Err(Failure::new(FailureKind::Connection, "t could not be reached")), "connection", true),
        (Err(Failure::new(FailureKind::ClientError, "t answered 400")), "auth", false),
        (Ok(json!({"no": "token"})), "auth", false),
        (Ok(json!("text")), "auth", false),
    ];
    for (answer, kind, retryable) in cases {
        *bench.endpoint.answer.lock().unwrap() = Some(answer);
        let failure = bench.field(entry.clone(), "token").await.expect_err("no token");
        assert_eq!((failure.kind.as_str(), failure.retryable), (kind, retryable), "{failure}");
    }
}

#[tokio::test]
async fn a_retry_after_an_auth_failure_requests_a_new_token() {
    let tool = ScriptedTool::new(|call| match call.input["v"].as_str() {
        Some("token-number-2") => Ok(json!("taken")),
        _ => Err(Failure::new(FailureKind::Auth, "expired")),
    });
    let bench = Bench::with(TestCredentials::default(), tool);
    let rule =
        json!({"when": "output.error.kind == 'auth'", "do": "retry", "attempts": 2, "delay": 0});
    let tasks =
        json!([task("x", json!({"input": {"v": "{{ keychain.api.token }}"}, "rules": [rule]}))]);
    let keychain = json!({"api": {"kind": "oauth2", "endpoint": "http://t", "data": {}}});
    assert_eq!(bench.run(keychain, tasks).await.outcome, Ok(json!("taken")));
}

#[tokio::test]
async fn concurrent_items_share_one_token_request() {
    let bench = Bench::new(TestCredentials::default());
    let config = json!({
        "tasks": [task("x", json!({"input": {"v": "{{ keychain.api.token }}"}}))],
        "loop": {"items": [1, 2, 3, 4, 5, 6, 7, 8], "iterator": "i", "mode": "parallel"},
    });
    let scope = holding(json!({"api": {"kind": "oauth2", "endpoint": "http://t", "data": {}}}));
    let ended = bench.performer.execute(&command("task_sequence", config, Some(scope))).await;
    assert_eq!(ended.outcome.unwrap()["stats"]["success"], 8);
    assert_eq!(bench.endpoint.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_secret_in_any_form_is_rejected_in_ctx_and_accepted_in_iter() {
    let secret = "a-secret of the api";
    let entries = [
        json!({"kind": "credential", "credential": "c"}),
        json!({"kind": "static", "map": {"t": secret}}),
        json!({"kind": "bearer", "token": "{{ keychain.base.t }}"}),
    ];
    for entry in entries {
        for value in ["{{ output.v }}", "{{ output.v | b64encode }}", "x {{ [output.v] }}"] {
            let bench = Bench::new(TestCredentials::with(json!({ "c": { "t": secret } })));
            let field = if entry["kind"] == "bearer" { "token" } else { "t" };
            let input = json!({ "v": format!("{{{{ keychain.k.{field} }}}}") });
            let set = json!([{"scope": "ctx", "path": ["a", "b"], "value": value}]);
            let tasks =
                json!([task("x", json!({"input": input, "set": set})), task("never", json!({})),]);
            let keychain = json!({"k": entry, "base": {"kind": "credential", "credential": "c"}});
            let ended = bench.run(keychain, tasks).await;
            assert!(ended.ctx.is_empty(), "{entry} {value}");
            let failure = failure(ended);
            assert_eq!(failure.kind, FailureKind::Config, "{entry} {value}: {failure}");
            assert!(failure.message.starts_with("ctx.a.b would hold"), "{}", failure.message);
            assert!(!failure.message.contains(secret), "{}", failure.message);
            assert_eq!(bench.tool.inputs().len(), 1);
        }
    }
    let bench = Bench::new(TestCredentials::with(json!({ "c": { "t": secret } })));
    let set = json!([{"scope": "iter", "path": ["t"], "value": "{{ output.v }}"},
                     {"scope": "ctx", "path": ["n"], "value": "{{ output.v | length }}"}]);
    let tasks = json!([task("x", json!({"input": {"v": "{{ keychain.k.t }}"}, "set": set}))]);
    let ended = bench.run(json!({"k": {"kind": "credential", "credential": "c"}}), tasks).await;
    assert_eq!(json!(ended.ctx), json!({"n": 19}));
    ended.outcome.unwrap();
}

#[tokio::test]
async fn placeholders_resolve_for_tools_and_others_stay_text_without_their_tag() {
    let bench = Bench::new(TestCredentials::with(json!({
        "c": {"t": "the-secret", "n": 7, "deep": {"x": "below"}}, "my.api": {"key": "dotted"},
    })));
    let written = json!({
        "whole": placeholder("c", "t"), "part": format!("<{}>", placeholder("c", "t")), "n": placeholder("c", "n"),
        "text": format!("n={}", placeholder("c", "n")), "deep": [placeholder("c", "deep.x")],
        "dotted": placeholder("my.api", "key"), "gone": placeholder("gone", "t"), "field": placeholder("c", "gone"),
        "key": { placeholder("c", "t"): 1 }, "untagged": "«secret:c.t»",
        "forged": "«secret:c.t~1.AAAAAAAAAAAAAAAAAAAAAA»", "two": placeholder("c", "t") + &placeholder("gone", "t"),
    });
    let expected = json!({
        "whole": "the-secret", "part": "<the-secret>", "n": 7, "text": "n=7", "deep": ["below"],
        "dotted": "dotted", "gone": "«secret:gone.t»", "field": "«secret:c.gone»",
        "key": {"the-secret": 1}, "untagged": "«secret:c.t»", "forged": "«secret:c.t»", "two": "the-secret«secret:gone.t»",
    });
    // Rendered before it came here, and rendered here.
    let mut plain = command("scripted", json!({}), None);
    let mut issued = (*plain.issued).clone();
    issued.input = written.as_object().unwrap().clone();
    plain.issued = Arc::new(issued);
    bench.performer.execute(&plain).await.outcome.unwrap();
    let tasks = json!({"tasks": [task("x", json!({"input": "{{ ctx.written }}"}))]});
    let scope = scope(json!({ "written": written }));
    bench.performer.execute(&command("task_sequence", tasks, Some(scope))).await.outcome.unwrap();
    assert_eq!(bench.tool.inputs(), [expected.clone(), expected]);
}

#[tokio::test]
async fn a_placeholder_in_tool_output_never_resolves() {
    let tool = ScriptedTool::new(|call| match call.input.get("d") {
        None => Ok(json!({"said": placeholder("c", "t")})),
        Some(input) => Ok(input.clone()),
    });
    let bench = Bench::with(TestCredentials::with(json!({"c": {"t": "the-secret"}})), tool);
    let tasks = json!([task("x", json!({})), task("y", json!({"input": {"d": "{{ x.said }}"}}))]);
    bench.run(json!({}), tasks).await.outcome.unwrap();
    assert_eq!(bench.tool.inputs()[1], json!({"d": "‹secret:c.t~1.0123456789abcdefghijkl»"}));
    assert!(bench.safe.asked().is_empty());
}

#[tokio::test]
async fn an_unavailable_store_fails_the_call_instead_of_sending_a_placeholder() {
    let safe = TestCredentials(Arc::new(Inside { is_away: true, ..Inside::default() }));
    let bench = Bench::new(safe);
    let tasks = json!([task("x", json!({"input": {"v": placeholder("c", "t")}}))]);
    let failure = failure(bench.run(json!({}), tasks).await);
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Connection, true));
    assert!(bench.tool.inputs().is_empty());
}

#[tokio::test]
async fn a_token_placeholder_resolves_only_for_later_commands_of_its_execution() {
    let bench = Bench::new(TestCredentials::default());
    let keychain = json!({"api": {"kind": "oauth2", "endpoint": "http://t", "data": {}}});
    let tasks = json!([task("x", json!({"input": {"v": "{{ keychain.api.access_token }}"}}))]);
    bench.run(keychain.clone(), tasks.clone()).await.outcome.unwrap();
    let token = placeholder("keychain.api", "access_token");
    let later = |execution: i64| {
        let config = json!({"tasks": [task("y", json!({"input": {"v": format!("<{token}>")}}))]});
        let mut later = command("task_sequence", config, Some(scope(json!({}))));
        later.execution = noetl_model::ExecutionId::new(execution);
        later
    };
    bench.performer.execute(&later(7)).await.outcome.unwrap();
    assert_eq!(bench.tool.inputs()[1], json!({"v": "<token-number-1>"}));
    bench.performer.execute(&later(9)).await.outcome.unwrap();
    let text = "<«secret:keychain.api.access_token»>";
    assert_eq!(bench.tool.inputs()[2], json!({ "v": text }), "not its token");
    // The newest one counts.
    bench.clock.0.store(100_000, Ordering::Relaxed);
    bench.run(keychain, tasks).await.outcome.unwrap();
    bench.performer.execute(&later(7)).await.outcome.unwrap();
    assert_eq!(bench.tool.inputs()[4], json!({"v": "<token-number-2>"}));
    // What was turned back is as secret as before.
    let set = json!([{"scope": "ctx", "path": ["kept"], "value": "{{ output.v }}"}]);
    let config = json!({"tasks": [task("z", json!({"input": {"v": token}, "set": set}))]});
    let ended =
        bench.performer.execute(&command("task_sequence", config, Some(scope(json!({}))))).await;
    assert!(failure(ended).message.starts_with("ctx.kept would hold the secret"));
}

#[tokio::test]
async fn recorded_step_values_contain_no_secret() {
    let bench = Bench::new(TestCredentials::with(json!({ "c": { "t": "the-secret" } })));
    let keychain = json!({"k": {"kind": "credential", "credential": "c"}});
    for (among, is_refused) in [("step", true), ("iter", false)] {
        let set = json!([{"scope": among, "path": ["a"], "value": "{{ output.v }}"}]);
        let input = json!({"v": "{{ keychain.k.t }}"});
        let tasks = json!([task("x", json!({"input": input, "set": set}))]);
        let ended = bench.run(keychain.clone(), tasks).await;
        assert_eq!(ended.outcome.is_err(), is_refused, "{among}");
        assert!(ended.step.is_empty());
    }
}
