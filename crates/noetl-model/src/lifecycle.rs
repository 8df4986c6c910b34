//! What can happen to a subscription.

use std::sync::Arc;

use crate::CatalogId;

/// A step in the life of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionMoved {
    /// What happened to it.
    pub to: Lifecycle,
    /// The path of its document.
    pub path: Arc<str>,
    /// The version of that document it was registered with.
    pub catalog: CatalogId,
}

/// What can happen to a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// It was made known.
    Registered,
    /// It began to listen.
    Activated,
    /// It stopped for now.
    Paused,
    Resumed,
    /// It takes nothing new.
    Draining,
    Deactivated,
}

impl Lifecycle {
    pub const ALL: [Self; 6] = [
        Self::Registered,
        Self::Activated,
        Self::Paused,
        Self::Resumed,
        Self::Draining,
        Self::Deactivated,
    ];

    /// The type of the event that tells of it.
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

    /// The state it leaves the subscription in, as text.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Registered => "REGISTERED",
            Self::Activated | Self::Resumed => "ACTIVE",
            Self::Paused => "PAUSED",
            Self::Draining => "DRAINING",
            Self::Deactivated => "DEACTIVATED",
        }
    }

    /// What the event of this type tells of.
    pub fn from_event_type(event_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|moved| moved.event_type() == event_type)
    }
}
