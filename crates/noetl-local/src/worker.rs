//! Worker that shares a process with its control plane.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_journal::{CommandAssignment, LocalCommands};
use noetl_tools::ToolRegistry;
use noetl_work::CommandOutcome;
use noetl_worker::{CommandExecutor, CommandSource, CommandTask, Services, run_source};
use tokio::sync::Semaphore;

use crate::services::{LocalServices, LocalValues};

/// Runs the commands of the control plane in the same process.
pub struct Worker {
    source: Arc<InProcess>,
    performer: CommandExecutor,
}

impl Worker {
    /// Creates a worker that claims from `commands` and runs them with `tools`.
    pub fn new(commands: LocalCommands, tools: ToolRegistry) -> Self {
        let services = Arc::new(LocalServices(commands.clone()));
        let performer =
            CommandExecutor::new(tools, Arc::new(LocalValues(commands.clone())), commands.clock());
        Self { source: Arc::new(InProcess { commands, services }), performer }
    }

    /// Sets the maximum number of task runs in one pipeline.
    #[must_use]
    pub fn with_task_limit(mut self, task_runs_max: u64) -> Self {
        self.performer = self.performer.with_task_limit(task_runs_max);
        self
    }

    /// Runs until the control plane drains. Then waits up to `grace` for running commands and stops
    /// the rest. The control plane's slots limit how many commands run at a time.
    pub async fn run(self, grace: Duration) {
        // The next start of the control plane finds the stopped commands and reissues them.
        run_source(&self.source, &self.performer, Semaphore::MAX_PERMITS, grace).await;
    }
}

/// Commands that the journal claimed for this process when it issued them.
struct InProcess {
    commands: LocalCommands,
    services: Arc<LocalServices>,
}

#[async_trait]
impl CommandSource for InProcess {
    type Claim = CommandAssignment;

    async fn take(&self, _free: usize) -> Option<Vec<(CommandTask, CommandAssignment)>> {
        let assignment = self.commands.next().await?;
        let command = CommandTask {
            execution: assignment.execution,
            id: assignment.command,
            tenant: assignment.tenant.clone(),
            issued: assignment.issued.clone(),
            cancel: assignment.cancel.clone(),
        };
        Some(vec![(command, assignment)])
    }

    async fn over(&self) {
        // The semaphore has `MAX_PERMITS` permits, so the run loop never waits for one and never
        // needs this signal.
        std::future::pending().await
    }

    fn services(&self, _claim: &CommandAssignment) -> Arc<dyn Services> {
        self.services.clone()
    }

    async fn lost(&self, _claim: &CommandAssignment) {
        std::future::pending().await
    }

    async fn report(
        &self,
        claim: CommandAssignment,
        ended: CommandOutcome,
    ) -> Option<(CommandTask, CommandAssignment)> {
        self.commands.report(claim, ended).await;
        None
    }
}
