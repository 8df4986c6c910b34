//! Subscriptions: one row each with its current state, and the messages they have seen.
//!
//! Which states there are and what leads where is decided here and nowhere else: a store moves a
//! row only as [`SubscriptionAction`] says.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, SubscriptionId, Tenant, Timestamp};

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

    /// Its text.
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

    /// The type of the event that tells of it.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Activate => "subscription.activated",
            Self::Pause => "subscription.paused",
            Self::Resume => "subscription.resumed",
            Self::Drain => "subscription.draining",
            Self::Deactivate => "subscription.deactivated",
        }
    }
}

/// The type of the event that tells of a registration.
pub const REGISTERED_EVENT: &str = "subscription.registered";

/// A subscription to register.
#[derive(Debug, Clone)]
pub struct NewSubscription {
    /// Its id when it is new; a path that has one keeps it.
    pub id: SubscriptionId,
    /// The path of its document.
    pub path: String,
    /// The version of that document.
    pub catalog: CatalogId,
}

/// One subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRow {
    /// Its id.
    pub id: SubscriptionId,
    /// The path of its document.
    pub path: String,
    /// The document's version at its registration.
    pub catalog: CatalogId,
    /// Where it stands.
    pub state: SubscriptionState,
    /// The type of the event that brought it there.
    pub last_event: String,
    /// When it was registered, by the store's clock.
    pub created_at: Timestamp,
    /// When it last moved, a repeat included, by the store's clock.
    pub updated_at: Timestamp,
}

/// Whether a message was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// It was not: it is the caller's execution's now.
    New,
    /// It is this execution's. The caller's own means that the call was repeated.
    Known(ExecutionId),
}

/// Subscriptions by tenant and path, and the messages they have seen.
///
/// A path has at most one subscription that is not deactivated.
#[async_trait]
pub trait Subscriptions: Send + Sync {
    /// The path's subscription unless it is deactivated, as it is; else a new one. Callers at once
    /// get the same. An id that is taken is a bug of the caller, and an error.
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

    /// Does `action` to a subscription that is in state `from`, and returns it as it then is.
    ///
    /// None, and no change, when it is unknown or not in that state, when the action is not allowed
    /// from there, or when it was deactivated and its path has another by now. Of several callers
    /// that saw one state, one moves it, unless it stays in that state.
    async fn transition(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
    ) -> Result<Option<SubscriptionRow>, StoreError>;

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
