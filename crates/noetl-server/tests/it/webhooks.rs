//! Messages that are handed to the server itself: who is let in, who is not, and what becomes of
//! them, on every store.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, Mac as _};
use insta::assert_snapshot;
use noetl_test_app::{SimClock, TestApp};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::api::{GREET, get, http, post, register, shown};
use crate::stores::{key, on_every_store};

/// A push subscription with this verification and more of its `spec`.
pub(crate) fn document(listener: &str, verify: &str, more: &str) -> String {
    format!(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: {listener}, path: sub/{listener}}}\n\
         spec:\n  source: webhook\n  mode: push\n  dispatch: {{playbook: tests/greet}}\n  \
         ingress: {{gateway_path: /ingress/{listener}, verify: {verify}}}\n{more}"
    )
}

const HMAC: &str = "{type: hmac_sha256, header: X-Signature, secret: hook}";
const TIMED: &str = "{type: hmac_sha256, header: X-Signature, secret: hook, timestamp_header: X-Time, tolerance_secs: 60}";
/// Every message counts, also one that repeats another.
const EVERY: &str = "  dedup: {enabled: false}\n";
pub(crate) const BEARER: &str = "{type: bearer, secret: hook}";
pub(crate) const SECRET: &str = "s3cret";

/// Registers the playbook, the secret and one subscription.
pub(crate) async fn set_up(app: &TestApp, document: &str) {
    let credential = json!({"name": "hook", "type": "t", "data": {"secret": SECRET}}).to_string();
    assert_eq!(post(app, "/api/credentials", credential).answer().await.0, 200);
    for text in [GREET, document] {
        let (status, body) = register(app, text).await;
        assert_eq!(status, 200, "{body}");
    }
}

fn mac(secret: &str, signed: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
    mac.update(signed);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hands over a body with these headers.
async fn send(
    app: &TestApp,
    listener: &str,
    headers: &[(&str, &str)],
    body: impl Into<Vec<u8>>,
) -> (u16, Value) {
    let mut request = http().post(format!("{}/ingress/{listener}", app.base)).body(body.into());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    if status == 429 || status == 503 {
        assert_eq!(response.headers()["retry-after"], "1");
    }
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Hands over a signed body of JSON.
async fn signed(app: &TestApp, listener: &str, body: &str) -> (u16, Value) {
    let signature = hex(&mac(SECRET, body.as_bytes()));
    let headers = [("x-signature", signature.as_str()), ("content-type", "application/json")];
    send(app, listener, &headers, body).await
}

async fn executions(app: &TestApp) -> usize {
    let (_, list) = get(app, "/api/executions?limit=100").answer().await;
    list.as_array().map_or(0, Vec::len)
}

/// The workload of the execution an answer names.
async fn workload(app: &TestApp, answer: &Value) -> Value {
    let id = answer["execution_id"].as_str().expect("an id");
    let id = id.parse().expect("a number");
    let log = app.read_log(noetl_model::ExecutionId::new(id)).await;
    let first = log.first().expect("a beginning");
    let context = first.context.as_deref().expect("a context");
    serde_json::from_str::<Value>(context).expect("JSON")["workload"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_message_starts_an_execution_with_its_payload_and_headers() {
    on_every_store(async |app| {
        let more = "  dedup: {enabled: false}\n  headers:\n    unsigned: true\n    directives:\n      - {header: X-Key, controls: idempotency_key}\n";
        set_up(app, &document("orders", HMAC, more)).await;
        let body = r#"{"who": "Ada", "message": "mine", "n": 1}"#;
        let right = mac(SECRET, body.as_bytes());
        let hexed = hex(&right);
        for shown in
            [hexed.clone(), format!("sha256={hexed}"), hexed.to_uppercase(), BASE64_STANDARD.encode(&right)]
        {
            let headers = [("x-signature", &*shown), ("x-key", "k1"), ("webhook-id", "m1"), ("cookie", "c")];
            let (status, answer) = send(app, "orders", &headers, body).await;
            assert_eq!((status, &answer["status"]), (202, &json!("accepted")), "{shown}: {answer}");
            let mut seen = workload(app, &answer).await;
            seen["message"]["metadata"]["received_at"] = json!("[time]");
            for at in ["/message/headers", "/message/attributes"] {
                let headers = seen.pointer_mut(at).and_then(Value::as_object_mut);
                let headers = headers.expect("headers");
                for secret in ["x-signature", "cookie", "authorization"] {
                    assert!(!headers.contains_key(secret), "{secret} is in the log");
                }
                headers.retain(|name, _| name.starts_with("x-") || name == "webhook-id");
            }
            insta::allow_duplicates! {
                assert_snapshot!(serde_json::to_string_pretty(&seen).expect("JSON"), @r#"
                {
                  "who": "Ada",
                  "message": {
                    "id": "m1",
                    "data": {
                      "who": "Ada",
                      "message": "mine",
                      "n": 1
                    },
                    "headers": {
                      "webhook-id": "m1",
                      "x-key": "k1"
                    },
                    "attributes": {
                      "webhook-id": "m1",
                      "x-key": "k1"
                    },
                    "metadata": {
                      "listener": "orders",
                      "received_at": "[time]",
                      "directives": {
                        "idempotency_key": "k1"
                      }
                    }
                  },
                  "subscription": "sub/orders",
                  "source": "webhook",
                  "idempotency_key": "k1",
                  "n": 1
                }
                "#);
            }
        }
        assert_eq!(executions(app).await, 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_that_is_wrong_absent_or_malformed_starts_nothing() {
    on_every_store(async |app| {
        set_up(app, &document("orders", HMAC, "")).await;
        let body = r#"{"who":"Ada"}"#;
        let right = hex(&mac(SECRET, body.as_bytes()));
        let other = hex(&mac("another", body.as_bytes()));
        let changed = r#"{"who":"Eve"}"#;
        let twice = [("x-signature", right.as_str()), ("x-signature", right.as_str())];
        let mut answers = String::new();
        for (why, headers, body) in [
            ("absent", vec![], body),
            ("another secret", vec![("x-signature", other.as_str())], body),
            ("another body", vec![("x-signature", right.as_str())], changed),
            ("empty body", vec![("x-signature", right.as_str())], ""),
            ("no hex", vec![("x-signature", "sha256=xyz")], body),
            ("cut", vec![("x-signature", &right[..62])], body),
            ("empty", vec![("x-signature", "")], body),
            ("twice", twice.to_vec(), body),
            ("in another header", vec![("x-hub-signature", right.as_str())], body),
            ("a token", vec![("authorization", "Bearer s3cret")], body),
        ] {
            let (status, answer) = send(app, "orders", &headers, body).await;
            answers
                .push_str(&format!("{why}: {status} {} | {}\n", answer["code"], answer["error"]));
        }
        insta::allow_duplicates! {
            assert_snapshot!(answers, @r#"
            absent: 401 "signature_missing" | "the header 'x-signature' is missing"
            another secret: 401 "signature_wrong" | "the signature is not that of the body"
            another body: 401 "signature_wrong" | "the signature is not that of the body"
            empty body: 401 "signature_wrong" | "the signature is not that of the body"
            no hex: 401 "signature_malformed" | "the header 'x-signature' holds no HMAC-SHA256 in hex or base64"
            cut: 401 "signature_malformed" | "the header 'x-signature' holds no HMAC-SHA256 in hex or base64"
            empty: 401 "signature_malformed" | "the header 'x-signature' holds no HMAC-SHA256 in hex or base64"
            twice: 401 "signature_malformed" | "the header 'x-signature' holds no HMAC-SHA256 in hex or base64"
            in another header: 401 "signature_missing" | "the header 'x-signature' is missing"
            a token: 401 "signature_missing" | "the header 'x-signature' is missing"
            "#);
        }
        assert_eq!(executions(app).await, 0);
        // Unauthenticated senders can't register a subscription.
        let (_, listed) = get(app, "/api/subscriptions").answer().await;
        assert_eq!(listed["subscriptions"], json!([]));
        assert_eq!(signed(app, "orders", body).await.0, 202);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_compared_with_the_secret() {
    on_every_store(async |app| {
        set_up(app, &document("orders", BEARER, "")).await;
        let mut answers = String::new();
        for headers in [
            vec![],
            vec![("authorization", "Bearer wrong")],
            vec![("authorization", "Bearer s3cre")],
            vec![("authorization", "Bearer s3crets")],
            vec![("authorization", "Bearer ")],
            vec![("authorization", "Basic s3cret")],
            vec![("authorization", "s3cret")],
            vec![("authorization", "Bearer s3cret"), ("authorization", "Bearer s3cret")],
            vec![("x-session-token", "s3cret")],
        ] {
            let (status, answer) = send(app, "orders", &headers, "{}").await;
            answers.push_str(&format!("{headers:?}: {status} {}\n", answer["code"]));
        }
        insta::allow_duplicates! {
            assert_snapshot!(answers, @r#"
            []: 401 "token_missing"
            [("authorization", "Bearer wrong")]: 401 "token_wrong"
            [("authorization", "Bearer s3cre")]: 401 "token_wrong"
            [("authorization", "Bearer s3crets")]: 401 "token_wrong"
            [("authorization", "Bearer ")]: 401 "token_malformed"
            [("authorization", "Basic s3cret")]: 401 "token_malformed"
            [("authorization", "s3cret")]: 401 "token_malformed"
            [("authorization", "Bearer s3cret"), ("authorization", "Bearer s3cret")]: 401 "token_malformed"
            [("x-session-token", "s3cret")]: 401 "token_missing"
            "#);
        }
        assert_eq!(executions(app).await, 0);
        for right in ["Bearer s3cret", "bearer   s3cret "] {
            let (status, answer) = send(app, "orders", &[("authorization", right)], "").await;
            assert_eq!(status, 202, "{answer}");
            assert!(!workload(app, &answer).await.to_string().contains(SECRET));
        }
    })
    .await;
}

/// Signs a body with a time.
fn timed(time: i64, body: &str) -> [(&'static str, String); 2] {
    let signature = hex(&mac(SECRET, format!("{time}.{body}").as_bytes()));
    [("x-signature", format!("sha256={signature}")), ("x-time", time.to_string())]
}

async fn send_timed(app: &TestApp, time: i64, body: &str) -> (u16, Value) {
    let headers = timed(time, body);
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    send(app, "orders", &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_with_a_time_counts_once_and_within_its_window() {
    on_every_store(async |app| {
        set_up(app, &document("orders", TIMED, "")).await;
        let now = app.control.now().as_millis() / 1000;
        let (status, first) = send_timed(app, now, "{}").await;
        assert_eq!((status, &first["status"]), (202, &json!("accepted")), "{first}");
        // The same again is the same execution, whatever else was changed.
        let headers = timed(now, "{}");
        let mut changed: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        changed.push(("webhook-id", "another"));
        let (status, again) = send(app, "orders", &changed, "{}").await;
        assert_eq!((status, &again["status"]), (200, &json!("duplicate")));
        assert_eq!(again["execution_id"], first["execution_id"]);
        // A different time is a different message, because deduplication is not configured.
        let (_, other) = send_timed(app, now - 1, "{}").await;
        assert_eq!(other["status"], "accepted");
        assert_eq!(executions(app).await, 2);
        let mut answers = String::new();
        for (why, status, answer) in [
            ("old", send_timed(app, now - 3600, "{}").await),
            ("ahead", send_timed(app, now + 3600, "{}").await),
            ("no time", signed(app, "orders", "{}").await),
        ]
        .map(|(why, (status, answer))| (why, status, answer))
        {
            answers.push_str(&format!("{why}: {status} {}\n", answer["code"]));
        }
        for (why, time) in [("another time", (now - 5).to_string()), ("words", "now".to_owned())] {
            let signature = timed(now, "{}")[0].1.clone();
            let headers = [("x-signature", &*signature), ("x-time", &*time)];
            let (status, answer) = send(app, "orders", &headers, "{}").await;
            answers.push_str(&format!("{why}: {status} {}\n", answer["code"]));
        }
        insta::allow_duplicates! {
            assert_snapshot!(answers, @r#"
            old: 401 "timestamp_outside_window"
            ahead: 401 "timestamp_outside_window"
            no time: 401 "timestamp_missing"
            another time: 401 "signature_wrong"
            words: 401 "timestamp_malformed"
            "#);
        }
        assert_eq!(executions(app).await, 2);
    })
    .await;
}

/// A subscription of which headers decide the playbook and the key.
const DIRECTED: &str = "  headers:\n    directives:\n      \
    - {header: X-Route, controls: dispatch.playbook, allowed: [tests/other]}\n      \
    - {header: X-Key, controls: idempotency_key}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_signature_starts_nothing_despite_other_headers() {
    on_every_store(async |app| {
        for (listener, more) in [
            ("orders", DIRECTED.to_owned()),
            ("deduped", format!("  dedup: {{enabled: true, window_secs: 60}}\n{DIRECTED}")),
        ] {
            set_up(app, &document(listener, HMAC, &more)).await;
            let body = json!({ "for": listener }).to_string();
            let signature = hex(&mac(SECRET, body.as_bytes()));
            let (status, first) =
                send(app, listener, &[("x-signature", &*signature)], &*body).await;
            assert_eq!((status, &first["status"]), (202, &json!("accepted")), "{first}");
            let others = [
                vec![],
                vec![("webhook-id", "another")],
                vec![("x-key", "another"), ("idempotency-key", "another")],
                vec![("x-route", "tests/other")],
            ];
            for other in others {
                let headers: Vec<_> =
                    [("x-signature", &*signature)].into_iter().chain(other).collect();
                let (status, again) = send(app, listener, &headers, &*body).await;
                assert_eq!((status, &again["status"]), (200, &json!("duplicate")), "{again}");
                assert_eq!(again["execution_id"], first["execution_id"]);
            }
            // Another body is another message.
            assert_eq!(signed(app, listener, r#"{"n":2}"#).await.0, 202);
            let id = first["subscription_id"].as_str().and_then(|id| id.parse().ok());
            let log = app.read_log(noetl_model::ExecutionId::new(id.expect("an ID"))).await;
            assert!(log.len() < 4, "repeats fill no log: {}", log.len());
        }
        assert_eq!(executions(app).await, 4);
        let page = app.control.journal.metrics.text();
        assert!(page.lines().any(|line| line == "noetl_webhook_replays_total 8"), "{page}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_headers_are_ignored_unless_the_document_permits_them() {
    on_every_store(async |app| {
        let trusting = DIRECTED.replace("headers:\n", "headers:\n    unsigned: true\n");
        for (listener, more, path, id) in [
            ("orders", DIRECTED, "tests/greet", None),
            ("trusting", &*trusting, "tests/other", Some("m1")),
        ] {
            set_up(app, &document(listener, HMAC, more)).await;
            register(app, &GREET.replace("tests/greet", "tests/other")).await;
            let body = "{}";
            let signature = hex(&mac(SECRET, body.as_bytes()));
            let headers = [
                ("x-signature", &*signature),
                ("x-route", "tests/other"),
                ("x-key", "k"),
                ("webhook-id", "m1"),
            ];
            let (status, answer) = send(app, listener, &headers, body).await;
            assert_eq!(status, 202, "{answer}");
            let execution = answer["execution_id"].as_str().expect("an ID");
            let (_, row) = get(app, &format!("/api/executions/{execution}")).answer().await;
            assert_eq!(row["path"], path);
            let seen = workload(app, &answer).await;
            assert_eq!(seen["idempotency_key"] == "k", id.is_some(), "{seen}");
            assert_eq!(seen["message"]["id"] == "m1", id.is_some(), "{seen}");
            assert_eq!(seen["message"]["headers"]["webhook-id"], "m1", "they are shown");
        }
    })
    .await;
}

#[tokio::test]
async fn a_captured_message_is_refused_after_its_window() {
    let clock = Arc::new(SimClock::default());
    let app = TestApp::builder().slots(0).encryption_key(key()).clock(clock.clone()).start().await;
    set_up(&app, &document("orders", TIMED, "")).await;
    let at = app.control.now().as_millis() / 1000;
    assert_eq!(send_timed(&app, at, "{}").await.0, 202);
    clock.advance(Duration::from_secs(60));
    assert_eq!(send_timed(&app, at, "{}").await.1["status"], "duplicate");
    clock.advance(Duration::from_secs(1));
    let (status, answer) = send_timed(&app, at, "{}").await;
    assert_eq!((status, &answer["code"]), (401, &json!("timestamp_outside_window")));
    assert_eq!(executions(&app).await, 1);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_signatures_are_verified() {
    on_every_store(async |app| {
        let verify = "{type: hmac_sha256, header: X-Slack-Signature, secret: hook, prefix: v0=, \
                      timestamp_header: X-Slack-Request-Timestamp, signed: 'v0:{timestamp}:{body}'}";
        set_up(app, &document("orders", verify, "")).await;
        let time = (app.control.now().as_millis() / 1000).to_string();
        let body = "token=x&text=hello";
        let signature = format!("v0={}", hex(&mac(SECRET, format!("v0:{time}:{body}").as_bytes())));
        let headers = [
            ("x-slack-signature", &*signature),
            ("x-slack-request-timestamp", &*time),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let (status, answer) = send(app, "orders", &headers, body).await;
        assert_eq!(status, 202, "{answer}");
        assert_eq!(workload(app, &answer).await["body"], body);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_messages_within_the_window_return_the_first_execution() {
    on_every_store(async |app| {
        let more = "  dedup: {enabled: true, window_secs: 60}\n  headers:\n    directives:\n      - {header: X-Key, controls: idempotency_key}\n";
        set_up(app, &document("orders", BEARER, more)).await;
        let token = ("authorization", "Bearer s3cret");
        let first = send(app, "orders", &[token, ("webhook-id", "m1")], "{}").await.1;
        assert_eq!(first["status"], "accepted");
        // Concurrent requests, like those of a sender that gets no response.
        let sends = (0..8).map(|_| send(app, "orders", &[("authorization", "Bearer s3cret"), ("webhook-id", "m1")], "{}"));
        for (status, again) in futures::future::join_all(sends).await {
            assert_eq!((status, &again["status"]), (202, &json!("duplicate")), "{again}");
            assert_eq!(again["execution_id"], first["execution_id"]);
        }
        let key = |key: &'static str, id: &'static str| [token, ("x-key", key), ("webhook-id", id)];
        let second = send(app, "orders", &key("k", "m2"), "{}").await.1;
        let third = send(app, "orders", &key("k", "m3"), "{}").await.1;
        assert_eq!((&third["status"], &third["execution_id"]), (&json!("duplicate"), &second["execution_id"]));
        // Without a name, the same bytes are the same message.
        let plain = |body: &'static str| send(app, "orders", &[("authorization", "Bearer s3cret")], body);
        assert_eq!(plain("a").await.1["status"], "accepted");
        assert_eq!(plain("a").await.1["status"], "duplicate");
        assert_eq!(plain("b").await.1["status"], "accepted");
        assert_eq!(executions(app).await, 4);
        let page = app.control.journal.metrics.text();
        for (outcome, count) in [("received", 14), ("dispatched", 4), ("duplicate", 10), ("failed", 0)] {
            let line = format!(
                "noetl_subscription_messages_total{{outcome=\"{outcome}\",subscription=\"sub/orders\"}} {count}"
            );
            assert!(page.lines().any(|rendered| rendered == line), "{line}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inactive_subscription_accepts_no_messages() {
    on_every_store(async |app| {
        set_up(app, &document("orders", HMAC, EVERY)).await;
        let (_, first) = signed(app, "orders", "{}").await;
        let id = first["subscription_id"].as_str().expect("an id").to_owned();
        let act = async |action: &str| {
            let (status, body) =
                post(app, &format!("/api/subscriptions/{id}/{action}"), "").answer().await;
            assert_eq!(status, 200, "{body}");
        };
        act("activate").await;
        assert_eq!(signed(app, "orders", "{}").await.0, 202);
        act("pause").await;
        let (status, answer) = signed(app, "orders", "{}").await;
        insta::allow_duplicates! {
            assert_snapshot!(shown(status, answer), @r#"
            503
            {
              "error": "Subscription 'sub/orders' is PAUSED and accepts no messages",
              "status": 503,
              "code": "subscription_not_taking",
              "detail": "Subscription 'sub/orders' is PAUSED and accepts no messages",
              "message": "Subscription 'sub/orders' is PAUSED and accepts no messages"
            }
            "#);
        }
        // Unauthenticated senders don't learn the state.
        assert_eq!(send(app, "orders", &[], "{}").await.0, 401);
        act("resume").await;
        assert_eq!(signed(app, "orders", "{}").await.0, 202);
        for action in ["drain", "deactivate"] {
            act(action).await;
            let (status, answer) = signed(app, "orders", "{}").await;
            assert_eq!((status, &answer["code"]), (503, &json!("subscription_not_taking")));
        }
        let (_, listed) = get(app, "/api/subscriptions").answer().await;
        assert_eq!(listed["subscriptions"].as_array().map(Vec::len), Some(1), "it stays over");
        // A new registration creates another subscription.
        post(app, "/api/subscriptions", r#"{"path":"sub/orders"}"#).answer().await;
        let (status, answer) = signed(app, "orders", "{}").await;
        assert_eq!(status, 202, "{answer}");
        assert_ne!(answer["subscription_id"], id.as_str());
        assert_eq!(executions(app).await, 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_control_only_permitted_directives() {
    on_every_store(async |app| {
        let more = "  headers:\n    directives:\n      \
            - {header: X-Route, controls: dispatch.playbook, allowed: [tests/other]}\n      \
            - {header: X-Prio, controls: priority, map: {high: fast}}\n      \
            - {header: X-Type, controls: content_type}\n";
        set_up(app, &document("orders", BEARER, more)).await;
        register(app, &GREET.replace("tests/greet", "tests/other")).await;
        let token = ("authorization", "Bearer s3cret");
        let path = async |headers: &[(&str, &str)]| {
            let (status, answer) = send(app, "orders", headers, "[1]").await;
            assert_eq!(status, 202, "{answer}");
            let id = answer["execution_id"].as_str().expect("an id");
            let (_, row) = get(app, &format!("/api/executions/{id}")).answer().await;
            (row["path"].clone(), workload(app, &answer).await)
        };
        let (routed, seen) = path(&[token, ("x-route", "tests/other"), ("x-prio", "high")]).await;
        assert_eq!((routed, &seen["body"]), (json!("tests/other"), &json!([1])));
        let applied = json!({"dispatch.playbook": "tests/other", "priority": "fast"});
        assert_eq!(seen["message"]["metadata"]["directives"], applied);
        let (plain, seen) = path(&[token, ("x-route", "tests/secret"), ("x-prio", "low")]).await;
        assert_eq!(
            (plain, &seen["message"]["metadata"]["directives"]),
            (json!("tests/greet"), &Value::Null)
        );
        let typed = [token, ("x-type", "application/json"), ("content-type", "text/plain")];
        let (status, answer) = send(app, "orders", &typed, "no json").await;
        assert_eq!((status, &answer["code"]), (400, &json!("malformed_json")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bodies_get_an_error_and_start_nothing() {
    on_every_store(async |app| {
        let limited =
            document("orders", BEARER, "").replace("verify:", "max_bytes: 200000, verify:");
        set_up(app, &limited).await;
        let token = ("authorization", "Bearer s3cret");
        let json = ("content-type", "application/json");
        let deep = format!("{}1{}", "[".repeat(99), "]".repeat(99));
        let mut answers = String::new();
        for (why, headers, body) in [
            ("not JSON", vec![token, json], b"{\"a\":".to_vec()),
            ("not UTF-8", vec![token, json], b"\"\xff\xfe\"".to_vec()),
            ("a NUL in JSON", vec![token, json], br#"{"a":{"b\u0000":1}}"#.to_vec()),
            ("a NUL in text", vec![token], b"a\0b".to_vec()),
            ("deep", vec![token, json], deep.into_bytes()),
            ("deeper", vec![token, json], "[".repeat(100_000).into_bytes()),
            ("large", vec![token], vec![b'a'; 200_001]),
            ("larger", vec![token], vec![b'a'; 3 << 20]),
        ] {
            let (status, answer) = send(app, "orders", &headers, body).await;
            answers
                .push_str(&format!("{why}: {status} {} | {}\n", answer["code"], answer["error"]));
        }
        insta::allow_duplicates! {
            assert_snapshot!(answers, @r#"
            not JSON: 400 "malformed_json" | "the body is not JSON: EOF while parsing a value at line 1 column 5"
            not UTF-8: 400 "malformed_json" | "the body is not JSON: invalid unicode code point at line 1 column 2"
            a NUL in JSON: 422 "nul_character" | "the body must not hold NUL characters"
            a NUL in text: 422 "nul_character" | "the body must not hold NUL characters"
            deep: 422 "too_deep" | "the body nests more than 98 levels deep"
            deeper: 400 "malformed_json" | "the body is not JSON: recursion limit exceeded at line 1 column 128"
            large: 413 "body_too_large" | "the listener takes messages of at most 200000 bytes"
            larger: 413 "body_too_large" | "the listener takes messages of at most 200000 bytes"
            "#);
        }
        assert_eq!(executions(app).await, 0);
        // A body that is not JSON and has no content type is stored unchanged.
        let (_, answer) = send(app, "orders", &[token], b"\xff\x00\x01".to_vec()).await;
        let seen = workload(app, &answer).await;
        assert_eq!(
            (&seen["body"], &seen["message"]["metadata"]["encoding"]),
            (&json!("/wAB"), &json!("base64"))
        );
        let (_, answer) = send(app, "orders", &[token], vec![b'a'; 200_000]).await;
        assert_eq!(answer["status"], "accepted");
        let (_, answer) = send(app, "orders", &[token, json], "").await;
        let seen = workload(app, &answer).await;
        assert_eq!((&seen["message"]["data"], &seen["body"]), (&json!(""), &json!("")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_settings_of_a_listener_are_not_revealed_to_senders() {
    on_every_store(async |app| {
        set_up(app, &document("orders", "{type: bearer, secret: nobody_has_this}", "")).await;
        let (status, answer) = send(app, "orders", &[("authorization", "Bearer x")], "{}").await;
        assert_eq!((status, &answer["code"]), (503, &json!("listener_unusable")));
        assert!(!answer.to_string().contains("nobody_has_this"), "{answer}");
        let (status, answer) = send(app, "nobody", &[], "{}").await;
        assert_eq!((status, &answer["code"]), (404, &json!("listener_not_found")));
        // A subscription that fetches messages has no listener, regardless of its other settings.
        let pull = document("pulled", BEARER, "")
            .replace("mode: push", "mode: pull")
            .replace("source: webhook", "source: nats");
        assert_eq!(register(app, &pull).await.0, 200);
        assert_eq!(send(app, "pulled", &[("authorization", "Bearer s3cret")], "{}").await.0, 404);
        // The playbook doesn't exist yet: the sender must retry the message.
        let early = document("early", BEARER, "").replace("tests/greet", "tests/later");
        assert_eq!(register(app, &early).await.0, 200);
        let token = [("authorization", "Bearer s3cret")];
        let (status, answer) = send(app, "early", &token, "{}").await;
        assert_eq!((status, &answer["code"]), (503, &json!("playbook_unusable")), "{answer}");
        register(app, &GREET.replace("tests/greet", "tests/later")).await;
        assert_eq!(send(app, "early", &token, "{}").await.0, 202);
        // A tenant's listeners are its own.
        assert_eq!(send(app, "default/early", &token, "{}").await.0, 202);
        assert_eq!(send(app, "acme/early", &token, "{}").await.0, 404);
    })
    .await;
}

#[tokio::test]
async fn messages_over_the_rate_limit_are_refused() {
    let clock = Arc::new(SimClock::default());
    let app = TestApp::builder().slots(0).encryption_key(key()).clock(clock.clone()).start().await;
    let more = format!("{EVERY}  limits: {{max_dispatch_per_sec: 2}}\n");
    set_up(&app, &document("orders", HMAC, &more)).await;
    let mut answers = Vec::new();
    for _ in 0..5 {
        answers.push(signed(&app, "orders", "{}").await);
    }
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [202, 202, 429, 429, 429]);
    assert_eq!(answers[2].1["code"], "rate_limited");
    clock.advance(Duration::from_secs(1));
    assert_eq!(signed(&app, "orders", "{}").await.0, 202);
    let id =
        answers[0].1["subscription_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let log = app.read_log(noetl_model::ExecutionId::new(id)).await;
    let retry_after =
        log.iter().filter(|row| row.event_type.as_deref() == Some("subscription.rate_limited"));
    assert_eq!(retry_after.count(), 1, "it is said once");
    app.close().await;
}

#[tokio::test]
async fn messages_are_not_accepted_during_a_store_outage() {
    let app = crate::stores::app().await;
    set_up(&app, &document("orders", HMAC, "  dedup: {enabled: true}\n")).await;
    assert_eq!(signed(&app, "orders", r#"{"n":1}"#).await.0, 202);
    app.store.set_down(true);
    assert_eq!(signed(&app, "orders", r#"{"n":2}"#).await.0, 503);
    app.store.set_down(false);
    let (status, answer) = signed(&app, "orders", r#"{"n":2}"#).await;
    assert_eq!((status, &answer["status"]), (202, &json!("accepted")), "{answer}");
    assert_eq!(executions(&app).await, 2);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pubsub_push_envelopes_are_decoded() {
    on_every_store(async |app| {
        let pubsub = document("orders", BEARER, "  dedup: {enabled: true}\n")
            .replace("source: webhook", "source: pubsub");
        set_up(app, &pubsub).await;
        let token = ("authorization", "Bearer s3cret");
        let push = json!({
            "message": {
                "data": BASE64_STANDARD.encode(r#"{"who":"Ada"}"#), "messageId": "77",
                "attributes": {"kind": "new"}, "publishTime": "2026-01-01T00:00:00Z",
            },
            "subscription": "projects/p/subscriptions/s",
        });
        let (status, answer) = send(app, "orders", &[token], push.to_string()).await;
        assert_eq!(status, 202, "{answer}");
        let seen = workload(app, &answer).await;
        assert_eq!((&seen["who"], &seen["message"]["id"]), (&json!("Ada"), &json!("77")));
        assert_eq!(seen["message"]["attributes"], json!({"kind": "new"}));
        assert_eq!(seen["message"]["metadata"]["publish_time"], "2026-01-01T00:00:00Z");
        assert_eq!(send(app, "orders", &[token], push.to_string()).await.1["status"], "duplicate");
        for (broken, code) in [
            ("{}", "not_a_push_message"),
            (r#"{"message":{"data":"e30="}}"#, "not_a_push_message"),
            (r#"{"message":{"data":"%","messageId":"1"}}"#, "not_a_push_message"),
            ("no", "malformed_json"),
        ] {
            let (_, answer) = send(app, "orders", &[token], broken).await;
            assert_eq!(answer["code"], code, "{broken}: {answer}");
        }
    })
    .await;
}
