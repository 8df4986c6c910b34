//! Reasons that a command is parked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CatalogId, ExecutionId, Timestamp};

/// Worker name under which the control plane claims the commands it runs itself.
pub const CONTROL_PLANE: &str = "control-plane";

/// Reason that a command is parked: claimed by the control plane, occupying no worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParkReason {
    Until(Timestamp),
    /// Backs off until this time before the next attempt.
    Retry(Timestamp),
    /// Waits for a child execution to end (`kind: playbook`).
    Child(Box<ChildExecution>),
    Callback(Callback),
}

/// A child execution started by a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildExecution {
    /// Execution ID, fixed before the child starts.
    #[serde(with = "id_text")]
    pub execution: ExecutionId,
    /// Catalog path of the child's playbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Arc<str>>,
    /// Catalog entry of the child's playbook. Takes precedence over the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogId>,
    /// Version at the path. `None` for the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Whether the command waits for the child to end.
    pub waits: bool,
    /// Step whose data is the result. `None` for the last leaf step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Arc<str>>,
    /// Time at which the command stops waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Number of the child's ancestor executions.
    pub depth: u32,
}

/// An external answer that a command waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    /// Callback token that the answer must carry.
    pub token: Arc<str>,
    /// Time at which the command stops waiting.
    pub until: Timestamp,
}

/// Serializes IDs as text, for documents that people and scripts read.
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
