//! Traces: accepted from callers, stored with executions, propagated to calls, and exported.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::HeaderMap;
use noetl_journal::Traces;
use noetl_model::trace::{Sampler, SpanSink as _};
use noetl_model::{ExecutionId, Tenant};
use noetl_otlp::{ExporterSettings, ExporterTask, OtlpSink};
use noetl_test_app::{Echo, Noop, TestApp};
use noetl_test_services::{Collector, CollectorResponse, attribute};
use noetl_tools::{Http, ToolRegistry};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::api::{GREET, get, open_command, post, register};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Starts an HTTP server that sends the headers of each request to a channel.
async fn far_side() -> (String, mpsc::Receiver<HeaderMap>) {
    let (sender, asked) = mpsc::channel(16);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let answer = move |headers: HeaderMap| async move {
        sender.send(headers).await.expect("a test that listens");
        "{}"
    };
    let app = axum::Router::new().route("/", axum::routing::get(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, asked)
}

/// An app whose spans go to a collector.
async fn recording(endpoint: &str) -> (TestApp, Arc<OtlpSink>, ExporterTask) {
    let (timeout, delay) = (Duration::from_millis(200), Duration::ZERO);
    let settings = ExporterSettings { timeout, delay, ..ExporterSettings::new(endpoint) };
    let (sink, exporter) = noetl_otlp::open(settings).expect("an address");
    let tools = ToolRegistry::default().with(Echo).with(Noop).with(Http::new(Arc::default()));
    let traces = Traces::recorded(sink.clone(), Sampler::default());
    let app = TestApp::builder().tools(tools).traces(traces).start().await;
    (app, sink, exporter)
}

/// Starts the greeting playbook; its id and the trace of the reply.
async fn start(app: &TestApp, parents: &[&str], body: Value) -> (i64, String) {
    let mut ask = post(app, "/api/execute", body.to_string());
    for parent in parents {
        ask = ask.header("traceparent", parent);
    }
    let response = ask.send().await;
    let parent = response.headers()["traceparent"].to_str().expect("text").to_owned();
    let text = response.text().await.expect("a body");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    let id = body["execution_id"].as_str().and_then(|id| id.parse().ok());
    (id.unwrap_or_else(|| panic!("{body}")), parent)
}

async fn end(app: &TestApp, id: i64) {
    let ended = app
        .control
        .journal
        .executions
        .wait_until_finished(&Tenant::default(), ExecutionId::new(id))
        .await;
    let row = ended.expect("a store that answers").expect("an execution");
    assert_eq!(row.error, None);
}

/// Returns the trace stored with the start of an execution.
async fn stored_trace(app: &TestApp, id: i64) -> Value {
    let row = app.read_log(ExecutionId::new(id)).await.remove(0);
    let meta: Value = serde_json::from_str(row.meta.as_deref().expect("a meta")).expect("JSON");
    meta["trace"].clone()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn one_trace_covers_caller_execution_and_calls() {
    let mut collector = Collector::start(CollectorResponse::Success).await;
    let (app, _, exporter) = recording(&collector.endpoint).await;
    let (url, mut asked) = far_side().await;
    register(&app, GREET).await;
    let calls = format!(
        "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: calls, path: tests/calls}}
workflow:
  - step: ask
    tool: {{kind: http, url: '{url}'}}
    next: {{arcs: [{{step: call}}]}}
  - step: call
    tool: {{kind: playbook, path: tests/greet, return_step: end}}
"
    );
    register(&app, &calls).await;
    let ask = post(&app, "/api/execute", r#"{"path":"tests/calls"}"#)
        .header("traceparent", PARENT)
        .header("tracestate", "vendor=a")
        .header("tracestate", "other=b");
    let response = ask.send().await;
    let reply = response.headers()["traceparent"].to_str().expect("text").to_owned();
    let text = response.text().await.expect("a body");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    let id: i64 = body["execution_id"].as_str().expect("text").parse().expect("an id");
    end(&app, id).await;
    collector.spans_until(|span| span.name == "POST /api/execute").await;
    let spans = collector.spans_until(|span| span.name == "tests/calls").await;
    let named = |name: &str| {
        let named_span =
            spans.iter().find(|span| span.name == name && hex(&span.trace_id) == TRACE);
        named_span.unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
    };
    let request = named("POST /api/execute");
    assert_eq!(hex(&request.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(attribute(request, "http.response.status_code"), "200");
    assert_eq!(reply, format!("00-{TRACE}-{}-01", hex(&request.span_id)));
    let whole = named("tests/calls");
    assert_eq!(whole.parent_span_id, request.span_id);
    assert_eq!(attribute(whole, "noetl.execution.id"), id.to_string());
    let (step, call) = (named("ask"), named("call"));
    assert_eq!((&step.parent_span_id, &call.parent_span_id), (&whole.span_id, &whole.span_id));
    assert_eq!(attribute(step, "noetl.tool.kind"), "http");
    let child = named("tests/greet");
    assert_eq!(child.parent_span_id, call.span_id);
    assert_eq!(named("start").parent_span_id, child.span_id);
    let headers = asked.recv().await.expect("a request");
    assert_eq!(headers["traceparent"], format!("00-{TRACE}-{}-01", hex(&step.span_id)));
    assert_eq!(headers["tracestate"], "vendor=a,other=b");
    exporter.close().await;
    let page = get(&app, "/metrics").answer().await.1;
    let page = page.as_str().expect("text");
    // A batch whose response was late is sent twice, and counts once.
    let spans = collector.collected().into_iter().flat_map(|request| request.spans);
    let all = spans.map(|span| span.span_id).collect::<HashSet<_>>().len();
    let line = format!(r#"noetl_trace_spans_total{{outcome="exported"}} {all}"#);
    assert!(page.lines().any(|named_span| named_span == line), "{line}\n{page}");
    app.close().await;
    collector.close().await;
}

#[tokio::test]
async fn a_failing_collector_changes_nothing() {
    for answer in
        [CollectorResponse::Status(500), CollectorResponse::Garbage, CollectorResponse::Never]
    {
        let collector = Collector::start(answer).await;
        let endpoint = collector.endpoint.clone();
        let (app, sink, exporter) = recording(&endpoint).await;
        register(&app, GREET).await;
        let (id, _) = start(&app, &[PARENT], json!({"path": "tests/greet"})).await;
        end(&app, id).await;
        app.close().await;
        exporter.close().await;
        let counts = sink.counts();
        let lost = counts.failed + counts.dropped;
        assert_eq!(lost == 0, answer == CollectorResponse::Garbage, "{answer:?}: {counts:?}");
        collector.close().await;
    }
}

#[tokio::test]
async fn a_trace_is_propagated_without_an_exporter() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let (id, reply) = start(&app, &[PARENT], json!({"path": "tests/greet"})).await;
    assert_eq!(reply, PARENT);
    assert_eq!(stored_trace(&app, id).await, json!({ "traceparent": PARENT }));
    // A worker gets it with the command, whose id is its span.
    let command = open_command(&app, id).await;
    let expected = json!({ "traceparent": format!("00-{TRACE}-{command:016x}-01") });
    let (_, shown) = get(&app, &format!("/api/commands/{command}")).answer().await;
    assert_eq!(shown["meta"]["trace"], expected);
    let lease = json!({"worker_id": "w", "kinds": ["python"], "wait_seconds": 0});
    let (_, leased) = post(&app, "/api/worker/lease", lease.to_string()).answer().await;
    assert_eq!(leased["commands"][0]["issued"]["meta"]["trace"], expected);
    app.close().await;
}

#[tokio::test]
async fn requests_without_a_valid_trace_get_one_only_in_the_response() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let mut seen = Vec::new();
    let other = PARENT.replace("4bf9", "0000");
    let wrong = [
        &[][..],
        &["00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
        &["hello"],
        &[""],
        // Which of two would it be?
        &[PARENT, &other],
    ];
    for parents in wrong {
        let (id, reply) = start(&app, parents, json!({"path": "tests/greet"})).await;
        assert_eq!(
            stored_trace(&app, id).await,
            Value::Null,
            "{parents:?}: no collector gets its spans"
        );
        let parts: Vec<&str> = reply.split('-').collect();
        assert_eq!(parts.iter().map(|it| it.len()).collect::<Vec<_>>(), [2, 32, 16, 2]);
        assert_ne!(parts[1], TRACE);
        assert!(!seen.contains(&reply), "{reply} again");
        seen.push(reply);
    }
    // A state that is none is left out, and the parent stays.
    let ask = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#)
        .header("traceparent", PARENT)
        .header("tracestate", "NOT a state");
    let (_, body) = ask.answer().await;
    let id = body["execution_id"].as_str().expect("text").parse().expect("an id");
    assert_eq!(stored_trace(&app, id).await, json!({ "traceparent": PARENT }));
    for path in ["/api/nowhere", "/api/health"] {
        let response = get(&app, path).header("traceparent", PARENT).send().await;
        assert_eq!(response.headers()["traceparent"], PARENT, "{path}");
    }
    app.close().await;
}

#[tokio::test]
async fn without_a_collector_http_calls_carry_only_the_trace_of_the_caller() {
    let tools = ToolRegistry::default().with(Http::new(Arc::default()));
    let app = TestApp::builder().tools(tools).start().await;
    let (url, mut asked) = far_side().await;
    let asks = format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: asks, path: tests/asks}}\n\
         workflow:\n  - step: ask\n    tool: {{kind: http, url: '{url}'}}\n"
    );
    register(&app, &asks).await;
    let (id, _) = start(&app, &[], json!({"path": "tests/asks"})).await;
    end(&app, id).await;
    let headers = asked.recv().await.expect("a request");
    assert_eq!(headers.get("traceparent"), None);
    let (id, _) = start(&app, &[PARENT], json!({"path": "tests/asks"})).await;
    end(&app, id).await;
    let headers = asked.recv().await.expect("a request");
    let parent = headers["traceparent"].to_str().expect("text");
    assert!(parent.contains(TRACE), "the caller's trace goes on: {parent}");
    app.close().await;
}

#[tokio::test]
async fn the_trace_of_the_body_overrides_the_header_and_the_header_overrides_the_parent() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let of = |n: u32| format!("00-{n:032x}-00f067aa0ba902b7-01");
    let body = json!({
        "path": "tests/greet",
        "trace": {"traceparent": of(1), "tracestate": "a=b", "baggage": "c=d"},
    });
    let (above, reply) = start(&app, &[&of(2)], body.clone()).await;
    assert_eq!(reply, of(2), "the request's own");
    let trace = json!({"traceparent": of(1), "tracestate": "a=b", "baggage": "c=d"});
    assert_eq!(stored_trace(&app, above).await, trace);
    let below = json!({"path": "tests/greet", "parent_execution_id": above.to_string()});
    let (id, _) = start(&app, &[&of(3)], below.clone()).await;
    assert_eq!(stored_trace(&app, id).await, json!({ "traceparent": of(3) }));
    // Without a trace in the request, the trace of the parent execution applies.
    let (id, _) = start(&app, &[], below).await;
    let span = format!("00-{:032x}-{above:016x}-01", 1);
    let inherited = json!({"traceparent": span, "tracestate": "a=b", "baggage": "c=d"});
    assert_eq!(stored_trace(&app, id).await, inherited);
    // Invalid values in a body are ignored.
    let wrong = json!({"path": "tests/greet", "trace": {"traceparent": 7, "baggage": []}});
    let (id, _) = start(&app, &[&of(4)], wrong).await;
    assert_eq!(stored_trace(&app, id).await, json!({ "traceparent": of(4) }));
    // Each of a batch for itself.
    let batch = json!({"executions": [body, {"path": "tests/greet"}]}).to_string();
    let ask = post(&app, "/api/execute/batch", batch).header("traceparent", &of(5));
    let (_, answer) = ask.answer().await;
    let id = |n: usize| answer["results"][n]["execution_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(stored_trace(&app, id(0)).await, trace);
    assert_eq!(stored_trace(&app, id(1)).await, json!({ "traceparent": of(5) }));
    app.close().await;
}

#[tokio::test]
async fn a_rerun_belongs_to_the_trace_of_its_caller() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let (id, _) = start(&app, &[PARENT], json!({"path": "tests/greet"})).await;
    post(&app, &format!("/api/executions/{id}/cancel"), "{}").answer().await;
    for (n, verb) in (1..).zip(["rerun", "fork", "retry"]) {
        let parent = format!("00-{n:032x}-00f067aa0ba902b7-00");
        let ask = post(&app, &format!("/api/executions/{id}/{verb}"), "{}");
        let (status, answer) = ask.header("traceparent", &parent).answer().await;
        assert_eq!(status, 200, "{verb}: {answer}");
        let new = answer["execution_id"].as_str().expect("text").parse().expect("an id");
        assert_eq!(stored_trace(&app, new).await, json!({ "traceparent": parent }), "{verb}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_trace_not_sampled_by_its_caller_is_not_exported() {
    let mut collector = Collector::start(CollectorResponse::Success).await;
    let (app, _, exporter) = recording(&collector.endpoint).await;
    register(&app, GREET).await;
    let unsampled = PARENT.replace("-01", "-00");
    let (id, reply) = start(&app, &[&unsampled], json!({"path": "tests/greet"})).await;
    assert_eq!(reply, unsampled);
    end(&app, id).await;
    let other = PARENT.replace("4bf9", "0000");
    let (id, _) = start(&app, &[&other], json!({"path": "tests/greet"})).await;
    end(&app, id).await;
    let spans = collector.spans_until(|span| span.name == "tests/greet").await;
    assert!(spans.iter().all(|span| hex(&span.trace_id) != TRACE), "{spans:#?}");
    app.close().await;
    exporter.close().await;
    collector.close().await;
}

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn log_lines_of_a_request_name_its_trace() {
    let written = LogBuffer::default();
    let writer = written.clone();
    let logging = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // The runtime of this test has one thread, so that is enough.
    let _logging = tracing::subscriber::set_default(logging);
    let app = TestApp::start(0).await;
    app.store.set_down(true);
    let ask = get(&app, "/api/executions/5").header("traceparent", PARENT);
    assert_eq!(ask.send().await.status(), 503);
    app.store.set_down(false);
    app.close().await;
    let log = String::from_utf8(written.0.lock().unwrap().clone()).expect("text");
    let line = log.lines().find(|line| line.contains("store is unavailable"));
    assert!(line.is_some_and(|line| line.contains(&format!("trace_id={TRACE}"))), "{log}");
}
