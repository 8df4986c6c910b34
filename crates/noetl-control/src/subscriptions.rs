//! Subscriptions: made known by the path of their document, then moved from state to state.
//!
//! A store moves a subscription only from the state the caller saw; here the caller looks again
//! when somebody was faster, so every answer is about one state that was really there.

mod running;
mod why;

use std::sync::Arc;

use noetl_model::event::{Lifecycle, Reported};
use noetl_model::{Clock, Event, EventId, Seq, SubscriptionId, Tenant};
use noetl_store::{
    NewNote, NewSubscription, Stamp, Store, StoreError, SubscriptionAction, SubscriptionRow,
    SubscriptionState,
};

use tokio::sync::watch;

pub use self::why::SubscriptionWhy;
use crate::ids::Ids;

/// The kind of documents that subscriptions are made of.
pub(crate) const KIND: &str = "subscription";

/// How often a move is tried when others are faster. Each lost round is a move of somebody else's.
const ROUNDS_MAX: usize = 64;

/// Why a subscription was not registered, moved or read.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionError {
    /// The catalog has nothing at this path.
    #[error("Subscription not found: {0}")]
    NoDocument(String),
    /// The newest document at the path is of another kind.
    #[error("Catalog entry '{path}' is kind '{kind}', not 'subscription'")]
    WrongKind { path: String, kind: String },
    /// There is no such subscription.
    #[error("Subscription {0} not registered")]
    Unregistered(SubscriptionId),
    /// The action is not allowed from there.
    #[error(
        "Cannot '{}' a subscription in state '{}' (allowed from {:?})",
        .action.as_str(), .state.as_str(), allowed(*.action)
    )]
    Illegal { action: SubscriptionAction, state: SubscriptionState },
    /// It is over, and its path has another.
    #[error("Subscription {id} was replaced: '{path}' has another one that is not deactivated")]
    Replaced { id: SubscriptionId, path: String },
    /// Others kept moving it.
    #[error("subscription {0} is being moved by others; come again")]
    Contended(SubscriptionId),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

fn allowed(action: SubscriptionAction) -> Vec<&'static str> {
    action.from().iter().map(|state| state.as_str()).collect()
}

/// The subscription service. Cheap to clone.
#[derive(Clone)]
pub struct Subscriptions {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Ids,
    /// Changes when one was registered or moved in this process.
    moves: watch::Sender<()>,
}

impl Subscriptions {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Ids) -> Self {
        Self { store, clock, ids, moves: watch::Sender::new(()) }
    }

    /// Makes the subscription at a path known, with the newest version of its document. One that is
    /// known and not deactivated stays as it is.
    pub async fn register(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<SubscriptionRow, SubscriptionError> {
        let entry = self.store.entry_at(tenant, path, None).await;
        let entry = entry.map_err(SubscriptionError::Store)?;
        let entry = entry.ok_or_else(|| SubscriptionError::NoDocument(path.to_owned()))?;
        if entry.kind != KIND {
            return Err(SubscriptionError::WrongKind { path: entry.path, kind: entry.kind });
        }
        self.ids.leased().map_err(SubscriptionError::Store)?;
        let new = NewSubscription {
            id: self.ids.subscription(),
            path: entry.path,
            catalog: entry.id,
            stamp: self.stamp(),
        };
        let row = self.store.register_subscription(tenant, new).await;
        self.moves.send_replace(());
        row.map_err(SubscriptionError::Store)
    }

    /// Does `action` to a subscription.
    pub async fn act(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        action: SubscriptionAction,
    ) -> Result<SubscriptionRow, SubscriptionError> {
        let mut seen = None;
        for _ in 0..ROUNDS_MAX {
            let row = self.get(tenant, id).await?;
            if !action.from().contains(&row.state) {
                return Err(SubscriptionError::Illegal { action, state: row.state });
            }
            // It is as it was, and was not moved: another has its path.
            if seen.as_ref() == Some(&row) && row.state == SubscriptionState::Deactivated {
                return Err(SubscriptionError::Replaced { id, path: row.path });
            }
            self.ids.leased().map_err(SubscriptionError::Store)?;
            let moved = self.store.transition(tenant, id, row.state, action, self.stamp()).await;
            // Whether it was or not: one whose answer was lost may have been.
            self.moves.send_replace(());
            if let Some(moved) = moved.map_err(SubscriptionError::Store)? {
                return Ok(moved);
            }
            seen = Some(row);
        }
        Err(SubscriptionError::Contended(id))
    }

    pub async fn get(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
    ) -> Result<SubscriptionRow, SubscriptionError> {
        let found = self.store.subscription(tenant, id).await.map_err(SubscriptionError::Store)?;
        found.ok_or(SubscriptionError::Unregistered(id))
    }

    /// A stretch of a subscription's log after a place in it, oldest first.
    pub async fn events(
        &self,
        id: SubscriptionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, SubscriptionError> {
        self.store.read(id.log(), after, limit).await.map_err(SubscriptionError::Store)
    }

    /// Every subscription of a tenant, in the order of their ids; those that are over too.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<SubscriptionRow>, SubscriptionError> {
        self.store.subscriptions(tenant).await.map_err(SubscriptionError::Store)
    }

    /// How many subscriptions there are in each state, of every tenant; all states are named.
    pub async fn counts(&self) -> Result<Vec<(SubscriptionState, u64)>, SubscriptionError> {
        let counts = self.store.subscription_counts().await.map_err(SubscriptionError::Store)?;
        let count = |state| counts.iter().find(|(of, _)| *of == state).map_or(0, |(_, n)| *n);
        Ok(SubscriptionState::ALL.into_iter().map(|state| (state, count(state))).collect())
    }

    /// Keeps what a runtime says about its subscription, if there is such a one. The event it came
    /// with may be known already. What tells of a subscription's life is not taken from outside.
    pub(crate) async fn note(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        said: Reported,
        event: Option<EventId>,
    ) -> Result<Option<EventId>, StoreError> {
        if Lifecycle::from_event_type(&said.event_type).is_some() {
            return Ok(None);
        }
        self.ids.leased()?;
        let stamp = self.stamp();
        let given = event.filter(|id| self.ids.is_plausible(*id));
        let key = if given.is_none() { event.map(EventId::get) } else { None };
        let stamp = Stamp { event: given.unwrap_or(stamp.event), ..stamp };
        let note = NewNote { stamp, said: Reported { key, ..said } };
        let noted = self.store.note_subscription(tenant, id, note).await?;
        Ok(noted.map(|noted| match noted {
            noetl_store::Noted::Kept => stamp.event,
            noetl_store::Noted::Repeated => event.unwrap_or(stamp.event),
        }))
    }

    fn stamp(&self) -> Stamp {
        Stamp { event: self.ids.event(), at: self.clock.now() }
    }
}
