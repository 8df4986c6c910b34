//! Canaries: worthless secrets, one per tool, that each tool repeats in every way it can.
//! Afterwards, everything that a server shows or stores is searched for them.

mod echo;
mod forms;
mod playbooks;

use std::path::Path;

use noetl_api::catalog::RegisterRequest;
use noetl_api::execute::ExecuteRequest;
use noetl_model::{ExecutionId, Map};
use noetl_test_services::nats::TestNats;
use noetl_test_services::postgres::TestDatabase;
use rustix::process::Signal;
use serde_json::{Value, json};

use self::echo::Echo;
use self::forms::{CANARIES, canary, seen};
use crate::dev_process::DevProcess;
use crate::noetl::{Home, until};
use crate::shown::KEY;

/// The stream that events are published on.
const EVENTS: &str = "noetl_events";

/// Routes that hand secrets out, to workers and admins, and are asked for by name.
const HANDS_OUT: [&str; 2] =
    ["/api/credentials/{identifier}/sealed", "/api/keychain/{catalog_id}/{name}"];

/// Never ends by itself.
const ENDLESS: &str = "/api/executions/stream";

/// A text or a file that is searched.
struct LeakSearch {
    count: usize,
    bytes: usize,
    leaks: Vec<String>,
}

impl LeakSearch {
    fn look(&mut self, what: &str, bytes: &[u8]) {
        self.count += 1;
        self.bytes += bytes.len();
        self.leaks.extend(seen(bytes).map(|leaked| format!("{what} holds {leaked}")));
    }
}

async fn keep_canaries(server: &DevProcess) {
    for name in CANARIES {
        let body = json!({
            "name": format!("canary_{name}"), "type": "bearer", "data": {"token": canary(name)},
        });
        let (status, output) = ask(server, "POST", "/api/credentials", Some(body)).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&output));
    }
}

/// Sends a request and returns the status and the whole response, head included.
async fn ask(server: &DevProcess, method: &str, path: &str, body: Option<Value>) -> (u16, Vec<u8>) {
    echo::ask(&server.client, method, path, body).await
}

async fn run(server: &DevProcess, text: &str, payload: Map) -> (ExecutionId, String) {
    let registered = server.client.register(&RegisterRequest::playbook(text), false).await.unwrap();
    let request = ExecuteRequest::path(&*registered.path, payload);
    let id = server.client.execute(&request).await.unwrap().execution_id.get();
    let id = ExecutionId::new(id);
    (id, server.ended(id).await)
}

/// Every address of a GET route, with what was made here in the place of its parameters.
async fn addresses(server: &DevProcess, executions: &[ExecutionId]) -> Vec<String> {
    let (_, document) = ask(server, "GET", "/api/openapi.json", None).await;
    let body = document.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let document: Value = serde_json::from_slice(&document[body..]).unwrap();
    let mut addresses = Vec::new();
    for (route, methods) in document["paths"].as_object().unwrap() {
        let is_asked = methods.get("get").is_some();
        if !is_asked || HANDS_OUT.contains(&route.as_str()) || route == ENDLESS {
            continue;
        }
        for (at, id) in executions.iter().enumerate() {
            let id = id.to_string();
            let filled = route
                .replace("{id}", &id)
                .replace("{execution_id}", &id)
                .replace("{catalog_id}", "1")
                .replace("{identifier}", &format!("canary_{}", CANARIES[at % CANARIES.len()]))
                .replace("{kind}", "playbook")
                .replace("{path}", "canaries/http")
                .replace("{*path}", "canaries/http")
                .replace("{name}", "kept");
            let filled = match &*filled {
                "/api/replay/state" => format!("{filled}?execution_id={id}"),
                "/api/catalog/versions" | "/api/catalog/playbook/content" => {
                    format!("{filled}?path=canaries/http")
                }
                _ => filled,
            };
            if !addresses.contains(&filled) {
                addresses.push(filled);
            }
        }
    }
    addresses.extend(["/", "/metrics", "/health"].map(str::to_owned));
    addresses
}

fn search_files(directory: &Path, searched: &mut LeakSearch) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search_files(&path, searched);
        } else {
            searched.look(&path.display().to_string(), &std::fs::read(&path).unwrap());
        }
    }
}

/// Runs every playbook; how many canaries tools were heard to say, by the marks in their place.
async fn plant(server: &DevProcess, echo: &Echo, nats: &TestNats) -> Vec<ExecutionId> {
    let database = TestDatabase::new();
    let files = tempfile::tempdir().unwrap();
    let payload = Map::from_iter([
        ("echo".to_owned(), json!(echo.url())),
        ("nats".to_owned(), json!(nats.url())),
        ("db".to_owned(), json!(database.url())),
        ("file".to_owned(), json!(files.path().join("t.db"))),
    ]);
    let mut executions = Vec::new();
    for (name, text, ends) in playbooks::all(echo.url()) {
        let (id, status) = run(server, &text, payload.clone()).await;
        assert_eq!(status, ends, "{name}: {:?}", server.client.execution(id).await);
        executions.push(id);
    }
    executions
}

impl LeakSearch {
    /// Panics with the places of all canaries that leaked.
    fn assert_clean(self) {
        let Self { count, bytes, leaks } = self;
        assert!(
            leaks.is_empty(),
            "{} leaks in {count} places, {bytes} bytes:\n{}",
            leaks.len(),
            leaks.join("\n")
        );
    }
}

#[tokio::test]
async fn no_canary_is_in_a_dump_of_a_postgres_database() {
    let (database, echo, nats) = (TestDatabase::new(), Echo::start(), TestNats::start());
    let settings = [
        ("NOETL_ENCRYPTION_KEY", KEY),
        ("RUST_LOG", "warn,noetl=trace,noetl_control=trace,noetl_store_postgres=trace"),
    ];
    let server = DevProcess::start_on(&database.url(), 8, &settings);
    keep_canaries(&server).await;
    let executions = plant(&server, &echo, &nats).await;
    assert_eq!(executions.len(), playbooks::all(echo.url()).len());

    let mut searched = LeakSearch { count: 0, bytes: 0, leaks: Vec::new() };
    let dump = database.dump();
    let marks = String::from_utf8_lossy(&dump).matches("«secret:canary_").count();
    assert!(marks > 100, "{marks} marks stand in their place");
    searched.look("the dump", &dump);
    let (code, output) = server.stop(Signal::TERM);
    assert_eq!(code, Some(0));
    searched.look("what the server printed", output.as_bytes());
    searched.look("the dump after its end", &database.dump());
    searched.assert_clean();
}

#[tokio::test]
async fn no_canary_leaks_after_every_tool_used_one() {
    let (home, echo, nats) = (Home::new(), Echo::start(), TestNats::start());
    let data = home.path().join("data");
    let settings = [
        ("NOETL_NATS_URL", nats.url()),
        ("NOETL_EVENT_STREAM_ENABLED", "true"),
        ("NOETL_EVENT_STREAM_POLL_MS", "20"),
        ("NOETL_INTERNAL_API_TOKEN", echo::INTERNAL_TOKEN),
        // Everything that this program can be made to log about itself.
        (
            "RUST_LOG",
            "warn,noetl=trace,noetl_control=trace,noetl_access=trace,noetl_server=trace,noetl_worker=trace,noetl_tools=trace,noetl_store=trace,noetl_store_sqlite=trace",
        ),
    ];
    let server = DevProcess::start_with(&data, &settings);
    keep_canaries(&server).await;
    let executions = plant(&server, &echo, &nats).await;
    // What tools were given is the secret itself, or nothing was proven.
    let received = echo.received();
    assert!(seen(&received).any(|name| name.contains("http")), "the secret reached the far side");

    let mut searched = LeakSearch { count: 0, bytes: 0, leaks: Vec::new() };
    let mut marks = 0;
    let mut answered = 0;
    for address in addresses(&server, &executions).await {
        let (status, body) = ask(&server, "GET", &address, None).await;
        assert!(status < 500, "{address}: {status}");
        answered += usize::from(status == 200);
        marks += String::from_utf8_lossy(&body).matches("«secret:canary_").count();
        searched.look(&format!("GET {address}"), &body);
    }
    assert!(answered > 100, "{answered} addresses answered");
    assert!(marks > 100, "{marks} marks stand in their place");

    // A plain step is six events, and none of these executions has less.
    let events = executions.len() * 6;
    until("the events to be published", async || nats.messages(EVENTS).await.len() >= events).await;
    for message in nats.messages(EVENTS).await {
        searched.look(&format!("message {}", message.subject), &message.payload);
    }
    search_files(&data, &mut searched);
    let (code, output) = server.stop(Signal::TERM);
    assert_eq!(code, Some(0));
    searched.look("what the server printed", output.as_bytes());
    search_files(&data, &mut searched);
    searched.assert_clean();
}
