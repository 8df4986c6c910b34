//! Assigns traces to requests and executions, and exports their spans.

use std::fmt;
use std::sync::Arc;

use noetl_identity::entropy;
use noetl_model::TraceContext;
use noetl_model::trace::{Sampler, Span, SpanCounts, SpanId, SpanSink, Trace, TraceId};

/// Tracing of a control plane. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces {
    sink: Option<Arc<dyn SpanSink>>,
    sampler: Sampler,
}

/// Trace context of a request.
#[derive(Debug, Clone)]
pub struct IncomingTrace {
    /// Span that is the parent of everything the request causes.
    pub context: TraceContext,
    /// Span that the caller sent.
    pub parent: Option<SpanId>,
    /// Whether the request has its own span, to be exported when it ends.
    pub is_recorded: bool,
}

impl IncomingTrace {
    /// Returns `true` if the caller sent the trace.
    pub fn is_said(&self) -> bool {
        self.parent.is_some()
    }
}

/// Trace of an execution to start.
#[derive(Debug, Clone, Default)]
pub enum TraceParent {
    /// Trace that the caller sent.
    Said(TraceContext),
    /// Trace created for the request, used unless the parent execution has one. Not used if spans
    /// are not exported.
    Made(TraceContext),
    /// No trace was sent: uses that of the parent execution, or else a new one if spans are
    /// exported, and none otherwise.
    #[default]
    Unsaid,
}

impl Traces {
    /// Propagates traces without exporting spans.
    pub fn passed_on(sampler: Sampler) -> Self {
        Self { sink: None, sampler }
    }

    /// Exports the spans of sampled traces to `sink`.
    pub fn recorded(sink: Arc<dyn SpanSink>, sampler: Sampler) -> Self {
        Self { sink: Some(sink), sampler }
    }

    /// Returns `true` if spans are exported.
    pub fn is_recording(&self) -> bool {
        self.sink.is_some()
    }

    /// Returns the trace context of a request whose caller sent `said`.
    pub fn receive(&self, said: Option<TraceContext>) -> IncomingTrace {
        let Some(said) = said else {
            let context = self.begin();
            let is_recorded = self.is_recording() && context.trace.is_sampled();
            return IncomingTrace { context, parent: None, is_recorded };
        };
        let parent = Some(said.span);
        let takes = self.sampler.takes(&said);
        let said = said.sampled(takes);
        let is_recorded = self.is_recording() && takes;
        // If the request has no span, its effects are children of the caller's span.
        let context = if is_recorded { said.with_span(SpanId::new(entropy())) } else { said };
        IncomingTrace { context, parent, is_recorded }
    }

    pub(crate) fn begin(&self) -> TraceContext {
        let id = TraceId::new(u128::from(entropy()) << 64 | u128::from(entropy()));
        let trace = Trace::new(id, self.sampler.takes_new(id));
        TraceContext::new(Arc::new(trace), SpanId::new(entropy()))
    }

    /// Exports a span. Never blocks.
    pub fn tell(&self, span: Span) {
        if let Some(sink) = &self.sink {
            sink.offer(span);
        }
    }

    /// Returns the numbers of exported, dropped, and failed spans.
    pub fn counts(&self) -> SpanCounts {
        self.sink.as_ref().map(|sink| sink.counts()).unwrap_or_default()
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("is_recording", &self.is_recording()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use noetl_model::trace::RootSampling;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[derive(Default)]
    struct Told(Mutex<Vec<Span>>);

    impl SpanSink for Told {
        fn offer(&self, span: Span) {
            self.0.lock().unwrap().push(span);
        }

        fn counts(&self) -> SpanCounts {
            SpanCounts::default()
        }
    }

    fn said() -> Option<TraceContext> {
        TraceContext::read(PARENT, None)
    }

    #[test]
    fn without_an_exporter_the_callers_span_is_passed_on() {
        let received = Traces::default().receive(said());
        assert_eq!(received.context.parent(), PARENT);
        assert!(received.is_said() && !received.is_recorded);
    }

    #[test]
    fn with_an_exporter_a_request_has_a_span_of_its_own() {
        let traces = Traces::recorded(Arc::new(Told::default()), Sampler::default());
        let received = traces.receive(said());
        assert_eq!(received.context.trace, said().unwrap().trace);
        assert_ne!(Some(received.context.span), received.parent);
        assert!(received.is_recorded);
        let unsampled = traces.receive(said().map(|said| said.sampled(false)));
        assert!(!unsampled.is_recorded);
        assert_eq!(Some(unsampled.context.span), unsampled.parent);
    }

    #[test]
    fn a_request_without_a_trace_gets_one_of_its_own() {
        let traces = Traces::default();
        let (one, other) = (traces.receive(None), traces.receive(None));
        assert_ne!(one.context.trace.id, other.context.trace.id);
        assert!(!one.is_said() && one.context.trace.is_sampled());
        let none = Sampler { root: RootSampling::None, follows_caller: true };
        assert!(!Traces::passed_on(none).receive(None).context.trace.is_sampled());
    }
}
