//! What can be asked of an execution.

use std::sync::Arc;

use noetl_model::event::{BlobRef, ForkedFrom, Reported, ToolRun};
use noetl_model::{
    CatalogId, CommandId, Event, EventId, ExecutionId, Failure, Map, Seq, Timestamp, TraceContext,
    Value,
};

/// What somebody asks of an execution.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Begin.
    Start(Box<Start>),
    /// Begin with the past of another execution.
    Fork(Box<Fork>),
    /// A worker takes a command.
    Claim(Claim),
    /// A worker says it began.
    Begin(Begin),
    /// A command ended well.
    Complete(Complete),
    /// A command ended badly.
    Fail(Fail),
    /// A command's lease ended.
    Expire(Expire),
    /// Stop everything.
    Cancel(Cancel),
    /// Wait no more for stopped commands of a failing execution.
    Abandon(Abandon),
    /// Keep what a worker or client said.
    Keep(Box<Keep>),
    /// A time that a command waits for has come.
    Wake(Wake),
    /// An answer that a command waits for has come.
    Answer(Box<Answer>),
    /// A time by which something should have ended has come.
    Timeout(Timeout),
    /// End it now, whatever is outstanding.
    Finalize(Finalize),
}

/// A time that a command waits for has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    pub command: CommandId,
    /// The time it waited for. If it waits for another by now, this changes nothing.
    pub at: Timestamp,
}

/// An answer that a command waits for has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub command: CommandId,
    pub from: AnswerFrom,
    /// What the answer is.
    pub outcome: Result<Value, Failure>,
    /// Where the answer is kept, when it is too large for the log.
    pub reference: Option<Arc<BlobRef>>,
    /// Caller that sent it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerFrom {
    /// The execution that the command started.
    Child(ExecutionId),
    /// Whoever holds the command's token.
    Token(Arc<str>),
    /// Somebody the caller vouches for.
    Trusted,
}

/// A time by which something should have ended has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timeout {
    /// A visit of a step.
    Step {
        step: Arc<str>,
        /// Which visit of it.
        generation: u32,
    },
    /// The wait of a token to be admitted.
    Admission {
        step: Arc<str>,
        /// The time it could wait for.
        until: Timestamp,
    },
    Execution,
}

/// End it now, whatever is outstanding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finalize {
    /// Why it failed; it completed when `None`.
    pub error: Option<String>,
    /// Caller that asked for it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// Begin an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The catalog entry to pin it to.
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub version: u32,
    /// Laid over the playbook's workload.
    pub payload: Map,
    /// The execution that asks.
    pub parent: Option<ExecutionId>,
    /// Which workers its commands go to.
    pub pool: Option<Arc<str>>,
    /// The command of the parent that waits for its end.
    pub parent_command: Option<CommandId>,
    /// The step whose data the parent asked for.
    pub returns: Option<Arc<str>>,
    /// How many executions are above it.
    pub depth: u32,
    /// The execution whose workload it took over.
    pub forked: Option<ForkedFrom>,
    /// The span it is below.
    pub trace: Option<TraceContext>,
    /// Caller that asked for it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// Begin an execution with the past of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Fork {
    /// The other's log from its first event on, at least one event past `cut` if there is one.
    pub log: Arc<[Event]>,
    /// The place of the last event to take over. It may turn out to be an earlier one: see
    /// [`crate::fork`].
    pub cut: Seq,
    /// Laid over the other's workload.
    pub workload: Map,
    /// The span it is below: its own, not the other's.
    pub trace: Option<TraceContext>,
    /// The version of the playbook it goes on with, when that is another: its catalog entry and its
    /// number. Whether it fits, [`crate::fork::misfit`] tells.
    pub version: Option<(CatalogId, u32)>,
    /// Caller that asked for it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// A worker takes a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub command: CommandId,
    pub worker: Arc<str>,
}

/// A worker says it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    pub command: CommandId,
    pub worker: Arc<str>,
}

/// A command ended well, or its tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Complete {
    pub command: CommandId,
    /// The tool's answer; `None` when it was said before. With a reference: top-level fields of
    /// the answer, each exactly as it is there, or null.
    pub data: Option<Value>,
    /// Where the answer is kept, when it is too large for the log.
    pub reference: Option<Arc<BlobRef>>,
    /// Whether the command is over. A worker that reports in two parts says the answer first.
    pub is_final: bool,
    /// Variables its tasks set: dotted path below `ctx` to value.
    pub ctx: Map,
    /// What its tasks set for the visit alone: dotted path below `step` to value.
    pub step: Map,
    /// How the tool ran, if the worker reported it.
    pub run: Option<Box<ToolRun>>,
}

/// A command ended badly.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    pub command: CommandId,
    pub failure: Failure,
    /// Variables its tasks set before: dotted path below `ctx` to value.
    pub ctx: Map,
    /// What its tasks set before for the visit alone: dotted path below `step` to value.
    pub step: Map,
}

/// A command's lease ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expire {
    pub command: CommandId,
    pub reason: String,
    /// How often the step's command may have been handed out for another to be issued.
    pub attempts_max: u32,
    /// Whether its tool may have run. What nobody began is issued again, however often that was and
    /// whatever its tool.
    pub may_have_run: bool,
}

/// Stop everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cancel {
    /// What the caller gives as a reason.
    pub reason: Option<String>,
    /// Caller that asked for it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// Wait no more for stopped commands of a failing execution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Abandon;

/// Keep what a worker or client said.
#[derive(Debug, Clone, PartialEq)]
pub struct Keep {
    pub said: Reported,
    /// The id it came with, by which a repeat is known; a new one when `None`.
    pub id: Option<EventId>,
    /// The id it came with when that one cannot be kept; a repeat is known by it too.
    pub key: Option<i64>,
}
