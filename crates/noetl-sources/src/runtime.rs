//! Runs all registered subscriptions, or a single one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::SubscriptionId;
use noetl_store::{SubscriptionAction, SubscriptionState};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::RETRY;
use crate::control_plane::{ControlPlaneClient, ControlPlaneError, SubscriptionView};
use crate::counters::MessageCounters;
use crate::deps::{RuntimeDeps, ShutdownAction};
use crate::lease::LeaseTerms;
use crate::registry::SourceRegistry;
use crate::runner::{Runner, RunnerExit};

#[derive(Debug, Clone)]
pub struct Options {
    /// Lease holder name, unique among all running runtimes.
    pub holder: String,
    /// Lease duration: after a crash, another runtime takes over within this time. Default: 30 s.
    pub lease: Duration,
    /// Message counters of this process.
    pub tally: Arc<MessageCounters>,
}

impl Options {
    /// Returns the default configuration for a runtime of this name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self { holder: holder.into(), lease: Duration::from_secs(30), tally: Arc::default() }
    }
}

/// Runs subscriptions until it is closed.
pub struct SubscriptionRuntime {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl SubscriptionRuntime {
    /// Runs every pull subscription whose source kind is supported, including those registered
    /// later. Closing the runtime leaves their states unchanged, so that the next runtime resumes
    /// them.
    pub fn all(
        plane: Arc<dyn ControlPlaneClient>,
        sources: SourceRegistry,
        options: Options,
    ) -> Self {
        let stop = CancellationToken::new();
        let all = AllSubscriptions {
            parts: parts(plane, sources, options, ShutdownAction::Leave),
            stop: stop.clone(),
        };
        Self { stop, task: tokio::spawn(all.run()) }
    }

    /// Runs the subscription at a path. Registers and activates it; on close, drains and
    /// deactivates it unless another runtime waits for its lease.
    pub fn one(
        plane: Arc<dyn ControlPlaneClient>,
        sources: SourceRegistry,
        options: Options,
        path: String,
    ) -> Self {
        let stop = CancellationToken::new();
        let parts = parts(plane, sources, options, ShutdownAction::Deactivate);
        let one = SingleSubscription { parts, path, stop: stop.clone() };
        Self { stop, task: tokio::spawn(one.run()) }
    }

    /// Waits until there is nothing left to run: the single subscription has ended.
    pub async fn ended(&mut self) {
        let _ = (&mut self.task).await;
    }

    /// Stops fetching, finishes messages in flight, and releases all leases.
    pub async fn close(self) {
        self.stop.cancel();
        if self.task.is_finished() {
            return;
        }
        if let Err(error) = self.task.await {
            error!(%error, "subscription runtime failed");
        }
    }
}

fn parts(
    plane: Arc<dyn ControlPlaneClient>,
    sources: SourceRegistry,
    options: Options,
    at_end: ShutdownAction,
) -> RuntimeDeps {
    let terms = LeaseTerms { holder: options.holder, ttl: options.lease, tally: options.tally };
    RuntimeDeps { plane, sources, terms, at_end }
}

struct AllSubscriptions {
    parts: RuntimeDeps,
    stop: CancellationToken,
}

impl AllSubscriptions {
    async fn run(self) {
        let mut running: JoinSet<(SubscriptionView, RunnerExit)> = JoinSet::new();
        // Status of each subscription when its runner started, or when the runner found that this
        // runtime must not run it.
        let mut known: HashMap<SubscriptionId, KnownSubscription> = HashMap::new();
        let mut failures = 0;
        loop {
            match self.parts.plane.list().await {
                Ok(listed) => {
                    failures = 0;
                    known.retain(|id, known| {
                        known.runner.is_some() || listed.iter().any(|view| view.id == *id)
                    });
                    for view in listed.into_iter().filter(is_alive) {
                        self.begin(view, &mut known, &mut running);
                    }
                }
                Err(error) => {
                    if failures == 0 {
                        warn!(%error, "listing subscriptions failed, retrying");
                    }
                    failures += 1;
                }
            }
            let again = async {
                match failures {
                    0 => self.parts.plane.stirred().await,
                    failures => tokio::time::sleep(RETRY.delay(failures)).await,
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
        view: SubscriptionView,
        known: &mut HashMap<SubscriptionId, KnownSubscription>,
        running: &mut JoinSet<(SubscriptionView, RunnerExit)>,
    ) {
        let is_known = |known: &KnownSubscription| known.runner.is_some() || known.view == view;
        if known.get(&view.id).is_some_and(is_known) {
            return;
        }
        let runner = Runner::new(self.parts.clone(), self.stop.clone());
        let own = view.clone();
        let task = running.spawn(async move {
            let ended = runner.run(own.clone()).await;
            (own, ended)
        });
        known.insert(view.id, KnownSubscription { view, runner: Some(task.id()) });
    }
}

struct KnownSubscription {
    view: SubscriptionView,
    /// Task of its runner, while that runs.
    runner: Option<tokio::task::Id>,
}

fn is_alive(view: &SubscriptionView) -> bool {
    view.state != SubscriptionState::Deactivated
}

fn forget(
    known: &mut HashMap<SubscriptionId, KnownSubscription>,
    ended: Result<(SubscriptionView, RunnerExit), tokio::task::JoinError>,
) {
    match ended {
        // The next change of its status starts a new runner.
        Ok((view, RunnerExit::NotOurs(at))) => {
            known.insert(view.id, KnownSubscription { view: at, runner: None });
        }
        Ok((view, RunnerExit::Over)) => {
            known.remove(&view.id);
        }
        Err(error) => {
            error!(%error, "subscription runner failed, restarting");
            // The next listing starts a runner for this subscription; the others keep theirs.
            known.retain(|_, known| known.runner != Some(error.id()));
        }
    }
}

struct SingleSubscription {
    parts: RuntimeDeps,
    path: String,
    stop: CancellationToken,
}

impl SingleSubscription {
    async fn run(self) {
        let mut failures = 0;
        let view = loop {
            let error = match self.activated().await {
                Ok(view) => break view,
                Err(error) => error,
            };
            if failures == 0 {
                warn!(
                    subscription = self.path, %error,
                    "subscription registration failed, retrying"
                );
            }
            failures += 1;
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(RETRY.delay(failures)) => {}
            }
        };
        Runner::new(self.parts, self.stop).run(view).await;
    }

    /// Returns the subscription, registered and active unless an operator paused it. Reactivates a
    /// deactivated subscription instead of replacing it, to preserve its deduplication state.
    async fn activated(&self) -> Result<SubscriptionView, ControlPlaneError> {
        let plane = &self.parts.plane;
        let listed = plane.list().await?;
        let last = listed.into_iter().rfind(|view| view.path == self.path);
        let view = match last {
            Some(view) => view,
            None => plane.register(&self.path).await?,
        };
        match view.state {
            SubscriptionState::Registered | SubscriptionState::Deactivated => {
                plane.act(view.id, SubscriptionAction::Activate).await
            }
            // The runtime that drained it stopped before it finished.
            SubscriptionState::Draining => {
                plane.act(view.id, SubscriptionAction::Deactivate).await?;
                plane.act(view.id, SubscriptionAction::Activate).await
            }
            SubscriptionState::Active | SubscriptionState::Paused => Ok(view),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(id: i64) -> SubscriptionView {
        SubscriptionView {
            id: SubscriptionId::new(id),
            path: format!("subscriptions/{id}"),
            state: SubscriptionState::Active,
            moved_at: String::new(),
        }
    }

    #[tokio::test]
    async fn a_runner_that_panics_does_not_start_second_runners_of_others() {
        let mut running: JoinSet<(SubscriptionView, RunnerExit)> = JoinSet::new();
        let healthy = running.spawn(std::future::pending()).id();
        let failing = running.spawn(async { panic!("a bug in a source") }).id();
        let mut known = HashMap::from([
            (view(1).id, KnownSubscription { view: view(1), runner: Some(healthy) }),
            (view(2).id, KnownSubscription { view: view(2), runner: Some(failing) }),
            (view(3).id, KnownSubscription { view: view(3), runner: None }),
        ]);
        let ended = running.join_next().await.expect("the failed task");
        forget(&mut known, ended);
        let mut left: Vec<SubscriptionId> = known.into_keys().collect();
        left.sort();
        assert_eq!(left, [view(1).id, view(3).id]);
    }
}
