//! Which trace what happens belongs to, and where its spans go.

use std::fmt;
use std::sync::Arc;

use noetl_model::TraceContext;
use noetl_model::trace::{Sampler, Span, SpanCounts, SpanId, SpanSink, Trace, TraceId};

use crate::ids::entropy;

/// Traces of a control plane. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces {
    sink: Option<Arc<dyn SpanSink>>,
    sampler: Sampler,
}

/// A request's place in a trace.
#[derive(Debug, Clone)]
pub struct Received {
    /// The span that whatever follows from the request is below.
    pub context: TraceContext,
    /// The span its caller named.
    pub parent: Option<SpanId>,
    /// Whether the request has a span of its own, to be told of when it is over.
    pub is_recorded: bool,
}

impl Received {
    /// Whether the trace was the caller's.
    pub fn is_said(&self) -> bool {
        self.parent.is_some()
    }
}

/// The trace a start belongs to.
#[derive(Debug, Clone, Default)]
pub enum TraceOf {
    /// One that was said by whoever asks.
    Said(TraceContext),
    /// One that begins with the request, unless the execution that asks has one. None where spans go
    /// nowhere.
    Made(TraceContext),
    /// Nobody said anything: that of the execution that asks; else one of its own where spans go
    /// somewhere, and none where they do not.
    #[default]
    Unsaid,
}

impl Traces {
    /// Spans go nowhere: traces are only passed on.
    pub fn passed_on(sampler: Sampler) -> Self {
        Self { sink: None, sampler }
    }

    /// Spans of the traces the sampler takes go to `sink`.
    pub fn recorded(sink: Arc<dyn SpanSink>, sampler: Sampler) -> Self {
        Self { sink: Some(sink), sampler }
    }

    /// Whether spans go somewhere.
    pub fn is_recording(&self) -> bool {
        self.sink.is_some()
    }

    /// The place of a request whose caller said this.
    pub fn receive(&self, said: Option<TraceContext>) -> Received {
        let Some(said) = said else {
            let context = self.begin();
            let is_recorded = self.is_recording() && context.trace.is_sampled();
            return Received { context, parent: None, is_recorded };
        };
        let parent = Some(said.span);
        let takes = self.sampler.takes(&said);
        let said = said.sampled(takes);
        let is_recorded = self.is_recording() && takes;
        // Where nothing is told of the request, what follows from it is the caller's own.
        let context = if is_recorded { said.at(SpanId::new(entropy())) } else { said };
        Received { context, parent, is_recorded }
    }

    /// A trace that begins here.
    pub(crate) fn begin(&self) -> TraceContext {
        let id = TraceId::new(u128::from(entropy()) << 64 | u128::from(entropy()));
        let trace = Trace::new(id, self.sampler.takes_new(id));
        TraceContext::new(Arc::new(trace), SpanId::new(entropy()))
    }

    /// Tells of a span. Never waits.
    pub fn tell(&self, span: Span) {
        if let Some(sink) = &self.sink {
            sink.offer(span);
        }
    }

    /// What became of spans.
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

    use noetl_model::trace::Root;

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
    fn where_nothing_is_recorded_the_callers_span_is_passed_on() {
        let received = Traces::default().receive(said());
        assert_eq!(received.context.parent(), PARENT);
        assert!(received.is_said() && !received.is_recorded);
    }

    #[test]
    fn where_spans_are_recorded_a_request_has_one_of_its_own() {
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
        let none = Sampler { root: Root::None, follows_caller: true };
        assert!(!Traces::passed_on(none).receive(None).context.trace.is_sampled());
    }
}
