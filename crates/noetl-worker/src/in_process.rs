//! The worker that shares a process with its control plane.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use noetl_control::{Assignment, LocalCommands};
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_tools::{Call, LogSink, Registry};
use tokio_util::task::TaskTracker;
use tracing::{debug, error};

/// Runs the commands of its own process's control plane.
pub struct Worker {
    commands: LocalCommands,
    tools: Registry,
}

impl Worker {
    /// A worker that takes from `commands` and runs with `tools`.
    pub fn new(commands: LocalCommands, tools: Registry) -> Self {
        Self { commands, tools }
    }

    /// Runs until the control plane drains, then lets what runs end for up to `grace` and stops
    /// the rest. How many commands run at a time is up to the control plane's slots.
    pub async fn run(self, grace: Duration) {
        let running = TaskTracker::new();
        let stop = tokio_util::sync::CancellationToken::new();
        let tools = Arc::new(self.tools);
        while let Some(assignment) = self.commands.next().await {
            let (commands, tools) = (self.commands.clone(), tools.clone());
            let stop = stop.clone();
            running.spawn(async move {
                tokio::select! {
                    () = perform(commands, tools, assignment) => {}
                    // Left claimed: the next start finds it and issues it again.
                    () = stop.cancelled() => {}
                }
            });
        }
        running.close();
        if tokio::time::timeout(grace, running.wait()).await.is_err() {
            stop.cancel();
            running.wait().await;
        }
    }
}

async fn perform(commands: LocalCommands, tools: Arc<Registry>, assignment: Assignment) {
    let outcome = run(&tools, &assignment).await;
    if let Err(failure) = &outcome {
        debug!(
            execution.id = %assignment.execution,
            step = %assignment.issued.step,
            %failure,
            "a command failed"
        );
    }
    commands.report(assignment, outcome).await;
}

async fn run(tools: &Arc<Registry>, assignment: &Assignment) -> Result<Value, Failure> {
    let issued = &assignment.issued;
    let call = Call {
        execution: assignment.execution,
        command: assignment.command,
        step: issued.step.clone(),
        attempt: issued.attempt,
        config: issued.config.clone(),
        input: issued.input.clone(),
        timeout: issued.timeout_ms.map(Duration::from_millis),
        cancel: assignment.cancel.clone(),
        logs: LogSink::default(),
        context: Map::new(),
        artifacts: None,
        credentials: None,
    };
    // A panic has unwound all the tool held; the registry itself is not changed by a call.
    AssertUnwindSafe(tools.run(&issued.tool, call)).catch_unwind().await.unwrap_or_else(|_| {
        error!(tool = %issued.tool, "a tool panicked");
        let message = format!("the tool '{}' failed in a way it never should", issued.tool);
        Err(Failure::new(FailureKind::Unknown, message))
    })
}
