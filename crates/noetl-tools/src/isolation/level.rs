//! Isolation levels, and the limits of each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Isolation level. Each level includes those below it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "u8", try_from = "u8")]
pub enum Level {
    /// 0: programs run as child processes of the worker, file tools in its process.
    #[default]
    None,
    /// 1: Landlock, and a subreaper that ends all processes of a step.
    Landlock,
    /// 2: user, mount, and process namespaces.
    Namespaces,
    /// 3: namespaces, and users other than the worker's.
    User,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::None, Self::Landlock, Self::Namespaces, Self::User];

    /// Returns the level as a number from 0 to 3.
    pub const fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Landlock => 1,
            Self::Namespaces => 2,
            Self::User => 3,
        }
    }

    /// Returns the mechanisms of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "Landlock and a subreaper",
            Self::Namespaces => "namespaces",
            Self::User => "namespaces and users of their own",
        }
    }

    /// Returns the actions that the level does not prevent, for operators.
    pub const fn does_not_stop(self) -> &'static str {
        match self {
            Self::None => {
                "steps act with all rights of the worker's user, and processes that leave their \
                 group outlive their step"
            }
            Self::Landlock => {
                "steps read and write what the worker's user may, except where NOETL_STEP_PATHS \
                 is set, and see other processes"
            }
            Self::Namespaces => {
                "steps use files with the rights of the worker's user, except where \
                 NOETL_STEP_PATHS is set; system calls are not filtered"
            }
            Self::User => {
                "steps use what their user may; with one --step-user, tenants share it; system \
                 calls are not filtered"
            }
        }
    }

    /// Returns `true` if steps of several tenants may run on one worker.
    pub const fn keeps_tenants_apart(self) -> bool {
        matches!(self, Self::Namespaces | Self::User)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.number(), self.name())
    }
}

impl From<Level> for u8 {
    fn from(level: Level) -> Self {
        level.number()
    }
}

impl TryFrom<u8> for Level {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        let known = Self::ALL.into_iter().find(|level| level.number() == number);
        known.ok_or_else(|| format!("isolation levels are 0 to 3, not {number}"))
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number: Result<u8, _> = text.trim().parse();
        let level = number.ok().and_then(|number| Self::try_from(number).ok());
        level.ok_or_else(|| format!("isolation levels are 0 to 3, not '{text}'"))
    }
}
