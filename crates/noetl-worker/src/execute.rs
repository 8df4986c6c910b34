//! Runs one command, independently of the source it was claimed from.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use noetl_model::{DEPTH_MAX, Failure, FailureKind, Value, is_deeper_than};
use noetl_work::CommandOutcome;
use tracing::error;

use crate::executor::CommandExecutor;
use crate::secrets::CommandSecrets;
use crate::task::{CommandTask, cancelled};
use crate::{call, looped, pipeline, split};

/// Tool kind that denotes a pipeline of tasks.
const TASK_SEQUENCE: &str = "task_sequence";

impl CommandExecutor {
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
            None => return cancelled().outcome.into(),
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
