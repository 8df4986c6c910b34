//! Numbers for dashboards.

use noetl_api::IdForm;
use noetl_api::dashboard::{
    DashboardReply, DashboardStats, StatusCount, Widget, WidgetData, WidgetsReply,
};
use noetl_api::executions::ExecutionView;
use noetl_control::Stats;
use noetl_store::ExecutionStatus;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Ids, Json};
use crate::shape;

/// How many executions, playbooks and workers there are
#[utoipa::path(
    get,
    path = "/api/dashboard/stats",
    operation_id = "dashboard_stats",
    tag = "health",
    responses((status = 200, body = DashboardReply), Failures),
)]
pub(crate) async fn stats(
    Scoped(app): Scoped,
    Ids(ids): Ids,
) -> Result<Json<DashboardReply>, ApiError> {
    let stats = app.control.overview.stats(&app.tenant, app.control.now()).await?;
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

/// The same as things to show
#[utoipa::path(
    get,
    path = "/api/dashboard/widgets",
    operation_id = "dashboard_widgets",
    tag = "health",
    responses((status = 200, body = WidgetsReply), Failures),
)]
pub(crate) async fn widgets(
    Scoped(app): Scoped,
    Ids(ids): Ids,
) -> Result<Json<WidgetsReply>, ApiError> {
    let stats = app.control.overview.stats(&app.tenant, app.control.now()).await?;
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

/// How many in a hundred of those that ended by themselves ended well, to a tenth.
fn success_rate(stats: &Stats) -> f64 {
    let ended = stats.completed + stats.failed;
    if ended == 0 {
        return 0.0;
    }
    // Exact far beyond any number of executions.
    (stats.completed as f64 * 1000.0 / ended as f64).round() / 10.0
}
