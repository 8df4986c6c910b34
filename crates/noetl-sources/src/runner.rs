//! Runs one subscription from its activation to its deactivation.

mod circuit;
mod deliver;
mod fetch;
mod memory;
mod outage;
mod state_changes;

use std::sync::Arc;
use std::time::Duration;

use noetl_model::Map;
use noetl_playbook::subscription::{Activation, Mode, SpoolMode, Subscription};
use noetl_playbook::{Diagnostic, Severity, check_subscription};
use noetl_store::{SubscriptionAction, SubscriptionState};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::fetch::FetchLoop;
use self::memory::RecentMessages;
use self::outage::OutageLog;
use crate::RETRY;
use crate::control_plane::{ControlPlaneError, SubscriptionView};
use crate::credentials;
use crate::deps::{RuntimeDeps, ShutdownAction};
use crate::lease::SubscriptionLease;
use crate::source::{Source, SourceError};
use crate::spool::Spool;

/// Uptime after which a source counts as healthy and the backoff restarts.
const WELL_AFTER: Duration = Duration::from_secs(10);

/// Reason a runner has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunnerExit {
    /// The subscription is deactivated, or this runtime was closed.
    Over,
    /// This runtime must not run the subscription in this status.
    NotOurs(SubscriptionView),
}

/// Outcome of one phase of a subscription.
enum NextAction {
    Moved(SubscriptionView),
    Stopped,
    Lost,
}

pub(crate) struct Runner {
    parts: RuntimeDeps,
    stop: CancellationToken,
    memory: Arc<RecentMessages>,
}

impl Runner {
    pub(crate) fn new(parts: RuntimeDeps, stop: CancellationToken) -> Self {
        Self { parts, stop, memory: Arc::default() }
    }

    /// Runs a subscription until it is deactivated or the runtime stops.
    pub(crate) async fn run(&self, mut view: SubscriptionView) -> RunnerExit {
        match self.is_ours(&view).await {
            Some(true) => {}
            Some(false) => return RunnerExit::NotOurs(view),
            None => {
                self.leave(&view).await;
                return RunnerExit::Over;
            }
        }
        let mut failures = 0;
        loop {
            let next = match view.state {
                SubscriptionState::Deactivated => return RunnerExit::Over,
                SubscriptionState::Registered => {
                    self.act_under_lease(&view, SubscriptionAction::Activate, &mut failures).await
                }
                SubscriptionState::Active => self.active(&view).await,
                SubscriptionState::Paused => self.paused(&view).await,
                SubscriptionState::Draining => {
                    self.act_under_lease(&view, SubscriptionAction::Deactivate, &mut failures).await
                }
            };
            match next {
                NextAction::Moved(moved) => view = moved,
                NextAction::Lost => {}
                NextAction::Stopped => return RunnerExit::Over,
            }
        }
    }

    /// Returns `true` if this runtime must run the subscription according to its document, or
    /// `None` if the runtime stops first.
    async fn is_ours(&self, view: &SubscriptionView) -> Option<bool> {
        let mut failures = 0;
        let reason = loop {
            match self.document(view).await {
                Ok(document) if document.mode != Mode::Pull => return Some(false),
                Ok(document) if self.parts.sources.get(document.source.as_str()).is_none() => {
                    break format!(
                        "this runtime has no source of kind '{}'",
                        document.source.as_str()
                    );
                }
                // Such a subscription is activated from outside, not by this runtime.
                Ok(document) if document.activation == Activation::Scheduled => {
                    return Some(view.state != SubscriptionState::Registered);
                }
                Ok(_) => return Some(true),
                Err(Unready::Settings(reason)) => break reason,
                Err(Unready::Away(_)) => {}
            }
            failures += 1;
            tokio::select! {
                () = self.stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY.delay(failures)) => {}
            }
        };
        OutageLog::source(&self.parts.plane, view).begin(&reason).await;
        Some(false)
    }

    async fn paused(&self, view: &SubscriptionView) -> NextAction {
        tokio::select! {
            moved = self.parts.plane.changed(view) => NextAction::Moved(moved),
            () = self.stop.cancelled() => {
                self.leave(view).await;
                NextAction::Stopped
            }
        }
    }

    async fn active(&self, view: &SubscriptionView) -> NextAction {
        let plane = &self.parts.plane;
        let changed = plane.changed(view);
        tokio::pin!(changed);
        let lease = tokio::select! {
            lease = SubscriptionLease::take(plane, view, &self.parts.terms) => Arc::new(lease),
            moved = &mut changed => return NextAction::Moved(moved),
            () = self.stop.cancelled() => {
                self.leave(view).await;
                return NextAction::Stopped;
            }
        };
        let end = CancellationToken::new();
        let work = self.work(view, &lease, &end);
        tokio::pin!(work);
        let next = tokio::select! {
            biased;
            () = self.stop.cancelled() => NextAction::Stopped,
            moved = &mut changed => NextAction::Moved(moved),
            () = lease.lost() => NextAction::Lost,
            // `work` returns only after `end` is cancelled.
            () = &mut work => return NextAction::Lost,
        };
        let is_last = matches!(next, NextAction::Stopped)
            && self.parts.at_end == ShutdownAction::Deactivate
            && !lease.is_awaited();
        if is_last {
            self.ask(view, SubscriptionAction::Drain).await;
        }
        end.cancel();
        // All messages in flight are acked or nacked before another runtime can start.
        work.await;
        if is_last {
            self.ask(view, SubscriptionAction::Deactivate).await;
        }
        lease.look_at(None);
        lease.release().await;
        next
    }

    /// Fetches and dispatches messages until `end` is cancelled. Retries while the source is
    /// unavailable.
    async fn work(
        &self,
        view: &SubscriptionView,
        lease: &Arc<SubscriptionLease>,
        end: &CancellationToken,
    ) {
        let trouble = OutageLog::source(&self.parts.plane, view);
        let mut failures = 0;
        while !end.is_cancelled() {
            let opened = tokio::select! {
                opened = self.open(view) => opened,
                () = end.cancelled() => return,
            };
            let reason = match opened {
                Ok(OpenPipeline { subscription, source, spool }) => {
                    trouble.end("connected").await;
                    lease.look_at(Some(source.clone()));
                    let begun = Instant::now();
                    let flow = FetchLoop {
                        plane: self.parts.plane.clone(),
                        view: view.clone(),
                        subscription,
                        source: source.clone(),
                        spool,
                        lease: lease.clone(),
                        memory: self.memory.clone(),
                        end: end.clone(),
                    };
                    let ended = flow.run().await;
                    lease.look_at(None);
                    source.close().await;
                    if begun.elapsed() >= WELL_AFTER {
                        failures = 0;
                    }
                    match ended {
                        Ok(()) => continue,
                        Err(error) => error.to_string(),
                    }
                }
                Err(Unready::Away(reason) | Unready::Settings(reason)) => reason,
            };
            trouble.begin(&reason).await;
            failures += 1;
            tokio::select! {
                () = end.cancelled() => {}
                () = tokio::time::sleep(RETRY.delay(failures)) => {}
            }
        }
    }

    async fn open(&self, view: &SubscriptionView) -> Result<OpenPipeline, Unready> {
        let subscription = self.document(view).await?;
        let kind = subscription.source.as_str();
        let missing = || Unready::Settings(format!("this runtime has no source of kind '{kind}'"));
        let opener = self.parts.sources.get(kind).ok_or_else(missing)?;
        let mut settings: Map = subscription.connection.clone();
        if let Some(name) = &subscription.auth {
            let credential = self.parts.plane.credential(name).await?;
            let laid = credentials::merge_into(kind, &mut settings, &credential);
            laid.map_err(Unready::Settings)?;
        }
        let source = opener.open(&subscription, &settings).await?;
        let spool = match self.spool(view, &subscription, settings, &*source).await {
            Ok(spool) => spool,
            Err(error) => {
                source.close().await;
                return Err(error);
            }
        };
        Ok(OpenPipeline { subscription: Arc::new(subscription), source, spool })
    }

    /// Opens the subscription's spool, if it needs one. In `hybrid` mode, only a source that
    /// doesn't retain unacked messages needs it.
    async fn spool(
        &self,
        view: &SubscriptionView,
        subscription: &Subscription,
        mut connection: Map,
        source: &dyn Source,
    ) -> Result<Option<Arc<Spool>>, Unready> {
        let Some(wanted) = &subscription.spool else { return Ok(None) };
        let is_wanted = match wanted.mode {
            SpoolMode::Off => false,
            SpoolMode::BufferAndAck => true,
            SpoolMode::Hybrid => !source.keeps(),
        };
        if !is_wanted {
            return Ok(None);
        }
        if let Some(name) = &wanted.credential {
            connection = self.parts.plane.credential(name).await?.data;
        }
        Ok(Some(Spool::open(wanted, view.id, &connection).await?))
    }

    /// Reads and checks the newest document at the subscription's path.
    async fn document(&self, view: &SubscriptionView) -> Result<Subscription, Unready> {
        let text = self.parts.plane.document(&view.path).await?;
        let path = view.path.clone();
        // Parsing a large document takes long enough to block the other tasks on this thread.
        let read = tokio::task::spawn_blocking(move || check_subscription(&text)).await;
        let read = read.map_err(|_| Unready::Settings("the document cannot be read".to_owned()))?;
        let wrong = || {
            let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
            let first = read.diagnostics.iter().find(is_error);
            let detail =
                first.map_or_else(String::new, |diagnostic| format!(": {}", diagnostic.message));
            Unready::Settings(format!("the document '{path}' has errors{detail}"))
        };
        // The path of the registration takes precedence over the one in the document.
        let subscription = read.subscription.clone().ok_or_else(wrong)?;
        Ok(Subscription { path, ..subscription })
    }
}

/// Open source and spool of a subscription, with its document.
struct OpenPipeline {
    subscription: Arc<Subscription>,
    source: Arc<dyn Source>,
    spool: Option<Arc<Spool>>,
}

/// Reason a source could not be opened.
enum Unready {
    Away(String),
    Settings(String),
}

impl From<ControlPlaneError> for Unready {
    fn from(error: ControlPlaneError) -> Self {
        match error {
            ControlPlaneError::Away(reason) => Self::Away(reason),
            ControlPlaneError::Refused(reason) => Self::Settings(reason),
        }
    }
}

impl From<SourceError> for Unready {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Away(reason) => Self::Away(reason),
            SourceError::Settings(reason) => Self::Settings(reason),
        }
    }
}
