//! Tests that send each message to two subscriptions: pushed to a listener over HTTP, and pulled
//! from NATS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_nats::HeaderMap;
use noetl_api::catalog::RegisterRequest;
use noetl_egress::EgressPolicy;
use noetl_model::{ExecutionId, SubscriptionId, Tenant, Value};
use noetl_secrets::EncryptionKey;
use noetl_sources::{ControlPlaneClient, SourceRegistry, SubscriptionRuntime};
use noetl_test_app::TestApp;
use noetl_test_services::nats::TestNats;
use serde_json::json;

use crate::nats_harness::{NatsHarness, options, until};

const OTHER: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: o, path: tests/other}\n\
                     workflow:\n  - {step: start, tool: {kind: noop}}\n";

/// A control plane that is handed messages in both ways.
struct BothWays {
    harness: NatsHarness,
    runtime: SubscriptionRuntime,
    http: reqwest::Client,
    documents: AtomicUsize,
}

/// Two subscriptions that differ only in how their messages arrive.
struct Pair {
    stream: String,
    listener: String,
    pulled: SubscriptionId,
}

/// Outcome of a message.
#[derive(Debug, Clone)]
enum Outcome {
    Started(ExecutionId),
    Duplicate(ExecutionId),
    /// The message was rejected with this code.
    Rejected(String),
}

impl Outcome {
    fn started(&self) -> ExecutionId {
        match self {
            Self::Started(execution) => *execution,
            other => panic!("{other:?} instead of a start"),
        }
    }

    fn code(&self) -> &str {
        match self {
            Self::Rejected(code) => code,
            other => panic!("{other:?} instead of a rejection"),
        }
    }
}

impl BothWays {
    async fn new() -> Self {
        Self::over(|harness| harness.local()).await
    }

    /// Starts a runtime that uses this client of the control plane.
    async fn over(client: impl Fn(&NatsHarness) -> Arc<dyn ControlPlaneClient>) -> Self {
        let key =
            EncryptionKey::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        let app = TestApp::builder().encryption_key(key).start().await;
        let harness = NatsHarness::with(TestNats::start(), app).await;
        harness.playbook(OTHER).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let credential = json!({"name": "hook", "type": "t", "data": {"secret": "s3cret"}});
        let url = format!("{}/api/credentials", harness.app.base);
        let stored = http.post(url).json(&credential).send().await.unwrap();
        assert!(stored.status().is_success(), "{stored:?}");
        let sources = SourceRegistry::standard(EgressPolicy::default());
        let runtime = SubscriptionRuntime::all(client(&harness), sources, options("owner"));
        Self { harness, runtime, http, documents: AtomicUsize::new(0) }
    }

    /// Registers a document with these further keys of its `spec` for each way. The pull subscription
    /// is connected when this returns.
    async fn subscribe(&self, more: &str) -> Pair {
        let number = self.documents.fetch_add(1, Ordering::Relaxed);
        let (stream, listener) = (format!("S{number}"), format!("l{number}"));
        self.push_document(&listener, more, false).await;
        self.harness.nats.create_stream(&stream, &format!("s{number}.>")).await;
        let path = format!("sub/pulled{number}");
        self.harness.register_nats_document(&path, &format!("  stream: {stream}\n{more}")).await;
        let pulled = self.harness.subscribe(&path).await;
        until("a runtime to connect", async || {
            let types = self.harness.types(pulled).await;
            types.iter().any(|event_type| event_type == "subscription.source.connected")
        })
        .await;
        Pair { stream, listener, pulled }
    }

    async fn push_document(&self, listener: &str, more: &str, force: bool) {
        let dispatch = match more.contains("dispatch:") {
            true => "",
            false => "  dispatch: {playbook: tests/greet}\n",
        };
        let content = format!(
            "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: a, path: sub/{listener}}}\nspec:\n  \
             source: webhook\n  mode: push\n  ingress: {{gateway_path: /in/{listener}, \
             verify: {{type: bearer, secret: hook}}}}\n{dispatch}{more}"
        );
        let request = RegisterRequest { content, resource_type: "Subscription".to_owned() };
        self.harness.app.client.register(&request, force).await.unwrap();
    }

    async fn post(&self, listener: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Value) {
        let url = format!("{}/ingress/{listener}", self.harness.app.base);
        let mut request = self.http.post(url).bearer_auth("s3cret").body(body.to_vec());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = request.send().await.unwrap();
        (reply.status().as_u16(), reply.json().await.unwrap())
    }

    async fn push(&self, pair: &Pair, headers: &[(&str, &str)], body: &[u8]) -> Outcome {
        let (_, reply) = self.post(&pair.listener, headers, body).await;
        let execution =
            || ExecutionId::new(reply["execution_id"].as_str().unwrap().parse().unwrap());
        match reply["status"].as_str() {
            Some("accepted") => Outcome::Started(execution()),
            Some("duplicate") => Outcome::Duplicate(execution()),
            _ => Outcome::Rejected(reply["code"].as_str().unwrap().to_owned()),
        }
    }

    /// Publishes a message and waits for what becomes of it.
    async fn pull(&self, pair: &Pair, headers: &[(&str, &str)], body: &[u8]) -> Outcome {
        let harness = &self.harness;
        let started = harness.executions(pair.pulled).await;
        let letters = harness.dead_letters(pair.pulled).await.len();
        let repeats = self.repeats(pair).await.len();
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.insert(*name, *value);
        }
        let context = harness.nats.context().await;
        let subject = format!("{}.a", pair.stream.to_lowercase());
        let ack = context.publish_with_headers(subject, sent, body.to_vec().into()).await;
        ack.unwrap().await.unwrap();
        until("an outcome", async || {
            harness.executions(pair.pulled).await.len() > started.len()
                || harness.dead_letters(pair.pulled).await.len() > letters
                || self.repeats(pair).await.len() > repeats
        })
        .await;
        let now = harness.executions(pair.pulled).await;
        if let Some(new) = now.into_iter().find(|execution| !started.contains(execution)) {
            return Outcome::Started(new);
        }
        if let Some(letter) = harness.dead_letters(pair.pulled).await.get(letters) {
            return Outcome::Rejected(letter["code"].as_str().unwrap().to_owned());
        }
        let original = self.repeats(pair).await[repeats].clone();
        Outcome::Duplicate(ExecutionId::new(original.parse().unwrap()))
    }

    /// Returns the executions whose messages were deduplicated.
    async fn repeats(&self, pair: &Pair) -> Vec<String> {
        let repeated = self.events(pair.pulled.log(), "subscription.message.deduplicated").await;
        let original =
            |context: &Value| context["original_execution_id"].as_str().unwrap().to_owned();
        repeated.iter().map(original).collect()
    }

    /// Returns the contexts of the events of a type.
    async fn events(&self, log: ExecutionId, event_type: &str) -> Vec<Value> {
        let log = self.harness.app.read_log(log).await;
        let rows = log.iter().filter(|row| row.event_type.as_deref() == Some(event_type));
        let contexts = rows.map(|row| {
            let result = row.result.as_deref().expect("what was said");
            serde_json::from_str::<Value>(result).unwrap()["context"].clone()
        });
        contexts.collect()
    }

    /// Sends a message in both ways, the pushed one first.
    async fn send(&self, pair: &Pair, headers: &[(&str, &str)], body: &[u8]) -> [Outcome; 2] {
        [self.push(pair, headers, body).await, self.pull(pair, headers, body).await]
    }

    /// Sends a message in both ways and returns the payloads of its executions.
    async fn payloads(&self, more: &str, headers: &[(&str, &str)], body: &[u8]) -> [Value; 2] {
        let pair = self.subscribe(more).await;
        let [pushed, pulled] = self.send(&pair, headers, body).await;
        [
            self.harness.workload(pushed.started()).await,
            self.harness.workload(pulled.started()).await,
        ]
    }

    /// Sends a message in both ways and checks that the payloads of its executions agree, but for what
    /// says how it came. Returns what they agree on.
    async fn payload(&self, more: &str, headers: &[(&str, &str)], body: &[u8]) -> Value {
        let payloads = self.payloads(more, headers, body).await;
        let [pushed, pulled] = payloads.map(|mut payload| {
            let fields = payload.as_object_mut().unwrap();
            fields.remove("source");
            fields.remove("subscription");
            let message = fields["message"].as_object_mut().unwrap();
            for own in ["id", "ack_id"] {
                message.remove(own);
            }
            // Clients and brokers add headers and metadata of their own.
            for part in ["headers", "attributes"] {
                message[part].as_object_mut().unwrap().retain(|name, _| name.starts_with("x-"));
            }
            let common = ["directives", "content_type", "schema_hint", "encoding"];
            let metadata = message["metadata"].as_object_mut().unwrap();
            metadata.retain(|name, _| common.contains(&name.as_str()));
            payload
        });
        assert_eq!(pushed, pulled, "{more}");
        pushed
    }

    async fn close(self) {
        self.harness.close([self.runtime]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passthrough_affects_only_the_headers_of_the_message() {
    let ways = BothWays::new().await;
    let body = br#"{"data": 1, "order": 7}"#;
    for more in ["", "  headers: {passthrough: data}\n", "  headers: {passthrough: seen}\n"] {
        let payload = ways.payload(more, &[("x-a", "1")], body).await;
        assert_eq!((&payload["data"], &payload["order"]), (&json!(1), &json!(7)), "{more}");
        assert_eq!(payload["message"]["headers"], json!({"x-a": "1"}));
        assert_eq!(payload.get("seen"), None);
    }
    let payloads = ways.payloads("  headers: {passthrough: none}\n", &[("x-a", "1")], body).await;
    for payload in payloads {
        assert_eq!(payload["message"]["headers"], json!({}));
        assert_eq!(payload["message"]["attributes"]["x-a"], "1");
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_allowed_value_of_a_header_selects_a_playbook_or_a_pool() {
    let ways = BothWays::new().await;
    let pair = ways
        .subscribe(
            "  headers:\n    directives:\n    \
             - {header: X-Route, controls: dispatch.playbook, allowed: [tests/other, short], \
             map: {short: tests/other, long: tests/other}}\n    \
             - {header: X-Prio, controls: priority, allowed: [high], map: {high: fast, low: slow}}\n",
        )
        .await;
    for (route, priority, playbook, pool) in [
        ("tests/other", "high", "tests/other", json!("fast")),
        ("short", "low", "tests/other", json!(null)),
        ("long", "high", "tests/greet", json!("fast")),
        ("tests/secret", "low", "tests/greet", json!(null)),
    ] {
        let headers = [("x-route", route), ("x-prio", priority)];
        for outcome in ways.send(&pair, &headers, b"{}").await {
            let execution = outcome.started();
            let control = &ways.harness.app.control;
            let row = control.journal.executions.get(&Tenant::default(), execution).await.unwrap();
            assert_eq!(&*row.unwrap().path, playbook, "{route}");
            if playbook == "tests/greet" && pool.is_null() {
                continue;
            }
            let event = "subscription.message.directives_applied";
            until("the applied directives", async || {
                !ways.events(execution, event).await.is_empty()
            })
            .await;
            let context = ways.events(execution, event).await.remove(0);
            assert_eq!(context["route_override"]["pool"], pool, "{route} {priority}");
        }
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_directives_are_in_the_payload_and_in_the_log() {
    let ways = BothWays::new().await;
    let directives = "  headers: {directives: [{header: X-Key, controls: idempotency_key}, \
                      {header: x-type, controls: content_type}, \
                      {header: x-hint, controls: schema_hint}]}\n";
    let headers = [("x-key", "k1"), ("x-type", "text/plain"), ("x-hint", "v2")];
    let payload = ways.payload(directives, &headers, b"text").await;
    assert_eq!(
        payload["message"]["metadata"],
        json!({
            "content_type": "text/plain", "schema_hint": "v2",
            "directives":
                {"idempotency_key": "k1", "content_type": "text/plain", "schema_hint": "v2"},
        })
    );
    assert_eq!(
        (&payload["idempotency_key"], &payload["content_type"], &payload["body"]),
        (&json!("k1"), &json!("text/plain"), &json!("text"))
    );
    let pair = ways.subscribe(directives).await;
    for outcome in ways.send(&pair, &headers, b"text").await {
        let execution = outcome.started();
        let event = "subscription.message.directives_applied";
        until("the applied directives", async || !ways.events(execution, event).await.is_empty())
            .await;
        let context = ways.events(execution, event).await.remove(0);
        let message = ways.harness.workload(execution).await["message"]["id"].clone();
        assert_eq!(context["message_id"], message);
        assert_eq!(
            context["applied"],
            json!([
                {"header": "x-key", "controls": "idempotency_key", "value": "k1"},
                {"header": "x-type", "controls": "content_type", "value": "text/plain"},
                {"header": "x-hint", "controls": "schema_hint", "value": "v2"},
            ])
        );
        assert_eq!(context["route_override"], json!({"playbook": null, "pool": null}));
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_other_than_an_object_is_under_body() {
    let ways = BothWays::new().await;
    for (body, data) in [
        (&b""[..], json!("")),
        (b"null", Value::Null),
        (b"[1]", json!([1])),
        (b"no json", json!("no json")),
        (b"\xff", json!("/w==")),
    ] {
        let payload = ways.payload("", &[], body).await;
        assert_eq!(payload.get("body"), Some(&data));
        assert_eq!(payload["message"]["data"], data);
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_the_same_depth_and_size_limits() {
    let ways = BothWays::new().await;
    let pair = ways.subscribe("  limits: {max_message_bytes: 300}\n").await;
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    for outcome in ways.send(&pair, &[], deep(98).as_bytes()).await {
        let workload = ways.harness.workload(outcome.started()).await;
        assert_eq!(workload["body"].to_string(), deep(98));
    }
    let [pushed, pulled] = ways.send(&pair, &[], deep(99).as_bytes()).await;
    assert_eq!((pushed.code(), pulled.code()), ("too_deep", "too_deep"));
    let nul = br#"{"a": "\u0000"}"#;
    let [pushed, pulled] = ways.send(&pair, &[], nul).await;
    assert_eq!((pushed.code(), pulled.code()), ("nul_character", "nul_character"));
    for outcome in ways.send(&pair, &[], &[b'a'; 300]).await {
        outcome.started();
    }
    let [pushed, pulled] = ways.send(&pair, &[], &[b'a'; 301]).await;
    assert_eq!((pushed.code(), pulled.code()), ("body_too_large", "too_large"));
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dedup_keys_of_any_length_are_distinct() {
    let ways = BothWays::new().await;
    let pair = ways
        .subscribe(
            "  dedup: {enabled: true, window_secs: 60}\n  \
             headers: {directives: [{header: x-key, controls: idempotency_key}]}\n",
        )
        .await;
    let long = "k".repeat(3000);
    let longer = format!("{long}k");
    let first = ways.send(&pair, &[("x-key", &long)], b"1").await;
    let again = ways.send(&pair, &[("x-key", &long)], b"2").await;
    let other = ways.send(&pair, &[("x-key", &longer)], b"1").await;
    for way in 0..2 {
        let original = first[way].started();
        assert!(matches!(again[way], Outcome::Duplicate(known) if known == original), "{again:?}");
        assert_ne!(other[way].started(), original);
    }
    let metrics = &ways.harness.app.control.journal.metrics;
    for entry in ["ingress", "subscription"] {
        for (outcome, count) in [("new", 2), ("duplicate", 1)] {
            let line = format!(
                "noetl_execute_outcomes_total{{entry=\"{entry}\",outcome=\"{outcome}\"}} {count}"
            );
            // An execution is visible before its start is counted.
            until(&line, async || metrics.text().lines().any(|metric| metric == line)).await;
        }
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_continues_the_trace_with_the_allowed_baggage() {
    let ways = BothWays::new().await;
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{id}-00f067aa0ba902b7-01");
    let headers =
        [("traceparent", &*parent), ("tracestate", "a=1"), ("baggage", "user=ada,secret=x")];
    let trace = async |more: &str| {
        let pair = ways.subscribe(more).await;
        let mut traces = Vec::new();
        for outcome in ways.send(&pair, &headers, b"{}").await {
            let first = ways.harness.app.read_log(outcome.started()).await.remove(0);
            let meta: Value = serde_json::from_str(first.meta.as_deref().unwrap()).unwrap();
            traces.push(meta["trace"].clone());
        }
        traces
    };
    for trace_context in trace("  headers: {trace: {baggage_allowlist: [user]}}\n").await {
        assert!(trace_context["traceparent"].as_str().unwrap().contains(id), "{trace_context}");
        assert_eq!(
            (&trace_context["tracestate"], &trace_context["baggage"]),
            (&json!("a=1"), &json!("user=ada"))
        );
    }
    for trace_context in trace("").await {
        assert_eq!(
            (&trace_context["tracestate"], trace_context.get("baggage")),
            (&json!("a=1"), None),
            "{trace_context}"
        );
    }
    for trace_context in trace("  headers: {trace: {propagate: none}}\n").await {
        assert_eq!(trace_context, Value::Null);
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_in_another_process_starts_the_same_executions() {
    let ways = BothWays::over(|harness| harness.remote()).await;
    // A window beyond the longest possible one is that one.
    let pair = ways
        .subscribe(
            "  dedup: {enabled: true, window_secs: 99999999}\n  headers:\n    \
             trace: {baggage_allowlist: [user]}\n    \
             directives: [{header: x-key, controls: idempotency_key}]\n",
        )
        .await;
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{id}-00f067aa0ba902b7-01");
    let headers = [("traceparent", &*parent), ("baggage", "user=ada,secret=x"), ("x-key", "k")];
    let first = ways.send(&pair, &headers, b"1").await;
    let again = ways.send(&pair, &headers, b"2").await;
    for (first, again) in first.iter().zip(again) {
        let execution = first.started();
        assert!(matches!(again, Outcome::Duplicate(known) if known == execution), "{again:?}");
        let row = ways.harness.app.read_log(execution).await.remove(0);
        let meta: Value = serde_json::from_str(row.meta.as_deref().unwrap()).unwrap();
        assert!(meta["trace"]["traceparent"].as_str().unwrap().contains(id), "{meta}");
        assert_eq!(meta["trace"]["baggage"], "user=ada");
        let workload = ways.harness.workload(execution).await;
        assert_eq!((&workload["body"], &workload["idempotency_key"]), (&json!(1), &json!("k")));
        let event = "subscription.message.directives_applied";
        until("the applied directives", async || !ways.events(execution, event).await.is_empty())
            .await;
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn header_credentials_are_not_logged() {
    let ways = BothWays::new().await;
    let headers = [("cookie", "c00kie"), ("X-Session-Token", "t0ken"), ("x-a", "1")];
    let pair = ways.subscribe("").await;
    for outcome in ways.send(&pair, &headers, b"{}").await {
        let workload = ways.harness.workload(outcome.started()).await;
        assert_eq!(workload["message"]["headers"]["x-a"], "1");
        let text = workload.to_string();
        for secret in ["c00kie", "t0ken", "s3cret"] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
    ways.pull(&pair, &headers, br#"{"a": "\u0000"}"#).await.code();
    let letter = ways.harness.dead_letters(pair.pulled).await.remove(0);
    assert_eq!(letter["headers"]["x-a"], "1");
    assert_eq!(
        (letter["headers"].get("cookie"), letter["headers"].get("x-session-token")),
        (None, None)
    );
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_json_body_is_rejected_only_if_its_sender_gets_the_response() {
    let ways = BothWays::new().await;
    let pair = ways.subscribe("").await;
    let headers = [("content-type", "application/json")];
    let [pushed, pulled] = ways.send(&pair, &headers, b"{\"a\":").await;
    assert_eq!(pushed.code(), "malformed_json");
    assert_eq!(ways.harness.workload(pulled.started()).await["body"], "{\"a\":");
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_names_the_limit_and_the_consequence() {
    let ways = BothWays::new().await;
    let pair = ways.subscribe("  limits: {max_dispatch_per_sec: 0.001}\n").await;
    for outcome in ways.send(&pair, &[], b"1").await {
        outcome.started();
    }
    let (status, reply) = ways.post(&pair.listener, &[], b"2").await;
    assert_eq!((status, &reply["code"]), (429, &json!("rate_limited")));
    let pushed = ways.harness.subscribe(&format!("sub/{}", pair.listener)).await;
    for (id, action) in [(pushed, "reject"), (pair.pulled, "hold")] {
        let event = "subscription.rate_limited";
        until("the log to name the limit", async || !ways.events(id.log(), event).await.is_empty())
            .await;
        let context = ways.events(id.log(), event).await.remove(0);
        let expected = json!({
            "reason": "max_dispatch_per_sec", "max_in_flight": null,
            "max_dispatch_per_sec": 0.001, "action": action, "loss_safe": true,
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&context[name], value, "{name} in {context}");
        }
    }
    ways.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_errors_serves_no_message() {
    let ways = BothWays::new().await;
    let wrong = "  limits: {max_in_flight: none}\n";
    ways.push_document("wrong", wrong, true).await;
    let (status, reply) = ways.post("wrong", &[], b"{}").await;
    assert_eq!((status, &reply["code"]), (503, &json!("listener_unusable")), "{reply}");
    let content = format!(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: a, path: sub/pulled}}\nspec:\n  \
         source: nats\n  mode: pull\n  stream: A\n  dispatch: {{playbook: tests/greet}}\n{wrong}"
    );
    let request = RegisterRequest { content, resource_type: "Subscription".to_owned() };
    ways.harness.app.client.register(&request, true).await.unwrap();
    let pulled = ways.harness.subscribe("sub/pulled").await;
    let event = "subscription.source.unavailable";
    until("the log to name the error", async || {
        let contexts = ways.events(pulled.log(), event).await;
        contexts
            .iter()
            .any(|contexts| contexts["reason"].as_str().is_some_and(|it| it.contains("errors")))
    })
    .await;
    ways.close().await;
}
