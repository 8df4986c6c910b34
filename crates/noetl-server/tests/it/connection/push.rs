//! What happens between `hello` and `drain` if nothing fails.

use noetl_secrets::{Role, TokenRequest};
use noetl_server::{Auth, Options};
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use super::{FAN, Peer, app, completion, count, execute, fan, until_status};
use crate::api::{get, post, register, started};

#[tokio::test(flavor = "multi_thread")]
async fn a_welcome_states_the_parameters_of_the_connection() {
    let app = app().await;
    let (_peer, welcome) = Peer::connect(&app, json!({"lease_seconds": 90})).await;
    assert_eq!(welcome["protocol"], 1);
    assert_eq!((&welcome["lease_seconds"], &welcome["slots"]), (&json!(90), &json!(1)));
    assert_eq!(welcome["frame_max_bytes"], 1 << 20);
    assert_eq!(
        (&welcome["heartbeat_seconds"], &welcome["silence_seconds"]),
        (&json!(10), &json!(45))
    );
    assert_eq!(
        (&welcome["keep"], &welcome["drop"], &welcome["cancel"]),
        (&json!([]), &json!([]), &json!([]))
    );
    let (_, listed) = get(&app, "/api/worker/pools").answer().await;
    assert!(listed.to_string().contains(r#""worker_public_key":"key""#), "{listed}");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_pushed_after_its_commit_and_the_next_one_with_the_ack() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let id = started(&app).await;
    let first = peer.commands(1).await.remove(0);
    assert_eq!((&first["node_name"], &first["execution_id"]), (&json!("start"), &json!(id)));
    assert!(first["issued"]["context"].is_object(), "{first}");
    peer.send(&completion(&first, json!({"data": {"message": "hi"}}))).await;
    while peer.inbox.is_empty() {
        assert!(peer.read().await);
    }
    // The ack and the next command share a frame.
    assert_eq!(peer.inbox.len(), 2, "{:?}", peer.inbox);
    let ack = peer.next("acks").await["completions"][0].clone();
    assert_eq!((&ack["status"], &ack["event_id"]), (&json!("accepted"), &first["event_id"]));
    assert_eq!(ack["id"], format!("c{}", first["event_id"]));
    let next = peer.commands(1).await.remove(0);
    assert_eq!(next["node_name"], "end");
    assert_eq!(peer.complete(&next).await["status"], "accepted");
    until_status(&app, id, "COMPLETED").await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gets_as_many_commands_as_it_has_slots() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({"slots": 2})).await;
    let id = fan(&app).await;
    let first = peer.commands(1).await.remove(0);
    assert_eq!(peer.complete(&first).await["status"], "accepted");
    let branches = peer.commands(2).await;
    for _ in 0..5 {
        peer.beat(&[&branches[0]["event_id"], &branches[1]["event_id"]]).await;
        assert!(!peer.has_commands(), "the third has no slot");
    }
    peer.complete(&branches[0]).await;
    let third = peer.commands(1).await.remove(0);
    peer.complete(&branches[1]).await;
    peer.complete(&third).await;
    let last = peer.commands(1).await.remove(0);
    assert_eq!(last["node_name"], "end");
    peer.complete(&last).await;
    until_status(&app, id, "COMPLETED").await;
    assert_eq!(count(&app, id, "command.claimed").await, 5);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_arrives_twice_has_one_effect() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let id = started(&app).await;
    let first = peer.commands(1).await.remove(0);
    assert_eq!(peer.complete(&first).await["status"], "accepted");
    let next = peer.commands(1).await.remove(0);
    assert_eq!(peer.complete(&first).await["status"], "late");
    assert_eq!(peer.complete(&first).await["status"], "late");
    peer.beat(&[&next["event_id"]]).await;
    assert!(!peer.has_commands(), "the next command is sent once");
    assert_eq!(peer.complete(&next).await["status"], "accepted");
    until_status(&app, id, "COMPLETED").await;
    assert_eq!(count(&app, id, "command.completed").await, 2);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_messages_share_a_frame_in_both_directions() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({"slots": 3})).await;
    let id = fan(&app).await;
    let first = peer.commands(1).await.remove(0);
    peer.complete(&first).await;
    let branches = peer.commands(3).await;
    let messages: Vec<Value> =
        branches.iter().map(|branch| completion(branch, json!({"data": 1}))).collect();
    peer.send(&Value::Array(messages)).await;
    let last = peer.commands(1).await.remove(0);
    assert_eq!(peer.complete(&last).await["status"], "accepted");
    until_status(&app, id, "COMPLETED").await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_next_gets_no_command_with_an_ack_and_fails_steps() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({"kinds": [{"name": "python"}]})).await;
    let id = started(&app).await;
    let first = peer.commands(1).await.remove(0);
    assert_eq!(first["action"], "python");
    let mut report = completion(&first, json!({"failure": {"kind": "unknown", "message": "no"}}));
    report["next"] = json!(false);
    peer.send(&report).await;
    assert_eq!(peer.next("acks").await["completions"][0]["status"], "accepted");
    until_status(&app, id, "FAILED").await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_commands_of_declared_kinds_and_pools_are_pushed() {
    let app = app().await;
    let kinds = json!([{"name": "http", "settings": {"type": "object"}, "result": {}}]);
    let (mut other, _) = Peer::connect(&app, json!({"worker_id": "http", "kinds": kinds})).await;
    let (mut gpu, _) =
        Peer::connect(&app, json!({"worker_id": "gpu", "pools": ["gpu", "tpu"]})).await;
    started(&app).await;
    let (mut any, _) = Peer::connect(&app, json!({"kinds": kinds, "other_kinds": true})).await;
    let command = any.commands(1).await.remove(0);
    assert_eq!(command["action"], "python");
    for peer in [&mut other, &mut gpu] {
        peer.beat(&[]).await;
        assert!(!peer.has_commands());
    }
    let body = json!({"path": "tests/greet", "execution_pool": "tpu"}).to_string();
    assert_eq!(post(&app, "/api/execute", body).answer().await.0, 200);
    assert_eq!(gpu.commands(1).await.len(), 1);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn step_logs_are_stored_before_their_heartbeat_is_acknowledged() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let id = started(&app).await;
    let command = peer.commands(1).await.remove(0);
    let lines = json!([{"stream": "stderr", "text": "one\n"}, {"text": "two\u{0}\n"}]);
    let logs = json!([{"execution_id": id, "event_id": command["event_id"], "lines": lines}]);
    peer.send(&json!({"type": "heartbeat", "id": 3, "logs": logs})).await;
    let ack = peer.next("acks").await;
    assert_eq!(ack["heartbeats"], json!([{"id": 3}]));
    let (_, stored) = get(&app, &format!("/api/executions/{id}/logs")).answer().await;
    assert_eq!(stored["lines"][0]["stream"], "stderr");
    assert_eq!(stored["lines"][1]["text"], "two\u{fffd}");
    let logs = json!([{"execution_id": id, "event_id": 4711, "lines": [{"text": "x"}]}]);
    peer.send(&json!({"type": "heartbeat", "id": 4, "logs": logs})).await;
    let ack = peer.next("acks").await;
    assert!(ack["heartbeats"][0]["error"].is_string(), "{ack}");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_is_pushed() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let id = started(&app).await;
    let command = peer.commands(1).await.remove(0);
    let cancelled = post(&app, &format!("/api/executions/{id}/cancel"), "{}").answer().await;
    assert_eq!(cancelled.0, 200, "{cancelled:?}");
    assert_eq!(peer.next("cancel").await["commands"], json!([command["event_id"]]));
    assert_eq!(peer.complete(&command).await["status"], "late");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_worker_gets_no_more_commands() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({"slots": 2})).await;
    started(&app).await;
    let first = peer.commands(1).await.remove(0);
    peer.send(&json!({"type": "drain"})).await;
    assert_eq!(peer.complete(&first).await["status"], "accepted");
    execute(&app, "tests/greet").await;
    peer.beat(&[]).await;
    assert!(!peer.has_commands());
    // Another worker gets them.
    let (mut other, _) = Peer::connect(&app, json!({"worker_id": "other", "slots": 2})).await;
    other.commands(2).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_drains_its_connections() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    started(&app).await;
    peer.commands(1).await;
    let closing = tokio::spawn(app.close());
    assert!(peer.next("drain").await["reason"].is_string());
    while peer.read().await {}
    assert_eq!(u16::from(peer.closed.expect("a close frame").code), 1001);
    closing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_other_tenants_and_pools_never_arrive() {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let token = async |tenant: &str, role: Role, pool: Option<&str>| {
        let pool = pool.map(str::to_owned);
        let request = TokenRequest { name: role.to_string(), role, lasts: None, pool };
        let tenant = noetl_model::Tenant::new(tenant);
        let made = app.control.secrets.tokens.create(&tenant, request).await;
        format!("Bearer {}", made.expect("a token").1)
    };
    let admin = token("acme", Role::Admin, None).await;
    let stranger = token("other", Role::Worker, None).await;
    let gpu = token("acme", Role::Worker, Some("gpu")).await;
    let own = token("acme", Role::Worker, None).await;
    let document = json!({ "content": FAN }).to_string();
    let registered = post(&app, "/api/catalog/register", document).header("authorization", &admin);
    assert_eq!(registered.answer().await.0, 200);
    let (mut stranger, _) =
        Peer::connect_as(&app, Some(&stranger), json!({"worker_id": "stranger"})).await;
    let (mut bound, _) = Peer::connect_as(&app, Some(&gpu), json!({"worker_id": "gpu"})).await;
    let start = post(&app, "/api/execute", r#"{"path":"tests/fan"}"#);
    assert_eq!(start.header("authorization", &admin).answer().await.0, 200);
    let (mut worker, _) = Peer::connect_as(&app, Some(&own), json!({})).await;
    let command = worker.commands(1).await.remove(0);
    for peer in [&mut stranger, &mut bound] {
        let id = &command["event_id"];
        assert_eq!(peer.beat(&[id]).await["lost"], json!([id]), "it is not theirs");
        assert_eq!(peer.complete(&command).await["status"], "late");
        assert!(!peer.has_commands());
    }
    assert_eq!(worker.beat(&[&command["event_id"]]).await, json!({"id": 7}));
    let mut wrong = Peer::open(&app, Some(&gpu)).await;
    wrong.send(&super::with_hello(json!({"pools": ["shared"]}))).await;
    let (error, code) = wrong.error().await;
    assert_eq!((&error["code"], code), (&json!("pool_not_allowed"), 1008));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_above_the_frame_limit_is_read_as_a_blob() {
    let app = app().await;
    let document = format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: large, path: tests/large}}\n\
         workflow:\n  - {{step: start, tool: {{kind: noop, result: {}}}}}\n",
        "x".repeat(1_200_000)
    );
    assert_eq!(register(&app, &document).await.0, 200);
    let id = execute(&app, "tests/large").await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let message = peer.next("commands").await;
    let large = &message["large"][0];
    assert_eq!(large["execution_id"], id, "{message}");
    let (digest, bytes) =
        (large["content"]["digest"].as_str().unwrap(), &large["content"]["bytes"]);
    let path = format!("/api/worker/content/{digest}?bytes={bytes}");
    let (status, command) = get(&app, &path).answer().await;
    assert_eq!((status, &command["node_name"]), (200, &json!("start")));
    assert_eq!(peer.complete(&command).await["status"], "accepted");
    until_status(&app, id, "COMPLETED").await;
    app.close().await;
}
