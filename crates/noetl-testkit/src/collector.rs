//! A collector of spans, on a free port of this machine.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
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

/// How a collector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// As it should.
    Well,
    /// With a status and nothing else.
    Status(u16),
    /// With a body that nobody can read.
    Rubbish,
    /// That it did not keep so many spans.
    Partly(i64),
    /// Never.
    Never,
}

/// What came with one request.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// Its spans.
    pub spans: Vec<Span>,
    /// What the other side says of itself.
    pub resource: Vec<(String, String)>,
    /// Its headers.
    pub headers: HeaderMap,
}

/// A running collector.
pub struct Collector {
    /// The address that takes traces.
    pub endpoint: String,
    state: Arc<Held>,
    asked: watch::Receiver<usize>,
    server: JoinHandle<()>,
}

struct Held {
    answer: Mutex<Answer>,
    collected: Mutex<Vec<Collected>>,
    asked: watch::Sender<usize>,
}

impl Collector {
    /// Starts one that answers like this.
    pub async fn start(answer: Answer) -> Self {
        let (asked, seen) = watch::channel(0);
        let state =
            Arc::new(Held { answer: Mutex::new(answer), collected: Mutex::default(), asked });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let app = Router::new().route("/v1/traces", post(take)).with_state(state.clone());
        let server = tokio::spawn(async move {
            axum::serve(listener, app).await.expect("a listener that stays");
        });
        let endpoint = format!("http://{address}/v1/traces");
        Self { endpoint, state, asked: seen, server }
    }

    /// Answers like this from here on.
    pub fn answer(&self, answer: Answer) {
        *self.state.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Waits until it was asked so often.
    pub async fn asked(&mut self, times: usize) {
        self.asked.wait_for(|asked| *asked >= times).await.expect("a collector that runs");
    }

    /// What came so far.
    pub fn collected(&self) -> Vec<Collected> {
        self.state.collected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a span that is as wanted, and gives all that came until then.
    pub async fn spans_until(&mut self, is_wanted: impl Fn(&Span) -> bool) -> Vec<Span> {
        loop {
            self.asked.mark_unchanged();
            let spans: Vec<Span> =
                self.collected().into_iter().flat_map(|request| request.spans).collect();
            if spans.iter().any(&is_wanted) {
                return spans;
            }
            self.asked.changed().await.expect("a collector that runs");
        }
    }

    /// Stops it.
    pub async fn close(self) {
        self.server.abort();
        let _ = self.server.await;
    }
}

async fn take(
    State(state): State<Arc<Held>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, StatusCode> {
    let request = ExportTraceServiceRequest::decode(body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let answer = *state.answer.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(answer, Answer::Well | Answer::Partly(_)) {
        let mut collected = Collected { headers, ..Collected::default() };
        for part in request.resource_spans {
            let resource = part.resource.unwrap_or_default();
            collected.resource.extend(resource.attributes.iter().map(text));
            collected.spans.extend(part.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        state.collected.lock().unwrap_or_else(PoisonError::into_inner).push(collected);
    }
    state.asked.send_modify(|asked| *asked += 1);
    let partly = |rejected_spans| ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans,
            ..ExportTracePartialSuccess::default()
        }),
    };
    let body = match answer {
        Answer::Well => ExportTraceServiceResponse::default().encode_to_vec(),
        Answer::Partly(rejected) => partly(rejected).encode_to_vec(),
        Answer::Rubbish => b"<html>\xff\xff no collector here".to_vec(),
        Answer::Status(status) => {
            return Err(StatusCode::from_u16(status).expect("a status"));
        }
        Answer::Never => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Vec::new()
        }
    };
    Ok(Response::new(Body::from(body)))
}

/// The text of an attribute; empty when it is none.
fn text(pair: &KeyValue) -> (String, String) {
    let value = pair.value.as_ref().and_then(|value| value.value.clone());
    let value = match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    };
    (pair.key.clone(), value)
}

/// The value of a span's attribute; empty when it has none.
pub fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|pair| pair.key == name);
    found.map(|pair| text(pair).1).unwrap_or_default()
}
