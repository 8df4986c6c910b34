//! Remote workers: leases that expire and are renewed, and long polls.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use insta::assert_snapshot;
use noetl_model::{Clock as _, ExecutionId, Tenant};
use noetl_store::{MemoryStore, RuntimeStore, StoreClock};
use noetl_test_app::{FaultyStore, SimClock, TestApp};
use serde_json::{Value, json};

use crate::api::{TOKEN, get, open_command, post, post_as_system, started};

/// An app without a worker of its own, and the clock of its store.
async fn app() -> (TestApp, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let store = Arc::new(FaultyStore::over(Arc::new(store)));
    let app = TestApp::builder().slots(0).store(store).internal_token(TOKEN).start().await;
    (app, clock)
}

async fn claim(app: &TestApp, command: i64, worker: &str) {
    let body = json!({ "worker_id": worker }).to_string();
    let (status, body) = post(app, &format!("/api/commands/{command}/claim"), body).answer().await;
    assert_eq!(status, 200, "{body}");
}

async fn say(app: &TestApp, id: i64, event_type: &str, command: i64, mut context: Value) -> Value {
    context["command_id"] = json!(command);
    let body = json!({
        "execution_id": id, "event_type": event_type, "step": "start", "context": context,
        "worker_id": "w",
    });
    let (status, answer) = post(app, "/api/events", body.to_string()).answer().await;
    assert_eq!(status, 200, "{event_type}: {answer}");
    answer
}

fn done(message: &str) -> Value {
    json!({"result": {"status": "success", "context": {"data": {"message": message}}}})
}

async fn beat(app: &TestApp, worker: &str) {
    let body = json!({ "name": worker }).to_string();
    assert_eq!(post(app, "/api/worker/pool/heartbeat", body).answer().await.0, 200);
}

async fn status(app: &TestApp, id: i64) -> Value {
    get(app, &format!("/api/executions/{id}/status")).answer().await.1
}

/// The types of a log with who is named, from a place on.
async fn event_lines(app: &TestApp, id: i64, from: usize) -> Vec<String> {
    let rows = app.read_log(ExecutionId::new(id)).await;
    let lines = rows.iter().skip(from).map(|row| {
        let worker = row.worker_id.as_deref().map(|worker| format!(" {worker}"));
        let node = row.node_name.as_deref().unwrap_or_default();
        let kind = row.event_type.as_deref().unwrap_or_default();
        format!("{kind} {node}{}", worker.unwrap_or_default())
    });
    lines.collect()
}

async fn lease(app: &TestApp, body: Value) -> Vec<i64> {
    let (status, answer) = post(app, "/api/worker/lease", body.to_string()).answer().await;
    assert_eq!(status, 200, "{answer}");
    let commands = answer["commands"].as_array().expect("a list");
    commands.iter().filter_map(|command| command["event_id"].as_i64()).collect()
}

#[tokio::test]
async fn commands_of_a_dead_worker_are_reissued_and_its_late_report_changes_nothing() {
    let (app, clock) = app().await;
    let id = started(&app).await;
    let first = open_command(&app, id).await;
    claim(&app, first, "w").await;
    say(&app, id, "command.started", first, json!({})).await;
    clock.advance(Duration::from_secs(80));
    beat(&app, "w").await;
    clock.advance(Duration::from_secs(80));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 0, "it was heard of");
    clock.advance(Duration::from_secs(10));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 0, "once");
    let second = open_command(&app, id).await;
    assert_ne!(first, second);
    let (_, again) = get(&app, &format!("/api/commands/{second}")).answer().await;
    assert_eq!(again["meta"]["attempt"], 2);
    say(&app, id, "call.done", first, done("late")).await;
    say(&app, id, "command.completed", first, json!({"status": "success"})).await;
    assert_eq!(open_command(&app, id).await, second, "nothing went on");
    claim(&app, second, "other").await;
    say(&app, id, "call.done", second, done("in time")).await;
    say(&app, id, "command.completed", second, json!({"status": "success"})).await;
    assert_snapshot!(event_lines(&app, id, 2).await.join("\n"), @r"
    command.issued start
    command.claimed start w
    command.started start w
    command.expired start
    command.issued start
    call.done start w
    command.completed start w
    command.claimed start other
    call.done start
    command.completed start
    step.exit start
    step.enter end
    command.issued end
    ");
    app.close().await;
}

#[tokio::test]
async fn a_claim_without_a_start_expires_after_a_minute_despite_heartbeats() {
    let (app, clock) = app().await;
    let id = started(&app).await;
    claim(&app, open_command(&app, id).await, "w").await;
    for _ in 0..5 {
        clock.advance(Duration::from_secs(12));
        beat(&app, "w").await;
    }
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    app.close().await;
}

#[tokio::test]
async fn a_step_whose_workers_are_all_lost_fails() {
    let (app, clock) = app().await;
    let id = started(&app).await;
    for _ in 0..3 {
        claim(&app, open_command(&app, id).await, "w").await;
        clock.advance(Duration::from_secs(61));
        assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    }
    let status = status(&app, id).await;
    assert_eq!(status["status"], "FAILED", "{status}");
    let error = status["error"].as_str().unwrap_or_default();
    assert!(error.contains("lost its worker 3 times"), "{error}");
    assert!(
        error
            .contains("worker 'w' claimed the command and sent no report before its lease expired"),
        "{error}"
    );
    app.close().await;
}

#[tokio::test]
async fn reports_of_a_lost_worker_are_recorded_under_their_own_ids_and_change_no_state() {
    let (app, clock) = app().await;
    let id = started(&app).await;
    let first = open_command(&app, id).await;
    claim(&app, first, "w").await;
    clock.advance(Duration::from_secs(61));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    // One that could be in the log after the claim, and one that could not.
    for (event, kind) in
        [(first + 1_000_000, "call.done"), (first - 1_000_000, "command.completed")]
    {
        let body = json!({
            "execution_id": id, "event_id": event, "event_type": kind, "step": "start",
            "worker_id": "w", "context": {"command_id": first, "result": {"status": "ok"}},
        });
        for _ in 0..2 {
            let (status, body) = post(&app, "/api/events", body.to_string()).answer().await;
            assert_eq!(status, 200, "{body}");
        }
        let rows = app.read_log(ExecutionId::new(id)).await;
        let stored = rows.iter().filter(|row| row.event_type.as_deref() == Some(kind));
        let ids: Vec<i64> = stored.map(|row| row.event_id.get()).collect();
        assert_eq!(ids, [event], "{kind}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_completion_before_the_lease_expires_completes_the_step() {
    let (app, clock) = app().await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    claim(&app, command, "w").await;
    say(&app, id, "command.started", command, json!({})).await;
    say(&app, id, "call.done", command, done("hi")).await;
    clock.advance(Duration::from_secs(91));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    let next = open_command(&app, id).await;
    let (_, next) = get(&app, &format!("/api/commands/{next}")).answer().await;
    assert_eq!((&next["node_name"], &next["meta"]["attempt"]), (&"end".into(), &1.into()));
    app.close().await;
}

#[tokio::test]
async fn a_restarted_worker_loses_the_leases_of_its_name() {
    let (app, _) = app().await;
    let register = async |key: &str| {
        let runtime = json!({"kind": "rust", "worker_public_key": key});
        let body = json!({"name": "w", "component_type": "worker_pool", "runtime": runtime});
        let (status, body) =
            post(&app, "/api/worker/pool/register", body.to_string()).answer().await;
        assert_eq!(status, 200, "{body}");
    };
    register("one").await;
    let id = started(&app).await;
    let first = open_command(&app, id).await;
    claim(&app, first, "w").await;
    say(&app, id, "command.started", first, json!({})).await;
    register("one").await;
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 0, "the same process");
    register("two").await;
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    assert_ne!(open_command(&app, id).await, first);
    app.close().await;
}

#[tokio::test]
async fn commands_are_leased_in_batches_by_pool_and_kind() {
    let (app, _) = app().await;
    let first = started(&app).await;
    let second = started(&app).await;
    let ask = |max: u32, pool: &str, kinds: &[&str]| json!({"worker_id": "w", "max": max, "pool": pool, "kinds": kinds});
    assert_eq!(lease(&app, ask(9, "gpu", &["python"])).await, [0_i64; 0]);
    assert_eq!(lease(&app, ask(9, "shared", &["http"])).await, [0_i64; 0]);
    let leased = lease(&app, ask(9, "shared", &["http", "python"])).await;
    let expected = [open_command(&app, first).await, open_command(&app, second).await];
    assert_eq!(leased, expected, "oldest first");
    assert_eq!(lease(&app, ask(9, "shared", &["python"])).await, [0_i64; 0], "they are held");
    let body = r#"{"path": "tests/greet", "execution_pool": "gpu"}"#;
    assert_eq!(post(&app, "/api/execute", body).answer().await.0, 200);
    assert_eq!(lease(&app, ask(1, "gpu", &["python"])).await.len(), 1);
    let document = crate::api::GREET.replace("tests/greet", "system/greet");
    assert_eq!(crate::api::register(&app, &document).await.0, 200);
    let body = r#"{"path": "system/greet"}"#;
    assert_eq!(post(&app, "/api/execute", body).answer().await.0, 200);
    assert_eq!(lease(&app, ask(9, "shared", &["python"])).await, [0_i64; 0]);
    assert_eq!(lease(&app, ask(9, "system", &["python"])).await.len(), 1);
    app.close().await;
}

#[tokio::test]
async fn a_lease_response_describes_the_command_completely() {
    let (app, _) = app().await;
    started(&app).await;
    let body = json!({"worker_id": "w", "public_key": "k"}).to_string();
    assert_snapshot!(post(&app, "/api/worker/lease", body).shown().await, @r#"
    200
    {
      "commands": [
        {
          "event_id": "[id number]",
          "tenant_id": "default",
          "execution_id": "[id number]",
          "node_name": "start",
          "action": "python",
          "meta": {
            "command_id": "[id]:start:[id]",
            "step": "start",
            "tool_kind": "python",
            "attempt": 1,
            "max_attempts": 3,
            "attempts": 3,
            "execution_id": "[id]",
            "catalog_id": "[id]",
            "actionable": true,
            "trace": {
              "traceparent": "[span]"
            }
          },
          "issued": {
            "seq": 3,
            "created_at": "[time]",
            "context": {
              "tool_config": {
                "code": "result = message"
              },
              "args": {
                "message": "Hello, world!"
              }
            },
            "meta": {
              "generation": 1,
              "attempt": 1,
              "trace": {
                "traceparent": "[span]"
              }
            }
          }
        }
      ],
      "lease_seconds": 45
    }
    "#);
    assert_snapshot!(get(&app, "/api/worker/pools").shown().await, @r#"
    200
    [
      {
        "runtime_id": "[id number]",
        "name": "w",
        "kind": "worker_pool",
        "uri": null,
        "status": "ready",
        "labels": {
          "pool_name": "shared"
        },
        "capabilities": null,
        "capacity": null,
        "runtime": {
          "kind": "rust",
          "worker_public_key": "k"
        },
        "heartbeat": "[time]",
        "created_at": "[time]",
        "updated_at": "[time]"
      }
    ]
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_long_poll_waits_for_a_command() {
    let (app, _) = app().await;
    let body = json!({"worker_id": "w", "max": 5, "wait_seconds": 30});
    let (leased, id) = tokio::join!(lease(&app, body), async {
        // Whichever comes first, the call is answered once there is a command.
        tokio::task::yield_now().await;
        started(&app).await
    });
    assert_eq!(leased, [open_command(&app, id).await]);
    app.close().await;
}

#[tokio::test]
async fn waiting_workers_share_commands_without_duplicates() {
    let (app, _) = app().await;
    started(&app).await;
    let waiting = (0..12).map(|number| {
        lease(&app, json!({"worker_id": format!("w{number}"), "max": 1, "wait_seconds": 30}))
    });
    let starting = async {
        for _ in 0..11 {
            started(&app).await;
        }
    };
    let (leased, ()) = tokio::join!(join_all(waiting), starting);
    let mut leased = leased.concat();
    assert_eq!(leased.len(), 12);
    leased.sort_unstable();
    leased.dedup();
    assert_eq!(leased.len(), 12);
    app.close().await;
}

#[tokio::test]
async fn a_disconnected_long_poll_claims_nothing() {
    let (app, _) = app().await;
    let body = json!({"worker_id": "gone", "wait_seconds": 30}).to_string();
    let url = format!("{}/api/worker/lease", app.base);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let waiting =
        tokio::spawn(http.post(url).header("content-type", "application/json").body(body).send());
    // The worker is listed after its first poll.
    while get(&app, "/api/worker/pools?name=gone").answer().await.1 == json!([]) {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    let id = started(&app).await;
    let leased = lease(&app, json!({"worker_id": "w", "wait_seconds": 30})).await;
    assert_eq!(leased, [open_command(&app, id).await]);
    app.close().await;
}

#[tokio::test]
async fn leases_alternate_between_executions() {
    let (app, _) = app().await;
    let content = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: wide, path: tests/wide}\n\
        workflow:\n  - step: start\n    loop: {in: [1, 2, 3, 4], iterator: n, mode: parallel}\n    \
        tool: {kind: python, code: x}\n";
    let (code, body) = crate::api::register(&app, content).await;
    assert_eq!(code, 200, "{body}");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (_, body) = post(&app, "/api/execute", r#"{"path": "tests/wide"}"#).answer().await;
        ids.push(body["execution_id"].as_str().unwrap().to_owned());
    }
    let mut turns = Vec::new();
    for _ in 0..4 {
        let body = json!({"worker_id": "w", "max": 1}).to_string();
        let (_, answer) = post(&app, "/api/worker/lease", body).answer().await;
        let of = answer["commands"][0]["execution_id"].to_string();
        turns.push(ids.iter().position(|id| *id == of).unwrap());
    }
    assert_eq!(turns, [0, 1, 0, 1]);
    app.close().await;
}

#[tokio::test]
async fn a_heartbeat_renews_the_named_leases_and_reports_lost_and_cancelled_ones() {
    let (app, clock) = app().await;
    let (first, second) = (started(&app).await, started(&app).await);
    let ids = lease(&app, json!({"worker_id": "w", "max": 2})).await;
    let beat = async |commands: &[i64]| {
        let body = json!({"worker_id": "w", "commands": commands}).to_string();
        let (status, answer) = post(&app, "/api/worker/heartbeat", body).answer().await;
        assert_eq!(status, 200, "{answer}");
        answer
    };
    for _ in 0..4 {
        clock.advance(Duration::from_secs(30));
        assert_eq!(
            beat(&ids).await,
            json!({"status": "ok", "cancel": [], "lost": [], "lease_seconds": 45})
        );
    }
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 0);
    clock.advance(Duration::from_secs(30));
    beat(&ids[..1]).await;
    clock.advance(Duration::from_secs(20));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1, "only one was named");
    assert_ne!(open_command(&app, second).await, ids[1]);
    let cancel = format!("/api/executions/{first}/cancel");
    assert_eq!(post(&app, &cancel, "").answer().await.0, 200);
    let answer = beat(&[ids[0], ids[1], 7]).await;
    assert_eq!(answer["cancel"], json!([ids[0]]), "{answer}");
    assert_eq!(answer["lost"], json!([ids[1], 7]), "{answer}");
    app.close().await;
}

#[tokio::test]
async fn invalid_lease_requests_are_rejected() {
    let (app, _) = app().await;
    let wrong = [
        ("/api/worker/lease", json!({"worker_id": ""})),
        ("/api/worker/lease", json!({"worker_id": "local"})),
        ("/api/worker/lease", json!({"worker_id": "w", "max": 0})),
        ("/api/worker/lease", json!({"worker_id": "w", "max": 1001})),
        ("/api/worker/lease", json!({"worker_id": "w", "wait_seconds": -1})),
        ("/api/worker/lease", json!({"worker_id": "w", "wait_seconds": 31})),
        ("/api/worker/heartbeat", json!({"worker_id": " "})),
        ("/api/worker/heartbeat", json!({"worker_id": "w", "commands": vec![1; 1001]})),
        ("/api/commands/7/claim", json!({"worker_id": ""})),
    ];
    let mut messages = Vec::new();
    for (path, body) in wrong {
        let (status, answer) = post(&app, path, body.to_string()).answer().await;
        messages.push(format!("{status} {}: {}", answer["code"], answer["error"]));
    }
    assert_snapshot!(messages.join("\n"), @r#"
    422 "invalid_worker": "'' is not a valid worker name: it is empty"
    422 "invalid_worker": "'local' is not a valid worker name: workers inside the control plane have such names"
    422 "invalid_amount": "max must be from 1 to 1000, not 0"
    422 "invalid_amount": "max must be from 1 to 1000, not 1001"
    422 "invalid_wait": "wait_seconds must be from 0 to 30, not -1"
    422 "invalid_wait": "wait_seconds must be from 0 to 30, not 31"
    422 "invalid_worker": "' ' is not a valid worker name: it is empty"
    422 "invalid_amount": "the number of commands must be from 0 to 1000, not 1001"
    422 "invalid_body": "worker_id must not be empty"
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_system_pool_gets_secrets_of_the_tenant_of_its_command() {
    let app = TestApp::builder()
        .slots(0)
        .internal_token(TOKEN)
        .encryption_key(crate::stores::key())
        .start()
        .await;
    let acme = Tenant::new("acme");
    for (tenant, password) in [(&acme, "of-acme-only"), (&Tenant::default(), "of-default-only")] {
        let credential = noetl_secrets::CredentialRequest {
            name: "pg_main".to_owned(),
            kind: "postgres".to_owned(),
            data: json!({ "password": password }),
            meta: None,
            tags: Vec::new(),
            description: None,
        };
        app.control.secrets.credentials.put(tenant, credential).await.expect("a credential");
    }
    let document = crate::api::GREET.to_owned();
    app.control.catalog.register(&acme, document, "playbook", false).await.unwrap();
    let request = noetl_journal::StartRequest {
        path: Some("tests/greet".to_owned()),
        ..noetl_journal::StartRequest::default()
    };
    let id = app.control.journal.executions.start(&acme, request).await.unwrap().execution.get();
    let asked = async |path: String| {
        let (status, body) = crate::api::get_as_system(&app, &path).answer().await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    };
    let secret = "/api/credentials/pg_main?include_data=true";
    assert_eq!(asked(secret.to_owned()).await["data"]["password"], "of-default-only");
    let theirs = asked(format!("{secret}&execution_id={id}")).await;
    assert_eq!(theirs["data"]["password"], "of-acme-only");
    let set = post_as_system(&app, &format!("/api/vars/{id}"), r#"{"a": 1}"#).answer().await;
    assert_eq!(set.0, 200, "{}", set.1);
    assert_eq!(asked(format!("/api/vars/{id}/a")).await["var_value"], 1);
    let child = json!({"path": "tests/greet", "parent_execution_id": id}).to_string();
    let (status, child) = post_as_system(&app, "/api/execute", child).answer().await;
    assert_eq!(status, 200, "{child}");
    let child: ExecutionId = child["execution_id"].as_str().unwrap().parse().unwrap();
    assert!(app.control.journal.executions.get(&acme, child).await.unwrap().is_some());
    app.control.journal.executions.cancel(&acme, ExecutionId::new(id), None).await.unwrap();
    let check = asked(format!("/api/executions/{id}/cancellation-check")).await;
    assert_eq!(check["is_cancelled"], true);
    app.close().await;
}

#[tokio::test]
async fn a_worker_whose_row_was_removed_registers_its_key_again() {
    let (app, _) = app().await;
    let asks = json!({"worker_id": "w", "public_key": "k1"});
    lease(&app, asks.clone()).await;
    let kind = noetl_store::RuntimeKind::WorkerPool;
    let tenant = Tenant::default();
    let key = async || {
        let rows = app.store.runtimes(&tenant, &noetl_store::RuntimeFilter::default()).await;
        rows.unwrap()[0].said.runtime.as_ref().map(|runtime| runtime["worker_public_key"].clone())
    };
    assert_eq!(key().await, Some(json!("k1")));
    // As another server does, or a clean-up.
    assert!(app.store.deregister(&tenant, kind, "w").await.unwrap());
    let beat = json!({"worker_id": "w", "commands": []}).to_string();
    assert_eq!(post(&app, "/api/worker/heartbeat", beat).answer().await.0, 200);
    assert_eq!(key().await, None);
    lease(&app, asks).await;
    assert_eq!(key().await, Some(json!("k1")));
    app.close().await;
}

#[tokio::test]
async fn start_reports_under_names_of_local_workers_are_refused() {
    let (app, _) = app().await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    for name in ["control-plane", "local"] {
        let report = json!({
            "execution_id": id, "step": "start", "event_type": "command.started",
            "worker_id": name, "payload": {"command_id": command.to_string()},
        });
        let (status, answer) = post(&app, "/api/events", report.to_string()).answer().await;
        assert_eq!((status, &answer["code"]), (422, &json!("invalid_worker")), "{answer}");
    }
    claim(&app, command, "w").await;
    app.close().await;
}

#[tokio::test]
async fn only_the_internal_token_leases_commands_of_every_tenant() {
    let (app, _) = app().await;
    let acme = Tenant::new("acme");
    let document = crate::api::GREET.to_owned();
    app.control.catalog.register(&acme, document, "playbook", false).await.unwrap();
    let request = noetl_journal::StartRequest {
        path: Some("tests/greet".to_owned()),
        ..noetl_journal::StartRequest::default()
    };
    let id = app.control.journal.executions.start(&acme, request).await.unwrap().execution.get();
    let rows = app.read_log(ExecutionId::new(id)).await;
    let command = rows.last().unwrap().event_id.get();
    let path = format!("/api/commands/{command}");
    let body = json!({"worker_id": "w"}).to_string();
    assert_eq!(get(&app, &path).answer().await.0, 404);
    assert_eq!(post(&app, &format!("{path}/claim"), body.clone()).answer().await.0, 409);
    assert_eq!(lease(&app, json!({"worker_id": "w"})).await, [0_i64; 0]);
    let event = json!({"execution_id": id, "step": "start", "event_type": "note"}).to_string();
    assert_eq!(post(&app, "/api/events", event.clone()).answer().await.0, 404);
    let claimed = post_as_system(&app, &format!("{path}/claim"), body).answer().await;
    assert_eq!(claimed.0, 200, "{}", claimed.1);
    assert_eq!(crate::api::get_as_system(&app, &path).answer().await.0, 200);
    assert_eq!(post_as_system(&app, "/api/events", event).answer().await.0, 200);
    app.close().await;
}

#[tokio::test]
async fn why_reports_the_lease_of_a_remote_worker() {
    let (app, clock) = app().await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let wait = async || {
        let (_, why) = get(&app, &format!("/api/executions/{id}/why")).answer().await;
        why["waits"][0].clone()
    };
    assert_eq!(wait().await["lease_until"], Value::Null, "nobody has it");
    claim(&app, command, "w").await;
    let until = |seconds| json!(clock.now().plus(Duration::from_secs(seconds)));
    assert_eq!(wait().await["lease_until"], until(60), "it has not begun");
    say(&app, id, "command.started", command, json!({})).await;
    let explanation = wait().await;
    assert_eq!(explanation["lease_until"], until(90));
    let moves = explanation["would_move_it"].as_str().expect("a sentence");
    assert!(moves.contains("the command is handed out again"), "{moves}");
    app.close().await;
}
