//! Finished spans and their export.

use std::sync::Arc;

use super::{SpanId, Trace};
use crate::Timestamp;

/// OpenTelemetry kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Span of a handled request.
    Server,
    /// Span of an internal operation.
    Internal,
}

/// Value of a span attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    Text(Arc<str>),
    Number(i64),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }
}

impl From<Arc<str>> for Attribute {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Attribute {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// A finished span of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Trace that the span belongs to.
    pub trace: Arc<Trace>,
    pub id: SpanId,
    /// Parent span. `None` for the root of the trace.
    pub parent: Option<SpanId>,
    /// Operation name of the span.
    pub name: Arc<str>,
    pub kind: SpanKind,
    pub from: Timestamp,
    /// End time. Never before `from`.
    pub to: Timestamp,
    /// Further attributes, by name.
    pub attributes: Vec<(&'static str, Attribute)>,
    pub error: Option<String>,
}

/// Cumulative export statistics in numbers of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanCounts {
    pub exported: u64,
    /// Spans dropped because the queue was full.
    pub dropped: u64,
    /// Spans that the collector rejected or that could not be delivered.
    pub failed: u64,
}

/// Destination of finished spans. Never blocks and never fails: spans that exceed its capacity are
/// dropped and counted.
pub trait SpanSink: Send + Sync {
    /// Queues a span for export, or drops it if the queue is full.
    fn offer(&self, span: Span);

    fn counts(&self) -> SpanCounts;
}
