//! The system playbooks of `examples/system`, run by a worker of the pool `system` against the internal
//! routes of a real server.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use noetl_api::calls;
use noetl_api::catalog::RegisterRequest;
use noetl_api::credentials::PutCredential;
use noetl_api::execute::ExecuteRequest;
use noetl_model::{ExecutionId, Value};
use noetl_test_services::nats::TestNats;
use serde_json::json;

use crate::dev_process::DevProcess;
use crate::noetl::{EXAMPLES, Home, PROGRAM, playbook};
use crate::shown;

const TOKEN: &str = "system-pool-token-of-this-test";

/// A server with an outbox, and a worker of each pool.
struct Site {
    _home: Home,
    server: DevProcess,
    workers: Vec<Child>,
}

impl Site {
    async fn new() -> Self {
        let home = Home::new();
        let settings = [("NOETL_INTERNAL_API_TOKEN", TOKEN), ("NOETL_OUTBOX_ENABLED", "true")];
        let server = DevProcess::start_alone(&home.path().join("data"), "0", &settings);
        let worker = |pool: &str| {
            let mut command = Command::new(PROGRAM);
            command.args(["worker", "--server", server.client.base().as_str(), "--pool", pool]);
            command.stderr(Stdio::null()).spawn().unwrap()
        };
        let workers = vec![worker("shared"), worker("system")];
        let credential = PutCredential {
            name: "internal_api".to_owned(),
            kind: "bearer".to_owned(),
            data: json!({ "token": TOKEN }),
            meta: None,
            tags: None,
            description: None,
        };
        server.client.ask(calls::put_credential(&credential)).await.unwrap();
        Self { _home: home, server, workers }
    }

    fn base(&self) -> String {
        self.server.client.base().as_str().trim_end_matches('/').to_owned()
    }

    /// Runs one of the system playbooks, and gives what it answers.
    async fn system(&self, name: &str, settings: Value) -> Value {
        let text = std::fs::read_to_string(format!("{EXAMPLES}/system/{name}.yaml")).unwrap();
        self.server.client.register(&RegisterRequest::playbook(&text), false).await.unwrap();
        let Value::Object(mut settings) = settings else { panic!("settings are a map") };
        settings.insert("server".to_owned(), self.base().into());
        let request = ExecuteRequest::path(format!("system/{name}"), settings);
        let reply = self.server.client.execute(&request).await.unwrap();
        let id = ExecutionId::new(reply.execution_id.get());
        let status = self.server.ended(id).await;
        let log = self.server.client.log(id, 0, 10_000).await.unwrap().events;
        assert_eq!(status, "COMPLETED", "{log:#?}");
        self.server.client.execution(id).await.unwrap().result.unwrap()
    }

    /// Runs an execution of two steps, and gives the ids of its events.
    async fn some_events(&self) -> (ExecutionId, BTreeSet<String>) {
        let steps = "  - {step: start, tool: {kind: noop}, next: {arcs: [{step: end}]}}\n  \
                     - {step: end, tool: {kind: noop}}\n";
        let id = self.server.execute(&playbook("{}", steps)).await;
        assert_eq!(self.server.ended(id).await, "COMPLETED");
        let log = self.server.client.log(id, 0, 10_000).await.unwrap().events;
        (id, log.iter().map(|event| event.event_id.get().to_string()).collect())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

#[test]
fn system_playbooks_are_valid() {
    shown::assert_valid(&format!("{EXAMPLES}/system"));
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_publishing_publishes_each_outbox_row_once() {
    let (site, nats) = (Site::new().await, TestNats::start());
    nats.create_stream("noetl_events", "noetl.events.>").await;
    let mut events = BTreeSet::new();
    for _ in 0..10 {
        events.extend(site.some_events().await.1);
    }
    // More than one page, each of more rows than a round of the publisher writes itself.
    assert!(events.len() > 100);
    let settings = json!({"nats": nats.url(), "page": 100});
    let output = site.system("outbox_publisher", settings.clone()).await;
    assert_eq!(output["failed"], 0, "{output}");
    assert!(output["pages"].as_u64().unwrap() > 1, "{output}");
    assert!(output["published"].as_u64().unwrap() as usize >= events.len(), "{output}");
    site.system("outbox_publisher", settings).await;
    let ids: Vec<String> =
        nats.messages("noetl_events").await.into_iter().map(|message| message.id).collect();
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(ids.len(), distinct.len(), "nothing is kept twice");
    assert!(events.is_subset(&distinct), "{events:?} in {distinct:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unpublishable_rows_are_deferred_and_published_later() {
    let (site, nats) = (Site::new().await, TestNats::start());
    let (_, events) = site.some_events().await;
    let settings = json!({"nats": nats.url(), "page": 500});
    let output = site.system("outbox_publisher", settings.clone()).await;
    assert_eq!(output["published"], 0, "there is no stream: {output}");
    assert!(output["failed"].as_u64().unwrap() as usize >= events.len(), "{output}");
    nats.create_stream("noetl_events", "noetl.events.>").await;
    crate::noetl::until("what was put off to be published", async || {
        site.system("outbox_publisher", settings.clone()).await;
        let messages = nats.messages("noetl_events").await;
        events.iter().all(|event| messages.iter().any(|message| message.id == *event))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_projector_advances_snapshots_page_by_page() {
    let site = Site::new().await;
    for _ in 0..3 {
        site.some_events().await;
    }
    let settings = json!({"status": "COMPLETED", "page": 2});
    assert_eq!(site.system("projector", settings).await, json!({"advanced": 3, "failed": 0}));
    let none = site.system("projector", json!({"status": "FAILED"})).await;
    assert_eq!(none, json!({"advanced": 0, "failed": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn cleanup_reports_a_dry_run_and_then_applies_it() {
    let site = Site::new().await;
    let (id, _) = site.some_events().await;
    let output = site.system("cleanup", json!({"dry_run": true})).await;
    assert_eq!(output["dry_run"], true, "{output}");
    let output = site.system("cleanup", json!({"runtime_stale_minutes": 1})).await;
    assert_eq!(output["dry_run"], false, "{output}");
    assert_eq!(site.server.client.status(id).await.unwrap().status, "COMPLETED", "it is new");
    let text = std::fs::read_to_string(format!("{EXAMPLES}/system/cleanup_schedule.yaml")).unwrap();
    let registered = RegisterRequest::playbook(&text);
    site.server.client.register(&registered, false).await.unwrap();
}
