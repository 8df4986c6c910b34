//! One subscription, from its activation to its end.

mod circuit;
mod deliver;
mod flow;
mod memory;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use noetl_model::Map;
use noetl_playbook::subscription::{Activation, Mode, SpoolMode, Subscription};
use noetl_playbook::{Diagnostic, Severity, check_subscription};
use noetl_store::{SubscriptionAction, SubscriptionState};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::flow::Flow;
use self::memory::Memory;
use self::trouble::Trouble;
use crate::credentials;
use crate::held::Held;
use crate::plane::{PlaneError, Standing};
use crate::runtime::{Parts, pause};
use crate::source::{Source, SourceError};
use crate::spool::Spool;

/// How long a source has to work before it counts as well.
const WELL_AFTER: Duration = Duration::from_secs(10);

/// How long the end of a runtime may wait for the lease of a subscription it does not act on.
const LEAVE_WAIT: Duration = Duration::from_secs(1);

/// What happens to a subscription when its runtime is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// It stays as it is.
    Leave,
    /// It is drained and deactivated, unless another runtime waits for it.
    Deactivate,
}

/// Why nobody acts on a subscription here any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is over, or this runtime was closed.
    Over,
    /// It is not one to be acted on here, as it stands.
    NotOurs(Standing),
}

/// How a stretch of acting on a subscription ended.
enum Next {
    Moved(Standing),
    Stopped,
    Lost,
}

pub(crate) struct Runner {
    parts: Parts,
    stop: CancellationToken,
    memory: Arc<Memory>,
}

impl Runner {
    pub(crate) fn new(parts: Parts, stop: CancellationToken) -> Self {
        Self { parts, stop, memory: Arc::default() }
    }

    /// Acts on a subscription until it is over or this is stopped.
    pub(crate) async fn run(&self, mut standing: Standing) -> Ended {
        match self.is_ours(&standing).await {
            Some(true) => {}
            Some(false) => return Ended::NotOurs(standing),
            None => {
                self.leave(&standing).await;
                return Ended::Over;
            }
        }
        let mut failures = 0;
        loop {
            let next = match standing.state {
                SubscriptionState::Deactivated => return Ended::Over,
                SubscriptionState::Registered => {
                    match self.act(&standing, SubscriptionAction::Activate, &mut failures).await {
                        Some(moved) => Next::Moved(moved),
                        None => Next::Stopped,
                    }
                }
                SubscriptionState::Active => self.active(&standing).await,
                SubscriptionState::Paused => self.paused(&standing).await,
                SubscriptionState::Draining => self.draining(&standing, &mut failures).await,
            };
            match next {
                Next::Moved(moved) => standing = moved,
                Next::Lost => {}
                Next::Stopped => return Ended::Over,
            }
        }
    }

    /// Whether its document says that it is to be acted on here; none when this was stopped.
    async fn is_ours(&self, standing: &Standing) -> Option<bool> {
        let mut failures = 0;
        let reason = loop {
            match self.document(standing).await {
                Ok(found) if found.mode != Mode::Pull => return Some(false),
                Ok(found) if self.parts.sources.get(found.source.as_str()).is_none() => {
                    break format!(
                        "this runtime has no source of kind '{}'",
                        found.source.as_str()
                    );
                }
                // Somebody else says when such a one is to be acted on.
                Ok(found) if found.activation == Activation::Scheduled => {
                    return Some(standing.state != SubscriptionState::Registered);
                }
                Ok(_) => return Some(true),
                Err(Unready::Settings(reason)) => break reason,
                Err(Unready::Away(_)) => {}
            }
            failures += 1;
            tokio::select! {
                () = self.stop.cancelled() => return None,
                () = tokio::time::sleep(pause(failures)) => {}
            }
        };
        Trouble::source(&self.parts.plane, standing).begin(&reason).await;
        Some(false)
    }

    /// Moves it, and says where it stands then, whoever moved it; none when this was stopped.
    async fn act(
        &self,
        standing: &Standing,
        action: SubscriptionAction,
        failures: &mut u32,
    ) -> Option<Standing> {
        loop {
            let error = match self.parts.plane.act(standing.id, action).await {
                Ok(moved) => {
                    *failures = 0;
                    return Some(moved);
                }
                Err(error) => error,
            };
            // Somebody else may have moved it meanwhile, and then it is as it should be.
            if let Ok(now) = self.parts.plane.standing(standing.id).await
                && now != *standing
            {
                return Some(now);
            }
            if *failures == 0 {
                let action = action.as_str();
                warn!(subscription = standing.path, action, %error, "it does not move; trying again");
            }
            *failures += 1;
            tokio::select! {
                () = self.stop.cancelled() => return None,
                () = tokio::time::sleep(pause(*failures)) => {}
            }
        }
    }

    async fn paused(&self, standing: &Standing) -> Next {
        tokio::select! {
            moved = self.parts.plane.changed(standing) => Next::Moved(moved),
            () = self.stop.cancelled() => {
                self.leave(standing).await;
                Next::Stopped
            }
        }
    }

    /// Ends a subscription that nothing is under way of, if that is asked for at the end and nobody
    /// else acts on it or waits to.
    async fn leave(&self, standing: &Standing) {
        if self.parts.at_end != AtEnd::Deactivate {
            return;
        }
        let taken = Held::take(&self.parts.plane, standing, &self.parts.terms);
        // Whoever acts on it now sees to its end.
        if let Ok(held) = tokio::time::timeout(LEAVE_WAIT, taken).await {
            if !held.is_awaited() {
                self.ask(standing, SubscriptionAction::Drain).await;
                self.ask(standing, SubscriptionAction::Deactivate).await;
            }
            held.release().await;
        }
    }

    /// Nothing is under way here, so it is over as soon as nobody else acts on it.
    async fn draining(&self, standing: &Standing, failures: &mut u32) -> Next {
        let held = tokio::select! {
            held = Held::take(&self.parts.plane, standing, &self.parts.terms) => held,
            moved = self.parts.plane.changed(standing) => return Next::Moved(moved),
            () = self.stop.cancelled() => return Next::Stopped,
        };
        let moved = self.act(standing, SubscriptionAction::Deactivate, failures).await;
        held.release().await;
        moved.map_or(Next::Stopped, Next::Moved)
    }

    async fn active(&self, standing: &Standing) -> Next {
        let plane = &self.parts.plane;
        let changed = plane.changed(standing);
        tokio::pin!(changed);
        let held = tokio::select! {
            held = Held::take(plane, standing, &self.parts.terms) => Arc::new(held),
            moved = &mut changed => return Next::Moved(moved),
            () = self.stop.cancelled() => {
                self.leave(standing).await;
                return Next::Stopped;
            }
        };
        let end = CancellationToken::new();
        let work = self.work(standing, &held, &end);
        tokio::pin!(work);
        let next = tokio::select! {
            biased;
            () = self.stop.cancelled() => Next::Stopped,
            moved = &mut changed => Next::Moved(moved),
            () = held.lost() => Next::Lost,
            // It ends when it is told to, and not before.
            () = &mut work => return Next::Lost,
        };
        let is_last = matches!(next, Next::Stopped)
            && self.parts.at_end == AtEnd::Deactivate
            && !held.is_awaited();
        if is_last {
            self.ask(standing, SubscriptionAction::Drain).await;
        }
        end.cancel();
        // What was begun is answered for before anybody else may begin.
        work.await;
        if is_last {
            self.ask(standing, SubscriptionAction::Deactivate).await;
        }
        held.look_at(None);
        held.release().await;
        next
    }

    /// Moves it, as far as that can be said.
    async fn ask(&self, standing: &Standing, action: SubscriptionAction) {
        if let Err(error) = self.parts.plane.act(standing.id, action).await {
            let action = action.as_str();
            warn!(subscription = standing.path, action, %error, "it does not move");
        }
    }

    /// Fetches and dispatches until told to end. A source that is away is waited for.
    async fn work(&self, standing: &Standing, held: &Arc<Held>, end: &CancellationToken) {
        let trouble = Trouble::source(&self.parts.plane, standing);
        let mut failures = 0;
        while !end.is_cancelled() {
            let opened = tokio::select! {
                opened = self.open(standing) => opened,
                () = end.cancelled() => return,
            };
            let reason = match opened {
                Ok(Opened { subscription, source, spool }) => {
                    trouble.end("connected").await;
                    held.look_at(Some(source.clone()));
                    let begun = Instant::now();
                    let flow = Flow {
                        plane: self.parts.plane.clone(),
                        standing: standing.clone(),
                        subscription,
                        source: source.clone(),
                        spool,
                        held: held.clone(),
                        memory: self.memory.clone(),
                        end: end.clone(),
                    };
                    let ended = flow.run().await;
                    held.look_at(None);
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
                () = tokio::time::sleep(pause(failures)) => {}
            }
        }
    }

    async fn open(&self, standing: &Standing) -> Result<Opened, Unready> {
        let subscription = self.document(standing).await?;
        let kind = subscription.source.as_str();
        let missing = || Unready::Settings(format!("this runtime has no source of kind '{kind}'"));
        let opener = self.parts.sources.get(kind).ok_or_else(missing)?;
        let mut settings: Map = subscription.connection.clone();
        if let Some(name) = &subscription.auth {
            let credential = self.parts.plane.credential(name).await?;
            let laid = credentials::lay(kind, &mut settings, &credential);
            laid.map_err(Unready::Settings)?;
        }
        let source = opener.open(&subscription, &settings).await?;
        let spool = match self.spool(standing, &subscription, settings, &*source).await {
            Ok(spool) => spool,
            Err(error) => {
                source.close().await;
                return Err(error);
            }
        };
        Ok(Opened { subscription: Arc::new(subscription), source, spool })
    }

    /// The spool of a subscription that has one: while nothing can be started its messages are kept
    /// there, or only those that the source would lose.
    async fn spool(
        &self,
        standing: &Standing,
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
        Ok(Some(Spool::open(wanted, standing.id, &connection).await?))
    }

    /// What the newest document at its path says.
    async fn document(&self, standing: &Standing) -> Result<Subscription, Unready> {
        let text = self.parts.plane.document(&standing.path).await?;
        let path = standing.path.clone();
        // One that somebody made large takes long to read.
        let read = tokio::task::spawn_blocking(move || check_subscription(&text)).await;
        let read = read.map_err(|_| Unready::Settings("the document cannot be read".to_owned()))?;
        let wrong = || {
            let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
            let first = read.diagnostics.iter().find(is_error);
            let said = first.map_or_else(String::new, |found| format!(": {}", found.message));
            Unready::Settings(format!("the document '{path}' has errors{said}"))
        };
        // The path it is registered at is the one that counts.
        let subscription = read.subscription.clone().ok_or_else(wrong)?;
        Ok(Subscription { path, ..subscription })
    }
}

/// What messages come from and go through.
struct Opened {
    subscription: Arc<Subscription>,
    source: Arc<dyn Source>,
    spool: Option<Arc<Spool>>,
}

/// Why a source is not there.
enum Unready {
    Away(String),
    Settings(String),
}

impl From<PlaneError> for Unready {
    fn from(error: PlaneError) -> Self {
        match error {
            PlaneError::Away(reason) => Self::Away(reason),
            PlaneError::Refused(reason) => Self::Settings(reason),
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
