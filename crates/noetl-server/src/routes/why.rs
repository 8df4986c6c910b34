//! Explanation of an execution's current state.

use noetl_api::why::{EndView, WaitView, WhyReply};
use noetl_api::{Id, IdForm};
use noetl_engine::WaitKind;
use noetl_journal::{EndReason, SubscriptionWhy, Wait, WhyReport};
use noetl_model::{ExecutionId, SubscriptionId, Timestamp};
use noetl_store::ExecutionStatus;

use crate::error::{ApiError, unknown_execution};
use crate::http::caller::Scoped;
use crate::http::extract::{IdFormat, Json, Path};
use crate::http::openapi::ErrorResponses;

/// Explains why an execution waits or ended
///
/// For a running execution, returns each wait with its start time and the action that would resolve
/// it. For one that ended, returns the failure that ended it. Also accepts the ID of a
/// subscription, and explains why it receives messages or not.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/why",
    tag = "executions",
    params(("id" = Id, Path)),
    responses((status = 200, body = WhyReply), ErrorResponses),
)]
pub(crate) async fn why(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
) -> Result<Json<WhyReply>, ApiError> {
    if let Some(found) = app.control.journal.executions.why(&app.tenant, id).await? {
        return Ok(Json(reply(found, ids)));
    }
    let subscription = SubscriptionId::new(id.get());
    let found = app.control.triggers.subscriptions.why(&app.tenant, subscription).await?;
    let found = found.ok_or_else(|| unknown_execution(id))?;
    Ok(Json(of_subscription(found, ids)))
}

/// Converts the explanation of a subscription, which has at most one wait.
fn of_subscription(why: SubscriptionWhy, ids: IdForm) -> WhyReply {
    let SubscriptionWhy { row, what, would_move_it, since, runtime } = why;
    let (worker, lease_until) = runtime.unzip();
    let wait = would_move_it.map(|would_move_it| WaitView {
        kind: "subscription".to_owned(),
        step: row.path,
        command_id: None,
        item: None,
        since: Some(since),
        until: None,
        what: what.clone(),
        would_move_it,
        pool: None,
        workers: Vec::new(),
        worker,
        lease_until,
        child_execution_id: None,
        child_status: None,
    });
    WhyReply {
        execution_id: Id::new(row.id.get(), ids),
        status: row.state.as_str().to_owned(),
        summary: what,
        waits: wait.into_iter().collect(),
        more: 0,
        ended: None,
    }
}

fn reply(why: WhyReport, ids: IdForm) -> WhyReply {
    let WhyReport { row, is_imported, waits, more, ending } = why;
    let summary = match (&ending, waits.as_slice()) {
        (Some(ending), _) => ending.what.clone(),
        (None, _) if is_imported => "it was imported, and nothing here drives it".to_owned(),
        (None, [one]) if more == 0 => one.what.clone(),
        (None, [first, rest @ ..]) => {
            format!("{}, and {} more", first.what, rest.len() + more)
        }
        (None, []) => format!("it is {}", row.status.as_str()),
    };
    WhyReply {
        execution_id: Id::new(row.id.get(), ids),
        status: row.status.as_str().to_owned(),
        summary,
        waits: waits.into_iter().map(|wait| wait_view(wait, ids)).collect(),
        more,
        ended: ending.map(|ending| end_view(ending, ids)),
    }
}

fn wait_view(wait: Wait, ids: IdForm) -> WaitView {
    let Wait { outstanding, what, would_move_it, pool, workers, lease_until, child } = wait;
    let (worker, child_execution) = match &outstanding.awaited {
        WaitKind::Report { worker, .. } => (Some(worker.to_string()), None),
        WaitKind::Child { execution, .. } => (None, Some(Id::new(execution.get(), ids))),
        _ => (None, None),
    };
    WaitView {
        kind: kind(&outstanding.awaited).to_owned(),
        step: outstanding.step.to_string(),
        command_id: outstanding.command.map(|command| Id::text(command.get())),
        item: outstanding.item,
        since: outstanding.since,
        until: until(&outstanding.awaited),
        what,
        would_move_it,
        pool: pool.map(|pool| pool.to_string()),
        workers,
        worker,
        lease_until,
        child_execution_id: child_execution,
        child_status: child.map(ExecutionStatus::as_str).map(str::to_owned),
    }
}

fn kind(awaited: &WaitKind) -> &'static str {
    match awaited {
        WaitKind::Worker { .. } => "worker",
        WaitKind::Report { .. } => "report",
        WaitKind::Time { .. } => "time",
        WaitKind::Child { .. } => "child",
        WaitKind::Answer { .. } => "answer",
        WaitKind::Admission { .. } => "admission",
        WaitKind::Arcs { .. } => "join",
        WaitKind::Items { .. } => "loop",
    }
}

fn until(awaited: &WaitKind) -> Option<Timestamp> {
    match awaited {
        WaitKind::Time { until, .. }
        | WaitKind::Answer { until }
        | WaitKind::Admission { until } => Some(*until),
        WaitKind::Child { until, .. } => *until,
        WaitKind::Worker { .. }
        | WaitKind::Report { .. }
        | WaitKind::Arcs { .. }
        | WaitKind::Items { .. } => None,
    }
}

fn end_view(ending: EndReason, ids: IdForm) -> EndView {
    let EndReason { what, step, kind, message, event } = ending;
    EndView {
        what,
        step: step.map(|step| step.to_string()),
        kind: kind.map(|kind| kind.as_str().to_owned()),
        message,
        event_id: event.map(|(event, _)| Id::new(event.get(), ids)),
        seq: event.map(|(_, seq)| seq.0),
    }
}
