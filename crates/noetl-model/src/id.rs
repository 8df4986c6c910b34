//! Typed ids. All are signed 64-bit numbers on the wire; the types keep them from being mixed up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not a decimal 64-bit id.
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
            /// Wraps a raw number.
            pub const fn new(raw: i64) -> Self {
                Self(raw)
            }

            /// The raw number, for stores and wire types.
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
    /// One run of a playbook.
    ExecutionId
}
id! {
    /// One row of an execution's log.
    EventId
}
id! {
    /// One dispatched unit of work, named by the id of its `command.issued` event.
    CommandId
}
id! {
    /// One version of one catalog entry.
    CatalogId
}
id! {
    /// One message between executions, or one timer.
    DueId
}
id! {
    /// One program that said it is there: a pool of workers, a server, a broker.
    RuntimeId
}
id! {
    /// One registration of a subscription, from its first state to its deactivation.
    SubscriptionId
}
id! {
    /// One schedule of a playbook.
    ScheduleId
}
id! {
    CredentialId
}
id! {
    /// One entry of the audit of secrets.
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
    /// The id its log is under. No execution has it.
    pub const fn log(self) -> ExecutionId {
        ExecutionId::new(self.get())
    }
}

/// Whose rows these are. Part of every key; every read with another tenant is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(String);

impl Tenant {
    /// The tenant of callers without a token.
    pub const DEFAULT: &'static str = "default";

    /// Names a tenant.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as stored.
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
    fn what_is_not_a_number_is_named() {
        let error = "12x".parse::<EventId>().expect_err("not a number");
        assert_eq!(error.to_string(), "'12x' is not a 64-bit decimal id");
    }
}
