//! Executions and events in the format of the published terminal.

use noetl_api::ehdb::{EhdbEvent, EhdbEvents, EhdbExecution, EhdbExecutions, EhdbIndex, EhdbState};
use noetl_api::{Id, IdForm};
use noetl_model::{Event, EventId, ExecutionId};
use noetl_store::{ExecutionFilter, ExecutionRow};
use noetl_views::EventRange;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Path, Query};
use crate::http::openapi::ErrorResponses;
use crate::routes::executions::query::{given, status_named};
use crate::shape;

const TIER: &str = "eventlog";
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1000;

/// Filters of the list of executions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecutionsQuery {
    /// `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`.
    #[serde(default)]
    status: Option<String>,
    /// Return executions whose path contains this text. Ignores case.
    #[serde(default)]
    path: Option<String>,
    /// Return executions of this catalog entry.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    catalog_id: Option<Id>,
    /// Maximum executions to return, from 1 to 1,000. Default: 100.
    #[serde(default)]
    limit: Option<usize>,
    /// Number of executions to skip. Default: 0.
    #[serde(default)]
    offset: usize,
}

/// Query parameters of the list of events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Return events after the event with this ID.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    after: Option<Id>,
    /// Maximum events to return, from 1 to 1,000. Default: 100.
    #[serde(default)]
    limit: Option<usize>,
}

/// Lists the available routes
#[utoipa::path(
    get,
    path = "/api/ehdb",
    operation_id = "ehdb_index",
    tag = "executions",
    responses((status = 200, body = EhdbIndex), ErrorResponses),
)]
pub(crate) async fn index() -> Json<EhdbIndex> {
    let routes =
        ["/api/ehdb/executions", "/api/ehdb/executions/{id}", "/api/ehdb/executions/{id}/events"];
    Json(EhdbIndex {
        action: "index".to_owned(),
        tier: TIER.to_owned(),
        routes: routes.map(str::to_owned).to_vec(),
    })
}

/// Lists executions, with IDs as text
#[utoipa::path(
    get,
    path = "/api/ehdb/executions",
    operation_id = "ehdb_executions",
    tag = "executions",
    params(ExecutionsQuery),
    responses((status = 200, body = EhdbExecutions), ErrorResponses),
)]
pub(crate) async fn executions(
    Scoped(app): Scoped,
    Query(query): Query<ExecutionsQuery>,
) -> Result<Json<EhdbExecutions>, ApiError> {
    let status = given(query.status.as_deref()).map(status_named);
    let limit = limit(query.limit);
    let filter = ExecutionFilter {
        status: status.transpose()?,
        path: query.path.filter(|text| !text.is_empty()),
        catalog: query.catalog_id.map(Into::into),
        offset: query.offset,
        limit,
        ..ExecutionFilter::default()
    };
    let rows = app.control.journal.executions.list(&app.tenant, &filter).await?;
    let last = rows.last().map(|row| row.id.to_string());
    Ok(Json(EhdbExecutions {
        action: "executions".to_owned(),
        tier: TIER.to_owned(),
        returned: rows.len(),
        next_cursor: last.filter(|_| rows.len() == limit),
        executions: rows.iter().map(state).collect(),
    }))
}

/// Returns the state of an execution, with IDs as text
///
/// An unknown execution is not an error: `exists` is `false`.
#[utoipa::path(
    get,
    path = "/api/ehdb/executions/{id}",
    operation_id = "ehdb_execution",
    tag = "executions",
    params(("id" = String, Path)),
    responses((status = 200, body = EhdbState), ErrorResponses),
)]
pub(crate) async fn execution(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
) -> Result<Json<EhdbState>, ApiError> {
    let found = app.control.journal.executions.get(&app.tenant, ExecutionId::new(id)).await?;
    Ok(Json(EhdbState {
        action: "execution".to_owned(),
        tier: TIER.to_owned(),
        execution_id: Id::text(id),
        exists: found.is_some(),
        state: found.as_ref().map(state),
    }))
}

/// Lists events of an execution, with IDs as text
///
/// Returns events oldest first. An unknown execution is not an error: `exists` is `false`.
#[utoipa::path(
    get,
    path = "/api/ehdb/executions/{id}/events",
    operation_id = "ehdb_events",
    tag = "executions",
    params(("id" = String, Path), EventsQuery),
    responses((status = 200, body = EhdbEvents), ErrorResponses),
)]
pub(crate) async fn events(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
    Query(query): Query<EventsQuery>,
) -> Result<Json<EhdbEvents>, ApiError> {
    let limit = limit(query.limit);
    let after = query.after.map(EventId::from).filter(|id| id.get() > 0);
    let found = app
        .control
        .views
        .event_pages
        .after(&app.tenant, ExecutionId::new(id), after, limit)
        .await?;
    let (exists, events) = match found {
        EventRange::NoExecution => (false, Vec::new()),
        EventRange::NoEvent => {
            return Err(ApiError::query("after is the id of an event of this execution"));
        }
        EventRange::Events(row, events) => {
            (true, events.iter().map(|one| event(one, &row)).collect::<Vec<_>>())
        }
    };
    let last = events.last().map(|event| event.event_id.to_string());
    Ok(Json(EhdbEvents {
        action: "events".to_owned(),
        tier: TIER.to_owned(),
        execution_id: Id::text(id),
        exists,
        returned: events.len(),
        next_cursor: last.filter(|_| events.len() == limit),
        events,
    }))
}

/// Returns the requested limit or its default, from 1 to [`LIMIT_MAX`].
fn limit(asked: Option<usize>) -> usize {
    asked.unwrap_or(LIMIT).clamp(1, LIMIT_MAX)
}

fn state(row: &ExecutionRow) -> EhdbExecution {
    EhdbExecution {
        execution_id: Id::text(row.id.get()),
        status: row.status.as_str().to_owned(),
        terminal: row.status.is_final(),
        current_node: row.current_step.as_deref().map(str::to_owned),
        path: row.path.to_string(),
        catalog_id: Id::text(row.catalog.get()),
        parent_execution_id: row.parent.map(|id| Id::text(id.get())),
        event_count: row.version.0,
        started_at: row.started_at,
        completed_at: row.ended_at,
    }
}

fn event(event: &Event, of: &ExecutionRow) -> EhdbEvent {
    let view = shape::event(event, of, None, IdForm::Text);
    EhdbEvent {
        event_id: view.event_id,
        event_type: view.event_type,
        node_name: view.node_name,
        status: view.status,
        created_at: view.created_at,
    }
}
