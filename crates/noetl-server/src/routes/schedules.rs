//! Schedules: create, change, read, and run.

use noetl_api::Id;
use noetl_api::execute::ExecuteReply;
use noetl_api::schedules::{ScheduleDeleted, ScheduleList, ScheduleRequest, ScheduleView};
use noetl_model::{Map, ScheduleId, Value};
use noetl_store::ScheduleRow;
use noetl_triggers::ScheduleSpec;

use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;
use crate::http::{acted, granted};

/// Lists schedules
///
/// Returns all schedules by ID, including those defined by documents.
#[utoipa::path(
    get,
    path = "/api/schedules",
    operation_id = "schedules_list",
    tag = "schedules",
    responses((status = 200, body = ScheduleList), ErrorResponses),
)]
pub(crate) async fn list(Scoped(app): Scoped) -> Result<Json<ScheduleList>, ApiError> {
    let rows = app.control.triggers.schedules.list(&app.tenant).await?;
    Ok(Json(ScheduleList { schedules: rows.into_iter().map(view).collect() }))
}

/// Creates a schedule
///
/// The body has the same keys as `spec` in a `kind: Schedule` document, which also defines a
/// schedule.
#[utoipa::path(
    post,
    path = "/api/schedules",
    operation_id = "schedules_create",
    tag = "schedules",
    request_body = ScheduleRequest,
    responses((status = 200, body = ScheduleView), ErrorResponses),
)]
pub(crate) async fn create(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<ScheduleRequest>,
) -> Result<Json<ScheduleView>, ApiError> {
    check_playbook(&app, &caller, &request.spec).await?;
    let row = app.control.triggers.schedules.create(&app.tenant, wanted(request)).await?;
    Ok(Json(view(row)))
}

/// Reads a schedule
#[utoipa::path(
    get,
    path = "/api/schedules/{id}",
    operation_id = "schedules_get",
    tag = "schedules",
    params(("id" = Id, Path)),
    responses((status = 200, body = ScheduleView), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
) -> Result<Json<ScheduleView>, ApiError> {
    let row = app.control.triggers.schedules.get(&app.tenant, ScheduleId::new(id)).await?;
    whole(&app, row).await.map(Json)
}

/// Changes a schedule
///
/// Omitted keys stay unchanged, and null removes a key. Setting `cron`, `every`, or `at` replaces
/// the other two. A schedule defined by a document must be changed in the document.
#[utoipa::path(
    patch,
    path = "/api/schedules/{id}",
    operation_id = "schedules_change",
    tag = "schedules",
    params(("id" = Id, Path)),
    request_body = ScheduleRequest,
    responses((status = 200, body = ScheduleView), ErrorResponses),
)]
pub(crate) async fn change(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<i64>,
    Json(request): Json<ScheduleRequest>,
) -> Result<Json<ScheduleView>, ApiError> {
    let id = ScheduleId::new(id);
    check_playbook(&app, &caller, &request.spec).await?;
    let row = app.control.triggers.schedules.change(&app.tenant, id, wanted(request)).await?;
    whole(&app, row).await.map(Json)
}

/// Deletes a schedule
///
/// Executions it started continue. A schedule defined by a document is removed with the document.
#[utoipa::path(
    delete,
    path = "/api/schedules/{id}",
    operation_id = "schedules_delete",
    tag = "schedules",
    params(("id" = Id, Path)),
    responses((status = 200, body = ScheduleDeleted), ErrorResponses),
)]
pub(crate) async fn delete(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
) -> Result<Json<ScheduleDeleted>, ApiError> {
    app.control.triggers.schedules.remove(&app.tenant, ScheduleId::new(id)).await?;
    Ok(Json(ScheduleDeleted { schedule_id: Id::text(id), status: "deleted".to_owned() }))
}

/// Pauses a schedule
///
/// The schedule doesn't fire until it is resumed, and times in between don't count as missed.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/pause",
    operation_id = "schedules_pause",
    tag = "schedules",
    params(("id" = Id, Path)),
    responses((status = 200, body = ScheduleView), ErrorResponses),
)]
pub(crate) async fn pause(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
) -> Result<Json<ScheduleView>, ApiError> {
    let row =
        app.control.triggers.schedules.enable(&app.tenant, ScheduleId::new(id), false).await?;
    whole(&app, row).await.map(Json)
}

/// Resumes a schedule
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/resume",
    operation_id = "schedules_resume",
    tag = "schedules",
    params(("id" = Id, Path)),
    responses((status = 200, body = ScheduleView), ErrorResponses),
)]
pub(crate) async fn resume(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
) -> Result<Json<ScheduleView>, ApiError> {
    let row = app.control.triggers.schedules.enable(&app.tenant, ScheduleId::new(id), true).await?;
    whole(&app, row).await.map(Json)
}

/// Runs a schedule now
///
/// In addition to its scheduled runs: the next run doesn't change, and the overlap rule doesn't
/// apply.
#[utoipa::path(
    post,
    path = "/api/schedules/{id}/run",
    operation_id = "schedules_run",
    tag = "schedules",
    params(("id" = Id, Path)),
    responses((status = 200, body = ExecuteReply), ErrorResponses),
)]
pub(crate) async fn run(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<i64>,
) -> Result<Json<ExecuteReply>, ApiError> {
    let (schedules, id) = (&app.control.triggers.schedules, ScheduleId::new(id));
    let row = schedules.get(&app.tenant, id).await?;
    acted::record(&app, &caller, "schedule.run", &row.schedule.path, None).await?;
    let started = schedules.run_now(&app.tenant, id, caller.identity()).await?;
    Ok(Json(ExecuteReply {
        execution_id: Id::text(started.execution.get()),
        status: "started".to_owned(),
        commands_generated: started.commands,
    }))
}

/// Checks the playbook that a schedule starts against the grants of the caller.
async fn check_playbook(app: &App, caller: &Caller, spec: &Map) -> Result<(), ApiError> {
    let playbook = spec.get("playbook").and_then(Value::as_str);
    granted::check_path(app, caller, playbook.unwrap_or_default()).await
}

fn wanted(request: ScheduleRequest) -> ScheduleSpec {
    ScheduleSpec { name: request.name.filter(|name| !name.is_empty()), spec: request.spec }
}

/// Returns a schedule with the newest execution it started.
async fn whole(app: &App, row: ScheduleRow) -> Result<ScheduleView, ApiError> {
    let runs = app.control.triggers.schedules.runs(&app.tenant, row.schedule.id, 1).await?;
    let last_execution_id = runs.first().map(|run| Id::text(run.id.get()));
    Ok(ScheduleView { last_execution_id, ..view(row) })
}

fn view(row: ScheduleRow) -> ScheduleView {
    let said = row.schedule;
    let meta = said.meta.unwrap_or_default();
    let text = |key: &str| meta.get(key).and_then(Value::as_str).map(str::to_owned);
    ScheduleView {
        schedule_id: Id::text(said.id.get()),
        name: text("name"),
        document: text("document"),
        playbook: said.path,
        version: said.version,
        timezone: said.timezone.filter(|_| said.cron.is_some()),
        cron: said.cron,
        interval_seconds: said.interval_seconds,
        at: text("at"),
        missed: text("missed").unwrap_or_else(|| "one".to_owned()),
        overlap: text("overlap").unwrap_or_else(|| "allow".to_owned()),
        enabled: said.is_enabled,
        payload: said.payload.filter(|payload| !payload.is_null()),
        execution_pool: text("execution_pool"),
        next_run_at: said.next_run_at.map(|at| at.to_string()),
        last_run_at: row.last_run_at.map(|at| at.to_string()),
        last_status: row.last_status,
        last_execution_id: None,
        created_at: row.created_at.to_string(),
        updated_at: row.updated_at.to_string(),
    }
}
