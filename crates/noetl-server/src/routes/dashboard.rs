//! Routes for dashboards: counts, activity, and widgets.

use noetl_api::IdForm;
use noetl_api::dashboard::{
    Activity, ActivityReply, DashboardReply, DashboardStats, StatusCount, Widget, WidgetData,
    WidgetsReply,
};
use noetl_api::executions::ExecutionView;
use noetl_model::Timestamp;
use noetl_store::{ExecutionStatus, StartCounts, TimeBuckets};
use noetl_views::Stats;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{IdFormat, Json, Query};
use crate::http::openapi::ErrorResponses;
use crate::routes::executions::query::count;
use crate::shape;

/// Counts executions, playbooks, and workers
#[utoipa::path(
    get,
    path = "/api/dashboard/stats",
    operation_id = "dashboard_stats",
    tag = "health",
    responses((status = 200, body = DashboardReply), ErrorResponses),
)]
pub(crate) async fn stats(
    Scoped(app): Scoped,
    IdFormat(ids): IdFormat,
) -> Result<Json<DashboardReply>, ApiError> {
    let stats = app.control.views.overview.stats(&app.tenant, app.control.now()).await?;
    Ok(Json(DashboardReply {
        status: "ok".to_owned(),
        total_playbooks: stats.playbooks,
        total_executions: stats.total(),
        active_executions: stats.running,
        success_rate: success_rate(&stats),
        recent_executions: recent(&stats, ids),
        stats: DashboardStats {
            total_executions: stats.total(),
            successful_executions: stats.completed,
            failed_executions: stats.failed,
            cancelled_executions: stats.cancelled,
            running_executions: stats.running,
            total_playbooks: stats.playbooks,
            total_workers: stats.workers,
        },
    }))
}

/// Counts execution starts over time
///
/// Divides the time until now into buckets. Returns the number of executions that started in each
/// bucket, by current status.
#[utoipa::path(
    get,
    path = "/api/dashboard/activity",
    operation_id = "dashboard_activity",
    tag = "health",
    params(ActivityQuery),
    responses((status = 200, body = ActivityReply), ErrorResponses),
)]
pub(crate) async fn activity(
    Scoped(app): Scoped,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityReply>, ApiError> {
    let stretches = query.until(app.control.now())?;
    let started = app.control.views.overview.activity(&app.tenant, stretches).await?;
    Ok(Json(shown(stretches, &started)))
}

/// Query parameters of the activity histogram.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActivityQuery {
    /// Length of the period in seconds, from 60 to 2,678,400 (31 days). Default: 3,600.
    #[param(value_type = Option<u64>)]
    seconds: Option<String>,
    /// Number of time buckets, from 1 to 500. Default: 60.
    #[param(value_type = Option<u64>)]
    stretches: Option<String>,
}

impl ActivityQuery {
    /// Returns whole buckets, the last of which contains the present. Buckets start at multiples of
    /// their width, so that repeated requests return the same buckets.
    fn until(&self, now: Timestamp) -> Result<TimeBuckets, ApiError> {
        let seconds = count("seconds", self.seconds.as_deref())?.unwrap_or(3600);
        let seconds = seconds.clamp(60, 31 * 24 * 3600);
        let number = count("stretches", self.stretches.as_deref())?.unwrap_or(60).clamp(1, 500);
        let width = i64::try_from(seconds.div_ceil(number)).unwrap_or(1).max(1) * 1_000_000;
        let last = now.as_micros().div_euclid(width) * width;
        let number = u32::try_from(number).unwrap_or(1);
        let from = last - width * (i64::from(number) - 1);
        Ok(TimeBuckets { from: Timestamp::from_micros(from), width_micros: width, count: number })
    }
}

fn shown(asked: TimeBuckets, started: &[StartCounts]) -> ActivityReply {
    let mut stretches = vec![Activity::default(); asked.count as usize];
    for StartCounts { place, status, count } in started {
        let Some(stretch) = stretches.get_mut(*place as usize) else { continue };
        match status {
            ExecutionStatus::Running => stretch.running = *count,
            ExecutionStatus::Completed => stretch.completed = *count,
            ExecutionStatus::Failed => stretch.failed = *count,
            ExecutionStatus::Cancelled => stretch.cancelled = *count,
        }
    }
    let seconds = asked.width_micros / 1_000_000;
    ActivityReply { from: asked.from, stretch_seconds: seconds.unsigned_abs(), stretches }
}

/// Returns the dashboard statistics as widgets
#[utoipa::path(
    get,
    path = "/api/dashboard/widgets",
    operation_id = "dashboard_widgets",
    tag = "health",
    responses((status = 200, body = WidgetsReply), ErrorResponses),
)]
pub(crate) async fn widgets(
    Scoped(app): Scoped,
    IdFormat(ids): IdFormat,
) -> Result<Json<WidgetsReply>, ApiError> {
    let stats = app.control.views.overview.stats(&app.tenant, app.control.now()).await?;
    let counts = [
        (ExecutionStatus::Completed, stats.completed),
        (ExecutionStatus::Failed, stats.failed),
        (ExecutionStatus::Cancelled, stats.cancelled),
        (ExecutionStatus::Running, stats.running),
    ];
    let counts = counts
        .map(|(status, count)| StatusCount { status: status.as_str().to_owned(), count })
        .to_vec();
    let widget = |id: &str, kind: &str, title: &str, data| Widget {
        id: id.to_owned(),
        kind: kind.to_owned(),
        title: title.to_owned(),
        data,
    };
    let newest = WidgetData::Executions(recent(&stats, ids));
    let widgets = vec![
        widget("execution-trend", "chart", "Executions", WidgetData::Counts(counts)),
        widget("recent-executions", "table", "Recent executions", newest),
    ];
    Ok(Json(WidgetsReply { widgets }))
}

fn recent(stats: &Stats, ids: IdForm) -> Vec<ExecutionView> {
    stats.recent.iter().map(|row| shape::execution(row, ids)).collect()
}

/// Returns the percentage of completed executions among the completed and failed ones, to one
/// decimal place.
fn success_rate(stats: &Stats) -> f64 {
    let ended = stats.completed + stats.failed;
    if ended == 0 {
        return 0.0;
    }
    // The conversion to `f64` is exact far beyond any number of executions.
    (stats.completed as f64 * 1000.0 / ended as f64).round() / 10.0
}
