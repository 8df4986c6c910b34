//! Numbers for dashboards.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::executions::ExecutionView;

/// The reply of `GET /api/dashboard/stats`: the same numbers in the two shapes that clients read.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DashboardReply {
    /// `ok`.
    pub status: String,
    /// Counts.
    pub stats: DashboardStats,
    /// Playbooks, each path once.
    pub total_playbooks: u64,
    /// All executions that are kept.
    pub total_executions: u64,
    /// Those under way.
    pub active_executions: u64,
    /// How many in a hundred of those that ended by themselves ended well; 0 while none has.
    pub success_rate: f64,
    /// The newest.
    pub recent_executions: Vec<ExecutionView>,
}

/// Counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DashboardStats {
    /// All executions that are kept.
    pub total_executions: u64,
    /// Those that ended well.
    pub successful_executions: u64,
    /// Those that ended badly.
    pub failed_executions: u64,
    /// Those that were stopped.
    pub cancelled_executions: u64,
    /// Those under way.
    pub running_executions: u64,
    /// Playbooks, each path once.
    pub total_playbooks: u64,
    /// Workers elsewhere that were heard of lately.
    pub total_workers: u64,
}

/// The reply of `GET /api/dashboard/activity`: executions by when they started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityReply {
    /// When the first stretch begins.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// How long each is, in seconds.
    pub stretch_seconds: u64,
    /// The stretches, oldest first; the last holds the present.
    pub stretches: Vec<Activity>,
}

/// Executions that started in one stretch of time, by how they stand now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Activity {
    /// Those under way.
    pub running: u64,
    /// Those that ended well.
    pub completed: u64,
    /// Those that ended badly.
    pub failed: u64,
    /// Those that were stopped.
    pub cancelled: u64,
}

/// The reply of `GET /api/dashboard/widgets`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WidgetsReply {
    /// What can be shown.
    pub widgets: Vec<Widget>,
}

/// Something to show.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Widget {
    /// Which.
    pub id: String,
    /// How to show it: `chart` or `table`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What stands above it.
    pub title: String,
    /// What it shows.
    #[schema(value_type = Vec<Object>)]
    pub data: WidgetData,
}

/// What a widget shows.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum WidgetData {
    /// Executions by how they stand.
    Counts(Vec<StatusCount>),
    /// Executions.
    Executions(Vec<ExecutionView>),
}

/// How many executions stand so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusCount {
    /// How.
    pub status: String,
    /// How many.
    pub count: u64,
}
