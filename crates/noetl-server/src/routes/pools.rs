//! Runtimes: registered workers, servers, and brokers.

use noetl_api::Id;
use noetl_api::workers::{
    LoadReply, LoadView, RegisterRequest, RuntimeNamed, RuntimeQuery, RuntimeReply, RuntimeView,
};
use noetl_remote::Registration;
use noetl_store::{RuntimeFilter, RuntimeKind, RuntimeRow};

use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Query};
use crate::http::openapi::ErrorResponses;

/// Registers a runtime
///
/// Updates a runtime that is already registered, including its key. A worker that registers with a
/// different key counts as a new process: the server releases the leases of the old one.
#[utoipa::path(
    post,
    path = "/api/worker/pool/register",
    operation_id = "worker_pool_register",
    tag = "workers",
    request_body = RegisterRequest,
    responses((status = 200, body = RuntimeView), ErrorResponses),
)]
pub(crate) async fn register(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<RegisterRequest>,
) -> Result<Json<RuntimeView>, ApiError> {
    let kind = kind(&request.kind)?;
    let said = Registration {
        name: request.name,
        uri: request.uri,
        status: request.status,
        labels: request.labels,
        capabilities: request.capabilities,
        capacity: request.capacity,
        runtime: request.runtime,
    };
    let row = app.control.remote.workers.register(&app.tenant, &caller.scope(), kind, said).await?;
    Ok(Json(view(row)))
}

/// Records a heartbeat of a runtime
///
/// Registers an unknown runtime.
#[utoipa::path(
    post,
    path = "/api/worker/pool/heartbeat",
    operation_id = "worker_pool_heartbeat",
    tag = "workers",
    request_body = RuntimeNamed,
    responses((status = 200, body = RuntimeReply), ErrorResponses),
)]
pub(crate) async fn heartbeat(
    Scoped(app): Scoped,
    caller: Caller,
    Json(named): Json<RuntimeNamed>,
) -> Result<Json<RuntimeReply>, ApiError> {
    let kind = kind(&named.kind)?;
    app.control.remote.workers.heartbeat(&app.tenant, &caller.scope(), kind, &named.name).await?;
    Ok(Json(done("Heartbeat recorded".to_owned())))
}

/// Deregisters a runtime
///
/// The worker may still report the commands it has leased, unless `release` is set, which releases
/// them.
#[utoipa::path(
    delete,
    path = "/api/worker/pool/deregister",
    operation_id = "worker_pool_deregister",
    tag = "workers",
    request_body = RuntimeNamed,
    responses((status = 200, body = RuntimeReply), ErrorResponses),
)]
pub(crate) async fn deregister(
    Scoped(app): Scoped,
    caller: Caller,
    Json(named): Json<RuntimeNamed>,
) -> Result<Json<RuntimeReply>, ApiError> {
    let kind = kind(&named.kind)?;
    if named.release {
        // The release comes first: if the request is interrupted and repeated, fewer leases remain.
        app.control.remote.workers.release(&caller.scope(), kind, &named.name).await?;
    }
    app.control.remote.workers.deregister(&app.tenant, kind, &named.name).await?;
    Ok(Json(done(format!("Runtime {} {} deregistered", kind.as_str(), named.name))))
}

/// Deregisters a runtime, for published workers
#[utoipa::path(
    post,
    path = "/api/worker/pool/deregister",
    operation_id = "worker_pool_deregister_posted",
    tag = "workers",
    request_body = RuntimeNamed,
    responses((status = 200, body = RuntimeReply), ErrorResponses),
)]
pub(crate) async fn deregister_posted(
    scoped: Scoped,
    caller: Caller,
    named: Json<RuntimeNamed>,
) -> Result<Json<RuntimeReply>, ApiError> {
    deregister(scoped, caller, named).await
}

/// Lists runtimes
#[utoipa::path(
    get,
    path = "/api/worker/pools",
    operation_id = "worker_pools",
    tag = "workers",
    params(RuntimeQuery),
    responses((status = 200, body = [RuntimeView]), ErrorResponses),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    Query(query): Query<RuntimeQuery>,
) -> Result<Json<Vec<RuntimeView>>, ApiError> {
    let asked = query.kind.as_deref().unwrap_or(RuntimeKind::WorkerPool.as_str());
    let filter = RuntimeFilter { kind: Some(kind(asked)?), status: query.status, name: query.name };
    let rows = app.control.remote.workers.list(&app.tenant, &filter).await?;
    Ok(Json(rows.into_iter().map(view).collect()))
}

/// Returns the number of leased commands per worker
///
/// Local workers and workers of other tenants are listed only for the default tenant.
#[utoipa::path(
    get,
    path = "/api/worker/load",
    operation_id = "worker_load",
    tag = "workers",
    responses((status = 200, body = LoadReply), ErrorResponses),
)]
pub(crate) async fn load(Scoped(app): Scoped, caller: Caller) -> Result<Json<LoadReply>, ApiError> {
    let load = app.control.journal.executions.load().await?;
    let filter = RuntimeFilter { kind: Some(RuntimeKind::WorkerPool), ..RuntimeFilter::default() };
    let known = app.control.remote.workers.list(&app.tenant, &filter).await?;
    let is_shown = |name: &str| {
        caller.looks_after_all() || known.iter().any(|worker| worker.said.name == name)
    };
    let workers = load.workers.into_iter().filter(|load| is_shown(&load.worker));
    let workers = workers.map(|load| LoadView {
        worker: load.worker.to_string(),
        held: load.held,
        oldest: load.oldest,
    });
    Ok(Json(LoadReply { workers: workers.collect(), complete: load.is_whole }))
}

fn kind(text: &str) -> Result<RuntimeKind, ApiError> {
    RuntimeKind::from_text(text).ok_or_else(|| {
        let message = format!("kind must be worker_pool, server_api or broker, not '{text}'");
        ApiError::invalid("invalid_kind", message)
    })
}

fn done(message: String) -> RuntimeReply {
    RuntimeReply { status: "ok".to_owned(), message }
}

fn view(row: RuntimeRow) -> RuntimeView {
    let RuntimeRow { said, heartbeat, created_at, updated_at } = row;
    RuntimeView {
        runtime_id: Id::number(said.id.get()),
        name: said.name,
        kind: said.kind.as_str().to_owned(),
        uri: said.uri,
        status: said.status,
        labels: said.labels,
        capabilities: said.capabilities,
        capacity: said.capacity,
        runtime: said.runtime,
        heartbeat,
        created_at,
        updated_at,
    }
}
