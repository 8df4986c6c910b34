//! Subscriptions: registered by the path of their document, then moved through states.
//!
//! A store moves a subscription only from the state that the caller read. This service reads it
//! again after a concurrent change, so each response reflects a state that existed.

mod running;
mod why;

use std::sync::Arc;

pub use self::why::SubscriptionWhy;
use noetl_catalog::SUBSCRIPTION_KIND;
use noetl_identity::IdGenerator;
use noetl_model::event::{ReportedEvent, SubscriptionEvent};
use noetl_model::{Clock, Event, EventId, Seq, SubscriptionId, Tenant};
use noetl_store::{
    EventStamp, JournalStore, NewRuntimeEvent, NewSubscription, StoreError, SubscriptionAction,
    SubscriptionRow, SubscriptionState,
};
use tokio::sync::watch;

/// Maximum number of attempts at a transition. Each failed attempt means that another one
/// succeeded.
const ROUNDS_MAX: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum SubscriptionError {
    /// The catalog has no document at this path.
    #[error("Subscription not found: {0}")]
    NoDocument(String),
    /// The latest document at the path has another kind.
    #[error("Catalog entry '{path}' is kind '{kind}', not 'subscription'")]
    WrongKind { path: String, kind: String },
    /// The subscription does not exist.
    #[error("Subscription {0} not registered")]
    Unregistered(SubscriptionId),
    /// The action is not allowed in the current state.
    #[error(
        "Cannot '{}' a subscription in state '{}' (allowed from {:?})",
        .action.as_str(), .state.as_str(), allowed(*.action)
    )]
    Illegal { action: SubscriptionAction, state: SubscriptionState },
    /// The subscription is deactivated, and its path has another one.
    #[error("Subscription {id} was replaced: '{path}' has another one that is not deactivated")]
    Replaced { id: SubscriptionId, path: String },
    /// Concurrent transitions prevented every attempt.
    #[error("subscription {0} is being changed by another request; retry")]
    Contended(SubscriptionId),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

fn allowed(action: SubscriptionAction) -> Vec<&'static str> {
    action.from().iter().map(|state| state.as_str()).collect()
}

/// Manages subscriptions. Cheap to clone.
#[derive(Clone)]
pub struct Subscriptions {
    store: Arc<dyn JournalStore>,
    clock: Arc<dyn Clock>,
    ids: IdGenerator,
    /// Changes when this process registers or moves a subscription.
    moves: watch::Sender<()>,
}

impl Subscriptions {
    pub fn new(store: Arc<dyn JournalStore>, clock: Arc<dyn Clock>, ids: IdGenerator) -> Self {
        Self { store, clock, ids, moves: watch::Sender::new(()) }
    }

    /// Registers the subscription at a path, with the latest version of its document. A registered
    /// one that is not deactivated is unchanged.
    pub async fn register(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<SubscriptionRow, SubscriptionError> {
        let entry = self.store.entry_at(tenant, path, None).await;
        let entry = entry.map_err(SubscriptionError::Store)?;
        let entry = entry.ok_or_else(|| SubscriptionError::NoDocument(path.to_owned()))?;
        if entry.kind != SUBSCRIPTION_KIND {
            return Err(SubscriptionError::WrongKind { path: entry.path, kind: entry.kind });
        }
        self.ids.ensure_leased().map_err(SubscriptionError::Store)?;
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

    /// Applies `action` to a subscription.
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
            // Unchanged, and the transition failed: another subscription has the path.
            if seen.as_ref() == Some(&row) && row.state == SubscriptionState::Deactivated {
                return Err(SubscriptionError::Replaced { id, path: row.path });
            }
            self.ids.ensure_leased().map_err(SubscriptionError::Store)?;
            let moved = self.store.transition(tenant, id, row.state, action, self.stamp()).await;
            // Sent in any case, because a transition whose response was lost may have succeeded.
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

    /// Returns events of a subscription's log after a sequence number, oldest first.
    pub async fn events(
        &self,
        id: SubscriptionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, SubscriptionError> {
        self.store.read(id.log(), after, limit).await.map_err(SubscriptionError::Store)
    }

    /// Returns every subscription of a tenant ordered by ID, including deactivated ones.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<SubscriptionRow>, SubscriptionError> {
        self.store.subscriptions(tenant).await.map_err(SubscriptionError::Store)
    }

    /// Returns the number of subscriptions by state over all tenants, including states without any.
    pub async fn counts(&self) -> Result<Vec<(SubscriptionState, u64)>, SubscriptionError> {
        let counts = self.store.subscription_counts().await.map_err(SubscriptionError::Store)?;
        let count = |state| counts.iter().find(|(of, _)| *of == state).map_or(0, |(_, n)| *n);
        Ok(SubscriptionState::ALL.into_iter().map(|state| (state, count(state))).collect())
    }

    /// Records a runtime's report in the log of its subscription. Returns `None` if there is no
    /// such subscription, or if the event type is a lifecycle type, which only the control plane
    /// writes. `event` may be recorded already.
    pub async fn note(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        said: ReportedEvent,
        event: Option<EventId>,
    ) -> Result<Option<EventId>, StoreError> {
        if SubscriptionEvent::from_event_type(&said.event_type).is_some() {
            return Ok(None);
        }
        self.ids.ensure_leased()?;
        let stamp = self.stamp();
        let given = event.filter(|id| self.ids.is_plausible(*id));
        let key = if given.is_none() { event.map(EventId::get) } else { None };
        let stamp = EventStamp { event: given.unwrap_or(stamp.event), ..stamp };
        let note = NewRuntimeEvent { stamp, said: ReportedEvent { key, ..said } };
        let noted = self.store.note_subscription(tenant, id, note).await?;
        Ok(noted.map(|noted| match noted {
            noetl_store::RuntimeEventOutcome::Kept => stamp.event,
            noetl_store::RuntimeEventOutcome::Repeated => event.unwrap_or(stamp.event),
        }))
    }

    fn stamp(&self) -> EventStamp {
        EventStamp { event: self.ids.event(), at: self.clock.now() }
    }
}
