//! Command sources and the loop that runs their commands.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_work::CommandOutcome;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::executor::CommandExecutor;
use crate::services::Services;
use crate::task::CommandTask;

/// A channel to receive commands and report their completions: within a process, by leases over
/// HTTP, or by another transport that announces them.
#[async_trait]
pub trait CommandSource: Send + Sync + 'static {
    /// Right to a command until it is reported. Dropping it abandons the command.
    type Claim: Send + Sync + 'static;

    /// Claims up to `free` commands for this worker, waiting until there is at least one. Retries
    /// internally while the control plane is unavailable. Returns `None` once the worker must claim
    /// no more.
    async fn take(&self, free: usize) -> Option<Vec<(CommandTask, Self::Claim)>>;

    /// Waits until the worker must claim no more commands.
    async fn over(&self);

    /// Returns the services for the tools of a command.
    fn services(&self, claim: &Self::Claim) -> Arc<dyn Services>;

    /// Waits until another worker owns a command. The caller then stops it without a report.
    async fn lost(&self, claim: &Self::Claim);

    /// Reports a command's completion. Retries until it is accepted or can no longer take effect.
    /// Returns the command handed off with the response, if any, to run in the same slot.
    async fn report(
        &self,
        claim: Self::Claim,
        ended: CommandOutcome,
    ) -> Option<(CommandTask, Self::Claim)>;
}

/// Runs commands from a source, at most `slots` at a time, until the source closes. Then waits up
/// to `grace` for running commands, stops the rest, and abandons them. Returns `true` if every
/// command was reported.
pub async fn run<S: CommandSource>(
    source: &Arc<S>,
    performer: &CommandExecutor,
    slots: usize,
    grace: Duration,
) -> bool {
    let permits = Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS)));
    let (running, stop) = (TaskTracker::new(), CancellationToken::new());
    'taking: loop {
        let permit = tokio::select! {
            permit = permits.clone().acquire_owned() => permit,
            () = source.over() => break,
        };
        let (Ok(permit), free) = (permit, permits.available_permits()) else { break };
        let mut first = Some(permit);
        let Some(claimed) = source.take(free.saturating_add(1)).await else { break };
        for (command, claim) in claimed {
            let permit = match first.take() {
                Some(permit) => permit,
                None => match permits.clone().acquire_owned().await {
                    Ok(permit) => permit,
                    Err(_) => break 'taking,
                },
            };
            let (source, performer) = (source.clone(), performer.clone());
            let stop = stop.clone();
            running.spawn(async move {
                let _permit = permit;
                tokio::select! {
                    () = carry_out(&*source, &performer, (command, claim)) => {}
                    // The command stays claimed. The control plane reissues it.
                    () = stop.cancelled() => {}
                }
            });
        }
    }
    running.close();
    if tokio::time::timeout(grace, running.wait()).await.is_ok() {
        return true;
    }
    stop.cancel();
    running.wait().await;
    false
}

/// Runs a command and those handed off to its slot.
async fn carry_out<S: CommandSource>(
    source: &S,
    performer: &CommandExecutor,
    first: (CommandTask, S::Claim),
) {
    let mut next = Some(first);
    while let Some((command, claim)) = next {
        let performer = performer.clone().with_services(source.services(&claim));
        let ended = tokio::select! {
            ended = performer.execute(&command) => Some(ended),
            // Dropping the future stops it: a tool terminates everything it started.
            () = source.lost(&claim) => None,
        };
        next = match ended {
            Some(ended) => source.report(claim, ended).await,
            None => None,
        };
    }
}
