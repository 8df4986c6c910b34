//! What a command waits for when no worker holds it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CatalogId, ExecutionId, Timestamp};

/// The name under which the control plane holds commands it performs itself.
pub const CONTROL_PLANE: &str = "control-plane";

/// What a command waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parked {
    Until(Timestamp),
    /// A time, after which it is tried again.
    Retry(Timestamp),
    /// The end of another execution.
    Child(Box<Child>),
    Callback(Callback),
}

/// An execution that a command starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Its id, fixed before it is started.
    #[serde(with = "id_text")]
    pub execution: ExecutionId,
    /// The path of its playbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Arc<str>>,
    /// Its catalog entry, which wins over the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogId>,
    /// That path's version; the newest when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Whether the command waits for its end.
    pub waits: bool,
    /// The step whose data is its result; its last leaf's when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Arc<str>>,
    /// When the command stops waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How many executions are above it.
    pub depth: u32,
}

/// An answer that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    /// What an answer has to carry.
    pub token: Arc<str>,
    /// When the command stops waiting.
    pub until: Timestamp,
}

/// Ids are text in documents people and scripts read.
pub(crate) mod id_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<I: Display, S: Serializer>(id: &I, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(crate) fn deserialize<'de, I, D>(from: D) -> Result<I, D::Error>
    where
        I: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
