//! Event log of a subscription: state changes and reports of its runtimes.

use noetl_api::Id;
use noetl_api::subscriptions::SubscriptionEvents;
use noetl_model::{Seq, SubscriptionId};
use noetl_store::{ExecutionRow, ExecutionStatus, SubscriptionRow};

use crate::error::ApiError;
use crate::event_queries::EVENTS_MAX;
use crate::http::caller::Scoped;
use crate::http::extract::{IdFormat, Json, Path, Query};
use crate::http::openapi::ErrorResponses;
use crate::routes::executions::query::EventsQuery;
use crate::shape;

/// Default number of events in a response.
const EVENTS: u64 = 500;

/// Reads a range of a subscription's event log
///
/// Returns the events after `after`, oldest first. To read the next range, pass `next_after`.
#[utoipa::path(
    get,
    path = "/api/subscriptions/{id}/events",
    operation_id = "subscriptions_events",
    tag = "subscriptions",
    params(("id" = Id, Path), EventsQuery),
    responses((status = 200, body = SubscriptionEvents), ErrorResponses),
)]
pub(crate) async fn events(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
    IdFormat(ids): IdFormat,
    Query(query): Query<EventsQuery>,
) -> Result<Json<SubscriptionEvents>, ApiError> {
    let (after, limit) = (query.after()?.unwrap_or(0), query.limit()?.unwrap_or(EVENTS));
    let limit = usize::try_from(limit.clamp(1, EVENTS_MAX)).unwrap_or(1);
    let id = SubscriptionId::new(id);
    let subscriptions = &app.control.triggers.subscriptions;
    let row = subscriptions.get(&app.tenant, id).await?;
    // Reads one event more than requested, to know whether more follow.
    let mut events = subscriptions.events(id, Seq(after), limit + 1).await?;
    let has_more = events.len() > limit;
    events.truncate(limit);
    let of = as_execution(&row);
    Ok(Json(SubscriptionEvents {
        subscription_id: Id::text(id.get()),
        next_after: events.last().map_or(after, |event| event.seq.0),
        events: events.iter().map(|event| shape::event(event, &of, None, ids)).collect(),
        has_more,
    }))
}

/// Builds the execution row that the conversion of events needs.
fn as_execution(row: &SubscriptionRow) -> ExecutionRow {
    ExecutionRow {
        id: row.id.log(),
        catalog: row.catalog,
        path: row.path.as_str().into(),
        playbook_version: 0,
        parent: None,
        status: ExecutionStatus::Running,
        version: Seq::START,
        started_at: row.created_at,
        updated_at: row.updated_at,
        ended_at: None,
        error: None,
        steps_entered: 0,
        steps_completed: 0,
        steps_failed: 0,
        steps_running: 0,
        current_step: None,
    }
}
