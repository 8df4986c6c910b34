//! Subscriptions over HTTP, on every store.

use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{GREET, ask, get, http, post, register, shown, started};
use crate::stores::{app, on_every_store};

/// A subscription at this path.
pub(crate) fn document(path: &str) -> String {
    format!(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: orders, path: {path}}}\n\
         spec:\n  source: nats\n  mode: pull\n  stream: orders\n  dispatch: {{playbook: tests/greet}}\n"
    )
}

async fn known(app: &TestApp, path: &str) -> String {
    let (status, body) = register(app, &document(path)).await;
    assert_eq!(status, 200, "{body}");
    let request = json!({ "path": path }).to_string();
    let (status, body) = post(app, "/api/subscriptions", request).answer().await;
    assert_eq!(status, 200, "{body}");
    body["subscription_id"].as_str().expect("an id as text").to_owned()
}

async fn act(app: &TestApp, id: &str, action: &str) -> (u16, Value) {
    post(app, &format!("/api/subscriptions/{id}/{action}"), "").answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_registered_once_per_path() {
    on_every_store(async |app| {
        register(app, &document("sub/a")).await;
        let first = post(app, "/api/subscriptions/register", r#"{"path":"sub/a"}"#).answer().await;
        insta::allow_duplicates! {
            assert_snapshot!(shown(first.0, first.1.clone()), @r#"
            200
            {
              "subscription_id": "[id]",
              "path": "sub/a",
              "catalog_id": "[id]",
              "state": "REGISTERED",
              "last_event_type": "subscription.registered",
              "updated_at": "[time]"
            }
            "#);
        }
        let updated = first.1["updated_at"].as_str().expect("a time");
        assert!(updated.ends_with("+00:00"), "{updated}");
        // A later version of the document changes nothing of what is registered.
        register(app, &document("sub/a")).await;
        let again = post(app, "/api/subscriptions", r#"{"path":"sub/a"}"#).answer().await;
        assert_eq!(again, first);
        let id = first.1["subscription_id"].as_str().expect("an id");
        assert_eq!(get(app, &format!("/api/subscriptions/{id}")).answer().await, first);
        act(app, id, "deactivate").await;
        let (_, next) = post(app, "/api/subscriptions", r#"{"path":"sub/a"}"#).answer().await;
        assert_ne!(next["subscription_id"], first.1["subscription_id"]);
        assert_ne!(next["catalog_id"], first.1["catalog_id"]);
        let (status, refused) = act(app, id, "activate").await;
        assert_eq!((status, &refused["code"]), (409, &"subscription_replaced".into()), "{refused}");
        let (_, listed) = get(app, "/api/subscriptions").answer().await;
        let listed = listed["subscriptions"].as_array().expect("a list").clone();
        let states: Vec<&Value> = listed.iter().map(|one| &one["state"]).collect();
        assert_eq!(states, ["DEACTIVATED", "REGISTERED"]);
        assert_eq!(listed[0]["subscription_id"], first.1["subscription_id"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_registrations_create_one_subscription() {
    on_every_store(async |app| {
        register(app, &document("sub/a")).await;
        let asked = (0..200).map(|_| {
            let (base, body) = (app.base.clone(), r#"{"path":"sub/a"}"#);
            tokio::spawn(async move {
                let request = http().post(format!("{base}/api/subscriptions"));
                let request = request.header("content-type", "application/json").body(body);
                let answer = request.send().await.expect("an answer");
                assert_eq!(answer.status(), 200);
                let text = answer.text().await.expect("a body");
                let body: Value = serde_json::from_str(&text).expect("JSON");
                body["subscription_id"].clone()
            })
        });
        let mut ids = Vec::new();
        for task in asked.collect::<Vec<_>>() {
            ids.push(task.await.expect("no panic"));
        }
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let (_, listed) = get(app, "/api/subscriptions").answer().await;
        assert_eq!(listed["subscriptions"].as_array().map(Vec::len), Some(1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_has_all_lifecycle_states() {
    on_every_store(async |app| {
        let id = known(app, "sub/a").await;
        for (action, state, event_type) in [
            ("activate", "ACTIVE", "subscription.activated"),
            ("activate", "ACTIVE", "subscription.activated"),
            ("pause", "PAUSED", "subscription.paused"),
            ("resume", "ACTIVE", "subscription.resumed"),
            ("drain", "DRAINING", "subscription.draining"),
            ("drain", "DRAINING", "subscription.draining"),
            ("deactivate", "DEACTIVATED", "subscription.deactivated"),
            ("activate", "ACTIVE", "subscription.activated"),
        ] {
            let (status, body) = act(app, &id, action).await;
            assert_eq!(status, 200, "{body}");
            assert_eq!(
                (&body["state"], &body["last_event_type"]),
                (&state.into(), &event_type.into())
            );
            assert_eq!(get(app, &format!("/api/subscriptions/{id}")).answer().await.1, body);
        }
        // It is no execution, whatever it looks like in the log.
        let (_, executions) = get(app, "/api/executions").answer().await;
        assert_eq!(executions["items"].as_array().or(executions.as_array()).map(Vec::len), Some(0));
        let (status, _) = get(app, &format!("/api/executions/{id}")).answer().await;
        assert_eq!(status, 404);
        let counts = app.control.triggers.subscriptions.counts().await.expect("counts");
        let counts: Vec<_> = counts.iter().map(|(state, n)| (state.as_str(), *n)).collect();
        let expected =
            [("REGISTERED", 0), ("ACTIVE", 1), ("PAUSED", 0), ("DRAINING", 0), ("DEACTIVATED", 0)];
        assert_eq!(counts, expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_action_is_refused_with_the_published_text() {
    on_every_store(async |app| {
        let ways: [(&str, &[&str], &[&str]); 5] = [
            ("REGISTERED", &[], &["pause", "resume", "drain"]),
            ("ACTIVE", &["activate"], &[]),
            ("PAUSED", &["activate", "pause"], &[]),
            ("DRAINING", &["activate", "drain"], &["activate", "pause", "resume"]),
            ("DEACTIVATED", &["deactivate"], &["pause", "resume", "drain"]),
        ];
        for (state, way, illegal) in ways {
            let id = known(app, &format!("sub/{state}")).await;
            for action in way {
                assert_eq!(act(app, &id, action).await.0, 200);
            }
            for action in illegal {
                let (status, body) = act(app, &id, action).await;
                let allowed = match *action {
                    "activate" => r#"["REGISTERED", "PAUSED", "DEACTIVATED", "ACTIVE"]"#,
                    "pause" => r#"["ACTIVE", "PAUSED"]"#,
                    "resume" => r#"["PAUSED", "ACTIVE"]"#,
                    _ => r#"["ACTIVE", "PAUSED", "DRAINING"]"#,
                };
                let message = format!(
                    "Cannot '{action}' a subscription in state '{state}' (allowed from {allowed})"
                );
                assert_eq!((status, &body["error"]), (422, &message.into()), "{body}");
            }
            let (_, after) = get(app, &format!("/api/subscriptions/{id}")).answer().await;
            assert_eq!(after["state"], state);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_if_a_subscription_accepts_messages() {
    on_every_store(async |app| {
        let id = known(app, "sub/why").await;
        let why = async || {
            let (status, body) = get(app, &format!("/api/executions/{id}/why")).answer().await;
            assert_eq!(status, 200, "{body}");
            let text = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
            let would = text(&body["waits"][0]["would_move_it"]);
            format!("{}: {}; {would}", text(&body["status"]), text(&body["summary"]))
        };
        let say = async |event: &str| {
            let report = json!({
                "execution_id": id, "step": "ingress", "event_type": event, "status": "x",
                "payload": {"reason": "nobody is there"},
            });
            let (status, body) = post(app, "/api/events", report.to_string()).answer().await;
            assert_eq!(status, 200, "{body}");
        };
        assert!(
            why().await.starts_with("REGISTERED: it was registered and has not been activated")
        );
        act(app, &id, "activate").await;
        assert!(why().await.starts_with("ACTIVE: no runtime acts on it; a runtime:"));
        let lease = json!({"holder": "w1", "ttl_secs": 60}).to_string();
        let (status, body) =
            post(app, &format!("/api/subscriptions/{id}/lease"), lease).answer().await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(why().await, "ACTIVE: runtime 'w1' takes its messages; nothing");
        say("subscription.circuit.opened").await;
        let waiting = why().await;
        assert!(waiting.contains("cannot be started: nobody is there"), "{waiting}");
        say("subscription.source.unavailable").await;
        let waiting = why().await;
        assert!(waiting.contains("does not get at its source: nobody is there"), "{waiting}");
        say("subscription.source.connected").await;
        say("subscription.circuit.closed").await;
        assert_eq!(why().await, "ACTIVE: runtime 'w1' takes its messages; nothing");
        act(app, &id, "pause").await;
        let waiting = why().await;
        assert!(waiting.contains("it is paused") && waiting.contains("resume"), "{waiting}");
        act(app, &id, "drain").await;
        assert!(why().await.starts_with("DRAINING: it takes nothing more"));
        act(app, &id, "deactivate").await;
        assert!(why().await.starts_with("DEACTIVATED: it was deactivated"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_runtimes_are_recorded_and_change_no_state() {
    on_every_store(async |app| {
        let id = known(app, "sub/a").await;
        act(app, &id, "activate").await;
        let report = |event_type: &str, event: Value| {
            json!({
                "execution_id": id, "step": "ingress", "event_type": event_type,
                "event_id": event, "status": "APPLIED", "payload": {"message_id": "m-1"},
                "worker_id": "runtime-1",
            })
            .to_string()
        };
        let say = async |text: String| post(app, "/api/events", text).answer().await;
        let (status, first) = say(report("subscription.message.spooled", Value::Null)).await;
        assert_eq!(status, 200, "{first}");
        for _ in 0..2 {
            // A repeated report with its own ID is stored once and gets the same response.
            let (status, body) = say(report("subscription.rate_limited", json!("77"))).await;
            assert_eq!((status, body["status"].as_str()), (200, Some("ok")), "{body}");
        }
        for event_type in ["subscription.deactivated", "subscription.registered", "playbook.failed"]
        {
            let (status, body) = say(report(event_type, Value::Null)).await;
            assert_eq!((status, &body["code"]), (422, &"reserved_event_type".into()), "{body}");
        }
        let (_, body) = get(app, &format!("/api/subscriptions/{id}")).answer().await;
        let state = (&body["state"], &body["last_event_type"]);
        assert_eq!(state, (&"ACTIVE".into(), &"subscription.activated".into()));
        let log = noetl_model::ExecutionId::new(id.parse().expect("an id"));
        let log = app.read_log(log).await;
        let types: Vec<&str> = log.iter().filter_map(|row| row.event_type.as_deref()).collect();
        let expected = [
            "subscription.registered",
            "subscription.activated",
            "subscription.message.spooled",
            "subscription.rate_limited",
        ];
        assert_eq!(types, expected);
        assert_eq!(
            log[2].result.as_deref(),
            Some(r#"{"status":"APPLIED","context":{"message_id":"m-1"}}"#)
        );
        let batch = json!({
            "execution_id": id,
            "events": [
                {"step": "ingress", "event_type": "subscription.circuit.opened"},
                {"step": "ingress", "event_type": "subscription.paused"},
            ],
        });
        let (status, body) = post(app, "/api/events/batch", batch.to_string()).answer().await;
        assert_eq!((status, body["rejected"].as_array().map(Vec::len)), (200, Some(1)), "{body}");
        let unknown = report("subscription.message.spooled", Value::Null).replace(&id, "7");
        let (status, body) = say(unknown).await;
        assert_eq!((status, &body["code"]), (404, &"execution_not_found".into()), "{body}");
    })
    .await;
}

#[tokio::test]
async fn an_execution_can_have_a_subscription_as_its_parent() {
    let app = app().await;
    let id = known(&app, "sub/a").await;
    register(&app, GREET).await;
    let body = json!({ "path": "tests/greet", "parent_execution_id": id }).to_string();
    let (status, body) = post(&app, "/api/execute", body).answer().await;
    assert_eq!(status, 200, "{body}");
    app.close().await;
}

#[tokio::test]
async fn invalid_subscriptions_are_reported() {
    let app = app().await;
    register(&app, GREET).await;
    let subscribe = |body: &'static str| post(&app, "/api/subscriptions", body);
    assert_snapshot!(subscribe(r#"{"path":"nope"}"#).shown().await, @r#"
    404
    {
      "error": "Subscription not found: nope",
      "status": 404,
      "code": "subscription_not_found",
      "detail": "Subscription not found: nope",
      "message": "Subscription not found: nope"
    }
    "#);
    assert_snapshot!(subscribe(r#"{"path":"tests/greet"}"#).shown().await, @r#"
    422
    {
      "error": "Catalog entry 'tests/greet' is kind 'playbook', not 'subscription'",
      "status": 422,
      "code": "not_a_subscription",
      "detail": "Catalog entry 'tests/greet' is kind 'playbook', not 'subscription'",
      "message": "Catalog entry 'tests/greet' is kind 'playbook', not 'subscription'"
    }
    "#);
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("{}", 422),
        ("[]", 422),
        (r#"{"path":7}"#, 422),
        (r#"{"path":null}"#, 422),
        (r#"{"path":""}"#, 404),
        (r#"{"path":"a\u0000b"}"#, 422),
    ] {
        let (actual, answer) = subscribe(body).answer().await;
        assert_eq!(actual, status, "{body}: {answer}");
        assert!(answer["error"].is_string(), "{body}: {answer}");
    }
    let untyped = ask(&app, reqwest::Method::POST, "/api/subscriptions").body("{}");
    assert_eq!(untyped.answer().await.0, 415);
    assert_eq!(ask(&app, reqwest::Method::DELETE, "/api/subscriptions").answer().await.0, 405);
    app.close().await;
}

#[tokio::test]
async fn invalid_subscription_ids_are_reported() {
    let app = app().await;
    assert_snapshot!(get(&app, "/api/subscriptions/7").shown().await, @r#"
    404
    {
      "error": "Subscription 7 not registered",
      "status": 404,
      "code": "subscription_not_found",
      "detail": "Subscription 7 not registered",
      "message": "Subscription 7 not registered"
    }
    "#);
    for (id, status) in [
        ("-1", 404),
        ("9223372036854775807", 404),
        ("9223372036854775808", 400),
        ("abc", 400),
        ("1.5", 400),
        ("%00", 400),
    ] {
        assert_eq!(get(&app, &format!("/api/subscriptions/{id}")).answer().await.0, status, "{id}");
        assert_eq!(act(&app, id, "pause").await.0, status, "{id}");
    }
    // An unknown action is reported before an invalid ID.
    assert_snapshot!(post(&app, "/api/subscriptions/abc/explode", "").shown().await, @r#"
    422
    {
      "error": "Unknown subscription action 'explode'",
      "status": 422,
      "code": "unknown_action",
      "detail": "Unknown subscription action 'explode'",
      "message": "Unknown subscription action 'explode'"
    }
    "#);
    assert_eq!(act(&app, "7", "Activate").await.0, 422);
    app.close().await;
}

#[tokio::test]
async fn an_execution_id_is_not_a_subscription_id() {
    let app = app().await;
    let id = started(&app).await;
    assert_eq!(get(&app, &format!("/api/subscriptions/{id}")).answer().await.0, 404);
    assert_eq!(act(&app, &id.to_string(), "activate").await.0, 404);
    app.close().await;
}

#[tokio::test]
async fn subscription_requests_fail_during_a_store_outage() {
    let app = app().await;
    let id = known(&app, "sub/a").await;
    app.store.set_down(true);
    let down = [
        post(&app, "/api/subscriptions", r#"{"path":"sub/a"}"#).answer().await,
        act(&app, &id, "activate").await,
        get(&app, &format!("/api/subscriptions/{id}")).answer().await,
        get(&app, "/api/subscriptions").answer().await,
    ];
    for (status, body) in down {
        assert_eq!((status, &body["code"]), (503, &"store_unavailable".into()), "{body}");
    }
    app.store.set_down(false);
    app.close().await;
}

#[tokio::test]
async fn a_subscription_document_is_checked_when_it_is_registered() {
    let app = app().await;
    let wrong = document("sub/a").replace("mode: pull", "mode: push").replace("nats", "natz");
    let (status, body) = register(&app, &wrong).await;
    assert_eq!((status, &body["code"]), (422, &"invalid_document".into()), "{body}");
    let diagnostics: Vec<_> = body["diagnostics"].as_array().expect("findings").iter().collect();
    let codes: Vec<&Value> = diagnostics.iter().map(|diagnostic| &diagnostic["code"]).collect();
    assert_eq!(codes, ["E080", "E081"], "{body}");
    let forced = json!({ "content": wrong }).to_string();
    let (status, _) = post(&app, "/api/catalog/register?force=true", forced).answer().await;
    assert_eq!(status, 200);
    // What others registered without a check can still be told from other kinds.
    let (status, _) = post(&app, "/api/subscriptions", r#"{"path":"sub/a"}"#).answer().await;
    assert_eq!(status, 200);
    app.close().await;
}
