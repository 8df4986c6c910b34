//! Conformance of the worker connection: a real server, and a client that knows WebSockets and JSON
//! only. `docs/protocol.md` is what it checks.

mod faults;
mod hostile;
mod push;
mod resume;

use std::collections::VecDeque;

use futures::{SinkExt as _, StreamExt as _};
use noetl_test_app::TestApp;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::api::{get, post, register};

const PATH: &str = "/api/worker/connect";

/// A playbook of three branches that meet again.
const FAN: &str = "
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: fan, path: tests/fan}
workflow:
  - {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}}
  - {step: a, tool: {kind: noop}, next: {arcs: [{step: end}]}}
  - {step: b, tool: {kind: noop}, next: {arcs: [{step: end}]}}
  - {step: c, tool: {kind: noop}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop}}
";

fn address(app: &TestApp) -> String {
    app.base.strip_prefix("http://").expect("an address").to_owned()
}

/// A worker that was written from the documentation.
struct Peer {
    socket: WebSocketStream<TcpStream>,
    /// Messages that were received and not expected yet.
    inbox: VecDeque<Value>,
    /// Number of frames received.
    received: u64,
    /// How the server closed the connection.
    closed: Option<CloseFrame>,
}

impl Peer {
    async fn open(app: &TestApp, bearer: Option<&str>) -> Self {
        let request = format!("ws://{}{PATH}", address(app)).into_client_request();
        let mut request = request.expect("an address");
        if let Some(bearer) = bearer {
            let bearer = HeaderValue::from_str(bearer).expect("a header");
            request.headers_mut().insert("authorization", bearer);
        }
        let stream = TcpStream::connect(address(app)).await.expect("a connection");
        let (socket, _) = client_async(request, stream).await.expect("an upgrade");
        Self { socket, inbox: VecDeque::new(), received: 0, closed: None }
    }

    /// Connects worker `w` with these fields of `hello`. Returns it with the welcome.
    async fn connect(app: &TestApp, hello: Value) -> (Self, Value) {
        Self::connect_as(app, None, hello).await
    }

    async fn connect_as(app: &TestApp, bearer: Option<&str>, hello: Value) -> (Self, Value) {
        let mut peer = Self::open(app, bearer).await;
        peer.send(&with_hello(hello)).await;
        let welcome = peer.next("welcome").await;
        (peer, welcome)
    }

    async fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.expect("a frame that is sent");
    }

    /// Reads a frame. Returns `false` once the connection is closed.
    async fn read(&mut self) -> bool {
        match self.socket.next().await {
            Some(Ok(Message::Text(text))) => {
                assert!(text.len() <= 1 << 20, "a frame of {} bytes", text.len());
                self.received += 1;
                match serde_json::from_str(text.as_str()).expect("JSON") {
                    Value::Array(messages) => self.inbox.extend(messages),
                    message => self.inbox.push_back(message),
                }
                true
            }
            Some(Ok(Message::Close(close))) => {
                self.closed = close;
                true
            }
            Some(Ok(_)) => true,
            Some(Err(Error::ConnectionClosed | Error::Io(_) | Error::Protocol(_))) | None => false,
            Some(Err(error)) => panic!("{error}"),
        }
    }

    /// Returns the next message of this type. Others stay for later.
    async fn next(&mut self, kind: &str) -> Value {
        loop {
            if let Some(at) = self.inbox.iter().position(|message| message["type"] == kind) {
                return self.inbox.remove(at).expect("a message");
            }
            assert!(self.read().await, "no {kind} before the end: {:?}", self.inbox);
        }
    }

    /// Waits for this number of commands.
    async fn commands(&mut self, count: usize) -> Vec<Value> {
        let mut commands = Vec::new();
        while commands.len() < count {
            let message = self.next("commands").await;
            commands.extend(message["commands"].as_array().cloned().unwrap_or_default());
        }
        assert_eq!(commands.len(), count, "{commands:?}");
        commands
    }

    /// Reports that a command is done. Returns the ack.
    async fn complete(&mut self, command: &Value) -> Value {
        self.report(command, json!({"data": {"message": "hi"}})).await
    }

    async fn report(&mut self, command: &Value, outcome: Value) -> Value {
        self.send(&completion(command, outcome)).await;
        self.next("acks").await["completions"][0].clone()
    }

    /// Sends a heartbeat that lists these commands. Returns its ack.
    async fn beat(&mut self, commands: &[&Value]) -> Value {
        let beat = json!({
            "type": "heartbeat", "id": 7, "received": self.received, "commands": commands,
        });
        self.send(&beat).await;
        loop {
            let acks = self.next("acks").await;
            if acks["heartbeats"][0]["id"] == 7 {
                return acks["heartbeats"][0].clone();
            }
        }
    }

    /// Returns the error with which the server closes the connection, and the close code.
    async fn error(&mut self) -> (Value, u16) {
        let error = self.next("error").await;
        while self.read().await {}
        let code = self.closed.take().expect("a close frame").code;
        (error, code.into())
    }

    /// Returns `true` if a command was pushed that was not expected.
    fn has_commands(&self) -> bool {
        self.inbox.iter().any(|message| message["type"] == "commands")
    }
}

/// Returns the `hello` of worker `w` with one slot, and these fields.
fn with_hello(fields: Value) -> Value {
    let mut hello = json!({
        "type": "hello", "protocol": 1, "worker_id": "w", "public_key": "key", "slots": 1,
    });
    for (name, value) in fields.as_object().expect("fields") {
        hello[name] = value.clone();
    }
    hello
}

fn completion(command: &Value, outcome: Value) -> Value {
    let mut completion = json!({
        "id": format!("c{}", command["event_id"]),
        "execution_id": command["execution_id"],
        "event_id": command["event_id"],
    });
    for (name, value) in outcome.as_object().expect("fields") {
        completion[name] = value.clone();
    }
    json!({"type": "completions", "completions": [completion]})
}

async fn app() -> TestApp {
    TestApp::builder().slots(0).start().await
}

/// Starts an execution of a registered playbook.
async fn execute(app: &TestApp, path: &str) -> i64 {
    let (status, body) =
        post(app, "/api/execute", json!({ "path": path }).to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    body["execution_id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
}

async fn fan(app: &TestApp) -> i64 {
    assert_eq!(register(app, FAN).await.0, 200);
    execute(app, "tests/fan").await
}

/// Waits until an execution has this status.
async fn until_status(app: &TestApp, id: i64, wanted: &str) {
    loop {
        let (_, status) = get(app, &format!("/api/executions/{id}/status")).answer().await;
        if status["status"] == wanted {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Returns how often a log has an event of this type.
async fn count(app: &TestApp, id: i64, kind: &str) -> usize {
    let rows = app.read_log(noetl_model::ExecutionId::new(id)).await;
    rows.iter().filter(|row| row.event_type.as_deref() == Some(kind)).count()
}
