//! Trace spans of the execution and the commands that end with a decision.

use std::sync::Arc;

use noetl_model::event::CommandSpec;
use noetl_model::placeholder::without_tags;
use noetl_model::trace::{Attribute, Span, SpanId, SpanKind, Trace};
use noetl_model::{CommandId, CommandState, Event, Fact, Seq, Snowflakes, Timestamp};

use crate::execution::{Execution, OpenCommand, Status};
use crate::input::Input;

/// A command as it was before a decision that may end it.
#[derive(Debug, Clone)]
pub struct OpenSpan {
    command: CommandId,
    issued: Arc<CommandSpec>,
    /// Time the command entered its current state; `None` while it is pending.
    claimed_at: Option<Timestamp>,
    worker: Option<Arc<str>>,
}

impl OpenSpan {
    fn new(command: CommandId, open: &OpenCommand) -> Self {
        let is_claimed = open.state != CommandState::Pending;
        Self {
            command,
            issued: open.issued.clone(),
            claimed_at: is_claimed.then_some(open.since),
            worker: open.worker.clone(),
        }
    }
}

/// Returns the commands that an input may end. Call it before the decision: the state does not
/// contain ended commands.
pub(crate) fn spans_before(state: &Execution, input: &Input) -> Vec<OpenSpan> {
    let named = match input {
        Input::Complete(input) => input.command,
        Input::Fail(input) => input.command,
        Input::Expire(input) => input.command,
        Input::Wake(input) => input.command,
        Input::Answer(input) => input.command,
        Input::Cancel(_) | Input::Abandon(_) | Input::Timeout(_) | Input::Finalize(_) => {
            let open = state.open_commands();
            return open.map(|(command, open)| OpenSpan::new(command, open)).collect();
        }
        Input::Start(_) | Input::Fork(_) | Input::Claim(_) | Input::Begin(_) | Input::Keep(_) => {
            return Vec::new();
        }
    };
    let open = state.open_command(named);
    open.map(|open| OpenSpan::new(named, open)).into_iter().collect()
}

/// Builds the spans that end with the events of a decision.
pub(crate) struct SpanBuilder<'a> {
    trace: Arc<Trace>,
    ending: &'a [OpenSpan],
    events: &'a [Arc<Event>],
    /// Whether the commands that end here ended in the origin of a fork.
    takes_over: bool,
}

impl<'a> SpanBuilder<'a> {
    /// Creates a builder for `events`. `state` is the state after them, and `ending` the commands that
    /// may end. Returns `None` if the trace is not sampled.
    pub(crate) fn new(
        state: &Execution,
        ending: &'a [OpenSpan],
        events: &'a [Arc<Event>],
    ) -> Option<Self> {
        let context = state.started()?.trace.as_ref()?;
        let trace = context.trace.is_sampled().then(|| context.trace.clone())?;
        Some(Self { trace, ending, events, takes_over: takes_over(events) })
    }

    /// Returns the span of a command that `event` ends.
    pub(crate) fn command(
        &self,
        event: &Event,
        command: CommandId,
        step: &Arc<str>,
        error: Option<String>,
    ) -> Option<Span> {
        if self.takes_over {
            return None;
        }
        let known = self.ending.iter().find(|ending| ending.command == command);
        let known = known.cloned().or_else(|| issued_in(self.events, command));
        let mut span = of_command(&self.trace, event, command, step, known.as_ref());
        span.parent = Some(SpanId::of_execution(event.execution));
        span.error = error.map(shown);
        Some(span)
    }

    /// Returns the span of the execution that `event` ends.
    pub(crate) fn execution(&self, state: &Execution, event: &Event) -> Option<Span> {
        of_execution(state, event)
    }
}

/// Returns `true` if these events start a fork: commands that end in them ended in the origin.
fn takes_over(events: &[Arc<Event>]) -> bool {
    let forked = events.first().and_then(|event| match &event.fact {
        Fact::PlaybookStarted(started) => started.forked.as_ref(),
        _ => None,
    });
    forked.is_some_and(|forked| forked.seq > Seq::START)
}

/// Returns a command that was issued in the decision that ended it.
fn issued_in(events: &[Arc<Event>], command: CommandId) -> Option<OpenSpan> {
    events.iter().find_map(|event| match &event.fact {
        Fact::CommandIssued(issued) if CommandId::from(event.id) == command => {
            Some(OpenSpan { command, issued: issued.clone(), claimed_at: None, worker: None })
        }
        _ => None,
    })
}

fn of_command(
    trace: &Arc<Trace>,
    end: &Event,
    command: CommandId,
    step: &Arc<str>,
    known: Option<&OpenSpan>,
) -> Span {
    // The ID contains the time of issue, unless IDs ran ahead of the clock.
    let from = Snowflakes::time_of(command.get()).min(end.at);
    let mut attributes: Vec<(&'static str, Attribute)> = vec![
        ("noetl.execution.id", text(end.execution)),
        ("noetl.command.id", text(command)),
        ("noetl.step.name", step.clone().into()),
    ];
    if let Some(OpenSpan { issued, claimed_at, worker, .. }) = known {
        attributes.push(("noetl.tool.kind", issued.tool.clone().into()));
        attributes.push(("noetl.attempt", i64::from(issued.attempt).into()));
        let index = issued.item.as_ref().map(|item| i64::from(item.index).into());
        attributes.extend(index.map(|index| ("noetl.loop.index", index)));
        attributes.extend(worker.clone().map(|worker| ("noetl.worker.id", worker.into())));
        let waited = claimed_at.map(|claimed_at| claimed_at.since(from).as_millis());
        let waited = waited.and_then(|waited| i64::try_from(waited).ok());
        attributes.extend(waited.map(|waited| ("noetl.waited_ms", waited.into())));
    }
    Span {
        trace: trace.clone(),
        id: SpanId::of_command(command),
        parent: None,
        name: step.clone(),
        kind: SpanKind::Internal,
        from,
        to: end.at,
        attributes,
        error: None,
    }
}

fn of_execution(state: &Execution, end: &Event) -> Option<Span> {
    let started = state.started()?;
    let context = started.trace.as_ref()?;
    let status = match state.status() {
        Status::Absent | Status::Running => "running",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    };
    let error = match &end.fact {
        Fact::PlaybookFailed { failure, .. } => Some(failure.to_string()),
        Fact::PlaybookCancelled { reason } => {
            Some(reason.clone().unwrap_or_else(|| "cancelled".to_owned()))
        }
        _ => None,
    };
    let mut attributes: Vec<(&'static str, Attribute)> = vec![
        ("noetl.execution.id", text(end.execution)),
        ("noetl.execution.status", status.into()),
        ("noetl.playbook.path", started.path.clone().into()),
        ("noetl.playbook.version", i64::from(started.version).into()),
    ];
    attributes.extend(started.parent.map(|parent| ("noetl.parent.id", text(parent))));
    Some(Span {
        trace: context.trace.clone(),
        id: SpanId::of_execution(end.execution),
        parent: Some(context.span),
        name: started.path.clone(),
        kind: SpanKind::Internal,
        from: state.started_at.min(end.at),
        to: end.at,
        attributes,
        error: error.map(shown),
    })
}

/// Converts an ID to text, because not every trace backend can represent it as a number.
fn text(id: impl ToString) -> Attribute {
    Attribute::Text(Arc::from(id.to_string()))
}

/// Returns a text without secret tags, as shown to users.
fn shown(text: String) -> String {
    without_tags(&text).into_owned()
}
