//! Tokens of workers: which commands they open, and which credentials.

use noetl_model::Tenant;
use noetl_secrets::{EncryptionKey, Role, TokenRequest};
use noetl_server::{Auth, Options};
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{ask, get, post};

const SECRET: &str = "correct horse battery";

/// A playbook whose only step names the credential `own`.
const DOCUMENT: &str = r"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: call, path: tests/call}
workflow:
  - step: start
    tool: {kind: http, method: GET, url: 'http://127.0.0.1:9/', auth: own}
";

struct World {
    app: TestApp,
    admin: String,
}

impl World {
    async fn open() -> Self {
        let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
        let app = TestApp::builder().slots(0).options(options);
        let app = app.encryption_key(EncryptionKey::generate()).start().await;
        let admin = token(&app, "acme", Role::Admin, None).await;
        let world = Self { app, admin };
        for name in ["own", "other"] {
            let body = json!({"name": name, "type": "bearer", "data": {"token": SECRET}});
            assert_eq!(world.send(&world.admin, "/api/credentials", body).await.0, 200);
        }
        let registered =
            world.send(&world.admin, "/api/catalog/register", json!({"content": DOCUMENT}));
        let registered = registered.await;
        assert_eq!(registered.0, 200, "{registered:?}");
        world
    }

    async fn send(&self, bearer: &str, path: &str, body: Value) -> (u16, Value) {
        post(&self.app, path, body.to_string()).header("authorization", bearer).answer().await
    }

    async fn read(&self, bearer: &str, path: &str) -> (u16, Value) {
        get(&self.app, path).header("authorization", bearer).answer().await
    }

    async fn start(&self) -> String {
        let begun = self
            .send(
                &self.admin,
                "/api/execute",
                json!({"path": "tests/call", "execution_pool": "gpu"}),
            )
            .await;
        assert_eq!(begun.0, 200, "{begun:?}");
        begun.1["execution_id"].as_str().expect("an id").to_owned()
    }

    /// Leases commands as worker `w`.
    async fn lease(&self, bearer: &str, pool: Option<&str>) -> (u16, Value) {
        let body = json!({"worker_id": "w", "pool": pool, "max": 4, "wait_seconds": 0});
        self.send(bearer, "/api/worker/lease", body).await
    }

    async fn secret(&self, bearer: &str, name: &str, execution: &str) -> (u16, Value) {
        let path = format!("/api/credentials/{name}?include_data=true&execution_id={execution}");
        self.read(bearer, &path).await
    }
}

async fn token(app: &TestApp, tenant: &str, role: Role, pool: Option<&str>) -> String {
    let pool = pool.map(str::to_owned);
    let request = TokenRequest { name: role.to_string(), role, lasts: None, pool };
    let made = app.control.secrets.tokens.create(&Tenant::new(tenant), request).await;
    format!("Bearer {}", made.expect("a token").1)
}

#[tokio::test]
async fn a_worker_reads_only_credentials_of_commands_it_leases() {
    let world = World::open().await;
    let worker = token(&world.app, "acme", Role::Worker, None).await;
    let stranger = token(&world.app, "other", Role::Worker, None).await;
    let execution = world.start().await;
    let (status, body) = world.secret(&worker, "own", &execution).await;
    assert_eq!((status, &body["code"]), (403, &json!("credential_not_named")), "not leased yet");
    let (_, leased) = world.lease(&worker, Some("gpu")).await;
    let command = leased["commands"][0]["event_id"].clone();
    let (status, body) = world.secret(&worker, "own", &execution).await;
    assert_eq!((status, &body["data"]["token"]), (200, &json!(SECRET)), "{body}");
    for (bearer, name, execution) in [
        (&worker, "other", execution.as_str()),
        (&worker, "own", "0"),
        (&worker, "own", "1"),
        (&stranger, "own", execution.as_str()),
    ] {
        let (status, body) = world.secret(bearer, name, execution).await;
        assert_eq!((status, &body["code"]), (403, &json!("credential_not_named")), "{name}");
        assert!(!body.to_string().contains(SECRET));
    }
    let (status, body) = world.read(&worker, "/api/credentials/own?include_data=true").await;
    assert_eq!((status, &body["code"]), (403, &json!("credential_not_named")), "no execution");
    let sealed = |worker: &str| {
        format!("/api/credentials/own/sealed?worker_id={worker}&execution_id={execution}")
    };
    let key = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw=";
    let body = json!({"name": "v", "runtime": {"worker_public_key": key}});
    assert_eq!(world.send(&worker, "/api/worker/pool/register", body).await.0, 200);
    let (status, body) = world.read(&worker, &sealed("v")).await;
    assert_eq!((status, &body["code"]), (403, &json!("credential_not_named")), "another's command");
    let end = json!({"execution_id": execution, "event_id": command, "data": {}});
    let reported =
        world.send(&worker, "/api/worker/report", json!({"worker_id": "w", "ends": [end]})).await;
    assert_eq!((reported.0, &reported.1["ends"][0]["status"]), (200, &json!("taken")));
    let (status, body) = world.secret(&worker, "own", &execution).await;
    assert_eq!((status, &body["code"]), (403, &json!("credential_not_named")), "it has ended");
    let list = world.read(&world.admin, "/api/internal/secret-audit?credential=other").await.1;
    assert!(list.to_string().contains("denied"), "{list}");
    world.app.close().await;
}

#[tokio::test]
async fn a_pool_token_reads_only_commands_of_that_pool() {
    let world = World::open().await;
    let gpu = token(&world.app, "acme", Role::Worker, Some("gpu")).await;
    let cpu = token(&world.app, "acme", Role::Worker, Some("cpu")).await;
    let execution = world.start().await;
    let refused = world.lease(&cpu, Some("gpu")).await;
    assert_eq!((refused.0, &refused.1["code"]), (403, &json!("pool_not_allowed")));
    assert_eq!(world.lease(&cpu, None).await.1["commands"], json!([]), "its own pool is empty");
    let (_, leased) = world.lease(&gpu, None).await;
    let command = leased["commands"][0]["event_id"].as_i64().expect("a command of its own pool");
    assert_eq!(world.secret(&gpu, "own", &execution).await.0, 200);
    assert_eq!(world.secret(&cpu, "own", &execution).await.0, 403);

    let claim = format!("/api/commands/{command}/claim");
    let claimed = world.send(&cpu, &claim, json!({"worker_id": "w"})).await;
    assert_eq!(claimed.0, 409, "{claimed:?}");
    assert_eq!(world.read(&cpu, &format!("/api/commands/{command}")).await.0, 404);
    let beat = json!({"worker_id": "w", "commands": [command]});
    let beaten = world.send(&cpu, "/api/worker/heartbeat", beat).await;
    assert_eq!(beaten.1["lost"], json!([command]), "{beaten:?}");
    let end = json!({"execution_id": execution, "event_id": command, "data": {"forged": true}});
    let report = json!({"worker_id": "w", "ends": [end]});
    let reported = world.send(&cpu, "/api/worker/report", report).await;
    assert_eq!(reported.1["ends"][0]["status"], "late", "{reported:?}");
    let event = json!({
        "execution_id": execution, "event_type": "command.failed", "step": "start",
        "context": {"command_id": command}, "worker_id": "w",
    });
    assert_eq!(world.send(&cpu, "/api/events", event).await.0, 404);
    let path = format!("/api/result/{execution}");
    let put = ask(&world.app, reqwest::Method::PUT, &path).header("authorization", &cpu);
    let put = put.header("content-type", "application/json");
    let put = put.body(json!({"name": "start", "data": {}}).to_string()).answer().await;
    assert_eq!((put.0, &put.1["code"]), (403, &json!("command_not_held")));
    let status = world.read(&world.admin, &format!("/api/executions/{execution}/status")).await;
    assert_eq!(status.1["status"], "RUNNING", "nothing the other pool said counts");

    let refused = world.read(&gpu, "/api/subscriptions").await;
    assert_eq!((refused.0, &refused.1["code"]), (403, &json!("token_has_pool")));
    world.app.close().await;
}

#[tokio::test]
async fn a_worker_starts_only_executions_of_its_commands_and_subscriptions() {
    let world = World::open().await;
    let worker = token(&world.app, "acme", Role::Worker, None).await;
    let execution = world.start().await;
    let start = |parent: Option<&str>| json!({"path": "tests/call", "parent_execution_id": parent});
    let alone = world.send(&worker, "/api/execute", start(None)).await;
    assert_eq!((alone.0, &alone.1["code"]), (403, &json!("parent_needed")));
    let foreign = world.send(&worker, "/api/execute", start(Some(&execution))).await;
    assert_eq!((foreign.0, &foreign.1["code"]), (403, &json!("command_not_held")));
    world.lease(&worker, Some("gpu")).await;
    let child = world.send(&worker, "/api/execute", start(Some(&execution))).await;
    assert_eq!(child.0, 200, "{child:?}");
    world.app.close().await;
}

#[tokio::test]
async fn a_worker_reads_only_executions_of_its_commands_and_their_children() {
    let world = World::open().await;
    let worker = token(&world.app, "acme", Role::Worker, Some("gpu")).await;
    let (own, other) = (world.start().await, world.start().await);
    let body = json!({"worker_id": "w", "max": 1, "wait_seconds": 0});
    world.send(&worker, "/api/worker/lease", body).await;
    let child = json!({"path": "tests/call", "parent_execution_id": own});
    let (_, child) = world.send(&worker, "/api/execute", child).await;
    let child = child["execution_id"].as_str().expect("a child").to_owned();
    let set = |id: &str| format!("/api/vars/{id}");
    assert_eq!(world.send(&worker, &set(&own), json!({"a": 1})).await.0, 200);
    let reads = |id: &str| {
        ["executions/ID", "executions/ID/status", "vars/ID", "vars/ID/a"]
            .map(|path| format!("/api/{}", path.replace("ID", id)))
    };
    for path in reads(&own).iter().chain(&reads(&child)[..2]) {
        assert_eq!(world.read(&worker, path).await.0, 200, "{path}");
    }
    let mut refused: Vec<(u16, Value)> = Vec::new();
    for path in reads(&other) {
        refused.push(world.read(&worker, &path).await);
    }
    refused.push(world.send(&worker, &set(&other), json!({"a": 2})).await);
    for path in [set(&other), format!("{}/a", set(&other))] {
        let removed = ask(&world.app, reqwest::Method::DELETE, &path);
        refused.push(removed.header("authorization", &worker).answer().await);
    }
    for (status, body) in refused {
        assert_eq!((status, &body["code"]), (403, &json!("command_not_held")), "{body}");
    }
    assert_eq!(world.read(&worker, "/api/executions/1/status").await.0, 404);
    world.app.close().await;
}

#[tokio::test]
async fn a_worker_reads_a_credential_of_a_subscription_only_with_a_grant_for_its_path() {
    let world = World::open().await;
    let worker = token(&world.app, "acme", Role::Worker, None).await;
    let status = async || world.secret(&worker, "other", "0").await.0;
    assert_eq!(status().await, 403, "no subscription names it");
    let content = crate::subscriptions::document("team-a/orders") + "  auth: other\n";
    for (path, body) in [
        ("/api/catalog/register", json!({ "content": content })),
        ("/api/subscriptions", json!({"path": "team-a/orders"})),
    ] {
        let (status, body) = world.send(&world.admin, path, body).await;
        assert_eq!(status, 200, "{body}");
    }
    assert_eq!(status().await, 200, "no grant limits it");
    let grant = |prefix: &str| json!({"credential": "other", "prefix": prefix});
    assert_eq!(world.send(&world.admin, "/api/grants", grant("team-b")).await.0, 200);
    assert_eq!(status().await, 403, "it is for other paths");
    assert_eq!(world.send(&world.admin, "/api/grants", grant("team-a")).await.0, 200);
    assert_eq!(status().await, 200);
    world.app.close().await;
}

#[tokio::test]
async fn only_worker_tokens_have_a_pool() {
    let world = World::open().await;
    let made = |role: &str, pool: &str| {
        world.send(&world.admin, "/api/tokens", json!({"name": "t", "role": role, "pool": pool}))
    };
    assert_eq!(made("worker", "gpu").await.0, 200);
    for (role, pool) in [("admin", "gpu"), ("worker", " "), ("worker", &"x".repeat(201))] {
        assert_eq!(made(role, pool).await.0, 422, "{role} '{pool}'");
    }
    let worker = token(&world.app, "acme", Role::Worker, Some("gpu")).await;
    let (_, who) = world.read(&worker, "/api/whoami").await;
    assert_eq!((&who["pool"], &who["roles"]), (&json!("gpu"), &json!(["worker"])));
    for path in ["/api/executions", "/api/catalog/list/playbook", "/api/tokens", "/api/credentials"]
    {
        let (status, body) = world.read(&worker, path).await;
        assert_eq!((status, &body["code"]), (403, &json!("role_missing")), "{path}");
    }
    world.app.close().await;
}
