//! Acting on subscriptions: on all that are registered, or on one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::SubscriptionId;
use noetl_store::{SubscriptionAction, SubscriptionState};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::held::Terms;
use crate::plane::{Plane, PlaneError, Standing};
use crate::runner::{AtEnd, Ended, Runner};
use crate::source::Sources;
use crate::tally::Tally;

/// How long to wait after so many failures in a row: from a quarter of a second to ten.
pub(crate) fn pause(failures: u32) -> Duration {
    Duration::from_millis((125_u64 << failures.min(7)).min(10_000))
}

/// How a runtime goes about it.
#[derive(Debug, Clone)]
pub struct Options {
    /// By what others know it. No other runtime has that name at the same time.
    pub holder: String,
    /// How long others wait for it when it falls silent. Default: 30 s.
    pub lease: Duration,
    /// Where everything it does is counted.
    pub tally: Arc<Tally>,
}

impl Options {
    /// The usual for a runtime of this name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self { holder: holder.into(), lease: Duration::from_secs(30), tally: Arc::default() }
    }
}

/// Acts on subscriptions until it is closed.
pub struct Runtime {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Runtime {
    /// Acts on every subscription that fetches its messages from a source there is, and on those that
    /// are registered later. What they stand at stays as it is when this closes: it is what somebody
    /// asked for, and goes on with the next runtime.
    pub fn all(plane: Arc<dyn Plane>, sources: Sources, options: Options) -> Self {
        let stop = CancellationToken::new();
        let all = All { parts: parts(plane, sources, options, AtEnd::Leave), stop: stop.clone() };
        Self { stop, task: tokio::spawn(all.run()) }
    }

    /// Acts on the subscription at a path: registers and activates it, and drains and deactivates it
    /// when this closes, unless another runtime waits to take over.
    pub fn one(plane: Arc<dyn Plane>, sources: Sources, options: Options, path: String) -> Self {
        let stop = CancellationToken::new();
        let parts = parts(plane, sources, options, AtEnd::Deactivate);
        let one = One { parts, path, stop: stop.clone() };
        Self { stop, task: tokio::spawn(one.run()) }
    }

    /// Resolves when there is nothing left to act on: the one subscription is over.
    pub async fn ended(&mut self) {
        let _ = (&mut self.task).await;
    }

    /// Takes nothing more, ends what is under way, and gives back what it holds.
    pub async fn close(self) {
        self.stop.cancel();
        if self.task.is_finished() {
            return;
        }
        if let Err(error) = self.task.await {
            error!(%error, "the runtime of subscriptions ended badly");
        }
    }
}

#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) plane: Arc<dyn Plane>,
    pub(crate) sources: Sources,
    pub(crate) terms: Terms,
    pub(crate) at_end: AtEnd,
}

fn parts(plane: Arc<dyn Plane>, sources: Sources, options: Options, at_end: AtEnd) -> Parts {
    let terms = Terms { holder: options.holder, ttl: options.lease, tally: options.tally };
    Parts { plane, sources, terms, at_end }
}

struct All {
    parts: Parts,
    stop: CancellationToken,
}

impl All {
    async fn run(self) {
        let mut running: JoinSet<(Standing, Ended)> = JoinSet::new();
        // Where each stood when it was begun, or when it was found not to be ours.
        let mut known: HashMap<SubscriptionId, Known> = HashMap::new();
        let mut failures = 0;
        loop {
            match self.parts.plane.list().await {
                Ok(listed) => {
                    failures = 0;
                    known.retain(|id, known| {
                        known.is_running || listed.iter().any(|standing| standing.id == *id)
                    });
                    for standing in listed.into_iter().filter(is_alive) {
                        self.begin(standing, &mut known, &mut running);
                    }
                }
                Err(error) => {
                    if failures == 0 {
                        warn!(%error, "subscriptions are not known; trying again");
                    }
                    failures += 1;
                }
            }
            let again = async {
                match failures {
                    0 => self.parts.plane.stirred().await,
                    failures => tokio::time::sleep(pause(failures)).await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = again => {}
                Some(ended) = running.join_next() => forget(&mut known, ended),
            }
        }
        while let Some(ended) = running.join_next().await {
            forget(&mut known, ended);
        }
    }

    fn begin(
        &self,
        standing: Standing,
        known: &mut HashMap<SubscriptionId, Known>,
        running: &mut JoinSet<(Standing, Ended)>,
    ) {
        let is_known = |known: &Known| known.is_running || known.standing == standing;
        if known.get(&standing.id).is_some_and(is_known) {
            return;
        }
        let begun = Known { standing: standing.clone(), is_running: true };
        known.insert(standing.id, begun);
        let runner = Runner::new(self.parts.clone(), self.stop.clone());
        running.spawn(async move {
            let ended = runner.run(standing.clone()).await;
            (standing, ended)
        });
    }
}

struct Known {
    standing: Standing,
    is_running: bool,
}

fn is_alive(standing: &Standing) -> bool {
    standing.state != SubscriptionState::Deactivated
}

fn forget(
    known: &mut HashMap<SubscriptionId, Known>,
    ended: Result<(Standing, Ended), tokio::task::JoinError>,
) {
    match ended {
        // It is looked at again when it has moved.
        Ok((standing, Ended::NotOurs(at))) => {
            known.insert(standing.id, Known { standing: at, is_running: false });
        }
        Ok((standing, Ended::Over)) => {
            known.remove(&standing.id);
        }
        Err(error) => {
            error!(%error, "a subscription is no longer acted on");
            // Whose it was is not said; all that do not run are begun again by the next look.
            known.retain(|_, known| !known.is_running);
        }
    }
}

struct One {
    parts: Parts,
    path: String,
    stop: CancellationToken,
}

impl One {
    async fn run(self) {
        let mut failures = 0;
        let standing = loop {
            let error = match self.activated().await {
                Ok(standing) => break standing,
                Err(error) => error,
            };
            if failures == 0 {
                warn!(subscription = self.path, %error, "it cannot be registered; trying again");
            }
            failures += 1;
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause(failures)) => {}
            }
        };
        Runner::new(self.parts, self.stop).run(standing).await;
    }

    /// The subscription, registered and active unless somebody paused it. One that was deactivated is
    /// activated again rather than replaced, so that what it has seen stays known.
    async fn activated(&self) -> Result<Standing, PlaneError> {
        let plane = &self.parts.plane;
        let listed = plane.list().await?;
        let last = listed.into_iter().rfind(|standing| standing.path == self.path);
        let standing = match last {
            Some(standing) => standing,
            None => plane.register(&self.path).await?,
        };
        match standing.state {
            SubscriptionState::Registered | SubscriptionState::Deactivated => {
                plane.act(standing.id, SubscriptionAction::Activate).await
            }
            // Whoever ended half-way is not there to end it.
            SubscriptionState::Draining => {
                plane.act(standing.id, SubscriptionAction::Deactivate).await?;
                plane.act(standing.id, SubscriptionAction::Activate).await
            }
            SubscriptionState::Active | SubscriptionState::Paused => Ok(standing),
        }
    }
}
