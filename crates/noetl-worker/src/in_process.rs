//! The worker that shares a process with its control plane.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_control::{Assignment, Ended, LocalCommands};
use noetl_tools::Registry;
use tokio::sync::Semaphore;

use crate::perform::{Command, Performer};
use crate::services::{LocalServices, Services};
use crate::source::{self, CommandSource};

/// Runs the commands of its own process's control plane.
pub struct Worker {
    source: Arc<InProcess>,
    performer: Performer,
}

impl Worker {
    /// A worker that takes from `commands` and runs with `tools`.
    pub fn new(commands: LocalCommands, tools: Registry) -> Self {
        let services = Arc::new(LocalServices(commands.clone()));
        let performer = Performer::new(tools, Arc::new(commands.clone()), commands.clock());
        Self { source: Arc::new(InProcess { commands, services }), performer }
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
        // What is left is found at the next start, which issues it again.
        source::run(&self.source, &self.performer, Semaphore::MAX_PERMITS, grace).await;
    }
}

/// Commands that the journal has claimed for this process as it issued them.
struct InProcess {
    commands: LocalCommands,
    services: Arc<LocalServices>,
}

#[async_trait]
impl CommandSource for InProcess {
    type Claim = Assignment;

    async fn take(&self, _free: usize) -> Option<Vec<(Command, Assignment)>> {
        let assignment = self.commands.next().await?;
        let command = Command {
            execution: assignment.execution,
            id: assignment.command,
            tenant: assignment.tenant.clone(),
            issued: assignment.issued.clone(),
            cancel: assignment.cancel.clone(),
        };
        Some(vec![(command, assignment)])
    }

    async fn over(&self) {
        // There is always a place, so that nobody waits for this.
        std::future::pending().await
    }

    fn services(&self, _claim: &Assignment) -> Arc<dyn Services> {
        self.services.clone()
    }

    async fn lost(&self, _claim: &Assignment) {
        std::future::pending().await
    }

    async fn report(&self, claim: Assignment, ended: Ended) -> Option<(Command, Assignment)> {
        self.commands.report(claim, ended).await;
        None
    }
}
