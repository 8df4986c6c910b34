//! Subscriptions: one row each with its current state, a log of its life, and the messages they have
//! seen.
//!
//! Which states there are and what leads where is decided here and nowhere else: a store moves a
//! row only as [`SubscriptionAction`] says. Every move writes its event in the same transaction,
//! under the subscription's id in the place of an execution's: [`crate::EventLog::read`] reads it.
//! No execution has that id, and nothing folds such a log.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::event::{Lifecycle, Reported, SubscriptionMoved};
use noetl_model::{
    CatalogId, Event, EventId, ExecutionId, Fact, Seq, SubscriptionId, Tenant, Timestamp,
};

use crate::StoreError;

/// Where a subscription stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionState {
    /// Known, not yet listening.
    Registered,
    /// Listening.
    Active,
    /// Not listening for now.
    Paused,
    /// Ends what it has and takes nothing new.
    Draining,
    /// Over. It can be activated again unless its path has another subscription by then.
    Deactivated,
}

impl SubscriptionState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Registered, Self::Active, Self::Paused, Self::Draining, Self::Deactivated];

    /// The stored and wire text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "REGISTERED",
            Self::Active => "ACTIVE",
            Self::Paused => "PAUSED",
            Self::Draining => "DRAINING",
            Self::Deactivated => "DEACTIVATED",
        }
    }

    /// The state of this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// What can be asked of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionAction {
    /// Listen.
    Activate,
    /// Stop for now.
    Pause,
    /// Go on.
    Resume,
    /// Take nothing new.
    Drain,
    /// End.
    Deactivate,
}

impl SubscriptionAction {
    /// Every action.
    pub const ALL: [Self; 5] =
        [Self::Activate, Self::Pause, Self::Resume, Self::Drain, Self::Deactivate];

    /// The action of this text, as it stands in a path.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Activate => "activate",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Drain => "drain",
            Self::Deactivate => "deactivate",
        }
    }

    /// The state it leads to.
    pub const fn to(self) -> SubscriptionState {
        match self {
            Self::Activate | Self::Resume => SubscriptionState::Active,
            Self::Pause => SubscriptionState::Paused,
            Self::Drain => SubscriptionState::Draining,
            Self::Deactivate => SubscriptionState::Deactivated,
        }
    }

    /// The states it is allowed from. A repeat is.
    pub const fn from(self) -> &'static [SubscriptionState] {
        use SubscriptionState::{Active, Deactivated, Draining, Paused, Registered};
        match self {
            Self::Activate => &[Registered, Paused, Deactivated, Active],
            Self::Pause => &[Active, Paused],
            Self::Resume => &[Paused, Active],
            Self::Drain => &[Active, Paused, Draining],
            Self::Deactivate => &SubscriptionState::ALL,
        }
    }

    /// What happens to a subscription by it.
    pub const fn lifecycle(self) -> Lifecycle {
        match self {
            Self::Activate => Lifecycle::Activated,
            Self::Pause => Lifecycle::Paused,
            Self::Resume => Lifecycle::Resumed,
            Self::Drain => Lifecycle::Draining,
            Self::Deactivate => Lifecycle::Deactivated,
        }
    }

    /// The type of the event that tells of it.
    pub const fn event_type(self) -> &'static str {
        self.lifecycle().event_type()
    }
}

/// The type of the event that tells of a registration.
pub const REGISTERED_EVENT: &str = Lifecycle::Registered.event_type();

/// Which event tells of a change, and when it was asked for. Both are the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub event: EventId,
    /// Its time, and the row's.
    pub at: Timestamp,
}

/// A subscription to register.
#[derive(Debug, Clone)]
pub struct NewSubscription {
    /// Its id when it is new; a path that has one keeps it.
    pub id: SubscriptionId,
    /// The path of its document.
    pub path: String,
    /// The version of that document.
    pub catalog: CatalogId,
    /// The event of its registration, if it is new.
    pub stamp: Stamp,
}

/// Something a runtime says about its subscription.
#[derive(Debug, Clone)]
pub struct NewNote {
    pub stamp: Stamp,
    /// What was said. With a key, that is the id it came with.
    pub said: Reported,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRow {
    pub id: SubscriptionId,
    /// The path of its document.
    pub path: String,
    /// The document's version at its registration.
    pub catalog: CatalogId,
    pub state: SubscriptionState,
    /// The type of the event that brought it there.
    pub last_event: String,
    /// When it was registered: the time of its first event.
    pub created_at: Timestamp,
    /// When it last moved, a repeat included: the time of that event.
    pub updated_at: Timestamp,
}

impl SubscriptionRow {
    /// The event at this place of its log that says `to` happened to it.
    pub fn moved(&self, to: Lifecycle, stamp: Stamp, seq: Seq) -> Event {
        let moved =
            SubscriptionMoved { to, path: self.path.as_str().into(), catalog: self.catalog };
        event_of(self.id, stamp, seq, Fact::SubscriptionMoved(Box::new(moved)))
    }
}

impl NewNote {
    /// The id it came with, by which a repeat is known.
    pub fn asked(&self) -> EventId {
        self.said.key.map_or(self.stamp.event, EventId::new)
    }

    /// The event at this place of a subscription's log.
    pub fn event(self, of: SubscriptionId, seq: Seq) -> Event {
        event_of(of, self.stamp, seq, Fact::Reported(Box::new(self.said)))
    }
}

fn event_of(of: SubscriptionId, stamp: Stamp, seq: Seq, fact: Fact) -> Event {
    Event { execution: of.log(), id: stamp.event, seq, at: stamp.at, fact, actor: None }
}

/// What became of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// It is in the log.
    Kept,
    /// It was there already.
    Repeated,
}

/// Whether a message was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// It was not: it is the caller's execution's now.
    New,
    /// It is this execution's. The caller's own means that the call was repeated.
    Known(ExecutionId),
}

/// Subscriptions by tenant and path, their logs, and the messages they have seen.
///
/// A path has at most one subscription that is not deactivated. What is written to a subscription's
/// log is written in its order, one writer after the other, with a row of the outbox when that is
/// on, and in the order of commits that readers of the whole log follow.
#[async_trait]
pub trait Subscriptions: Send + Sync {
    /// The path's subscription unless it is deactivated, as it is; else a new one, whose log begins
    /// with the event of its registration. Callers at once get the same. An id that is taken is a
    /// bug of the caller, and an error.
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError>;

    /// One subscription; none for another tenant's.
    async fn subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
    ) -> Result<Option<SubscriptionRow>, StoreError>;

    /// Every subscription of a tenant, deactivated ones too, in id order.
    async fn subscriptions(&self, tenant: &Tenant) -> Result<Vec<SubscriptionRow>, StoreError>;

    /// Of these logs, those of subscriptions of any tenant, whatever state they are in.
    async fn logs_of_subscriptions(
        &self,
        logs: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError>;

    /// How many subscriptions there are in each state, of every tenant. A state that none is in
    /// is left out.
    async fn subscription_counts(&self) -> Result<Vec<(SubscriptionState, u64)>, StoreError>;

    /// Does `action` to a subscription that is in state `from`, and returns it as it then is.
    ///
    /// None, and no change, when it is unknown or not in that state, when the action is not allowed
    /// from there, or when it was deactivated and its path has another by now. Of several callers
    /// that saw one state, one moves it, unless it stays in that state. A move adds its event to
    /// the log, also one that changes nothing else.
    async fn transition(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
        stamp: Stamp,
    ) -> Result<Option<SubscriptionRow>, StoreError>;

    /// Adds what a runtime says to a subscription's log, and changes nothing of the subscription.
    /// A repeat is known by the id it came with, as [`crate::EventLog::find_event`] looks for it,
    /// and is not written. None for an unknown subscription.
    async fn note_subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        note: NewNote,
    ) -> Result<Option<Noted>, StoreError>;

    /// Claims a message, by its key, for an execution that is about to start. A claim older than
    /// `window` does not count, and is taken over. Of several callers at once one hears
    /// [`Reserved::New`].
    async fn reserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> Result<Reserved, StoreError>;

    /// Gives a message back because that execution did not start, so that the next try is not
    /// taken for a repeat. False when it is not that execution's.
    async fn unreserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
    ) -> Result<bool, StoreError>;

    /// Forgets messages claimed `older_than` ago or earlier, of every tenant. How many.
    async fn prune_reserved(&self, older_than: Duration) -> Result<usize, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draining_subscription_only_drains_or_ends() {
        let draining = SubscriptionState::Draining;
        let allowed: Vec<_> = SubscriptionAction::ALL
            .into_iter()
            .filter(|action| action.from().contains(&draining))
            .collect();
        assert_eq!(allowed, [SubscriptionAction::Drain, SubscriptionAction::Deactivate]);
    }

    #[test]
    fn texts_are_read_back() {
        for state in SubscriptionState::ALL {
            assert_eq!(SubscriptionState::from_text(state.as_str()), Some(state));
        }
        for action in SubscriptionAction::ALL {
            assert_eq!(SubscriptionAction::from_text(action.as_str()), Some(action));
            let is_repeatable = action.from().contains(&action.to());
            assert!(is_repeatable, "{action:?}");
        }
        assert_eq!(SubscriptionState::from_text("active"), None);
        assert_eq!(SubscriptionAction::from_text("Activate"), None);
    }
}
