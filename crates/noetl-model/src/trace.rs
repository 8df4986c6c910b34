//! Traces: which larger story a request, an execution or a command belongs to.
//!
//! The form is that of the W3C recommendation Trace Context. A trace has an id and is made of spans,
//! each with an id and a parent. The spans of executions and commands are known by ids the log has
//! anyway: an execution's span is its id, a command's is the id of its `command.issued`. So whoever
//! holds the log knows them, whichever process that is, and nothing has to be kept besides the trace.

mod sampler;
mod span;
mod state;

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{CommandId, ExecutionId, Map, Value};

pub use sampler::{Ratio, Root, Sampler};
pub use span::{Attribute, Span, SpanCounts, SpanKind, SpanSink};

/// The header, and the field of `trace`, that name a trace and a span of it.
pub const TRACEPARENT: &str = "traceparent";
/// The header, and the field of `trace`, with what vendors keep with a trace.
pub const TRACESTATE: &str = "tracestate";

/// Whoever set it may have recorded the trace.
const SAMPLED: u8 = 0b01;
/// Flags that are known; others are not passed on.
const FLAGS: u8 = 0b11;
/// The longest baggage the recommendation asks to pass on.
const BAGGAGE_MAX: usize = 8192;

/// The id of a span within its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

impl SpanId {
    /// The span of this number; that of 0, which is none, is 1.
    pub fn new(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// The span of an execution.
    pub fn of_execution(id: ExecutionId) -> Self {
        Self::new(id.get().cast_unsigned())
    }

    /// The span of a command.
    pub fn of_command(id: CommandId) -> Self {
        Self::new(id.get().cast_unsigned())
    }

    /// Its bytes, most significant first.
    pub const fn bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(NonZeroU128);

impl TraceId {
    /// The trace of this number; that of 0, which is none, is 1.
    pub fn new(number: u128) -> Self {
        Self(NonZeroU128::new(number).unwrap_or(NonZeroU128::MIN))
    }

    /// Its bytes, most significant first.
    pub const fn bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What all spans of a trace share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    pub id: TraceId,
    /// What vendors keep with it, as the header carries it.
    pub state: Option<Box<str>>,
    flags: u8,
}

impl Trace {
    /// A trace that nothing is known of yet.
    pub fn new(id: TraceId, is_sampled: bool) -> Self {
        Self { id, state: None, flags: u8::from(is_sampled) }
    }

    /// Whether its spans are to be recorded.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// A span of a trace, as one side names it to the other: what comes next is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: Arc<Trace>,
    pub span: SpanId,
    /// What the caller wants passed on with the trace.
    pub baggage: Option<Arc<str>>,
}

impl TraceContext {
    /// The span of a trace.
    pub fn new(trace: Arc<Trace>, span: SpanId) -> Self {
        Self { trace, span, baggage: None }
    }

    /// What a caller said. A `traceparent` that is not as the recommendation wants it is as good as
    /// none; a `tracestate` that is not is left out.
    pub fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let (id, span, flags) = read_parent(parent)?;
        let state = state.and_then(state::read).map(String::into_boxed_str);
        Some(Self::new(Arc::new(Trace { id, state, flags }), span))
    }

    /// The same with the caller's baggage, unless that is nothing a header can carry.
    #[must_use]
    pub fn with_baggage(mut self, baggage: Option<&str>) -> Self {
        let is_header = |text: &&str| {
            let is_visible = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            !text.trim().is_empty() && text.len() <= BAGGAGE_MAX && is_visible
        };
        self.baggage = baggage.filter(is_header).map(Arc::from);
        self
    }

    /// The same, recorded or not.
    #[must_use]
    pub fn sampled(mut self, is_sampled: bool) -> Self {
        if self.trace.is_sampled() != is_sampled {
            let flags = self.trace.flags & !SAMPLED | u8::from(is_sampled);
            self.trace = Arc::new(Trace { flags, ..(*self.trace).clone() });
        }
        self
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn at(&self, span: SpanId) -> Self {
        Self { span, ..self.clone() }
    }

    /// What the header `traceparent` says of it.
    pub fn parent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace.id, self.span, self.trace.flags)
    }
}

/// The id of the trace, the span and the flags of a `traceparent`.
fn read_parent(text: &str) -> Option<(TraceId, SpanId, u8)> {
    let is_known = text.is_ascii() && text.len() >= 55;
    let (known, rest) = is_known.then(|| text.split_at(55))?;
    let mut parts = known.split('-');
    let version = hex(parts.next()?, 2)?;
    let (trace, span) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
    let flags = u8::try_from(hex(parts.next()?, 2)?).ok()?;
    // A later version may add to what is known, after another dash.
    let fits = match version {
        0x00 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let trace = TraceId(NonZeroU128::new(trace)?);
    let span = SpanId(NonZeroU64::new(u64::try_from(span).ok()?)?);
    (fits && parts.next().is_none()).then_some((trace, span, flags & FLAGS))
}

/// A number of so many digits. Capitals are not allowed.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (text.len() == digits && is_hex).then(|| u128::from_str_radix(text, 16).ok())?
}

/// As rows, requests and messages carry it: the object `trace`.
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

/// Reads a `trace`, or nothing where it is not one: no log becomes unreadable for it.
pub fn kept<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TraceContext>, D::Error> {
    let value: Option<Value> = Option::deserialize(from)?;
    Ok(value.as_ref().and_then(Value::as_object).and_then(TraceContext::of_fields))
}

impl TraceContext {
    /// What the fields of a `trace` say. What is not as the recommendation wants it is left out.
    pub fn of_fields(fields: &Map) -> Option<Self> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let read = Self::read(text(TRACEPARENT)?, text(TRACESTATE))?;
        Some(read.with_baggage(text("baggage")))
    }
}

#[cfg(test)]
mod tests;
