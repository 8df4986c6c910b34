//! Trace of a request, following the W3C Trace Context recommendation.
//!
//! A caller names its trace with `traceparent` and `tracestate`; a request without them gets a new
//! trace. Lines logged during the request carry the trace ID. The response names the request's
//! span, which is the parent of all spans that follow from the request.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use noetl_journal::{IncomingTrace, TraceParent};
use noetl_model::trace::{self, Span, SpanKind};
use noetl_model::{Map, Timestamp, TraceContext};
use tracing::Instrument as _;

use crate::app::App;

const TRACEPARENT: HeaderName = HeaderName::from_static(trace::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static(trace::TRACESTATE);

/// Trace context of a request.
#[derive(Clone)]
pub(crate) struct RequestTrace(Arc<IncomingTrace>);

impl RequestTrace {
    /// Returns the trace of an execution that the request starts: the one named in its body, the
    /// caller's, or a new one.
    pub(crate) fn start(&self, named: Option<&Map>) -> TraceParent {
        match named.and_then(TraceContext::of_fields) {
            Some(named) => TraceParent::Said(named),
            None if self.0.is_said() => TraceParent::Said(self.0.context.clone()),
            None => TraceParent::Made(self.0.context.clone()),
        }
    }
}

impl FromRequestParts<App> for RequestTrace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<Self>().cloned();
        Ok(known.unwrap_or_else(|| Self(Arc::new(app.control.journal.traces.receive(None)))))
    }
}

/// Reads or creates the trace of a request, and exports its span if the trace is sampled.
pub(crate) async fn follow(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let received = Arc::new(app.control.journal.traces.receive(said(request.headers())));
    request.extensions_mut().insert(RequestTrace(received.clone()));
    // At the highest level, so that the span exists at every configured log level.
    let logged = tracing::error_span!("request", trace_id = %received.context.trace.id);
    let beginning = received.is_recorded.then(|| Beginning::from_request(&app, &request));
    let mut response = next.run(request).instrument(logged).await;
    if let Some(beginning) = beginning {
        app.control.journal.traces.tell(beginning.ended(&app, &received, response.status()));
    }
    if let Ok(parent) = HeaderValue::try_from(received.context.parent()) {
        response.headers_mut().insert(TRACEPARENT, parent);
    }
    response
}

/// Parses the caller's trace headers. Several `traceparent` headers count as none.
fn said(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let states: Vec<&str> =
        headers.get_all(TRACESTATE).iter().map(|state| state.to_str().unwrap_or("=")).collect();
    let state = match &states[..] {
        [] => None,
        [one] => Some(Cow::Borrowed(*one)),
        several => Some(Cow::Owned(several.join(","))),
    };
    TraceContext::read(parent.to_str().ok()?, state.as_deref())
}

/// Data of a request that is recorded when it arrives.
struct Beginning {
    at: Timestamp,
    method: Method,
    /// Route pattern, never the requested path, which may contain anything.
    route: Option<MatchedPath>,
}

impl Beginning {
    fn from_request(app: &App, request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>().cloned();
        Self { at: app.control.now(), method: request.method().clone(), route }
    }

    fn ended(self, app: &App, received: &IncomingTrace, status: StatusCode) -> Span {
        let route = self.route.as_ref().map(MatchedPath::as_str);
        let name = match route {
            Some(route) => format!("{} {route}", self.method),
            None => self.method.to_string(),
        };
        let mut attributes = vec![
            ("http.request.method", self.method.as_str().into()),
            ("http.response.status_code", i64::from(status.as_u16()).into()),
        ];
        attributes.extend(route.map(|route| ("http.route", route.into())));
        Span {
            trace: received.context.trace.clone(),
            id: received.context.span,
            parent: received.parent,
            name: Arc::from(name),
            kind: SpanKind::Server,
            from: self.at,
            to: app.control.now().max(self.at),
            attributes,
            error: status.is_server_error().then(|| status.to_string()),
        }
    }
}
