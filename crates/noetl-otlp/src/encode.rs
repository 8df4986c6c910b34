//! Converts spans to OTLP messages.

use noetl_model::Timestamp;
use noetl_model::trace::{Attribute, Span, SpanKind};
use prost::Message as _;

use crate::messages::{
    AnyValue, AttributeValue, ExportTraceServiceRequest, InstrumentationScope, KeyValue, Resource,
    ResourceSpans, ScopeSpans, SpanKind as Kind, SpanMessage as Message, SpanStatus, StatusCode,
};

/// Returns the resource, which describes this process.
pub(crate) fn resource(named: &[(String, String)]) -> Resource {
    let text = |(name, value): &(String, String)| pair(name, AttributeValue::Text(value.clone()));
    Resource { attributes: named.iter().map(text).collect() }
}

/// Encodes an export request with these spans.
pub(crate) fn request(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let scope = InstrumentationScope {
        name: "noetl".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let spans = spans.iter().map(message).collect();
    let of_scope = ScopeSpans { scope: Some(scope), spans };
    let of_resource =
        ResourceSpans { resource: Some(resource.clone()), scope_spans: vec![of_scope] };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
}

fn message(span: &Span) -> Message {
    let status = span
        .error
        .as_ref()
        .map(|error| SpanStatus { message: error.clone(), code: StatusCode::Error.into() });
    let kind = match span.kind {
        SpanKind::Server => Kind::Server,
        SpanKind::Internal => Kind::Internal,
    };
    Message {
        trace_id: span.trace.id.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
        trace_state: span.trace.state.as_deref().unwrap_or_default().to_owned(),
        name: span.name.to_string(),
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(span.from),
        end_time_unix_nano: nanoseconds(span.to),
        attributes: span.attributes.iter().map(attribute).collect(),
        status,
    }
}

fn attribute((name, value): &(&'static str, Attribute)) -> KeyValue {
    pair(
        name,
        match value {
            Attribute::Text(text) => AttributeValue::Text(text.to_string()),
            Attribute::Number(number) => AttributeValue::Number(*number),
        },
    )
}

fn pair(name: &str, value: AttributeValue) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: name.to_owned(), value }
}

/// Converts a time to nanoseconds since 1970; 0 for earlier times.
fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_micros()).unwrap_or_default().saturating_mul(1000)
}
