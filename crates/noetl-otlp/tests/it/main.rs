//! Spans on their way to a collector that behaves, or does not.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::trace::{Span, SpanCounts, SpanId, SpanKind, SpanSink, Trace, TraceId};
use noetl_model::{Timestamp, TraceContext};
use noetl_otlp::{ExporterSettings, SettingsError, open};
use noetl_test_services::{Collector, CollectorResponse, attribute};

fn span(number: u64) -> Span {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let context = TraceContext::read(parent, Some("a=b")).expect("a parent");
    Span {
        trace: context.trace,
        id: SpanId::new(number),
        parent: Some(context.span),
        name: Arc::from("a step"),
        kind: SpanKind::Internal,
        from: Timestamp::from_millis(1_000),
        to: Timestamp::from_millis(1_500),
        attributes: vec![("noetl.attempt", 2.into()), ("noetl.step.name", "a".into())],
        error: Some("it broke".to_owned()),
    }
}

/// Settings that send at once.
fn quick(endpoint: &str) -> ExporterSettings {
    let (timeout, delay) = (Duration::from_millis(200), Duration::ZERO);
    ExporterSettings { timeout, delay, ..ExporterSettings::new(endpoint) }
}

fn counts(exported: u64, dropped: u64, failed: u64) -> SpanCounts {
    SpanCounts { exported, dropped, failed }
}

#[tokio::test]
async fn a_span_arrives_with_all_fields() {
    let mut collector = Collector::start(CollectorResponse::Success).await;
    let settings = ExporterSettings {
        headers: vec![("authorization".to_owned(), "Bearer t".to_owned())],
        resource: vec![("service.name".to_owned(), "noetl".to_owned())],
        ..quick(&collector.endpoint)
    };
    let (sink, exporter) = open(settings).expect("an address");
    sink.offer(span(7));
    let spans = collector.spans_until(|span| span.span_id == [0, 0, 0, 0, 0, 0, 0, 7]).await;
    let exported = &spans[0];
    assert_eq!(exported.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
    assert_eq!(exported.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!((&*exported.name, &*exported.trace_state), ("a step", "a=b"));
    let times = (exported.start_time_unix_nano, exported.end_time_unix_nano);
    assert_eq!(times, (1_000_000_000, 1_500_000_000));
    assert_eq!(attribute(exported, "noetl.attempt"), "2");
    assert_eq!(attribute(exported, "noetl.step.name"), "a");
    assert_eq!(exported.status.as_ref().expect("a status").message, "it broke");
    let request = &collector.collected()[0];
    assert_eq!(request.resource, [("service.name".to_owned(), "noetl".to_owned())]);
    assert_eq!(request.headers["authorization"], "Bearer t");
    assert_eq!(request.headers["content-type"], "application/x-protobuf");
    exporter.close().await;
    assert_eq!(sink.counts(), counts(1, 0, 0));
    collector.close().await;
}

#[tokio::test]
async fn queued_spans_are_sent_in_batches_on_shutdown() {
    let collector = Collector::start(CollectorResponse::Success).await;
    let settings = ExporterSettings {
        batch: 4,
        delay: Duration::from_secs(600),
        ..quick(&collector.endpoint)
    };
    let (sink, exporter) = open(settings).expect("an address");
    (1..=10).for_each(|number| sink.offer(span(number)));
    exporter.close().await;
    let sizes: Vec<usize> = collector.collected().iter().map(|it| it.spans.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 10);
    assert!(sizes.iter().all(|size| *size <= 4), "{sizes:?}");
    assert_eq!(sink.counts(), counts(10, 0, 0));
    // What comes later is too late, and counted.
    sink.offer(span(11));
    assert_eq!(sink.counts(), counts(10, 1, 0));
    collector.close().await;
}

#[tokio::test]
async fn spans_beyond_the_queue_are_counted_without_blocking() {
    let mut collector = Collector::start(CollectorResponse::Never).await;
    let timeout = Duration::from_secs(600);
    let settings = ExporterSettings { queue: 2, batch: 1, timeout, ..quick(&collector.endpoint) };
    let (sink, exporter) = open(settings).expect("an address");
    sink.offer(span(1));
    // The first is on its way; two more have room.
    collector.wait_for_requests(1).await;
    (2..=6).for_each(|number| sink.offer(span(number)));
    assert_eq!(sink.counts(), counts(0, 3, 0));
    collector.set_response(CollectorResponse::Success);
    // The request in flight is abandoned soon, and queued spans are sent.
    exporter.close().await;
    assert_eq!(sink.counts(), counts(2, 3, 1));
    collector.close().await;
}

#[tokio::test]
async fn a_recovered_collector_gets_queued_spans() {
    let mut collector = Collector::start(CollectorResponse::Status(503)).await;
    let (sink, exporter) = open(quick(&collector.endpoint)).expect("an address");
    sink.offer(span(1));
    collector.wait_for_requests(1).await;
    collector.set_response(CollectorResponse::Success);
    collector.spans_until(|_| true).await;
    exporter.close().await;
    assert_eq!(sink.counts(), counts(1, 0, 0));
    collector.close().await;
}

#[tokio::test]
async fn spans_rejected_by_a_collector_are_not_resent() {
    for (answer, expected) in [
        (CollectorResponse::Status(400), counts(0, 0, 1)),
        (CollectorResponse::Status(302), counts(0, 0, 1)),
        (CollectorResponse::Status(500), counts(0, 0, 1)),
        (CollectorResponse::Garbage, counts(1, 0, 0)),
        (CollectorResponse::PartialSuccess(1), counts(0, 0, 1)),
        (CollectorResponse::PartialSuccess(99), counts(0, 0, 1)),
        (CollectorResponse::PartialSuccess(-7), counts(1, 0, 0)),
    ] {
        let mut collector = Collector::start(answer).await;
        let (sink, exporter) = open(quick(&collector.endpoint)).expect("an address");
        sink.offer(span(1));
        collector.wait_for_requests(1).await;
        exporter.close().await;
        assert_eq!(sink.counts(), expected, "{answer:?}");
        collector.close().await;
    }
}

#[tokio::test]
async fn an_unreachable_collector_loses_spans_only() {
    let gone = Collector::start(CollectorResponse::Success).await;
    let endpoint = gone.endpoint.clone();
    gone.close().await;
    let (sink, exporter) = open(quick(&endpoint)).expect("an address");
    (1..=3).for_each(|number| sink.offer(span(number)));
    exporter.close().await;
    assert_eq!(sink.counts(), counts(0, 0, 3));
}

#[tokio::test]
async fn errors_name_the_invalid_setting() {
    let refused = |settings: ExporterSettings| open(settings).map(|_| ()).expect_err("no address");
    for endpoint in ["", "collector:4318", "ftp://collector/", "http://"] {
        let error = refused(ExporterSettings::new(endpoint));
        assert!(matches!(error, SettingsError::Endpoint(_)), "{endpoint}: {error}");
    }
    let headers = vec![("x-token".to_owned(), "hunter2\n".to_owned())];
    let error = refused(ExporterSettings { headers, ..ExporterSettings::new("http://collector/") });
    assert_eq!(error.to_string(), "the header 'x-token' cannot be sent");
}

#[tokio::test]
async fn the_root_span_of_a_trace_has_no_parent() {
    let mut collector = Collector::start(CollectorResponse::Success).await;
    let (sink, exporter) = open(quick(&collector.endpoint)).expect("an address");
    let trace = Arc::new(Trace::new(TraceId::new(9), true));
    sink.offer(Span { trace, parent: None, error: None, ..span(3) });
    let spans = collector.spans_until(|_| true).await;
    assert!(spans[0].parent_span_id.is_empty());
    assert_eq!(spans[0].status, None);
    exporter.close().await;
    collector.close().await;
}
