//! Tests of the delivery of messages.

use async_nats::HeaderMap;
use noetl_store::SubscriptionState;
use serde_json::json;

use crate::nats_harness::{CONSUMER, NatsHarness, SUBJECT, message_id, until};

const DEDUP: &str = "  dedup: {enabled: true, window_secs: 3600}\n";

#[tokio::test(flavor = "multi_thread")]
async fn every_message_starts_one_execution_and_is_acked() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    harness.publish(20).await;
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 20).await;
    harness.wait_until_acked(CONSUMER).await;
    assert_eq!(harness.state(id).await, SubscriptionState::Active);
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), 20);
    for number in 0..20 {
        let executions = &executions_by_message[&message_id(number)];
        assert_eq!(executions.len(), 1);
        let workload = harness.workload(executions[0]).await;
        assert_eq!(workload["order"], number);
        assert_eq!(workload["subscription"], "sub/orders");
        assert_eq!(workload["source"], "nats");
        assert_eq!(workload["message"]["metadata"]["subject"], SUBJECT);
        assert_eq!(workload["message"]["metadata"]["stream"], "ORDERS");
        assert_eq!(workload["message"]["headers"]["nats-msg-id"], message_id(number));
    }
    let page = harness.app.control.journal.metrics.text();
    assert!(!page.contains("noetl_subscription_backlog{subscription=\"other\"}"), "{page}");
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_message_starts_no_execution_within_the_window() {
    let harness = NatsHarness::with_stream().await;
    let directive = "  headers: {directives: [{header: x-key, controls: idempotency_key}]}\n";
    harness.document("sub/orders", &format!("{DEDUP}{directive}")).await;
    let id = harness.subscribe("sub/orders").await;
    let context = harness.nats.context().await;
    for number in 0..6 {
        let mut headers = HeaderMap::new();
        headers.insert("X-Key", if number % 2 == 0 { "even" } else { "odd" });
        let sent = context.publish_with_headers(SUBJECT, headers, "{}".into()).await;
        sent.unwrap().await.unwrap();
    }
    let runtime = harness.runtime();
    harness.wait_until_created_and_acked().await;
    assert_eq!(harness.executions(id).await.len(), 2);
    let types = harness.types(id).await;
    let repeats =
        types.iter().filter(|event_type| *event_type == "subscription.message.deduplicated");
    assert_eq!(repeats.count(), 4, "{types:?}");
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_continues_the_trace_of_its_message() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", parent);
    let context = harness.nats.context().await;
    context.publish_with_headers(SUBJECT, headers, "{}".into()).await.unwrap().await.unwrap();
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 1).await;
    let execution = harness.executions(id).await[0];
    let first = harness.app.read_log(execution).await.remove(0);
    let meta: serde_json::Value = serde_json::from_str(first.meta.as_deref().unwrap()).unwrap();
    assert_eq!(meta["trace"]["traceparent"], parent);
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_messages_control_only_permitted_directives() {
    let harness = NatsHarness::with_stream().await;
    let other = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: o, path: tests/other}\n\
                 workflow:\n  - {step: start, tool: {kind: noop}}\n";
    harness.playbook(other).await;
    let directives = "  headers:\n    directives:\n    \
        - {header: x-route, controls: dispatch.playbook, allowed: [tests/other]}\n    \
        - {header: x-type, controls: content_type}\n";
    harness.document("sub/orders", directives).await;
    let id = harness.subscribe("sub/orders").await;
    let context = harness.nats.context().await;
    for (route, body) in [("tests/other", "1"), ("tests/secret", "2")] {
        let mut headers = HeaderMap::new();
        headers.insert("X-Route", route);
        headers.insert("X-Type", "text/plain");
        context.publish_with_headers(SUBJECT, headers, body.into()).await.unwrap().await.unwrap();
    }
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 2).await;
    let mut paths = Vec::new();
    for execution in harness.executions(id).await {
        let row = harness
            .app
            .control
            .journal
            .executions
            .get(&Default::default(), execution)
            .await
            .unwrap();
        let workload = harness.workload(execution).await;
        assert_eq!(workload["content_type"], "text/plain");
        paths.push((workload["body"].clone(), row.unwrap().path.to_string()));
        until("the log to say what the headers decided", async || {
            let log = harness.app.read_log(execution).await;
            let applied = "subscription.message.directives_applied";
            log.iter().any(|row| row.event_type.as_deref() == Some(applied))
        })
        .await;
    }
    paths.sort_by_key(|(body, _)| body.as_i64());
    let expected = [(json!(1), "tests/other".to_owned()), (json!(2), "tests/greet".to_owned())];
    assert_eq!(paths, expected);
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_message_is_dead_lettered_with_its_reason_without_delaying_others() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let context = harness.nats.context().await;
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    for poison in [r#"{"name": "a\u0000b"}"#, &deep] {
        context.publish(SUBJECT, poison.to_owned().into()).await.unwrap().await.unwrap();
    }
    harness.publish(3).await;
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 3).await;
    harness.wait_until_acked(CONSUMER).await;
    assert_eq!(harness.executions(id).await.len(), 3);
    let letters = harness.dead_letters(id).await;
    let mut codes: Vec<&str> =
        letters.iter().map(|letter| letter["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["nul_character", "too_deep"], "{letters:?}");
    for letter in letters {
        let key = letter["object"].as_str().unwrap();
        let object = harness.app.control.data.objects.get(None, key).await.unwrap();
        assert_eq!(object.bytes.len(), letter["bytes"].as_u64().unwrap() as usize);
    }
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_route_is_dead_lettered_after_some_failures() {
    let harness = NatsHarness::with_stream().await;
    let more = "  limits: {max_failures: 2}\n  headers:\n    directives:\n    \
        - {header: x-route, controls: dispatch.playbook, allowed: [tests/none]}\n";
    harness.document("sub/orders", more).await;
    let id = harness.subscribe("sub/orders").await;
    let context = harness.nats.context().await;
    let mut headers = HeaderMap::new();
    headers.insert("x-route", "tests/none");
    let sent = context.publish_with_headers(SUBJECT, headers, "{}".into()).await;
    sent.unwrap().await.unwrap();
    harness.publish(2).await;
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 2).await;
    harness.wait_until_acked(CONSUMER).await;
    let letters = harness.dead_letters(id).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (&letters[0]["code"], &letters[0]["attempts"]),
        (&json!("playbook_not_found"), &json!(2))
    );
    assert_eq!(letters[0]["headers"]["x-route"], "tests/none");
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_ten_megabytes_is_dead_lettered_with_its_body() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "max_payload: 16MB\n").unwrap();
    let path = config.path().to_str().unwrap().to_owned();
    let nats = noetl_test_services::nats::TestNats::start_with(&["--config", &path]);
    let harness = NatsHarness::with(nats, noetl_test_app::TestApp::start(4).await).await;
    harness.make_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let context = harness.nats.context().await;
    let large = vec![b'7'; 10 << 20];
    for body in [large.clone(), b"{}".to_vec(), large.clone(), b"{}".to_vec()] {
        context.publish(SUBJECT, body.into()).await.unwrap().await.unwrap();
    }
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 2).await;
    harness.wait_until_acked(CONSUMER).await;
    let letters = harness.dead_letters(id).await;
    assert_eq!(letters.len(), 2);
    for letter in letters {
        assert_eq!((&letter["code"], &letter["bytes"]), (&json!("too_large"), &json!(10 << 20)));
        let key = letter["object"].as_str().unwrap();
        assert!(harness.app.control.data.objects.get(None, key).await.unwrap().bytes == large);
    }
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_message_is_dispatched_where_the_document_allows_it() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "max_payload: 32MB\n").unwrap();
    let path = config.path().to_str().unwrap().to_owned();
    let nats = noetl_test_services::nats::TestNats::start_with(&["--config", &path]);
    let harness = NatsHarness::with(nats, noetl_test_app::TestApp::start(4).await).await;
    harness.make_stream().await;
    harness.document("sub/orders", "  limits: {max_message_bytes: 11000000}\n").await;
    let id = harness.subscribe("sub/orders").await;
    let body = format!("{{\"text\": \"{}\"}}", "x".repeat(10 << 20));
    let context = harness.nats.context().await;
    context.publish(SUBJECT, body.into()).await.unwrap().await.unwrap();
    // Larger than a fetch, so it is fetched alone and dead-lettered.
    context.publish(SUBJECT, vec![b'7'; 20 << 20].into()).await.unwrap().await.unwrap();
    harness.publish(1).await;
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 2).await;
    harness.wait_until_acked(CONSUMER).await;
    let mut lengths = Vec::new();
    for execution in harness.executions(id).await {
        let workload = harness.workload(execution).await;
        lengths.push(workload["text"].as_str().map_or(0, str::len));
    }
    lengths.sort_unstable();
    assert_eq!(lengths, [0, 10 << 20]);
    assert_eq!(harness.dead_letters(id).await.len(), 1);
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_beyond_the_limits_stay_at_the_source() {
    let harness = NatsHarness::with_stream().await;
    let limits = "  limits: {max_in_flight: 1, max_dispatch_per_sec: 2}\n";
    harness.document("sub/orders", limits).await;
    let id = harness.subscribe("sub/orders").await;
    harness.publish(6).await;
    let begun = std::time::Instant::now();
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 6).await;
    // Two at once and then one each half second: however fast the machine is, not sooner.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(1900), "{:?}", begun.elapsed());
    until("the log to say what holds messages back", async || {
        harness.types(id).await.iter().any(|event_type| event_type == "subscription.rate_limited")
    })
    .await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_subject_without_a_stream_start_executions() {
    let harness = NatsHarness::new().await;
    harness.register_nats_document("sub/bare", "  topic: bare.>\n").await;
    let id = harness.subscribe("sub/bare").await;
    let runtime = harness.runtime();
    until("somebody to listen", async || {
        harness
            .types(id)
            .await
            .iter()
            .any(|event_type| event_type == "subscription.source.connected")
    })
    .await;
    let client = async_nats::connect(harness.nats.url()).await.unwrap();
    for number in 0..10 {
        client.publish(format!("bare.{number}"), format!("[{number}]").into()).await.unwrap();
    }
    client.flush().await.unwrap();
    harness.wait_for_executions(id, 10).await;
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), 10, "each has an id of its own");
    harness.close([runtime]).await;
}

impl NatsHarness {
    /// Waits until the consumer exists and has no unacked messages.
    async fn wait_until_created_and_acked(&self) {
        until("the consumer", async || {
            let stream = self.nats.context().await.get_stream("ORDERS").await.unwrap();
            stream.consumer_info(CONSUMER).await.is_ok()
        })
        .await;
        self.wait_until_acked(CONSUMER).await;
    }
}
