//! What the watcher of a container reports when it has ended.

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerState {
    /// Well.
    Succeeded,
    /// Badly.
    Failed,
    /// Its image could not be had.
    FailedImagePull,
    /// It took too much memory.
    FailedOom,
    /// Its machine was lost.
    FailedNodeLost,
    /// It took too long.
    FailedTimeout,
}

impl ContainerState {
    /// The wire text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::FailedImagePull => "failed_image_pull",
            Self::FailedOom => "failed_oom",
            Self::FailedNodeLost => "failed_node_lost",
            Self::FailedTimeout => "failed_timeout",
        }
    }
}

/// The body of `POST /api/internal/container-callback/{execution_id}/{step}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContainerCallback {
    /// How it ended.
    pub state: ContainerState,
    /// The job's name.
    pub job_name: String,
    /// The job's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_uid: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// What its process returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where its output is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_uri: Option<String>,
    /// Where its complaints are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_uri: Option<String>,
}

impl ContainerCallback {
    /// What the step that waited gets: all of it, with the state under the name templates know.
    pub fn data(&self) -> Value {
        let mut data = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = data.as_object_mut() {
            fields.remove("state");
            fields.insert("terminal_state".to_owned(), self.state.as_str().into());
        }
        data
    }
}

/// Whether anything waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallbackReply {
    /// `accepted_in_flight`, or `accepted_stale` when nothing waits for it.
    pub status: String,
    /// The event it led to, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
}
