//! Execution counts for dashboards.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::executions::ExecutionView;

/// Response of `GET /api/dashboard/stats`. Repeats the counts of `stats` at the top level, because
/// clients read either.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DashboardReply {
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
    /// Number of executions by status, playbooks, and workers.
    pub stats: DashboardStats,
    /// Number of playbooks, counting each path once.
    pub total_playbooks: u64,
    /// Number of stored executions.
    pub total_executions: u64,
    /// Number of running executions.
    pub active_executions: u64,
    /// Percentage of completed among completed and failed executions, 0 to 100, rounded to one
    /// decimal place. 0 if there are none.
    pub success_rate: f64,
    /// The 10 newest executions.
    pub recent_executions: Vec<ExecutionView>,
}

/// Number of executions by status, playbooks, and workers of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DashboardStats {
    /// Number of stored executions.
    pub total_executions: u64,
    /// Number of completed executions.
    pub successful_executions: u64,
    /// Number of failed executions.
    pub failed_executions: u64,
    /// Number of cancelled executions.
    pub cancelled_executions: u64,
    /// Number of running executions.
    pub running_executions: u64,
    /// Number of playbooks, counting each path once.
    pub total_playbooks: u64,
    /// Number of registered workers with a heartbeat in the last 90 seconds.
    pub total_workers: u64,
}

/// Response of `GET /api/dashboard/activity`: a histogram of executions by start time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityReply {
    /// Start of the first time bucket.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// Length of a time bucket, in seconds.
    pub stretch_seconds: u64,
    /// Time buckets, oldest first. The last one contains the current time.
    pub stretches: Vec<Activity>,
}

/// Executions that started in one time bucket, by current status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Activity {
    /// Number of running executions.
    pub running: u64,
    /// Number of completed executions.
    pub completed: u64,
    /// Number of failed executions.
    pub failed: u64,
    /// Number of cancelled executions.
    pub cancelled: u64,
}

/// Response of `GET /api/dashboard/widgets`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WidgetsReply {
    /// Widgets in display order.
    pub widgets: Vec<Widget>,
}

/// A dashboard widget with its data.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Widget {
    /// Widget ID: `execution-trend` or `recent-executions`.
    pub id: String,
    /// Display type: `chart` or `table`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Heading of the widget.
    pub title: String,
    /// Rows that the widget shows.
    #[schema(value_type = Vec<Object>)]
    pub data: WidgetData,
}

/// Rows that a widget shows.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum WidgetData {
    /// Number of executions by status.
    Counts(Vec<StatusCount>),
    /// Executions, newest start first.
    Executions(Vec<ExecutionView>),
}

/// Number of executions with one status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusCount {
    /// Status: `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub status: String,
    /// Number of executions with that status.
    pub count: u64,
}
