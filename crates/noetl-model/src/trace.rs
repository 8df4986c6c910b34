//! Distributed tracing: trace context of requests, executions, and commands.
//!
//! The format follows the W3C Trace Context recommendation. A trace has an ID and consists of
//! spans, each with an ID and a parent. Span IDs of executions and commands derive from IDs in the
//! event log: an execution's span ID is the execution ID, and a command's is the ID of its
//! `command.issued` event. Any process that reads the log can compute them, so only the trace
//! itself is stored.

mod sampler;
mod span;
mod state;

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{CommandId, ExecutionId, Map, Value};

pub use sampler::{Ratio, RootSampling, Sampler};
pub use span::{Attribute, Span, SpanCounts, SpanKind, SpanSink};

/// Header, and field of `trace`, that identifies a trace and a span in it.
pub const TRACEPARENT: &str = "traceparent";
/// Header, and field of `trace`, that carries vendor-specific trace data.
pub const TRACESTATE: &str = "tracestate";

/// Flag bit: the caller may have recorded the trace.
const SAMPLED: u8 = 0b01;
/// Mask of the known flags. Others are not propagated.
const FLAGS: u8 = 0b11;
/// Maximum baggage length in bytes, the limit that the recommendation asks to propagate.
const BAGGAGE_MAX: usize = 8192;

/// ID of a span within its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

impl SpanId {
    /// Creates a span ID. Maps 0, which is invalid, to 1.
    pub fn new(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the span ID of an execution.
    pub fn of_execution(id: ExecutionId) -> Self {
        Self::new(id.get().cast_unsigned())
    }

    /// Returns the span ID of a command.
    pub fn of_command(id: CommandId) -> Self {
        Self::new(id.get().cast_unsigned())
    }

    /// Returns the bytes, most significant first.
    pub const fn bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// ID of a trace. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(NonZeroU128);

impl TraceId {
    /// Creates a trace ID. Maps 0, which is invalid, to 1.
    pub fn new(number: u128) -> Self {
        Self(NonZeroU128::new(number).unwrap_or(NonZeroU128::MIN))
    }

    /// Returns the bytes, most significant first.
    pub const fn bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Properties shared by all spans of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    pub id: TraceId,
    /// Vendor-specific trace data, as the `tracestate` header carries it.
    pub state: Option<Box<str>>,
    flags: u8,
}

impl Trace {
    /// Creates a trace without vendor data.
    pub fn new(id: TraceId, is_sampled: bool) -> Self {
        Self { id, state: None, flags: u8::from(is_sampled) }
    }

    /// Returns `true` if spans of the trace are to be recorded.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// Reference to a span, as propagated between processes. New spans become its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: Arc<Trace>,
    pub span: SpanId,
    /// Baggage that the caller asks to propagate with the trace.
    pub baggage: Option<Arc<str>>,
}

impl TraceContext {
    /// Creates a context without baggage.
    pub fn new(trace: Arc<Trace>, span: SpanId) -> Self {
        Self { trace, span, baggage: None }
    }

    /// Parses the headers of a caller. Returns `None` for an invalid `traceparent`; drops an
    /// invalid `tracestate`.
    pub fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let (id, span, flags) = read_parent(parent)?;
        let state = state.and_then(state::read).map(String::into_boxed_str);
        Some(Self::new(Arc::new(Trace { id, state, flags }), span))
    }

    /// Sets the caller's baggage, or clears it if a header cannot carry it.
    #[must_use]
    pub fn with_baggage(mut self, baggage: Option<&str>) -> Self {
        let is_header = |text: &&str| {
            let is_visible = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            !text.trim().is_empty() && text.len() <= BAGGAGE_MAX && is_visible
        };
        self.baggage = baggage.filter(is_header).map(Arc::from);
        self
    }

    /// Sets whether the trace is recorded.
    #[must_use]
    pub fn sampled(mut self, is_sampled: bool) -> Self {
        if self.trace.is_sampled() != is_sampled {
            let flags = self.trace.flags & !SAMPLED | u8::from(is_sampled);
            self.trace = Arc::new(Trace { flags, ..(*self.trace).clone() });
        }
        self
    }

    /// Returns the context of another span of the same trace.
    #[must_use]
    pub fn with_span(&self, span: SpanId) -> Self {
        Self { span, ..self.clone() }
    }

    pub fn parent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace.id, self.span, self.trace.flags)
    }
}

/// Parses the trace ID, span ID, and flags of a `traceparent`.
fn read_parent(text: &str) -> Option<(TraceId, SpanId, u8)> {
    let is_known = text.is_ascii() && text.len() >= 55;
    let (known, rest) = is_known.then(|| text.split_at(55))?;
    let mut parts = known.split('-');
    let version = hex(parts.next()?, 2)?;
    let (trace, span) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
    let flags = u8::try_from(hex(parts.next()?, 2)?).ok()?;
    // Later versions may append fields after another dash.
    let fits = match version {
        0x00 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let trace = TraceId(NonZeroU128::new(trace)?);
    let span = SpanId(NonZeroU64::new(u64::try_from(span).ok()?)?);
    (fits && parts.next().is_none()).then_some((trace, span, flags & FLAGS))
}

/// Parses a hexadecimal number with exactly `digits` digits. Rejects uppercase digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (text.len() == digits && is_hex).then(|| u128::from_str_radix(text, 16).ok())?
}

/// The `trace` object as rows, requests, and messages carry it.
#[derive(Serialize)]
struct Carried<'a> {
    traceparent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baggage: Option<&'a str>,
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let carried = Carried {
            traceparent: self.parent(),
            tracestate: self.trace.state.as_deref(),
            baggage: self.baggage.as_deref(),
        };
        carried.serialize(to)
    }
}

/// Deserializes a `trace` object. Yields `None` if it is invalid, so that a log stays readable.
pub fn kept<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TraceContext>, D::Error> {
    let value: Option<Value> = Option::deserialize(from)?;
    Ok(value.as_ref().and_then(Value::as_object).and_then(TraceContext::of_fields))
}

impl TraceContext {
    /// Parses the fields of a `trace` object. Returns `None` without a valid `traceparent`; drops
    /// other invalid fields.
    pub fn of_fields(fields: &Map) -> Option<Self> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let read = Self::read(text(TRACEPARENT)?, text(TRACESTATE))?;
        Some(read.with_baggage(text("baggage")))
    }
}

#[cfg(test)]
mod tests;
