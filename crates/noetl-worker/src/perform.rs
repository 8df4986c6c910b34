//! Runs one command, wherever it came from.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use noetl_control::Ended;
use noetl_model::event::Issued;
use noetl_model::trace::SpanId;
use noetl_model::{
    Clock, CommandId, DEPTH_MAX, ExecutionId, Failure, FailureKind, Tenant, TraceContext, Value,
    is_deeper_than,
};
use noetl_playbook::pipeline::TASK_RUNS_MAX;
use noetl_tools::Registry;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::secrets::CommandSecrets;
use crate::services::{NoServices, Services};
use crate::tokens::Tokens;
use crate::values::Values;
use crate::{call, looped, pipeline, split};

/// The tool that stands for a pipeline of tasks.
const TASK_SEQUENCE: &str = "task_sequence";

/// A command to run.
#[derive(Debug, Clone)]
pub struct Command {
    pub execution: ExecutionId,
    pub id: CommandId,
    /// Tenant of the execution.
    pub tenant: Tenant,
    pub issued: Arc<Issued>,
    /// Fires when it is not wanted any more.
    pub cancel: CancellationToken,
}

impl Command {
    /// The span that what it calls is below: its own.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let trace = self.issued.trace.clone()?;
        Some(TraceContext::new(trace, SpanId::of_command(self.id)))
    }
}

/// What runs commands. Cheap to clone.
#[derive(Clone)]
pub struct Performer {
    pub(crate) tools: Arc<Registry>,
    pub(crate) values: Arc<dyn Values>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) task_runs_max: u64,
    pub(crate) tokens: Arc<Tokens>,
}

impl Performer {
    /// Runs with these tools, finds values that are kept beside the log here, and knows the time
    /// from this clock.
    pub fn new(tools: Registry, values: Arc<dyn Values>, clock: Arc<dyn Clock>) -> Self {
        let services = Arc::new(NoServices);
        Self {
            tools: Arc::new(tools),
            values,
            clock,
            services,
            task_runs_max: TASK_RUNS_MAX,
            tokens: Arc::default(),
        }
    }

    /// The same with what tools may ask of the control plane.
    #[must_use]
    pub fn with_services(mut self, services: Arc<dyn Services>) -> Self {
        self.services = services;
        self
    }

    /// The same with another limit to the task runs of one pipeline.
    #[must_use]
    pub fn with_task_limit(mut self, task_runs_max: u64) -> Self {
        self.task_runs_max = task_runs_max;
        self
    }

    /// Runs a command to its end, whatever that is.
    pub async fn perform(&self, command: &Command) -> Ended {
        // A panic has unwound all the command held; what it shares with others is not changed by it.
        let ran = AssertUnwindSafe(self.run(command)).catch_unwind().await;
        let ended = ran.unwrap_or_else(|_| {
            error!(step = %command.issued.step, "a command panicked");
            let message = "the command failed in a way it never should";
            Err(Failure::new(FailureKind::Unknown, message)).into()
        });
        keepable(ended)
    }

    async fn run(&self, command: &Command) -> Ended {
        let issued = &command.issued;
        if *issued.tool != *TASK_SEQUENCE {
            let secrets = CommandSecrets::new(self, command);
            return call::plain(self, command, &secrets).await.into();
        }
        // In a place of its own: every command is given room for all that may run within it, and
        // most are one call.
        let sequence = Box::pin(self.sequence(command));
        let Some(limit) = issued.timeout_ms else { return sequence.await };
        // What is dropped is stopped: a tool ends what it started.
        match tokio::time::timeout(Duration::from_millis(limit), sequence).await {
            Ok(ended) => ended,
            Err(_) => {
                let message = format!("the tasks took longer than {limit} ms");
                Err(Failure::new(FailureKind::Timeout, message)).into()
            }
        }
    }

    async fn sequence(&self, command: &Command) -> Ended {
        if split::is_merge(command) {
            return split::merge(self, command).await.outcome.into();
        }
        let sequence = match pipeline::Sequence::read(self, command) {
            Ok(sequence) => sequence.with_earlier().await,
            Err(failure) => Some(Err(failure)),
        };
        let sequence = match sequence {
            Some(Ok(sequence)) => sequence,
            Some(Err(failure)) => return Err(failure).into(),
            None => return pipeline::cancelled().outcome.into(),
        };
        match command.issued.config.get("loop") {
            None => {
                let end = sequence.run(sequence.scope.clone()).await;
                Ended { outcome: end.outcome, ctx: end.ctx, step: end.step }
            }
            Some(settings) => looped::run(sequence, settings).await,
        }
    }
}

/// What the log can keep of an end: values are made one within the other, and what each task may
/// return does not bound what they come to together.
fn keepable(ended: Ended) -> Ended {
    let too_deep = |what: &str| {
        let message = format!("{what} nests more than {DEPTH_MAX} levels deep");
        Ended::from(Err(Failure::new(FailureKind::Schema, message)))
    };
    for (scope, written) in [("ctx", &ended.ctx), ("step", &ended.step)] {
        for (path, value) in written {
            let names = path.split('.').count();
            if DEPTH_MAX.checked_sub(names).is_none_or(|levels| is_deeper_than(value, levels)) {
                return too_deep(&format!("{scope}.{path}"));
            }
        }
    }
    match &ended.outcome {
        Ok(data) if is_deeper_than(data, DEPTH_MAX) => too_deep("the result"),
        Err(failure) if details_of(failure).is_some_and(|it| is_deeper_than(it, DEPTH_MAX)) => {
            too_deep("what is known of the failure")
        }
        _ => ended,
    }
}

fn details_of(failure: &Failure) -> Option<&Value> {
    failure.details.as_deref()
}
