//! The calls of the published command line, in the shape it sends them, and every field it reads.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{GREET, get, post};
use crate::published::{As, begun, ended, guarded_app, open_app, reads};

/// As the command line registers a playbook: base64 of the file.
async fn register(app: &TestApp, content: &str) -> Value {
    let content = BASE64_STANDARD.encode(content);
    let body = json!({"content": content, "resource_type": "Playbook"});
    let (status, body) = post(app, "/api/catalog/register", body.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    body
}

/// A playbook whose only step fails.
fn failing() -> String {
    let failing = GREET.replace("tests/greet", "tests/fails");
    failing.replace("{{ workload.who }}", "{{ 1 // 0 }}")
}

#[tokio::test]
async fn a_playbook_is_registered_listed_and_read() {
    let app = open_app(0).await;
    let registered = register(&app, GREET).await;
    reads(
        &registered,
        &[
            ("status", As::Text),
            ("message", As::Text),
            ("path", As::Text),
            ("version", As::Count),
            ("catalog_id", As::TextId),
            ("kind", As::Text),
        ],
    );
    assert_eq!((&registered["path"], &registered["version"]), (&"tests/greet".into(), &1.into()));
    // Whatever case the kind is typed in.
    for kind in ["Playbook", "playbook"] {
        let body = json!({ "resource_type": kind }).to_string();
        let (status, listed) = post(&app, "/api/catalog/list", body).answer().await;
        assert_eq!((status, listed["entries"].as_array().map(Vec::len)), (200, Some(1)), "{kind}");
    }
    let (status, one) =
        post(&app, "/api/catalog/resource", r#"{"path":"tests/greet"}"#).answer().await;
    assert_eq!((status, &one["content"]), (200, &GREET.into()));
    let (status, missing) =
        post(&app, "/api/catalog/resource", r#"{"path":"nope"}"#).answer().await;
    assert_eq!(status, 404, "{missing}");
    reads(&missing, &[("error", As::Text), ("status", As::Count)]);
    // The full-screen mode lists paths.
    let (status, paths) = get(&app, "/api/catalog/list/Playbook").answer().await;
    assert_eq!((status, paths), (200, json!(["tests/greet"])));
    app.close().await;
}

#[tokio::test]
async fn a_directory_is_loaded_in_batches() {
    let app = open_app(0).await;
    let item = |content: &str| json!({"content": BASE64_STANDARD.encode(content), "resource_type": "Playbook"});
    let items = json!({"items": [item(GREET), item("not: [a playbook"), item(&failing())]});
    let (status, body) =
        post(&app, "/api/catalog/register/batch", items.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    reads(&body, &[("registered", As::Count), ("failed", As::Count), ("results", As::List)]);
    assert_eq!((&body["registered"], &body["failed"]), (&2.into(), &1.into()));
    let good = [("index", As::Count), ("path", As::Text), ("version", As::Count)];
    reads(&body["results"][0], &good);
    assert_eq!(body["results"][0]["status"], "registered");
    reads(&body["results"][1], &[("index", As::Count), ("error", As::Text)]);
    assert_ne!(body["results"][1]["status"], "registered");
    assert_eq!(body["results"][2]["index"], 2, "in the order they were sent");
    app.close().await;
}

#[tokio::test]
async fn a_run_uses_the_requested_version_and_workload() {
    let app = open_app(2).await;
    register(&app, GREET).await;
    register(&app, &GREET.replace("Hello", "Goodbye")).await;
    for (version, expected) in [(json!(1), "Hello, moon!"), (json!(2), "Goodbye, moon!")] {
        let body = json!({
            "path": "tests/greet", "version": version,
            "workload": {"who": "moon"}, "resource_kind": "playbook",
        });
        let (status, body) = post(&app, "/api/execute", body.to_string()).answer().await;
        assert_eq!(status, 200, "{body}");
        reads(&body, &[("execution_id", As::TextId)]);
        let id = body["execution_id"].as_str().expect("text");
        let number = noetl_model::ExecutionId::new(id.parse().expect("digits"));
        app.control
            .journal
            .executions
            .wait_until_finished(&Tenant::default(), number)
            .await
            .expect("an answer");
        let (_, detail) = get(&app, &format!("/api/executions/{id}")).answer().await;
        assert_eq!(detail["result"]["said"], expected);
    }
    let body = json!({"path": "nope", "workload": {}, "resource_kind": "playbook"});
    let (status, body) = post(&app, "/api/execute", body.to_string()).answer().await;
    assert_eq!((status, &body["error"]), (404, &"Playbook not found: nope".into()));
    app.close().await;
}

/// Fields of the summary of `status`.
const SUMMARY: &[(&str, As)] = &[
    ("execution_id", As::NumberId),
    ("status", As::Text),
    ("progress.total_steps", As::Count),
    ("progress.completed_steps", As::Count),
    ("progress.running_steps", As::Count),
    ("progress.failed_steps", As::Count),
    ("is_cancelled", As::Bool),
    ("completed", As::Bool),
    ("failed", As::Bool),
    ("completed_steps", As::List),
    ("start_time", As::Time),
];

async fn status(app: &TestApp, id: &str) -> Value {
    let (status, body) = get(app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(status, 200, "{body}");
    reads(&body, SUMMARY);
    body
}

#[tokio::test]
async fn a_status_distinguishes_completed_failed_and_running_executions() {
    let app = open_app(2).await;
    register(&app, GREET).await;
    register(&app, &failing()).await;
    let completed = status(&app, &ended(&app, "tests/greet").await).await;
    let outcome = |body: &Value| (body["completed"] == true, body["failed"] == true);
    assert_eq!(outcome(&completed), (true, false));
    assert_eq!(completed["completed_steps"], json!(["start", "end"]));
    let over =
        [("end_time", As::Time), ("duration_seconds", As::Number), ("duration_human", As::Text)];
    reads(&completed, &over);
    reads(&completed, &[("error", As::Null)]);
    let failed = status(&app, &ended(&app, "tests/fails").await).await;
    assert_eq!(outcome(&failed), (true, true), "`completed` says that it is over");
    reads(&failed, &over);
    reads(&failed, &[("error", As::Text)]);
    assert_eq!(failed["completed_steps"], json!([]));
    app.close().await;

    let app = open_app(0).await;
    register(&app, GREET).await;
    let running = status(&app, &begun(&app, "tests/greet").await).await;
    assert_eq!(outcome(&running), (false, false));
    assert_eq!(
        (&running["status"], &running["current_step"]),
        (&"RUNNING".into(), &"start".into())
    );
    app.close().await;
}

#[tokio::test]
async fn a_status_lookup_falls_back_to_the_execution() {
    let app = open_app(2).await;
    register(&app, GREET).await;
    assert_eq!(get(&app, "/api/executions/7/status").answer().await.0, 404);
    assert_eq!(get(&app, "/api/executions/7?page=1&page_size=10").answer().await.0, 404);
    let id = ended(&app, "tests/greet").await;
    let path = format!("/api/executions/{id}?page=1&page_size=10");
    let (status, body) = get(&app, &path).answer().await;
    assert_eq!(status, 200, "{body}");
    let fields = [
        ("status", As::Text),
        ("start_time", As::Time),
        ("end_time", As::Time),
        ("duration_seconds", As::Number),
        ("duration_human", As::Text),
        ("events.0.node_name", As::Text),
    ];
    reads(&body, &fields);
    assert_eq!(body["events"].as_array().map(Vec::len), Some(10));
    assert_eq!(body["events"][0]["event_type"], "playbook.completed", "newest first");
    app.close().await;
}

#[tokio::test]
async fn the_published_cli_cancels_cleans_up_and_reruns() {
    let app = open_app(0).await;
    register(&app, GREET).await;
    let id = begun(&app, "tests/greet").await;
    let cancel = format!("/api/executions/{id}/cancel");
    let body = json!({"cascade": true, "reason": "enough"}).to_string();
    let (status, cancelled) = post(&app, &cancel, body).answer().await;
    assert_eq!((status, &cancelled["status"]), (200, &"cancelled".into()), "{cancelled}");
    reads(&cancelled, &[("cancelled_executions.0", As::TextId), ("message", As::Text)]);
    assert_eq!(cancelled["cancelled_executions"], json!([id]));
    let over = self::status(&app, &id).await;
    assert_eq!((&over["completed"], &over["is_cancelled"]), (&json!(true), &json!(true)));
    // A second cancel is refused, with a message to show: with the status that a client warns of if
    // it sent `cascade`.
    for (body, refused) in [(r#"{"cascade":false}"#, 400), ("{}", 422), ("", 422)] {
        let (status, again) = post(&app, &cancel, body).answer().await;
        assert_eq!(status, refused, "{again}");
        reads(&again, &[("message", As::Text)]);
    }

    let rerun = json!({"workload": {"who": "moon"}, "resource_kind": "playbook"}).to_string();
    let (status, body) = post(&app, &format!("/api/executions/{id}/rerun"), rerun).answer().await;
    assert_eq!(status, 200, "{body}");
    reads(&body, &[("execution_id", As::TextId)]);
    assert_ne!(body["execution_id"], *id);

    for (dry_run, running) in [(true, 1), (false, 0)] {
        let body = json!({"older_than_minutes": 0, "dry_run": dry_run}).to_string();
        let (status, body) = post(&app, "/api/executions/cleanup", body).answer().await;
        assert_eq!((status, &body["cancelled_count"]), (200, &1.into()), "{body}");
        reads(&body, &[("message", As::Text), ("execution_ids.0", As::NumberId)]);
        let (_, left) = get(&app, "/api/executions?status=RUNNING").answer().await;
        assert_eq!(left.as_array().map(Vec::len), Some(running), "dry run {dry_run}");
    }
    app.close().await;
}

#[tokio::test]
async fn credentials_are_stored_and_read() {
    let app = open_app(0).await;
    let file = r#"{"name":"db","type":"postgres","data":{"password":"a secret of theirs"}}"#;
    let (status, body) = post(&app, "/api/credentials", file).answer().await;
    assert_eq!(status, 200, "{body}");
    reads(&body, &[("id", As::TextId), ("name", As::Text), ("type", As::Text)]);
    assert!(body.get("data").is_none(), "{body}");
    let (status, body) = get(&app, "/api/credentials/db?include_data=true").answer().await;
    assert_eq!((status, &body["data"]["password"]), (200, &"a secret of theirs".into()));
    let (status, body) = get(&app, "/api/credentials/nope?include_data=true").answer().await;
    assert_eq!((status, &body["error"]), (404, &"Credential 'nope' not found".into()));
    app.close().await;
}

#[tokio::test]
async fn the_database_state_is_reported() {
    let app = open_app(0).await;
    let (status, init) =
        crate::api::ask(&app, reqwest::Method::POST, "/api/db/init").answer().await;
    assert_eq!(status, 200, "{init}");
    reads(&init, &[("status", As::Text), ("message", As::Text), ("valid", As::Bool)]);
    let (status, valid) = get(&app, "/api/db/validate").answer().await;
    assert_eq!((status, &valid["valid"]), (200, &true.into()));
    reads(&valid, &[("tables", As::List), ("missing", As::List)]);
    // SQLite executes no statements, and the error says where to run them.
    let query = r#"{"query":"select 1","schema":"noetl"}"#;
    let (status, body) = post(&app, "/api/postgres/execute", query).answer().await;
    assert_eq!((status, &body["code"]), (501, &"not_postgres".into()));
    app.close().await;
}

#[tokio::test]
async fn executions_and_events_are_queried() {
    let app = open_app(2).await;
    register(&app, GREET).await;
    let id = ended(&app, "tests/greet").await;
    let path = "/api/ehdb/executions?status=COMPLETED&limit=10&offset=0";
    let (status, body) = get(&app, path).answer().await;
    assert_eq!(status, 200, "{body}");
    let row = [
        ("execution_id", As::TextId),
        ("status", As::Text),
        ("path", As::Text),
        ("event_count", As::Count),
        ("started_at", As::Time),
    ];
    reads(&body["executions"][0], &row);
    let (_, one) = get(&app, &format!("/api/ehdb/executions/{id}")).answer().await;
    assert_eq!((&one["exists"], &one["state"]["execution_id"]), (&true.into(), &json!(id)));
    reads(&one["state"], &row);
    let more = [
        ("terminal", As::Bool),
        ("current_node", As::Anything),
        ("catalog_id", As::TextId),
        ("parent_execution_id", As::Null),
        ("completed_at", As::Time),
    ];
    reads(&one["state"], &more);
    let (_, none) = get(&app, "/api/ehdb/executions/7").answer().await;
    assert_eq!(none["exists"], false);
    let path = format!("/api/ehdb/executions/{id}/events");
    let (mut seen, mut after) = (0, String::new());
    loop {
        let (status, page) = get(&app, &format!("{path}?limit=5{after}")).answer().await;
        assert_eq!(status, 200, "{page}");
        for event in page["events"].as_array().expect("events") {
            let fields = [
                ("event_id", As::TextId),
                ("event_type", As::Text),
                ("node_name", As::Text),
                ("status", As::Text),
                ("created_at", As::Time),
            ];
            reads(event, &fields);
            seen += 1;
        }
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        after = format!("&after={cursor}");
    }
    assert_eq!(seen, 14);
    for tier in ["eventlog", "kv", "object", "vector"] {
        let (status, body) =
            get(&app, &format!("/api/ehdb/tiers/{tier}?limit=1000")).answer().await;
        assert_eq!((status, &body["code"]), (501, &"not_built".into()), "{tier}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_message_of_a_subscription_starts_a_playbook() {
    let app = open_app(0).await;
    register(&app, GREET).await;
    let body = json!({
        "path": "tests/greet", "execution_pool": "shared",
        "workload": {"message": {"id": "1", "data": "hi"}, "source": "nats"},
    });
    let (status, body) = post(&app, "/api/execute", body.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    reads(&body, &[("execution_id", As::TextId)]);
    app.close().await;
}

#[tokio::test]
async fn a_session_token_is_sent_in_two_headers() {
    let app = guarded_app().await;
    let request = TokenRequest { name: "cli".into(), role: Role::Admin, lasts: None, pool: None };
    let made =
        app.control.secrets.tokens.create(&Tenant::default(), request).await.expect("a token");
    let bearer = format!("Bearer {}", made.1);
    let asked = get(&app, "/api/executions").header("authorization", &bearer);
    assert_eq!(asked.header("x-session-token", &made.1).answer().await.0, 200);
    let asked = get(&app, "/api/executions").header("x-session-token", &made.1);
    assert_eq!(asked.answer().await.0, 200);
    let (status, body) = get(&app, "/api/executions").answer().await;
    assert_eq!((status, &body["code"]), (401, &"not_authenticated".into()));
    let login = r#"{"auth0_token":"x","session_duration_hours":8}"#;
    let (status, body) = post(&app, "/api/auth/login", login).answer().await;
    assert_eq!((status, &body["code"]), (501, &"not_built".into()));
    app.close().await;
}
