//! Subscriptions: a row with the current state, a log of state changes, and dedup keys of messages.
//!
//! This module defines the states and transitions: a store changes a row only as
//! [`SubscriptionAction`] allows. Every transition writes its event in the same transaction, to a
//! log whose ID is the subscription's, in place of an execution's; [`crate::EventLog::read`] reads
//! it. No execution has that ID, and no fold reads such a log.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::event::{ReportedEvent, SubscriptionEvent, SubscriptionTransition};
use noetl_model::{
    CatalogId, Event, EventId, ExecutionId, Fact, Seq, SubscriptionId, Tenant, Timestamp,
};

use crate::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionState {
    /// Registered, not yet consuming messages.
    Registered,
    /// Active: it consumes messages.
    Active,
    /// Paused: not consuming messages for now.
    Paused,
    /// Finishes messages in flight and accepts no new ones.
    Draining,
    /// Ended. Can be activated again unless its path has another subscription by then.
    Deactivated,
}

impl SubscriptionState {
    /// All states of a subscription.
    pub const ALL: [Self; 5] =
        [Self::Registered, Self::Active, Self::Paused, Self::Draining, Self::Deactivated];

    /// Returns the text stored and sent on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "REGISTERED",
            Self::Active => "ACTIVE",
            Self::Paused => "PAUSED",
            Self::Draining => "DRAINING",
            Self::Deactivated => "DEACTIVATED",
        }
    }

    /// Returns the state with this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionAction {
    /// Starts to consume messages.
    Activate,
    /// Stops consuming messages for now.
    Pause,
    /// Continues after a pause.
    Resume,
    /// Stops accepting new messages.
    Drain,
    /// Ends the subscription for good.
    Deactivate,
}

impl SubscriptionAction {
    /// All actions on a subscription.
    pub const ALL: [Self; 5] =
        [Self::Activate, Self::Pause, Self::Resume, Self::Drain, Self::Deactivate];

    /// Returns the action with this text, as used in a URL path.
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

    /// Returns the state that the action leads to.
    pub const fn target_state(self) -> SubscriptionState {
        match self {
            Self::Activate | Self::Resume => SubscriptionState::Active,
            Self::Pause => SubscriptionState::Paused,
            Self::Drain => SubscriptionState::Draining,
            Self::Deactivate => SubscriptionState::Deactivated,
        }
    }

    /// Returns the states from which the action is allowed. Repeating an action is allowed.
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

    /// Returns the lifecycle change that the action causes.
    pub const fn lifecycle(self) -> SubscriptionEvent {
        match self {
            Self::Activate => SubscriptionEvent::Activated,
            Self::Pause => SubscriptionEvent::Paused,
            Self::Resume => SubscriptionEvent::Resumed,
            Self::Drain => SubscriptionEvent::Draining,
            Self::Deactivate => SubscriptionEvent::Deactivated,
        }
    }

    /// Returns the type of the event that records the action.
    pub const fn event_type(self) -> &'static str {
        self.lifecycle().event_type()
    }
}

/// Type of the event that records a registration.
pub const REGISTERED_EVENT: &str = SubscriptionEvent::Registered.event_type();

/// ID and time of the event that records a change, both chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStamp {
    pub event: EventId,
    /// Time of the event and of the row's change.
    pub at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewSubscription {
    /// Subscription ID if the subscription is new; a path that has a subscription retains its ID.
    pub id: SubscriptionId,
    pub path: String,
    /// Catalog entry of the document's version.
    pub catalog: CatalogId,
    /// Event that records the registration, if the subscription is new.
    pub stamp: EventStamp,
}

/// A report of a runtime about its subscription.
#[derive(Debug, Clone)]
pub struct NewRuntimeEvent {
    pub stamp: EventStamp,
    /// Reported event. If it has a key, the key is the ID it was sent with.
    pub said: ReportedEvent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRow {
    pub id: SubscriptionId,
    pub path: String,
    /// Catalog entry of the document's version at registration.
    pub catalog: CatalogId,
    pub state: SubscriptionState,
    /// Type of the event that led to the current state.
    pub last_event: String,
    /// Time of registration: that of the first event.
    pub created_at: Timestamp,
    /// Time of the last transition, including repeated ones: that of its event.
    pub updated_at: Timestamp,
}

impl SubscriptionRow {
    /// Returns the event that records the change `to`, with this sequence number.
    pub fn moved(&self, to: SubscriptionEvent, stamp: EventStamp, seq: Seq) -> Event {
        let moved =
            SubscriptionTransition { to, path: self.path.as_str().into(), catalog: self.catalog };
        event_of(self.id, stamp, seq, Fact::SubscriptionMoved(Box::new(moved)))
    }
}

impl NewRuntimeEvent {
    /// Returns the ID the report was sent with, which deduplicates repeats.
    pub fn asked(&self) -> EventId {
        self.said.key.map_or(self.stamp.event, EventId::new)
    }

    /// Returns the event of a subscription's log with this sequence number.
    pub fn event(self, of: SubscriptionId, seq: Seq) -> Event {
        event_of(of, self.stamp, seq, Fact::Reported(Box::new(self.said)))
    }
}

fn event_of(of: SubscriptionId, stamp: EventStamp, seq: Seq, fact: Fact) -> Event {
    Event { execution: of.log(), id: stamp.event, seq, at: stamp.at, fact, actor: None }
}

/// Outcome of recording a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeEventOutcome {
    /// The report was recorded.
    Kept,
    /// The log already contained the report.
    Repeated,
}

/// Outcome of reserving a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupOutcome {
    /// The message is new and now reserved for the caller's execution.
    New,
    /// The message is reserved for this execution. If that is the caller's own, the call was a
    /// repeat.
    Known(ExecutionId),
}

/// Subscriptions by tenant and path, their logs, and the dedup keys of their messages.
///
/// A path has at most one subscription that is not deactivated. Writes to a subscription's log are
/// serialized; each adds a row to the outbox if that is enabled, and gets a position in a commit
/// lane.
#[async_trait]
pub trait SubscriptionStore: Send + Sync {
    /// Returns the path's subscription unless it is deactivated, or else registers a new one, whose
    /// log starts with the event of its registration. Concurrent callers get the same one. An ID
    /// that is already in use is a bug of the caller, and an error.
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError>;

    /// Returns a subscription, or `None` if it belongs to another tenant.
    async fn subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
    ) -> Result<Option<SubscriptionRow>, StoreError>;

    /// Returns all subscriptions of a tenant, including deactivated ones, in ID order.
    async fn subscriptions(&self, tenant: &Tenant) -> Result<Vec<SubscriptionRow>, StoreError>;

    /// Returns those of these IDs that are logs of subscriptions, of any tenant and in any state.
    async fn logs_of_subscriptions(
        &self,
        logs: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError>;

    /// Returns the number of subscriptions by state, for all tenants. Omits states without any.
    async fn subscription_counts(&self) -> Result<Vec<(SubscriptionState, u64)>, StoreError>;

    /// Performs `action` on a subscription in state `from` and returns the updated row.
    ///
    /// Returns `None` without effect if the subscription is unknown or in another state, if the
    /// action is not allowed from there, or if it was deactivated and its path now has another. Of
    /// several callers that saw the same state, one succeeds, unless the action leaves the state
    /// unchanged. Every transition adds its event to the log, even one that leaves the state
    /// unchanged.
    async fn transition(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
        stamp: EventStamp,
    ) -> Result<Option<SubscriptionRow>, StoreError>;

    /// Adds a report of a runtime to a subscription's log without changing the subscription. A
    /// repeat is recognized by the ID it was sent with, as in [`crate::EventLog::find_event`], and
    /// not recorded again. Returns `None` if the subscription is unknown.
    async fn note_subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        note: NewRuntimeEvent,
    ) -> Result<Option<RuntimeEventOutcome>, StoreError>;

    /// Reserves a message, by its dedup key, for an execution that is about to start. A reservation
    /// older than `window` is replaced. Of several concurrent callers, one gets [`DedupOutcome::New`].
    async fn reserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> Result<DedupOutcome, StoreError>;

    /// Releases a message because its execution did not start, so that the next attempt does not
    /// count as a repeat. Returns `false` if the message is not reserved for that execution.
    async fn unreserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
    ) -> Result<bool, StoreError>;

    /// Removes reservations made at least `older_than` ago, of all tenants, and returns their
    /// number.
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
            let is_repeatable = action.from().contains(&action.target_state());
            assert!(is_repeatable, "{action:?}");
        }
        assert_eq!(SubscriptionState::from_text("active"), None);
        assert_eq!(SubscriptionAction::from_text("Activate"), None);
    }
}
