//! Credentials in running work: available to tools only.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_control::{ControlPlane, Options};
use noetl_model::placeholder::remove_tags;
use noetl_model::row::EventRow;
use noetl_model::{ExecutionId, Fact, Failure, FailureKind, Map, Tenant, Value};
use noetl_remote::EventReport;
use noetl_secrets::{CredentialRequest, EncryptionKey, SecretRequest};
use noetl_store::{ExecutionFilter, ExecutionStatus, SystemClock};
use noetl_test_app::{Echo, FaultyStore};
use noetl_tools::{Noop, SecretsTool, Tool, ToolCall, ToolRegistry};
use serde_json::json;

use crate::plane::TestPlane;

/// Holds what every encoding writes in its own way.
pub(crate) const TOKEN: &str = "tök/en+\"of the\\api\"&7";

/// A tool that records its calls, and repeats their contents in every encoding.
#[derive(Clone, Default)]
pub(crate) struct LeakingTool(pub(crate) Arc<Mutex<Vec<ToolCall>>>);

#[async_trait]
impl Tool for LeakingTool {
    fn kind(&self) -> &'static str {
        "http"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let mut output = json!({"config": call.config, "input": call.input});
        output["text"] = output.to_string().into();
        output["twice"] = output["text"].to_string().into();
        output["base64"] = BASE64_STANDARD.encode(output["text"].as_str().unwrap()).into();
        output["url"] = url_encoded(output["text"].as_str().unwrap()).into();
        if let Some(header) = call.config.get("headers").and_then(|it| it.get("Authorization")) {
            output[header.as_str().unwrap()] = "as a key".into();
        }
        let fails = call.input.contains_key("fail");
        self.0.lock().unwrap().push(call);
        match fails {
            true => Err(Failure::new(FailureKind::Auth, output.to_string()).with_details(output)),
            false => Ok(output),
        }
    }
}

fn url_encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes()
        .map(|byte| match plain(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns the encodings in which the token may leak.
fn forms() -> Vec<String> {
    let json = json!(TOKEN).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let again = json!(json).to_string();
    vec![
        TOKEN.to_owned(),
        again[1..again.len() - 1].to_owned(),
        json,
        url_encoded(TOKEN),
        BASE64_STANDARD.encode(TOKEN),
        BASE64_STANDARD.encode(format!("Bearer {TOKEN}")),
        // The middle of it, wherever it begins.
        BASE64_STANDARD.encode(&TOKEN[3..15]),
        BASE64_STANDARD.encode(&TOKEN[4..16]),
        BASE64_STANDARD.encode(&TOKEN[5..17]),
    ]
}

pub(crate) async fn plane(tool: &LeakingTool) -> (TestPlane, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::default());
    let options = Options { encryption_key: Some(EncryptionKey::generate()), ..Options::default() };
    let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await.unwrap();
    let tools = ToolRegistry::default().with(Noop).with(Echo).with(SecretsTool).with(tool.clone());
    (TestPlane::with_tools(control, tools), store)
}

pub(crate) async fn keep(plane: &TestPlane, name: &str, kind: &str, data: Value) {
    let request = CredentialRequest {
        name: name.into(),
        kind: kind.into(),
        data,
        meta: None,
        tags: Vec::new(),
        description: None,
    };
    plane.control.secrets.credentials.put(&plane.tenant, request).await.unwrap();
}

/// Returns everything that is stored and shown of an execution.
pub(crate) async fn shown(plane: &TestPlane, id: ExecutionId) -> String {
    let log = plane.log(id).await;
    let mut text = String::new();
    for event in &log {
        text += &format!("{:?}\n{event:?}\n", EventRow::from(event));
    }
    let filter = ExecutionFilter::default();
    let rows = plane.control.journal.executions.list(&plane.tenant, &filter).await.unwrap();
    text += &format!("{rows:?}");
    // What is printed is escaped: look at it as it was, too.
    let unescaped = text.replace("\\\"", "\"").replace("\\\\", "\\");
    text + &unescaped
}

fn assert_clean(shown: &str) {
    for form in forms() {
        assert!(!shown.contains(&form), "{form} is in {shown}");
    }
}

#[tokio::test]
async fn a_secret_reaches_the_tool_and_no_row_in_any_form() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN, "user": "somebody"})).await;
    let id = plane
        .start(
            "
  - step: start
    tool: {kind: http, url: 'http://x', auth: api}
    next: {arcs: [{step: read}]}
  - step: read
    tool: {kind: secrets, credential: api, field: token}
    next: {arcs: [{step: use}]}
  - step: use
    tool:
      kind: http
      url: 'http://x/?t={{ read.value }}'
      input: {token: '{{ read.value }}', who: somebody, fail: true}
",
        )
        .await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    let calls = std::mem::take(&mut *tool.0.lock().unwrap());
    let header = &calls[0].config["headers"]["Authorization"];
    assert_eq!(header, &json!(format!("Bearer {TOKEN}")));
    assert_eq!(calls[1].input["token"], TOKEN, "the placeholder resolves");
    assert_eq!(calls[1].config["url"], format!("http://x/?t={TOKEN}"));
    let shown = shown(&plane, id).await;
    assert_clean(&shown);
    assert!(shown.contains("«secret:api.token»"), "{shown}");
    assert!(shown.contains("somebody"), "what is not secret stays");
    plane.close().await;
}

#[tokio::test]
async fn data_outside_credentials_is_not_redacted() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": "another-token"})).await;
    let business = json!({
        "password": "looks-like-a-secret", "token": TOKEN, "Authorization": "Bearer abcdefgh",
        "b64": BASE64_STANDARD.encode(TOKEN), "odd": "«not a mark» «secret", "n": 1.5,
    });
    let workflow =
        "  - {step: start, tool: {kind: python, code: x, input: {d: '{{ workload.d }}'}}}\n";
    let payload = Map::from_iter([("d".to_owned(), business.clone())]);
    // A secret of another tenant is theirs.
    let other = Tenant::new("other");
    let request = CredentialRequest {
        name: "theirs".into(),
        kind: "bearer".into(),
        data: json!({ "token": TOKEN }),
        meta: None,
        tags: Vec::new(),
        description: None,
    };
    plane.control.secrets.credentials.put(&other, request).await.unwrap();
    let asking = SecretRequest {
        who: "test".into(),
        operation: "resolve",
        execution: None,
        parent: None,
        worker: None,
    };
    plane.control.secrets.credentials.reveal(&other, "theirs", &asking).await.unwrap();
    let id = plane.start_with(workflow, payload).await;
    plane.finished(id).await;
    assert_eq!(answer_of(&plane, id, "start").await["d"].to_string(), business.to_string());
    plane.close().await;
}

#[tokio::test]
async fn an_unused_stored_secret_is_redacted_from_the_start() {
    let tool = LeakingTool::default();
    let store = Arc::new(FaultyStore::default());
    let key = EncryptionKey::generate();
    let options = || Options { encryption_key: Some(key.clone()), ..Options::default() };
    let open = async || {
        let control = ControlPlane::open(options(), store.clone(), Arc::new(SystemClock)).await;
        let tools = ToolRegistry::default().with(Noop).with(Echo).with(tool.clone());
        TestPlane::with_tools(control.unwrap(), tools)
    };
    let before = open().await;
    keep(&before, "api", "in-house", json!({"token": TOKEN, "account": "acct-0000-1111"})).await;
    before.close().await;
    let plane = open().await;
    let workflow =
        "  - {step: start, tool: {kind: python, code: x, input: {d: '{{ workload.d }}'}}}\n";
    let payload = Map::from_iter([("d".to_owned(), json!([TOKEN, "acct-0000-1111"]))]);
    let id = plane.start_with(workflow, payload).await;
    plane.finished(id).await;
    assert_clean(&shown(&plane, id).await);
    let log = plane.log(id).await;
    let Fact::PlaybookStarted(began) = &log[0].fact else { panic!("it began") };
    assert_eq!(began.workload["d"], json!(["«secret:api.token»", "«secret:api.account»"]));
    plane.close().await;
}

async fn answer_of(plane: &TestPlane, id: ExecutionId, step: &str) -> Value {
    let log = plane.log(id).await;
    let answer = log.iter().find_map(|event| match &event.fact {
        Fact::CallDone { step: of, data, .. } if **of == *step => Some(data.clone()),
        _ => None,
    });
    answer.expect("the step answered")
}

#[tokio::test]
async fn a_placeholder_in_a_payload_does_not_reveal_its_secret() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let forged = json!({"a": "«secret:api.token»", "b": ["x «secret:api.token» y"]});
    // In a payload, in what a tool answers within a pipeline, and from step to step.
    let id = plane
        .start_with(
            "
  - step: start
    tool:
      - {name: one, kind: python, code: x, input: {d: '{{ workload.d }}'}}
      - {name: two, kind: http, url: 'http://x', input: {d: '{{ one.d }}'}}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: http, url: 'http://x', input: {d: '{{ start.one.d }}'}}
",
            Map::from_iter([("d".to_owned(), forged)]),
        )
        .await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Completed);
    for call in std::mem::take(&mut *tool.0.lock().unwrap()) {
        let input = Value::Object(call.input).to_string();
        assert!(input.contains("‹secret:api.token»"), "{input}");
        assert!(!input.contains("of the"), "{input}");
    }
    plane.close().await;
}

#[tokio::test]
async fn the_keychain_is_sent_unresolved_and_resolved_in_the_worker() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "stored", "bearer", json!({"token": TOKEN, "user": "somebody"})).await;
    let text = "apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: k}
workload: {alias: stored}
keychain:
  - {name: api, kind: credential, credential: '{{ workload.alias }}', map: {key: token}}
  - {name: unused, kind: oauth2, endpoint: 'https://nobody.invalid'}
workflow:
  - step: start
    tool: {kind: http, url: 'http://x', headers: {Authorization: 'Key {{ keychain.api.key }}'}}
";
    let registered = plane.control.catalog.register(&plane.tenant, text.into(), "playbook", false);
    let catalog = Some(registered.await.unwrap().0.id);
    let request = noetl_journal::StartRequest { catalog, ..Default::default() };
    let started = plane.control.journal.executions.start(&plane.tenant, request).await.unwrap();
    let row = plane.finished(started.execution).await;
    assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
    let header = tool.0.lock().unwrap()[0].config["headers"]["Authorization"].clone();
    assert_eq!(header, format!("Key {TOKEN}"));
    let log = plane.log(started.execution).await;
    let carried = log.iter().find_map(|event| match &event.fact {
        Fact::CommandIssued(issued) => issued.scope.clone(),
        _ => None,
    });
    let carried = carried.expect("a scope");
    let entry = json!({"api": {"credential": "{{ workload.alias }}", "map": {"key": "token"},
                               "kind": "credential"}});
    assert_eq!(json!(carried.keychain), entry, "only what is named goes along");
    assert_eq!(json!(carried.workload), json!({"alias": "stored"}));
    assert_clean(&shown(&plane, started.execution).await);
    plane.close().await;
}

#[tokio::test]
async fn setting_a_variable_to_a_secret_fails() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let id = plane
        .start(
            "
  - step: start
    tool:
      - {name: get, kind: secrets, credential: api, field: token, set: {ctx.fine: '{{ output.name }}'}}
      - {name: bad, kind: python, code: x, input: {t: '{{ get.value }}'}, set: {ctx.token: '{{ output.t }}'}}
      - {name: never, kind: http, url: 'http://x'}
",
        )
        .await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    let error = row.error.unwrap_or_default().to_string();
    assert!(error.contains("ctx.token would hold the secret «secret:api.token»"), "{error}");
    assert!(tool.0.lock().unwrap().is_empty(), "no task follows");
    assert_clean(&shown(&plane, id).await);
    plane.close().await;
}

#[tokio::test]
async fn an_unknown_alias_fails_its_step_and_explains_how_to_store_one() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    let id =
        plane.start("  - {step: start, tool: {kind: http, url: 'http://x', auth: nope}}\n").await;
    plane.finished(id).await;
    let log = plane.log(id).await;
    let failure = log.iter().find_map(|event| match &event.fact {
        Fact::CommandFailed { failure, .. } => Some(failure.clone()),
        _ => None,
    });
    let failure = failure.expect("a failure");
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(failure.message.contains("there is no credential 'nope'"), "{}", failure.message);
    assert!(failure.message.contains("POST /api/credentials"), "{}", failure.message);
    plane.close().await;
}

#[tokio::test]
async fn reports_of_remote_workers_are_redacted() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let id =
        plane.start("  - {step: start, tool: {kind: http, url: 'http://x', auth: api}}\n").await;
    plane.finished(id).await;
    let report = EventReport {
        execution: id,
        step: "start".into(),
        event_type: "worker.said".into(),
        status: None,
        payload: Some(json!({"said": TOKEN, "forged": "«secret:api.token»"})),
        meta: Some(json!({"b": BASE64_STANDARD.encode(TOKEN)})),
        worker: None,
        event: None,
        columns: None,
    };
    plane.control.remote.reports.record(&plane.tenant, report).await.unwrap();
    let log = plane.log(id).await;
    let stored_report = log.iter().find_map(|event| match &event.fact {
        Fact::Reported(reported_event) => {
            Some((reported_event.payload.clone(), reported_event.meta.clone()))
        }
        _ => None,
    });
    let (payload, meta) = stored_report.expect("it is kept");
    let mut payload = payload.unwrap();
    remove_tags(&mut payload);
    assert_eq!(payload, json!({"said": "«secret:api.token»", "forged": "‹secret:api.token»"}));
    assert_eq!(meta.unwrap()["b"], "«secret:api.token»");
    assert_clean(&shown(&plane, id).await);
    plane.close().await;
}
