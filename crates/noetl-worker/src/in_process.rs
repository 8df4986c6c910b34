//! The worker that shares a process with its control plane.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{Assignment, LocalCommands};
use noetl_tools::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::perform::{Command, Performer};
use crate::services::LocalServices;

/// Runs the commands of its own process's control plane.
pub struct Worker {
    commands: LocalCommands,
    performer: Performer,
}

impl Worker {
    /// A worker that takes from `commands` and runs with `tools`.
    pub fn new(commands: LocalCommands, tools: Registry) -> Self {
        let services = Arc::new(LocalServices(commands.clone()));
        let performer = Performer::new(tools, Arc::new(commands.clone()), commands.clock());
        let performer = performer.with_services(services);
        Self { commands, performer }
    }

    /// The same with another limit to the task runs of one pipeline.
    #[must_use]
    pub fn with_task_limit(mut self, task_runs_max: u64) -> Self {
        self.performer = self.performer.with_task_limit(task_runs_max);
        self
    }

    /// Runs until the control plane drains, then lets what runs end for up to `grace` and stops
    /// the rest. How many commands run at a time is up to the control plane's slots.
    pub async fn run(self, grace: Duration) {
        let running = TaskTracker::new();
        let stop = CancellationToken::new();
        while let Some(assignment) = self.commands.next().await {
            let (commands, performer) = (self.commands.clone(), self.performer.clone());
            let stop = stop.clone();
            running.spawn(async move {
                tokio::select! {
                    () = perform(commands, performer, assignment) => {}
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

async fn perform(commands: LocalCommands, performer: Performer, assignment: Assignment) {
    let command = Command {
        execution: assignment.execution,
        id: assignment.command,
        issued: assignment.issued.clone(),
        cancel: assignment.cancel.clone(),
    };
    let ended = performer.perform(&command).await;
    commands.report(assignment, ended).await;
}
