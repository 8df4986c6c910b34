//! Where commands come from, and the loop that runs them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_control::Ended;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::perform::{Command, Performer};
use crate::services::Services;

/// A way to receive commands and to say how they ended: within a process, by leases over HTTP, or
/// by whatever else announces them.
#[async_trait]
pub trait CommandSource: Send + Sync + 'static {
    /// What holds a command until it is reported. Dropping it gives the command up.
    type Claim: Send + Sync + 'static;

    /// Commands that are this worker's from now on, at most as many as there are `free` places;
    /// `None` once no more are to be taken. Comes again by itself while nobody answers.
    async fn take(&self, free: usize) -> Option<Vec<(Command, Self::Claim)>>;

    /// Resolves once no more are to be taken.
    async fn over(&self);

    /// What the tools of a command may ask.
    fn services(&self, claim: &Self::Claim) -> Arc<dyn Services>;

    /// Resolves when a command is somebody else's: it is stopped then, and not reported.
    async fn lost(&self, claim: &Self::Claim);

    /// Says how a command ended. Comes again until that is taken, or cannot count any more. Answers with
    /// a command to be run in the place of this one, if it was given one.
    async fn report(&self, claim: Self::Claim, ended: Ended) -> Option<(Command, Self::Claim)>;
}

/// Runs what a source gives, so many at a time, until it gives no more. Then what runs may go on for
/// up to `grace`, and the rest is stopped and given up. Whether everything was reported.
pub(crate) async fn run<S: CommandSource>(
    source: &Arc<S>,
    performer: &Performer,
    slots: usize,
    grace: Duration,
) -> bool {
    let places = Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS)));
    let (running, stop) = (TaskTracker::new(), CancellationToken::new());
    'taking: loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = source.over() => break,
        };
        let (Ok(place), free) = (place, places.available_permits()) else { break };
        let mut first = Some(place);
        let Some(taken) = source.take(free.saturating_add(1)).await else { break };
        for (command, claim) in taken {
            let place = match first.take() {
                Some(place) => place,
                None => match places.clone().acquire_owned().await {
                    Ok(place) => place,
                    Err(_) => break 'taking,
                },
            };
            let (source, performer) = (source.clone(), performer.clone());
            let stop = stop.clone();
            running.spawn(async move {
                let _place = place;
                tokio::select! {
                    () = carry_out(&*source, &performer, (command, claim)) => {}
                    // Left claimed: whoever looks after it issues it again.
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

/// Runs a command, and those that are given in its place.
async fn carry_out<S: CommandSource>(
    source: &S,
    performer: &Performer,
    first: (Command, S::Claim),
) {
    let mut next = Some(first);
    while let Some((command, claim)) = next {
        let performer = performer.clone().with_services(source.services(&claim));
        let ended = tokio::select! {
            ended = performer.perform(&command) => Some(ended),
            // What is dropped is stopped: a tool ends what it started.
            () = source.lost(&claim) => None,
        };
        next = match ended {
            Some(ended) => source.report(claim, ended).await,
            None => None,
        };
    }
}
