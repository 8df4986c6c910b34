//! Remote runtimes of a subscription, on every store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{get, post, register};
use crate::stores::on_every_store;
use crate::subscriptions::document;

async fn known(app: &TestApp) -> String {
    register(app, &document("sub/a")).await;
    let (_, body) = post(app, "/api/subscriptions", r#"{"path":"sub/a"}"#).answer().await;
    body["subscription_id"].as_str().expect("an id as text").to_owned()
}

async fn ask(app: &TestApp, id: &str, what: &str, body: Value) -> (u16, Value) {
    post(app, &format!("/api/subscriptions/{id}/{what}"), body.to_string()).answer().await
}

async fn lease(app: &TestApp, id: &str, holder: &str) -> (bool, bool) {
    let (status, body) = ask(app, id, "lease", json!({"holder": holder, "ttl_secs": 60})).await;
    assert_eq!((status, &body["subscription_id"]), (200, &json!(id)), "{body}");
    (
        body["held"].as_bool().expect("a truth value"),
        body["awaited"].as_bool().expect("a truth value"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn one_runtime_has_the_lease_and_others_wait() {
    on_every_store(async |app| {
        let id = known(app).await;
        assert_eq!(lease(app, &id, "a").await, (true, false));
        assert_eq!(lease(app, &id, "b").await, (false, false));
        assert_eq!(lease(app, &id, "a").await, (true, true), "it goes on, and hears of b");
        let (status, body) = ask(app, &id, "release", json!({"holder": "b"})).await;
        assert_eq!((status, &body["state"]), (200, &json!("REGISTERED")), "{body}");
        assert_eq!(lease(app, &id, "a").await, (true, false), "b waits no more");
        ask(app, &id, "release", json!({"holder": "b"})).await;
        assert_eq!(lease(app, &id, "b").await, (false, false), "only its own is given back");
        ask(app, &id, "release", json!({"holder": "a"})).await;
        assert_eq!(lease(app, &id, "b").await, (true, false));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_of_a_subscription_runtime_are_on_the_metrics_page() {
    on_every_store(async |app| {
        let id = known(app).await;
        let counts = json!({"received": 5, "dispatched": 3, "dead_lettered": 1});
        let body = json!({"holder": "a", "ttl_secs": 60, "backlog": 42, "counts": counts});
        let (status, answer) = ask(app, &id, "lease", body.clone()).await;
        assert_eq!(status, 200, "{answer}");
        ask(app, &id, "lease", json!({"holder": "b", "ttl_secs": 60, "backlog": 7})).await;
        let page = app.control.journal.metrics.text();
        for line in [
            "noetl_subscription_backlog{subscription=\"sub/a\"} 42",
            "noetl_subscription_messages_total{outcome=\"received\",subscription=\"sub/a\"} 5",
            "noetl_subscription_messages_total{outcome=\"dead_lettered\",subscription=\"sub/a\"} 1",
        ] {
            assert!(page.lines().any(|rendered| rendered == line), "{line}\n{page}");
        }
        ask(app, &id, "release", json!({"holder": "a"})).await;
        assert!(!app.control.journal.metrics.text().contains("noetl_subscription_backlog{"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_stored_completely_and_recorded() {
    on_every_store(async |app| {
        let id = known(app).await;
        let letter = json!({
            "message_id": "m1", "code": "too_large", "reason": "it is", "attempts": 2,
            "headers": {"a": "b"}, "metadata": {"subject": "orders"},
            "body_base64": STANDARD.encode([0_u8, 255, 7]),
        });
        let (status, body) = ask(app, &id, "dead-letters", letter.clone()).await;
        assert_eq!(status, 200, "{body}");
        let key = body["object"].as_str().unwrap();
        let object = app.control.data.objects.get(None, key).await.unwrap();
        assert_eq!(object.bytes, [0, 255, 7]);
        let (_, again) = ask(app, &id, "dead-letters", letter).await;
        assert_eq!(again["object"], key, "the same message has the same object");
        let (_, log) =
            get(app, &format!("/api/subscriptions/{id}/events?limit=1000")).answer().await;
        let events = log["events"].as_array().expect("a log");
        let events: Vec<&Value> = events
            .iter()
            .filter(|event| event["event_type"] == "subscription.message.dead_lettered")
            .collect();
        assert_eq!(events.len(), 2, "{log}");
        let text = events[0].to_string();
        assert!(text.contains("too_large") && text.contains(key), "{text}");
        let (_, status) = get(app, &format!("/api/subscriptions/{id}")).answer().await;
        assert_eq!(status["state"], "REGISTERED", "its state is not touched");
        let (_, first) =
            get(app, &format!("/api/subscriptions/{id}/events?limit=1")).answer().await;
        assert_eq!(first["events"][0]["event_type"], "subscription.registered");
        assert_eq!((&first["next_after"], &first["has_more"]), (&json!(1), &json!(true)));
        let rest = get(app, &format!("/api/subscriptions/{id}/events?after=1")).answer().await.1;
        assert_eq!((&rest["events"][1]["seq"], &rest["has_more"]), (&json!(3), &json!(false)));
        assert_eq!(get(app, "/api/subscriptions/4711/events").answer().await.0, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_reports_of_a_runtime_are_rejected_by_name() {
    on_every_store(async |app| {
        let id = known(app).await;
        let long = "h".repeat(201);
        for (what, body, status, code) in [
            ("lease", json!({"holder": "", "ttl_secs": 5}), 422, "invalid_holder"),
            ("lease", json!({"holder": long, "ttl_secs": 5}), 422, "invalid_holder"),
            ("lease", json!({"holder": "a\nb", "ttl_secs": 5}), 422, "invalid_holder"),
            ("lease", json!({"holder": "a", "ttl_secs": 0}), 422, "invalid_lease"),
            ("lease", json!({"holder": "a", "ttl_secs": 301}), 422, "invalid_lease"),
            ("release", json!({"holder": ""}), 422, "invalid_holder"),
            (
                "dead-letters",
                json!({"message_id": "m", "code": "c", "reason": "r", "body_base64": "%"}),
                422,
                "invalid_body",
            ),
        ] {
            let (actual, answer) = ask(app, &id, what, body).await;
            assert_eq!((actual, &answer["code"]), (status, &json!(code)), "{what}: {answer}");
        }
        let letter = json!({"message_id": "m", "code": "c", "reason": "r", "body_base64": ""});
        for (what, body) in [
            ("lease", json!({"holder": "a", "ttl_secs": 5})),
            ("release", json!({"holder": "a"})),
            ("dead-letters", letter),
        ] {
            let (actual, answer) = ask(app, "4711", what, body).await;
            assert_eq!(actual, 404, "{what}: {answer}");
        }
    })
    .await;
}
