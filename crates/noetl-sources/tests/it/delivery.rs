//! What becomes of messages.

use async_nats::HeaderMap;
use noetl_store::SubscriptionState;
use serde_json::json;

use crate::stage::{CONSUMER, SUBJECT, Stage, message_id, until};

const DEDUP: &str = "  dedup: {enabled: true, window_secs: 3600}\n";

#[tokio::test(flavor = "multi_thread")]
async fn every_message_starts_one_execution_and_is_acked() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    stage.publish(20).await;
    let runtime = stage.runtime();
    stage.started(id, 20).await;
    stage.acknowledged(CONSUMER).await;
    assert_eq!(stage.state(id).await, SubscriptionState::Active);
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), 20);
    for number in 0..20 {
        let executions = &found[&message_id(number)];
        assert_eq!(executions.len(), 1);
        let workload = stage.workload(executions[0]).await;
        assert_eq!(workload["order"], number);
        assert_eq!(workload["subscription"], "sub/orders");
        assert_eq!(workload["source"], "nats");
        assert_eq!(workload["message"]["metadata"]["subject"], SUBJECT);
        assert_eq!(workload["message"]["metadata"]["stream"], "ORDERS");
        assert_eq!(workload["message"]["headers"]["nats-msg-id"], message_id(number));
    }
    let page = stage.app.control.journal.metrics.text();
    assert!(!page.contains("noetl_subscription_backlog{subscription=\"other\"}"), "{page}");
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_message_starts_no_execution_within_the_window() {
    let stage = Stage::with_stream().await;
    let directive = "  headers: {directives: [{header: x-key, controls: idempotency_key}]}\n";
    stage.document("sub/orders", &format!("{DEDUP}{directive}")).await;
    let id = stage.subscribe("sub/orders").await;
    let context = stage.nats.context().await;
    for number in 0..6 {
        let mut headers = HeaderMap::new();
        headers.insert("X-Key", if number % 2 == 0 { "even" } else { "odd" });
        let sent = context.publish_with_headers(SUBJECT, headers, "{}".into()).await;
        sent.unwrap().await.unwrap();
    }
    let runtime = stage.runtime();
    stage.acknowledged_once_there().await;
    assert_eq!(stage.executions(id).await.len(), 2);
    let types = stage.types(id).await;
    let repeats = types.iter().filter(|found| *found == "subscription.message.deduplicated");
    assert_eq!(repeats.count(), 4, "{types:?}");
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_continues_the_trace_of_its_message() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", parent);
    let context = stage.nats.context().await;
    context.publish_with_headers(SUBJECT, headers, "{}".into()).await.unwrap().await.unwrap();
    let runtime = stage.runtime();
    stage.started(id, 1).await;
    let execution = stage.executions(id).await[0];
    let first = stage.app.read_log(execution).await.remove(0);
    let meta: serde_json::Value = serde_json::from_str(first.meta.as_deref().unwrap()).unwrap();
    assert_eq!(meta["trace"]["traceparent"], parent);
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_messages_control_only_permitted_directives() {
    let stage = Stage::with_stream().await;
    let other = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: o, path: tests/other}\n\
                 workflow:\n  - {step: start, tool: {kind: noop}}\n";
    stage.playbook(other).await;
    let directives = "  headers:\n    directives:\n    \
        - {header: x-route, controls: dispatch.playbook, allowed: [tests/other]}\n    \
        - {header: x-type, controls: content_type}\n";
    stage.document("sub/orders", directives).await;
    let id = stage.subscribe("sub/orders").await;
    let context = stage.nats.context().await;
    for (route, body) in [("tests/other", "1"), ("tests/secret", "2")] {
        let mut headers = HeaderMap::new();
        headers.insert("X-Route", route);
        headers.insert("X-Type", "text/plain");
        context.publish_with_headers(SUBJECT, headers, body.into()).await.unwrap().await.unwrap();
    }
    let runtime = stage.runtime();
    stage.started(id, 2).await;
    let mut paths = Vec::new();
    for execution in stage.executions(id).await {
        let row =
            stage.app.control.journal.executions.get(&Default::default(), execution).await.unwrap();
        let workload = stage.workload(execution).await;
        assert_eq!(workload["content_type"], "text/plain");
        paths.push((workload["body"].clone(), row.unwrap().path.to_string()));
        until("the log to say what the headers decided", async || {
            let log = stage.app.read_log(execution).await;
            let applied = "subscription.message.directives_applied";
            log.iter().any(|row| row.event_type.as_deref() == Some(applied))
        })
        .await;
    }
    paths.sort_by_key(|(body, _)| body.as_i64());
    let expected = [(json!(1), "tests/other".to_owned()), (json!(2), "tests/greet".to_owned())];
    assert_eq!(paths, expected);
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_message_is_dead_lettered_with_its_reason_without_delaying_others() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let context = stage.nats.context().await;
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    for poison in [r#"{"name": "a\u0000b"}"#, &deep] {
        context.publish(SUBJECT, poison.to_owned().into()).await.unwrap().await.unwrap();
    }
    stage.publish(3).await;
    let runtime = stage.runtime();
    stage.started(id, 3).await;
    stage.acknowledged(CONSUMER).await;
    assert_eq!(stage.executions(id).await.len(), 3);
    let told = stage.letters(id).await;
    let mut codes: Vec<&str> = told.iter().map(|letter| letter["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["nul_character", "too_deep"], "{told:?}");
    for letter in told {
        let key = letter["object"].as_str().unwrap();
        let kept = stage.app.control.data.objects.get(None, key).await.unwrap();
        assert_eq!(kept.bytes.len(), letter["bytes"].as_u64().unwrap() as usize);
    }
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_route_is_dead_lettered_after_some_failures() {
    let stage = Stage::with_stream().await;
    let more = "  limits: {max_failures: 2}\n  headers:\n    directives:\n    \
        - {header: x-route, controls: dispatch.playbook, allowed: [tests/none]}\n";
    stage.document("sub/orders", more).await;
    let id = stage.subscribe("sub/orders").await;
    let context = stage.nats.context().await;
    let mut headers = HeaderMap::new();
    headers.insert("x-route", "tests/none");
    let sent = context.publish_with_headers(SUBJECT, headers, "{}".into()).await;
    sent.unwrap().await.unwrap();
    stage.publish(2).await;
    let runtime = stage.runtime();
    stage.started(id, 2).await;
    stage.acknowledged(CONSUMER).await;
    let told = stage.letters(id).await;
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["code"], &told[0]["attempts"]), (&json!("playbook_not_found"), &json!(2)));
    assert_eq!(told[0]["headers"]["x-route"], "tests/none");
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_ten_megabytes_is_dead_lettered_with_its_body() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "max_payload: 16MB\n").unwrap();
    let path = config.path().to_str().unwrap().to_owned();
    let nats = noetl_test_services::nats::TestNats::start_with(&["--config", &path]);
    let stage = Stage::with(nats, noetl_test_app::TestApp::start(4).await).await;
    stage.make_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let context = stage.nats.context().await;
    let large = vec![b'7'; 10 << 20];
    for body in [large.clone(), b"{}".to_vec(), large.clone(), b"{}".to_vec()] {
        context.publish(SUBJECT, body.into()).await.unwrap().await.unwrap();
    }
    let runtime = stage.runtime();
    stage.started(id, 2).await;
    stage.acknowledged(CONSUMER).await;
    let told = stage.letters(id).await;
    assert_eq!(told.len(), 2);
    for letter in told {
        assert_eq!((&letter["code"], &letter["bytes"]), (&json!("too_large"), &json!(10 << 20)));
        let key = letter["object"].as_str().unwrap();
        assert!(stage.app.control.data.objects.get(None, key).await.unwrap().bytes == large);
    }
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_message_is_dispatched_where_the_document_allows_it() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "max_payload: 32MB\n").unwrap();
    let path = config.path().to_str().unwrap().to_owned();
    let nats = noetl_test_services::nats::TestNats::start_with(&["--config", &path]);
    let stage = Stage::with(nats, noetl_test_app::TestApp::start(4).await).await;
    stage.make_stream().await;
    stage.document("sub/orders", "  limits: {max_message_bytes: 11000000}\n").await;
    let id = stage.subscribe("sub/orders").await;
    let body = format!("{{\"text\": \"{}\"}}", "x".repeat(10 << 20));
    let context = stage.nats.context().await;
    context.publish(SUBJECT, body.into()).await.unwrap().await.unwrap();
    // More than is fetched at once, so it comes alone and is put aside.
    context.publish(SUBJECT, vec![b'7'; 20 << 20].into()).await.unwrap().await.unwrap();
    stage.publish(1).await;
    let runtime = stage.runtime();
    stage.started(id, 2).await;
    stage.acknowledged(CONSUMER).await;
    let mut lengths = Vec::new();
    for execution in stage.executions(id).await {
        let workload = stage.workload(execution).await;
        lengths.push(workload["text"].as_str().map_or(0, str::len));
    }
    lengths.sort_unstable();
    assert_eq!(lengths, [0, 10 << 20]);
    assert_eq!(stage.letters(id).await.len(), 1);
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_beyond_the_limits_stay_at_the_source() {
    let stage = Stage::with_stream().await;
    let limits = "  limits: {max_in_flight: 1, max_dispatch_per_sec: 2}\n";
    stage.document("sub/orders", limits).await;
    let id = stage.subscribe("sub/orders").await;
    stage.publish(6).await;
    let begun = std::time::Instant::now();
    let runtime = stage.runtime();
    stage.started(id, 6).await;
    // Two at once and then one each half second: however fast the machine is, not sooner.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(1900), "{:?}", begun.elapsed());
    until("the log to say what holds messages back", async || {
        stage.types(id).await.iter().any(|found| found == "subscription.rate_limited")
    })
    .await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_subject_without_a_stream_start_executions() {
    let stage = Stage::new().await;
    stage.whole_document("sub/bare", "  topic: bare.>\n").await;
    let id = stage.subscribe("sub/bare").await;
    let runtime = stage.runtime();
    until("somebody to listen", async || {
        stage.types(id).await.iter().any(|found| found == "subscription.source.connected")
    })
    .await;
    let client = async_nats::connect(stage.nats.url()).await.unwrap();
    for number in 0..10 {
        client.publish(format!("bare.{number}"), format!("[{number}]").into()).await.unwrap();
    }
    client.flush().await.unwrap();
    stage.started(id, 10).await;
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), 10, "each has an id of its own");
    stage.close([runtime]).await;
}

impl Stage {
    /// The same as [`Stage::acknowledged`] for a consumer that may not be there yet.
    async fn acknowledged_once_there(&self) {
        until("the consumer", async || {
            let stream = self.nats.context().await.get_stream("ORDERS").await.unwrap();
            stream.consumer_info(CONSUMER).await.is_ok()
        })
        .await;
        self.acknowledged(CONSUMER).await;
    }
}
