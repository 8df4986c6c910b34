//! An OTLP trace collector on a free local port, to inspect exported spans.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Response of a collector to each export request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectorResponse {
    /// Stores the spans and reports success.
    Success,
    /// Responds with this HTTP status and an empty body.
    Status(u16),
    /// Responds with status 200 and a body that does not parse.
    Garbage,
    /// Stores the spans and reports this many as rejected.
    PartialSuccess(i64),
    /// Keeps the request open without a response.
    Never,
}

/// Content of one export request.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// Exported spans, in the order of the request.
    pub spans: Vec<Span>,
    /// Resource attributes of the exporter, as text.
    pub resource: Vec<(String, String)>,
    /// HTTP headers of the request.
    pub headers: HeaderMap,
}

/// A running collector. Close it at the end of the test.
pub struct Collector {
    pub endpoint: String,
    state: Arc<State>,
    requests: watch::Receiver<usize>,
    server: JoinHandle<()>,
}

struct State {
    response: Mutex<CollectorResponse>,
    collected: Mutex<Vec<Collected>>,
    requests: watch::Sender<usize>,
}

impl Collector {
    /// Starts a collector with this response.
    pub async fn start(response: CollectorResponse) -> Self {
        let (sender, requests) = watch::channel(0);
        let state = Arc::new(State {
            response: Mutex::new(response),
            collected: Mutex::default(),
            requests: sender,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let app = Router::new().route("/v1/traces", post(export)).with_state(state.clone());
        let server = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("the listener stays open");
        });
        let endpoint = format!("http://{address}/v1/traces");
        Self { endpoint, state, requests, server }
    }

    /// Changes the response to later requests.
    pub fn set_response(&self, response: CollectorResponse) {
        *self.state.response.lock().unwrap_or_else(PoisonError::into_inner) = response;
    }

    /// Waits until the collector has received at least `count` requests.
    pub async fn wait_for_requests(&mut self, count: usize) {
        let received = self.requests.wait_for(|requests| *requests >= count).await;
        received.expect("the collector runs");
    }

    /// Returns the stored requests, oldest first.
    pub fn collected(&self) -> Vec<Collected> {
        self.state.collected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a span that matches, and returns all spans stored until then.
    pub async fn spans_until(&mut self, matches: impl Fn(&Span) -> bool) -> Vec<Span> {
        loop {
            self.requests.mark_unchanged();
            let spans: Vec<Span> =
                self.collected().into_iter().flat_map(|request| request.spans).collect();
            if spans.iter().any(&matches) {
                return spans;
            }
            self.requests.changed().await.expect("the collector runs");
        }
    }

    pub async fn close(self) {
        self.server.abort();
        let _ = self.server.await;
    }
}

async fn export(
    extract::State(state): extract::State<Arc<State>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, StatusCode> {
    let request = ExportTraceServiceRequest::decode(body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let response = *state.response.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(response, CollectorResponse::Success | CollectorResponse::PartialSuccess(_)) {
        let mut collected = Collected { headers, ..Collected::default() };
        for part in request.resource_spans {
            let resource = part.resource.unwrap_or_default();
            collected.resource.extend(resource.attributes.iter().map(text));
            collected.spans.extend(part.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        state.collected.lock().unwrap_or_else(PoisonError::into_inner).push(collected);
    }
    state.requests.send_modify(|requests| *requests += 1);
    let partial_success = |rejected_spans| ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans,
            ..ExportTracePartialSuccess::default()
        }),
    };
    let body = match response {
        CollectorResponse::Success => ExportTraceServiceResponse::default().encode_to_vec(),
        CollectorResponse::PartialSuccess(rejected) => partial_success(rejected).encode_to_vec(),
        CollectorResponse::Garbage => b"<html>\xff\xff no collector here".to_vec(),
        CollectorResponse::Status(status) => {
            return Err(StatusCode::from_u16(status).expect("a status"));
        }
        CollectorResponse::Never => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Vec::new()
        }
    };
    Ok(Response::new(Body::from(body)))
}

/// Returns an attribute's name and its value as text, empty for other types than text and integer.
fn text(pair: &KeyValue) -> (String, String) {
    let value = pair.value.as_ref().and_then(|value| value.value.clone());
    let value = match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    };
    (pair.key.clone(), value)
}

/// Returns the value of a span's attribute as text, or an empty text if the span lacks it.
pub fn attribute(span: &Span, name: &str) -> String {
    let matching = span.attributes.iter().find(|pair| pair.key == name);
    matching.map(|pair| text(pair).1).unwrap_or_default()
}
