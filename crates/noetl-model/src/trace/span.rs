//! Spans that have ended, and where they go.

use std::sync::Arc;

use super::{SpanId, Trace};
use crate::Timestamp;

/// What a span stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that was answered.
    Server,
    /// Something that happened within.
    Internal,
}

/// A value of a span's attribute.
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

/// A part of a trace that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The trace it is of.
    pub trace: Arc<Trace>,
    pub id: SpanId,
    /// The span it is below; `None` where the trace begins with it.
    pub parent: Option<SpanId>,
    /// What it is called.
    pub name: Arc<str>,
    /// What it stands for.
    pub kind: SpanKind,
    pub from: Timestamp,
    /// When it ended, not before it began.
    pub to: Timestamp,
    /// What is known of it besides.
    pub attributes: Vec<(&'static str, Attribute)>,
    pub error: Option<String>,
}

/// What became of spans so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanCounts {
    pub exported: u64,
    /// Those there was no room for.
    pub dropped: u64,
    /// Those that were not taken, or by nobody.
    pub failed: u64,
}

/// Where spans go. Offering one never waits and never fails: what there is no room for is counted.
pub trait SpanSink: Send + Sync {
    /// Takes a span.
    fn offer(&self, span: Span);

    /// What became of those offered.
    fn counts(&self) -> SpanCounts;
}
