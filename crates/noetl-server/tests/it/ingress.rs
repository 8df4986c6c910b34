//! Listeners as gateways read them, on every store.

use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{get, post, register, shown};
use crate::stores::{TOKEN, on_every_store};

async fn ingress(app: &TestApp, listener: &str) -> (u16, Value) {
    let path = format!("/api/internal/ingress/{listener}");
    get(app, &path).header("authorization", &format!("Bearer {TOKEN}")).answer().await
}

/// A push subscription at this path.
fn document(path: &str, gateway_path: &str, verify: &str, more: &str) -> String {
    format!(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: orders, path: {path}}}\n\
         spec:\n  source: webhook\n  mode: push\n  dispatch: {{playbook: tests/greet, execution_pool: sub}}\n  \
         ingress: {{gateway_path: {gateway_path}, verify: {verify}}}\n{more}"
    )
}

const HMAC: &str = "{type: hmac_sha256, header: X-Signature, secret: hook}";

async fn keep(app: &TestApp, name: &str, data: Value) {
    let body = json!({"name": name, "type": "t", "data": data}).to_string();
    assert_eq!(post(app, "/api/credentials", body).answer().await.0, 200);
}

async fn catalogued(app: &TestApp, document: &str) -> Value {
    let (status, body) = register(app, document).await;
    assert_eq!(status, 200, "{body}");
    body["warnings"].clone()
}

/// Registers what has errors too, as older servers did.
async fn forced(app: &TestApp, document: &str) {
    let body = json!({ "content": document }).to_string();
    let (status, body) = post(app, "/api/catalog/register?force=true", body).answer().await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_is_returned_with_its_secret_and_registers_its_subscription() {
    on_every_store(async |app| {
        keep(app, "hook", json!({"token": "s3cret"})).await;
        let headers = "  headers:\n    directives:\n      - {header: x-noetl-route, controls: dispatch.playbook, allowed: [tests/greet]}\n";
        catalogued(app, &document("sub/orders", "/in/orders/", HMAC, headers)).await;
        let (status, first) = ingress(app, "orders").await;
        insta::allow_duplicates! {
            assert_snapshot!(shown(status, first.clone()), @r#"
            200
            {
              "listener": "orders",
              "catalog_path": "sub/orders",
              "source": "webhook",
              "subscription_id": "[id]",
              "verify": {
                "type": "hmac_sha256",
                "header": "x-signature",
                "secret": "s3cret"
              },
              "dispatch": {
                "playbook": "tests/greet",
                "payload_from": "message.json",
                "execution_pool": "sub"
              },
              "directives": {
                "directives": [
                  {
                    "header": "x-noetl-route",
                    "controls": "dispatch.playbook",
                    "allowed": [
                      "tests/greet"
                    ]
                  }
                ]
              }
            }
            "#);
        }
        assert_eq!(ingress(app, "orders").await.1, first);
        let (_, listed) = get(app, "/api/subscriptions").answer().await;
        assert_eq!(listed["subscriptions"].as_array().map(Vec::len), Some(1));
        assert_eq!(listed["subscriptions"][0]["subscription_id"], first["subscription_id"]);
        // Its state is not looked at, and a newer version of its document counts at once.
        let id = first["subscription_id"].as_str().expect("an id");
        for action in ["activate", "pause"] {
            post(app, &format!("/api/subscriptions/{id}/{action}"), "").answer().await;
        }
        let oidc = "{type: pubsub_oidc, audience: aud, service_account: me@x}";
        let newer = document("sub/orders", "/in/orders", oidc, "").replace("execution_pool: sub", "payload_from: message.body");
        catalogued(app, &newer).await;
        let (status, second) = ingress(app, "orders").await;
        insta::allow_duplicates! {
            assert_snapshot!(shown(status, second.clone()), @r#"
            200
            {
              "listener": "orders",
              "catalog_path": "sub/orders",
              "source": "webhook",
              "subscription_id": "[id]",
              "verify": {
                "type": "pubsub_oidc",
                "audience": "aud",
                "service_account": "me@x"
              },
              "dispatch": {
                "playbook": "tests/greet",
                "payload_from": "message.body"
              }
            }
            "#);
        }
        assert_eq!(second["subscription_id"], first["subscription_id"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_listener_by_path_is_returned_and_unreadable_ones_are_skipped() {
    on_every_store(async |app| {
        keep(app, "hook", json!("bare")).await;
        let bearer = "{type: bearer, secret: hook}";
        assert_eq!(catalogued(app, &document("sub/z", "/in/orders", bearer, "")).await, json!([]));
        let warned = catalogued(app, &document("sub/b", "/other/orders", bearer, "")).await;
        assert_eq!(warned[0]["code"], "W115", "{warned}");
        assert_eq!(warned[0]["severity"], "warning");
        assert!(warned[0]["message"].as_str().is_some_and(|message| message.contains("'sub/z'")));
        let again = catalogued(app, &document("sub/b", "/other/orders", bearer, "")).await;
        assert_eq!(again[0]["message"], warned[0]["message"], "its own versions are no others");
        forced(
            app,
            "kind: Subscription\nmetadata: {path: sub/a}\nspec: {ingress: {gateway_path: 7}}\n",
        )
        .await;
        let (status, body) = ingress(app, "orders").await;
        assert_eq!((status, &body["catalog_path"]), (200, &"sub/b".into()), "{body}");
        assert_eq!(body["verify"], json!({"type": "bearer", "secret": "bare"}));
        // The newest version counts: a listener with a new path is not returned for the old one.
        catalogued(app, &document("sub/b", "/other/moved", bearer, "")).await;
        assert_eq!(ingress(app, "orders").await.1["catalog_path"], "sub/z");
        let (status, _) = ingress(app, "moved").await;
        assert_eq!(status, 200);
        for name in ["Orders", "order", "in", "other"] {
            let (status, body) = ingress(app, name).await;
            let message = format!("No push subscription for ingress listener '{name}'");
            assert_eq!((status, &body["error"]), (404, &message.into()));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_cannot_be_verified_is_refused_and_registers_nothing() {
    on_every_store(async |app| {
        keep(app, "numbers", json!({"secret": 7, "value": ""})).await;
        for (number, verify, status, expected) in [
            (1, "{type: bearer, secret: nope}", 404, "Credential 'nope' not found"),
            (
                2,
                "{type: bearer, secret: numbers}",
                422,
                "Credential 'numbers' holds no secret text",
            ),
            (
                3,
                "{type: bearer}",
                422,
                "Subscription 'sub/3' has no usable 'ingress.verify.secret'",
            ),
            (
                4,
                "{type: hmac_sha256, secret: numbers}",
                422,
                "Subscription 'sub/4' has no usable 'ingress.verify.header'",
            ),
            (5, "{type: none}", 422, "Subscription 'sub/5' has no usable 'ingress.verify.type'"),
            (6, "{}", 422, "Subscription 'sub/6' has no usable 'ingress.verify.type'"),
            (
                7,
                "{type: pubsub_oidc, audience: a}",
                422,
                "Subscription 'sub/7' has no usable 'ingress.verify.service_account'",
            ),
        ] {
            let path = format!("sub/{number}");
            forced(app, &document(&path, &format!("/in/l{number}"), verify, "")).await;
            let (actual, body) = ingress(app, &format!("l{number}")).await;
            assert_eq!((actual, &body["error"]), (status, &expected.into()), "{body}");
        }
        let no_playbook = document("sub/8", "/in/l8", "{type: bearer, secret: numbers}", "")
            .replace("playbook: tests/greet", "playbook: ''");
        forced(app, &no_playbook).await;
        assert_eq!(ingress(app, "l8").await.0, 422);
        let (_, listed) = get(app, "/api/subscriptions").answer().await;
        assert_eq!(listed["subscriptions"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn ingress_routes_return_nothing_without_the_token() {
    let app = crate::stores::app().await;
    keep(&app, "hook", json!("bare")).await;
    catalogued(&app, &document("sub/a", "/in/orders", HMAC, "")).await;
    let path = "/api/internal/ingress/orders";
    assert_eq!(get(&app, path).answer().await.0, 403);
    let wrong = get(&app, path).header("authorization", "Bearer wrong").answer().await;
    assert_eq!(wrong.0, 403);
    assert!(!wrong.1.to_string().contains("bare"));
    assert_eq!(ingress(&app, "%00").await.0, 400);
    app.store.set_down(true);
    assert_eq!(ingress(&app, "orders").await.0, 503);
    app.store.set_down(false);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_rows_of_ingress_events_are_deduplicated() {
    on_every_store(async |app| {
        keep(app, "hook", json!("bare")).await;
        catalogued(app, &document("sub/a", "/in/orders", HMAC, "")).await;
        let (_, listener) = ingress(app, "orders").await;
        let id: i64 =
            listener["subscription_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let log = app.read_log(noetl_model::ExecutionId::new(id)).await;
        let row = |event: i64, event_type: &str| {
            json!({
                "execution_id": id, "event_id": event, "event_type": event_type,
                "node_name": "ingress", "status": "APPLIED", "created_at": "2026-01-01T00:00:00Z",
            })
        };
        let rows = json!({"events": [
            row(log[0].event_id.get(), "subscription.registered"),
            row(5, "subscription.message.replayed"),
            row(6, "subscription.deactivated"),
        ]});
        let project = |rows: &Value| {
            post(app, "/api/internal/events/project", rows.to_string())
                .header("authorization", &format!("Bearer {TOKEN}"))
                .answer()
        };
        let (status, body) = project(&rows).await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(body["rejected"].as_array().map(Vec::len), Some(1), "{body}");
        assert_eq!(body["rejected"][0]["index"], 2, "{body}");
        project(&rows).await;
        let log = app.read_log(noetl_model::ExecutionId::new(id)).await;
        let types: Vec<&str> = log.iter().filter_map(|row| row.event_type.as_deref()).collect();
        assert_eq!(types, ["subscription.registered", "subscription.message.replayed"]);
        let (_, row) = get(app, &format!("/api/subscriptions/{id}")).answer().await;
        assert_eq!(row["state"], "REGISTERED");
    })
    .await;
}
