//! Credentials in running work: handed to tools, and to nobody else.

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

use crate::plant::Plant;

/// Holds what every encoding writes in its own way.
pub(crate) const TOKEN: &str = "tök/en+\"of the\\api\"&7";

/// A tool that remembers what it was given, and says it again in every way it can.
#[derive(Clone, Default)]
pub(crate) struct Talkative(pub(crate) Arc<Mutex<Vec<ToolCall>>>);

#[async_trait]
impl Tool for Talkative {
    fn kind(&self) -> &'static str {
        "http"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let mut said = json!({"config": call.config, "input": call.input});
        said["text"] = said.to_string().into();
        said["twice"] = said["text"].to_string().into();
        said["base64"] = BASE64_STANDARD.encode(said["text"].as_str().unwrap()).into();
        said["url"] = url_encoded(said["text"].as_str().unwrap()).into();
        if let Some(header) = call.config.get("headers").and_then(|it| it.get("Authorization")) {
            said[header.as_str().unwrap()] = "as a key".into();
        }
        let fails = call.input.contains_key("fail");
        self.0.lock().unwrap().push(call);
        match fails {
            true => Err(Failure::new(FailureKind::Auth, said.to_string()).with_details(said)),
            false => Ok(said),
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

/// How the token may look when it leaks.
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

pub(crate) async fn plant(tool: &Talkative) -> (Plant, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::default());
    let options = Options { encryption_key: Some(EncryptionKey::generate()), ..Options::default() };
    let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await.unwrap();
    let tools = ToolRegistry::default().with(Noop).with(Echo).with(SecretsTool).with(tool.clone());
    (Plant::equipped(control, tools), store)
}

pub(crate) async fn keep(plant: &Plant, name: &str, kind: &str, data: Value) {
    let request = CredentialRequest {
        name: name.into(),
        kind: kind.into(),
        data,
        meta: None,
        tags: Vec::new(),
        description: None,
    };
    plant.control.secrets.credentials.put(&plant.tenant, request).await.unwrap();
}

/// Everything that is kept and shown of an execution.
pub(crate) async fn shown(plant: &Plant, id: ExecutionId) -> String {
    let log = plant.log(id).await;
    let mut text = String::new();
    for event in &log {
        text += &format!("{:?}\n{event:?}\n", EventRow::from(event));
    }
    let filter = ExecutionFilter::default();
    let rows = plant.control.journal.executions.list(&plant.tenant, &filter).await.unwrap();
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
    let tool = Talkative::default();
    let (plant, _) = plant(&tool).await;
    keep(&plant, "api", "bearer", json!({"token": TOKEN, "user": "somebody"})).await;
    let id = plant
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
    let row = plant.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    let calls = std::mem::take(&mut *tool.0.lock().unwrap());
    let header = &calls[0].config["headers"]["Authorization"];
    assert_eq!(header, &json!(format!("Bearer {TOKEN}")));
    assert_eq!(calls[1].input["token"], TOKEN, "the placeholder resolves");
    assert_eq!(calls[1].config["url"], format!("http://x/?t={TOKEN}"));
    let shown = shown(&plant, id).await;
    assert_clean(&shown);
    assert!(shown.contains("«secret:api.token»"), "{shown}");
    assert!(shown.contains("somebody"), "what is not secret stays");
    plant.close().await;
}

#[tokio::test]
async fn data_outside_credentials_is_not_redacted() {
    let tool = Talkative::default();
    let (plant, _) = plant(&tool).await;
    keep(&plant, "api", "bearer", json!({"token": "another-token"})).await;
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
    plant.control.secrets.credentials.put(&other, request).await.unwrap();
    let asking = SecretRequest {
        who: "test".into(),
        operation: "resolve",
        execution: None,
        parent: None,
        worker: None,
    };
    plant.control.secrets.credentials.reveal(&other, "theirs", &asking).await.unwrap();
    let id = plant.start_with(workflow, payload).await;
    plant.finished(id).await;
    assert_eq!(answer_of(&plant, id, "start").await["d"].to_string(), business.to_string());
    plant.close().await;
}

#[tokio::test]
async fn an_unused_stored_secret_is_redacted_from_the_start() {
    let tool = Talkative::default();
    let store = Arc::new(FaultyStore::default());
    let key = EncryptionKey::generate();
    let options = || Options { encryption_key: Some(key.clone()), ..Options::default() };
    let open = async || {
        let control = ControlPlane::open(options(), store.clone(), Arc::new(SystemClock)).await;
        let tools = ToolRegistry::default().with(Noop).with(Echo).with(tool.clone());
        Plant::equipped(control.unwrap(), tools)
    };
    let before = open().await;
    keep(&before, "api", "in-house", json!({"token": TOKEN, "account": "acct-0000-1111"})).await;
    before.close().await;
    let plant = open().await;
    let workflow =
        "  - {step: start, tool: {kind: python, code: x, input: {d: '{{ workload.d }}'}}}\n";
    let payload = Map::from_iter([("d".to_owned(), json!([TOKEN, "acct-0000-1111"]))]);
    let id = plant.start_with(workflow, payload).await;
    plant.finished(id).await;
    assert_clean(&shown(&plant, id).await);
    let log = plant.log(id).await;
    let Fact::PlaybookStarted(began) = &log[0].fact else { panic!("it began") };
    assert_eq!(began.workload["d"], json!(["«secret:api.token»", "«secret:api.account»"]));
    plant.close().await;
}

async fn answer_of(plant: &Plant, id: ExecutionId, step: &str) -> Value {
    let log = plant.log(id).await;
    let answer = log.iter().find_map(|event| match &event.fact {
        Fact::CallDone { step: of, data, .. } if **of == *step => Some(data.clone()),
        _ => None,
    });
    answer.expect("the step answered")
}

#[tokio::test]
async fn a_placeholder_in_a_payload_does_not_reveal_its_secret() {
    let tool = Talkative::default();
    let (plant, _) = plant(&tool).await;
    keep(&plant, "api", "bearer", json!({"token": TOKEN})).await;
    let forged = json!({"a": "«secret:api.token»", "b": ["x «secret:api.token» y"]});
    // In a payload, in what a tool answers within a pipeline, and from step to step.
    let id = plant
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
    let row = plant.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Completed);
    for call in std::mem::take(&mut *tool.0.lock().unwrap()) {
        let given = Value::Object(call.input).to_string();
        assert!(given.contains("‹secret:api.token»"), "{given}");
        assert!(!given.contains("of the"), "{given}");
    }
    plant.close().await;
}

#[tokio::test]
async fn the_keychain_is_sent_unresolved_and_resolved_in_the_worker() {
    let tool = Talkative::default();
    let (plant, _) = plant(&tool).await;
    keep(&plant, "stored", "bearer", json!({"token": TOKEN, "user": "somebody"})).await;
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
    let registered = plant.control.catalog.register(&plant.tenant, text.into(), "playbook", false);
    let catalog = Some(registered.await.unwrap().0.id);
    let request = noetl_journal::StartRequest { catalog, ..Default::default() };
    let started = plant.control.journal.executions.start(&plant.tenant, request).await.unwrap();
    let row = plant.finished(started.execution).await;
    assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
    let header = tool.0.lock().unwrap()[0].config["headers"]["Authorization"].clone();
    assert_eq!(header, format!("Key {TOKEN}"));
    let log = plant.log(started.execution).await;
    let carried = log.iter().find_map(|event| match &event.fact {
        Fact::CommandIssued(issued) => issued.scope.clone(),
        _ => None,
    });
    let carried = carried.expect("a scope");
    let entry = json!({"api": {"credential": "{{ workload.alias }}", "map": {"key": "token"},
                               "kind": "credential"}});
    assert_eq!(json!(carried.keychain), entry, "only what is named goes along");
    assert_eq!(json!(carried.workload), json!({"alias": "stored"}));
    assert_clean(&shown(&plant, started.execution).await);
    plant.close().await;
}

#[tokio::test]
async fn setting_a_variable_to_a_secret_fails() {
    let tool = Talkative::default();
    let (plant, _) = plant(&tool).await;
    keep(&plant, "api", "bearer", json!({"token": TOKEN})).await;
    let id = plant
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
    let row = plant.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    let error = row.error.unwrap_or_default().to_string();
    assert!(error.contains("ctx.token would hold the secret «secret:api.token»"), "{error}");
    assert!(tool.0.lock().unwrap().is_empty(), "no task follows");
    assert_clean(&shown(&plant, id).await);
    plant.close().await;
}

#[tokio::test]
async fn an_unknown_alias_fails_its_step_and_explains_how_to_store_one() {
    let tool = Talkative::default();
    let (plant, _) = plant(&tool).await;
    let id =
        plant.start("  - {step: start, tool: {kind: http, url: 'http://x', auth: nope}}\n").await;
    plant.finished(id).await;
    let log = plant.log(id).await;
    let failure = log.iter().find_map(|event| match &event.fact {
        Fact::CommandFailed { failure, .. } => Some(failure.clone()),
        _ => None,
    });
    let failure = failure.expect("a failure");
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(failure.message.contains("there is no credential 'nope'"), "{}", failure.message);
    assert!(failure.message.contains("POST /api/credentials"), "{}", failure.message);
    plant.close().await;
}

#[tokio::test]
async fn reports_of_remote_workers_are_redacted() {
    let tool = Talkative::default();
    let (plant, _) = plant(&tool).await;
    keep(&plant, "api", "bearer", json!({"token": TOKEN})).await;
    let id =
        plant.start("  - {step: start, tool: {kind: http, url: 'http://x', auth: api}}\n").await;
    plant.finished(id).await;
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
    plant.control.remote.reports.record(&plant.tenant, report).await.unwrap();
    let log = plant.log(id).await;
    let kept = log.iter().find_map(|event| match &event.fact {
        Fact::Reported(said) => Some((said.payload.clone(), said.meta.clone())),
        _ => None,
    });
    let (payload, meta) = kept.expect("it is kept");
    let mut payload = payload.unwrap();
    remove_tags(&mut payload);
    assert_eq!(payload, json!({"said": "«secret:api.token»", "forged": "‹secret:api.token»"}));
    assert_eq!(meta.unwrap()["b"], "«secret:api.token»");
    assert_clean(&shown(&plant, id).await);
    plant.close().await;
}
