//! Conversion from rows to events. Every form that any version has written stays readable.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::encode::{ACTOR, Dropped, HeldTokenMeta, SKIPPED};
use super::error::RowError;
use super::repeat::ItemMeta;
use super::{EventRow, types};
use crate::event::{
    BlobRef, CommandSpec, ExecutionStart, ForkedFrom, LoopItemRef, ParkReason, SubscriptionEvent,
    SubscriptionTransition,
};
use crate::scope::CommandScope;
use crate::trace::{self, TraceContext};
use crate::{CommandId, Event, Fact, Failure, Map, Origin, Routing, StepOutcome, Timestamp, Value};

#[derive(Deserialize)]
struct ContextColumn<C> {
    context: C,
}

#[derive(Deserialize)]
struct RunMeta {
    #[serde(rename = "generation")]
    run: u32,
    #[serde(default = "one")]
    tokens: u32,
    round: Option<u32>,
    deadline: Option<Timestamp>,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
struct Answered {
    reference: Option<Arc<BlobRef>>,
    context: DataColumn,
}

#[derive(Deserialize)]
struct DataColumn {
    data: Value,
}

#[derive(Deserialize)]
struct Update {
    #[serde(rename = "gen")]
    run: u32,
    values: Map,
    #[serde(default)]
    locals: Map,
}

#[derive(Deserialize)]
struct FailedSteps {
    failed_steps: Vec<Arc<str>>,
}

#[derive(Deserialize)]
struct StartContext {
    catalog_id: String,
    path: Arc<str>,
    version: u32,
    workload: Map,
}

#[derive(Deserialize, Default)]
struct StartMeta {
    execution_pool: Option<Arc<str>>,
    parent_command_id: Option<String>,
    return_step: Option<Arc<str>>,
    #[serde(default)]
    depth: u32,
    deadline: Option<Timestamp>,
    forked_from: Option<ForkedFrom>,
    #[serde(default, deserialize_with = "trace::kept")]
    trace: Option<TraceContext>,
}

#[derive(Deserialize)]
struct ActorMeta {
    actor: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct MovedContext {
    catalog_id: String,
}

#[derive(Deserialize)]
struct IssueContext {
    tool_config: Map,
    args: Map,
    render_context: Option<Box<CommandScope>>,
}

#[derive(Deserialize)]
struct IssueMeta {
    #[serde(rename = "generation")]
    run: u32,
    attempt: u32,
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    item: ItemMeta,
    #[serde(default = "yes")]
    idempotent: bool,
    execution_pool: Option<Arc<str>>,
    #[serde(default, deserialize_with = "trace::kept")]
    trace: Option<TraceContext>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Error {
    error: Failure,
}

#[derive(Deserialize)]
struct Exit {
    #[serde(rename = "generation")]
    run: u32,
    next: Routing,
    error: Option<Failure>,
    #[serde(default)]
    handled: bool,
    #[serde(default)]
    drains: bool,
}

impl EventRow {
    /// Decodes the event that this row stores.
    pub fn decode(&self) -> Result<Event, RowError> {
        let fact = match self.origin {
            Origin::Reported => Fact::Reported(Box::new(self.reported()?)),
            Origin::Imported => Fact::Imported(Box::new(self.imported()?)),
            Origin::Decided => self.decided()?,
        };
        Ok(Event {
            execution: self.execution_id,
            id: self.event_id,
            seq: self.seq,
            at: self.created_at,
            fact,
            actor: self.actor(),
        })
    }

    /// Returns the caller named in the metadata of a decided row. The metadata of other rows was
    /// sent by a caller, so it proves nothing.
    fn actor(&self) -> Option<Arc<str>> {
        let meta = self.meta.as_deref().filter(|meta| meta.contains(ACTOR))?;
        match self.origin {
            Origin::Decided => serde_json::from_str::<ActorMeta>(meta).ok()?.actor,
            Origin::Reported | Origin::Imported => None,
        }
    }

    fn decided(&self) -> Result<Fact, RowError> {
        let node = self.node()?;
        let step = || node.clone();
        let event_type = self.event_type.as_deref().ok_or_else(|| self.missing("event_type"))?;
        Ok(match event_type {
            types::PLAYBOOK_STARTED => Fact::PlaybookStarted(Box::new(self.started()?)),
            types::STEP_ENTER => {
                let RunMeta { run, tokens, round, deadline } = self.meta()?;
                Fact::StepEntered { step: step(), run, tokens, round, deadline }
            }
            types::STEP_DENIED => {
                let Dropped { tokens } = self.meta()?;
                Fact::StepDenied { step: step(), tokens }
            }
            types::STEP_HELD => {
                let HeldTokenMeta { tokens, from, until } = self.meta()?;
                Fact::StepHeld { step: step(), tokens, from, until }
            }
            types::COMMAND_PARKED => {
                let on: ParkReason = self.context()?;
                Fact::CommandParked { command: self.command()?, step: step(), on }
            }
            types::TOKENS_DROPPED => {
                let Dropped { tokens } = self.meta()?;
                Fact::TokensDropped { step: step(), tokens }
            }
            types::COMMAND_ISSUED => Fact::CommandIssued(Arc::new(self.issued()?)),
            types::COMMAND_CLAIMED => Fact::CommandClaimed {
                command: self.command()?,
                step: step(),
                worker: self.worker()?,
            },
            types::COMMAND_STARTED => Fact::CommandStarted {
                command: self.command()?,
                step: step(),
                worker: self.worker()?,
            },
            types::CALL_DONE => {
                let Answered { reference, context: DataColumn { data } } = self.result()?;
                let (command, step, run) = (self.command()?, step(), self.run());
                Fact::CallDone { command, step, data, reference, run }
            }
            types::CALL_ERROR => Fact::CallFailed {
                command: self.command()?,
                step: step(),
                failure: self.failure()?,
            },
            types::COMMAND_COMPLETED => Fact::CommandCompleted {
                command: self.command()?,
                step: step(),
                item: self.item_of()?,
            },
            types::COMMAND_FAILED => Fact::CommandFailed {
                command: self.command()?,
                step: step(),
                failure: self.failure()?,
                item: self.item_of()?,
            },
            types::COMMAND_EXPIRED => Fact::CommandExpired {
                command: self.command()?,
                step: step(),
                reason: self.error.clone().unwrap_or_default(),
            },
            types::COMMAND_CANCELLED => {
                Fact::CommandCancelled { command: self.command()?, step: step() }
            }
            types::CTX_UPDATED => {
                let said: ContextColumn<Update> = self.result()?;
                let Update { run, values, locals } = said.context;
                Fact::ContextUpdated { step: step(), run, values, locals }
            }
            types::STEP_EXIT => self.exited()?,
            types::PLAYBOOK_COMPLETED => {
                let Answered { reference, context: DataColumn { data: result } } = self.result()?;
                Fact::PlaybookCompleted { result, reference }
            }
            types::PLAYBOOK_FAILED => {
                let meta: FailedSteps = self.meta()?;
                let step = meta.failed_steps.into_iter().next();
                Fact::PlaybookFailed {
                    step: step.ok_or_else(|| self.missing("meta.failed_steps"))?,
                    failure: self.failure()?,
                }
            }
            types::PLAYBOOK_CANCELLED => Fact::PlaybookCancelled { reason: self.error.clone() },
            other => {
                if let Some(fact) = self.loop_fact(other)? {
                    return Ok(Fact::Loop(Box::new(fact)));
                }
                let to = SubscriptionEvent::from_event_type(other).ok_or_else(|| {
                    RowError::UnknownType { event: self.event_id, event_type: other.to_owned() }
                })?;
                Fact::SubscriptionMoved(Box::new(self.moved(to)?))
            }
        })
    }

    fn started(&self) -> Result<ExecutionStart, RowError> {
        let context: StartContext = self.context()?;
        let meta: StartMeta = if self.meta.is_some() { self.meta()? } else { StartMeta::default() };
        let catalog = context.catalog_id.parse();
        Ok(ExecutionStart {
            catalog: catalog.map_err(|_| self.missing("a decimal context.catalog_id"))?,
            path: context.path,
            version: context.version,
            workload: context.workload,
            parent: self.parent_execution_id,
            pool: meta.execution_pool,
            parent_command: meta.parent_command_id.and_then(|id| id.parse().ok()),
            returns: meta.return_step,
            depth: meta.depth,
            deadline: meta.deadline,
            forked: meta.forked_from,
            trace: meta.trace,
        })
    }

    fn item_of(&self) -> Result<Option<Box<LoopItemRef>>, RowError> {
        if self.meta.is_none() {
            return Ok(None);
        }
        let meta: ItemMeta = self.meta()?;
        Ok(meta.item_of())
    }

    fn issued(&self) -> Result<CommandSpec, RowError> {
        let context: IssueContext = self.context()?;
        let meta: IssueMeta = self.meta()?;
        Ok(CommandSpec {
            step: self.node()?,
            run: meta.run,
            attempt: meta.attempt,
            tool: self.node_type.clone().ok_or_else(|| self.missing("node_type"))?,
            config: context.tool_config,
            input: context.args,
            timeout_ms: meta.timeout_ms,
            scope: context.render_context,
            idempotent: meta.idempotent,
            pool: meta.execution_pool,
            item: meta.item.item(),
            trace: meta.trace.map(|context| context.trace),
        })
    }

    fn exited(&self) -> Result<Fact, RowError> {
        let said: ContextColumn<Exit> = self.result()?;
        let Exit { run, next, error, handled, drains } = said.context;
        let outcome = match error {
            None if self.status.as_deref() == Some(SKIPPED) => StepOutcome::Skipped,
            None => StepOutcome::Done,
            Some(failure) => StepOutcome::Failed { failure, handled, drains },
        };
        Ok(Fact::StepExited { step: self.node()?, run, outcome, next })
    }

    fn moved(&self, to: SubscriptionEvent) -> Result<SubscriptionTransition, RowError> {
        let context: MovedContext = self.context()?;
        let catalog = context.catalog_id.parse();
        Ok(SubscriptionTransition {
            to,
            path: self.node()?,
            catalog: catalog.map_err(|_| self.missing("a decimal context.catalog_id"))?,
        })
    }

    pub(super) fn node(&self) -> Result<Arc<str>, RowError> {
        self.node_name.clone().ok_or_else(|| self.missing("node_name"))
    }

    pub(super) fn text(
        &self,
        column: &'static str,
        text: Option<&str>,
    ) -> Result<String, RowError> {
        text.map(str::to_owned).ok_or_else(|| self.missing(column))
    }

    /// Parses a JSON column that may be empty.
    pub(super) fn optional(
        &self,
        column: &'static str,
        text: Option<&str>,
    ) -> Result<Option<Value>, RowError> {
        text.map(|text| self.json(column, Some(text))).transpose()
    }

    fn failure(&self) -> Result<Failure, RowError> {
        let said: ContextColumn<Error> = self.result()?;
        Ok(said.context.error)
    }

    fn command(&self) -> Result<CommandId, RowError> {
        self.command_id.ok_or_else(|| self.missing("command_id"))
    }

    fn worker(&self) -> Result<Arc<str>, RowError> {
        self.worker_id.clone().ok_or_else(|| self.missing("worker_id"))
    }

    pub(super) fn context<T: DeserializeOwned>(&self) -> Result<T, RowError> {
        self.json("context", self.context.as_deref())
    }

    pub(super) fn result<T: DeserializeOwned>(&self) -> Result<T, RowError> {
        self.json("result", self.result.as_deref())
    }

    pub(super) fn meta<T: DeserializeOwned>(&self) -> Result<T, RowError> {
        self.json("meta", self.meta.as_deref())
    }

    pub(super) fn json<T: DeserializeOwned>(
        &self,
        column: &'static str,
        text: Option<&str>,
    ) -> Result<T, RowError> {
        let text = text.ok_or_else(|| self.missing(column))?;
        serde_json::from_str(text).map_err(|source| RowError::Json {
            event: self.event_id,
            event_type: self.type_name(),
            column,
            source,
        })
    }

    /// Returns the event type for error messages.
    fn type_name(&self) -> String {
        self.event_type.as_deref().unwrap_or("typeless").to_owned()
    }

    pub(super) fn missing(&self, column: &'static str) -> RowError {
        RowError::Missing { event: self.event_id, event_type: self.type_name(), column }
    }
}
