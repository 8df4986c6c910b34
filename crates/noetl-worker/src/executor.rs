//! Runs one command, independently of the source it was claimed from.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use noetl_model::event::CommandSpec;
use noetl_model::trace::SpanId;
use noetl_model::{
    Clock, CommandId, DEPTH_MAX, ExecutionId, Failure, FailureKind, Tenant, TraceContext, Value,
    is_deeper_than,
};
use noetl_playbook::pipeline::TASK_RUNS_MAX;
use noetl_tools::ToolRegistry;
use noetl_work::CommandOutcome;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::secrets::CommandSecrets;
use crate::services::{NoServices, Services};
use crate::tokens::TokenCache;
use crate::values::ValueFetcher;
use crate::{call, looped, pipeline, split};

/// Tool kind that denotes a pipeline of tasks.
const TASK_SEQUENCE: &str = "task_sequence";

/// A command that this worker has claimed.
#[derive(Debug, Clone)]
pub struct CommandTask {
    pub execution: ExecutionId,
    pub id: CommandId,
    /// Tenant of the execution.
    pub tenant: Tenant,
    pub issued: Arc<CommandSpec>,
    /// Cancelled when the command's result is no longer needed.
    pub cancel: CancellationToken,
}

impl CommandTask {
    /// Returns the trace context for the command's outgoing calls, with the command's span as the
    /// parent.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let trace = self.issued.trace.clone()?;
        Some(TraceContext::new(trace, SpanId::of_command(self.id)))
    }
}

/// Runs commands. Cheap to clone.
#[derive(Clone)]
pub struct CommandExecutor {
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) values: Arc<dyn ValueFetcher>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) task_runs_max: u64,
    pub(crate) tokens: Arc<TokenCache>,
}

impl CommandExecutor {
    /// Creates a performer that runs commands with `tools`, loads blobs from `values`, and reads
    /// the time from `clock`.
    pub fn new(tools: ToolRegistry, values: Arc<dyn ValueFetcher>, clock: Arc<dyn Clock>) -> Self {
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

    /// Sets the control-plane services that tools may use.
    #[must_use]
    pub fn with_services(mut self, services: Arc<dyn Services>) -> Self {
        self.services = services;
        self
    }

    /// Sets the maximum number of task runs in one pipeline.
    #[must_use]
    pub fn with_task_limit(mut self, task_runs_max: u64) -> Self {
        self.task_runs_max = task_runs_max;
        self
    }

    /// Runs a command to completion. Every error, including a panic, becomes a failure of the
    /// command.
    pub async fn execute(&self, command: &CommandTask) -> CommandOutcome {
        // A panic unwinds everything the command owns, and it leaves state shared with other
        // commands consistent.
        let ran = AssertUnwindSafe(self.run(command)).catch_unwind().await;
        let ended = ran.unwrap_or_else(|_| {
            error!(step = %command.issued.step, "command panicked");
            let message = "the command failed in a way it never should";
            Err(Failure::new(FailureKind::Unknown, message)).into()
        });
        keepable(ended)
    }

    async fn run(&self, command: &CommandTask) -> CommandOutcome {
        let issued = &command.issued;
        if *issued.tool != *TASK_SEQUENCE {
            let secrets = CommandSecrets::new(self, command);
            return call::plain(self, command, &secrets).await.into();
        }
        // Boxed, because otherwise the future of every command would reserve space for a pipeline's
        // state, and most commands are a single tool call.
        let sequence = Box::pin(self.sequence(command));
        let Some(limit) = issued.timeout_ms else { return sequence.await };
        // Dropping the future stops it: a tool terminates everything it started.
        match tokio::time::timeout(Duration::from_millis(limit), sequence).await {
            Ok(ended) => ended,
            Err(_) => {
                let message = format!("the tasks took longer than {limit} ms");
                Err(Failure::new(FailureKind::Timeout, message)).into()
            }
        }
    }

    async fn sequence(&self, command: &CommandTask) -> CommandOutcome {
        if split::is_merge(command) {
            return split::merge(self, command).await.outcome.into();
        }
        let sequence = match pipeline::CompiledPipeline::read(self, command) {
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
                CommandOutcome { outcome: end.outcome, ctx: end.ctx, step: end.step }
            }
            Some(settings) => looped::run(sequence, settings).await,
        }
    }
}

/// Replaces a completion whose values nest too deeply for the event log with a failure. Values can
/// combine the results of several tasks, so the limit on each task's result doesn't bound them.
fn keepable(ended: CommandOutcome) -> CommandOutcome {
    let too_deep = |what: &str| {
        let message = format!("{what} nests more than {DEPTH_MAX} levels deep");
        CommandOutcome::from(Err(Failure::new(FailureKind::Schema, message)))
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
