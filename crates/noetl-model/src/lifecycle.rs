//! Transitions of a subscription's state, as its event log records them.

use std::sync::Arc;

use crate::CatalogId;

/// A state change of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionTransition {
    pub to: SubscriptionEvent,
    /// Catalog path of the subscription's document.
    pub path: Arc<str>,
    /// Version of the document that the subscription was registered with.
    pub catalog: CatalogId,
}

/// Lifecycle transition of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionEvent {
    Registered,
    /// The subscription started to listen.
    Activated,
    /// The subscription stopped listening and can be resumed.
    Paused,
    Resumed,
    /// The subscription accepts no new messages.
    Draining,
    Deactivated,
}

impl SubscriptionEvent {
    pub const ALL: [Self; 6] = [
        Self::Registered,
        Self::Activated,
        Self::Paused,
        Self::Resumed,
        Self::Draining,
        Self::Deactivated,
    ];

    /// Returns the type of the event that records the transition.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Registered => "subscription.registered",
            Self::Activated => "subscription.activated",
            Self::Paused => "subscription.paused",
            Self::Resumed => "subscription.resumed",
            Self::Draining => "subscription.draining",
            Self::Deactivated => "subscription.deactivated",
        }
    }

    /// Returns the subscription's state after the transition, as text.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Registered => "REGISTERED",
            Self::Activated | Self::Resumed => "ACTIVE",
            Self::Paused => "PAUSED",
            Self::Draining => "DRAINING",
            Self::Deactivated => "DEACTIVATED",
        }
    }

    /// Returns the transition recorded by events of this type, or `None` if the type is unknown.
    pub fn from_event_type(event_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|moved| moved.event_type() == event_type)
    }
}
