//! Helpers shared by the tests: requests, and responses with IDs and times masked.

use std::sync::LazyLock;

use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::Value;

/// A playbook of two steps: one computes, one passes on what it got.
pub(crate) const GREET: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: greet
  path: tests/greet
workload:
  who: world
workflow:
  - step: start
    tool:
      kind: python
      input:
        message: \"Hello, {{ workload.who }}!\"
      code: result = message
    next:
      arcs:
        - step: end
  - step: end
    tool:
      kind: noop
      result:
        said: \"{{ start.message }}\"
";

/// A request to an app.
pub(crate) struct Ask<'a> {
    app: &'a TestApp,
    request: reqwest::RequestBuilder,
}

pub(crate) fn get<'a>(app: &'a TestApp, path: &str) -> Ask<'a> {
    ask(app, Method::GET, path)
}

pub(crate) fn post<'a>(app: &'a TestApp, path: &str, body: impl Into<String>) -> Ask<'a> {
    ask(app, Method::POST, path).header("content-type", "application/json").body(body)
}

/// The token of the internal routes in these tests.
pub(crate) const TOKEN: &str = "letmein";

/// An app with internal routes and an outbox.
pub(crate) async fn system_app() -> TestApp {
    TestApp::builder().outbox().slots(0).internal_token(TOKEN).start().await
}

/// As [`get`], with the token of the internal routes.
pub(crate) fn get_as_system<'a>(app: &'a TestApp, path: &str) -> Ask<'a> {
    get(app, path).header("authorization", &format!("Bearer {TOKEN}"))
}

/// As [`post`], with the token of the internal routes.
pub(crate) fn post_as_system<'a>(app: &'a TestApp, path: &str, body: impl Into<String>) -> Ask<'a> {
    post(app, path, body).header("authorization", &format!("Bearer {TOKEN}"))
}

pub(crate) fn ask<'a>(app: &'a TestApp, method: Method, path: &str) -> Ask<'a> {
    Ask { app, request: http().request(method, format!("{}{path}", app.base)) }
}

/// Returns the shared HTTP client: creating one reads every certificate of the machine. It keeps no
/// idle connections, so that tests on different runtimes can share it. Create the app's typed
/// client first, because it initializes TLS.
pub(crate) fn http() -> &'static reqwest::Client {
    static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
        client.build().expect("a client")
    });
    &HTTP
}

impl Ask<'_> {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.request = self.request.body(body.into());
        self
    }

    /// The answer as it came.
    pub(crate) async fn send(self) -> reqwest::Response {
        self.request.send().await.expect("an answer")
    }

    /// Status and body.
    pub(crate) async fn answer(self) -> (u16, Value) {
        let response = self.send().await;
        let status = response.status().as_u16();
        let text = response.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Formats status and body for a snapshot, with varying values masked.
    pub(crate) async fn shown(self) -> String {
        let base = self.app.base.clone();
        let (status, body) = self.answer().await;
        shown(status, body).replace(&base, "[base]")
    }
}

/// Status and body as text for a snapshot.
pub(crate) fn shown(status: u16, mut body: Value) -> String {
    redact(&mut body);
    format!("{status}\n{}", serde_json::to_string_pretty(&body).expect("JSON"))
}

/// Replaces what differs from run to run: ids, times, ports.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if name == "uptime_seconds" || name == "duration_seconds" && value.is_number() {
                    *value = Value::from("[seconds]");
                } else if name == "traceparent" && value.is_string() {
                    *value = Value::from("[span]");
                } else if name == "duration_human" && value.is_string() {
                    *value = Value::from("[length]");
                } else {
                    redact(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) => *text = without_ids(text),
        Value::Number(number) if number.as_i64().is_some_and(is_id) => {
            *value = Value::from("[id number]");
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Ids minted in this decade have 18 digits.
fn is_id(number: i64) -> bool {
    number > 100_000_000_000_000_000 && number < i64::MAX
}

fn without_ids(text: &str) -> String {
    if text.parse::<noetl_model::Timestamp>().is_ok() {
        return "[time]".to_owned();
    }
    let parts = text.split_inclusive(|c: char| !c.is_ascii_digit());
    parts
        .map(|part| {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            match digits.parse().is_ok_and(is_id) {
                true => part.replace(digits, "[id]"),
                false => part.to_owned(),
            }
        })
        .collect()
}

/// Trace of the caller that starts the greeting playbook.
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Registers the greeting playbook and starts it.
pub(crate) async fn started(app: &TestApp) -> i64 {
    let (status, body) = register(app, GREET).await;
    assert_eq!(status, 200, "{body}");
    let start = post(app, "/api/execute", r#"{"path":"tests/greet"}"#);
    let (status, body) = start.header("traceparent", PARENT).answer().await;
    assert_eq!(status, 200, "{body}");
    body["execution_id"].as_str().and_then(|id| id.parse().ok()).expect("an id as text")
}

/// Starts the greeting playbook and waits until it has ended.
pub(crate) async fn finished(app: &TestApp) -> i64 {
    let id = started(app).await;
    let tenant = noetl_model::Tenant::default();
    let row = app
        .control
        .journal
        .executions
        .wait_until_finished(&tenant, noetl_model::ExecutionId::new(id))
        .await;
    assert!(row.expect("a store that answers").is_some_and(|row| row.status.is_final()));
    id
}

pub(crate) async fn register(app: &TestApp, content: &str) -> (u16, Value) {
    let body = serde_json::json!({ "content": content }).to_string();
    post(app, "/api/catalog/register", body).answer().await
}

/// Reports an event of an execution's open command, as a worker does.
pub(crate) async fn report(app: &TestApp, execution: i64, step: &str, event_type: &str) {
    let command = open_command(app, execution).await;
    let event = serde_json::json!({
        "execution_id": execution, "step": step, "event_type": event_type, "worker_id": "w",
        "payload": {
            "command_id": format!("{execution}:{step}:{command}"),
            "result": {"status": "success", "context": {"data": {"message": "hi"}}},
            "error": {"kind": "tool_error", "message": "no"},
        },
    });
    let (status, body) = post(app, "/api/events", event.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
}

/// The command of the execution's newest `command.issued`.
pub(crate) async fn open_command(app: &TestApp, execution: i64) -> i64 {
    let path = format!("/api/executions/{execution}/events");
    let (_, body) = get(app, &path).answer().await;
    let events = body["events"].as_array().cloned().unwrap_or_default();
    let issued = events.iter().rev().find(|event| event["event_type"] == "command.issued");
    issued.and_then(|event| event["event_id"].as_i64()).expect("a command was issued")
}
