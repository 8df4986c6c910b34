//! Completion callbacks of container jobs that a worker started without waiting for them.

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Final state of a container job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerState {
    /// The container exited with success.
    Succeeded,
    /// The container exited with an error.
    Failed,
    /// The container image could not be pulled.
    FailedImagePull,
    /// The container exceeded its memory limit.
    FailedOom,
    /// The node that ran the container was lost.
    FailedNodeLost,
    /// The container exceeded its time limit.
    FailedTimeout,
}

impl ContainerState {
    /// Returns the state as its JSON text.
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

/// Body of `POST /api/internal/container-callback/{execution_id}/{step}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContainerCallback {
    /// Final state of the job.
    pub state: ContainerState,
    /// Name of the container job.
    pub job_name: String,
    /// Unique ID of the job, assigned by the orchestrator that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_uid: Option<String>,
    /// Completion time, as reported by the watcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// Exit code of the container's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Reason for the final state, such as the orchestrator's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// URI of the captured standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_uri: Option<String>,
    /// URI of the captured standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_uri: Option<String>,
}

impl ContainerCallback {
    /// Returns the result of the waiting step: all fields, with `state` renamed to
    /// `terminal_state`, the name that templates use.
    pub fn data(&self) -> Value {
        let mut data = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = data.as_object_mut() {
            fields.remove("state");
            fields.insert("terminal_state".to_owned(), self.state.as_str().into());
        }
        data
    }
}

/// Response of `POST /api/internal/container-callback/{execution_id}/{step}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallbackReply {
    /// `accepted_in_flight`, or `accepted_stale` if no command waits for the callback.
    pub status: String,
    /// ID of the resulting event, as text. Absent for a stale callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
}
