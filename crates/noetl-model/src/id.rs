//! Typed IDs. All are signed 64-bit integers on the wire; distinct types prevent mix-ups.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Error for text that is not a decimal 64-bit ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a 64-bit decimal id")]
pub struct IdError(pub String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(i64);

        impl $name {
            pub const fn new(raw: i64) -> Self {
                Self(raw)
            }

            /// Returns the raw integer, for stores and wire types.
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.parse().map(Self).map_err(|_| IdError(text.to_owned()))
            }
        }
    };
}

id! {
    /// ID of an execution: a single run of a playbook.
    ExecutionId
}
id! {
    /// ID of a row in an event log.
    EventId
}
id! {
    /// ID of a command: the ID of its `command.issued` event.
    CommandId
}
id! {
    /// ID of a catalog entry's version.
    CatalogId
}
id! {
    /// ID of a timer, which includes messages between executions.
    TimerId
}
id! {
    /// ID of a registered runtime: a worker pool, a server, or a broker.
    RuntimeId
}
id! {
    /// ID of a subscription's registration, from its first state to its deactivation.
    SubscriptionId
}
id! {
    /// ID of a playbook's schedule.
    ScheduleId
}
id! {
    CredentialId
}
id! {
    /// ID of an entry in the secret audit log.
    AuditId
}
id! {
    ResultId
}

impl From<EventId> for CommandId {
    fn from(event: EventId) -> Self {
        Self::new(event.get())
    }
}

impl From<CommandId> for EventId {
    fn from(command: CommandId) -> Self {
        Self::new(command.get())
    }
}

impl SubscriptionId {
    /// Returns the ID of the subscription's event log. No execution has this ID.
    pub const fn log(self) -> ExecutionId {
        ExecutionId::new(self.get())
    }
}

/// Owner of a set of rows. Part of every key: reads with another tenant find no rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(String);

impl Tenant {
    /// Tenant of callers without a token.
    pub const DEFAULT: &'static str = "default";

    /// Creates a tenant with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_agree() {
        let id: ExecutionId = "380436272340037632".parse().expect("a decimal id");
        assert_eq!(id.get(), 380_436_272_340_037_632);
        assert_eq!(id.to_string(), "380436272340037632");
    }

    #[test]
    fn texts_that_are_not_numbers_are_named() {
        let error = "12x".parse::<EventId>().expect_err("not a number");
        assert_eq!(error.to_string(), "'12x' is not a 64-bit decimal id");
    }
}
