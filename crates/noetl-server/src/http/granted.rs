//! Checks of requests against path grants. Grants limit only authors and operators, and only in
//! tenants that have a grant for their role.

use axum::http::{Method, StatusCode};
use noetl_model::{CatalogId, ExecutionId, ScheduleId, SubscriptionId};
use noetl_playbook::describe;
use noetl_secrets::{GrantRequest, Role, covers};

use super::acted;
use super::caller::Caller;
use super::roles::Roles;
use crate::app::App;
use crate::error::ApiError;

/// Path prefixes granted to a caller. `None` for a caller that grants don't limit.
type GrantedPrefixes = Option<Vec<String>>;

/// Checks a change of an execution, schedule, or subscription by the path of its document.
pub(super) async fn check_route(
    app: &App,
    caller: &Caller,
    method: &Method,
    route: &str,
    path: &str,
) -> Result<(), ApiError> {
    let is_change = !matches!(*method, Method::GET | Method::HEAD);
    let Some(limits) = limits(app, caller).await?.filter(|_| is_change) else { return Ok(()) };
    let id = path.split('/').nth(3).and_then(|id| id.parse::<i64>().ok());
    let control = &app.control;
    let found = match (route, id) {
        ("/api/executions/cleanup", _) => Some(String::new()),
        (route, Some(id))
            if ["/api/executions/{id}", "/api/vars/{execution_id}"]
                .iter()
                .any(|of_one| route.starts_with(of_one)) =>
        {
            let row = control.journal.executions.get(&caller.tenant, ExecutionId::new(id)).await?;
            row.map(|row| row.path.to_string())
        }
        (route, Some(id)) if route.starts_with("/api/schedules/{id}") => {
            let row =
                control.triggers.schedules.get(&caller.tenant, ScheduleId::new(id)).await.ok();
            row.map(|row| row.schedule.path.clone())
        }
        (route, Some(id)) if route.starts_with("/api/subscriptions/{id}") => {
            let row = control
                .triggers
                .subscriptions
                .get(&caller.tenant, SubscriptionId::new(id))
                .await
                .ok();
            row.map(|row| row.path)
        }
        _ => None,
    };
    // The handler responds with 404 to an unknown object.
    found.map_or(Ok(()), |path| check(caller, &limits, &path))
}

/// Checks the path of a document that a request names.
pub(crate) async fn check_path(app: &App, caller: &Caller, path: &str) -> Result<(), ApiError> {
    match limits(app, caller).await? {
        None => Ok(()),
        Some(limits) => check(caller, &limits, path),
    }
}

/// Checks the path of a document that a request names by path or by ID.
pub(crate) async fn check_entry(
    app: &App,
    caller: &Caller,
    path: Option<&str>,
    catalog: Option<CatalogId>,
) -> Result<(), ApiError> {
    let Some(limits) = limits(app, caller).await? else { return Ok(()) };
    let path = match (catalog, path) {
        (Some(id), _) => app.control.catalog.entry(&app.tenant, id).await?.map(|entry| entry.path),
        (None, path) => path.map(str::to_owned),
    };
    path.map_or(Ok(()), |path| check(caller, &limits, &path))
}

/// Checks the path in a new document against the caller's grants, and records the registration. A
/// document that doesn't parse passes: the catalog rejects it with its diagnostics.
pub(crate) async fn check_document(
    app: &App,
    caller: &Caller,
    content: &str,
) -> Result<(), ApiError> {
    let limits = limits(app, caller).await?;
    if limits.is_none() && !caller.has_identity() {
        return Ok(());
    }
    let Ok(description) = describe(content) else { return Ok(()) };
    let Some(path) = description.path.or(description.name) else { return Ok(()) };
    if let Some(limits) = limits {
        check(caller, &limits, &path)?;
    }
    acted::record(app, caller, "catalog.register", &path, None).await
}

/// Checks that a caller may replace or remove a credential. A limited caller may change only a
/// credential whose grants all lie below the caller's prefixes. A new credential is granted to the
/// playbooks below the caller's prefixes.
pub(crate) async fn check_credential(
    app: &App,
    caller: &Caller,
    name: &str,
) -> Result<(), ApiError> {
    let Some(limits) = limits(app, caller).await? else { return Ok(()) };
    let exists = app.control.secrets.credentials.get(&app.tenant, name).await.is_ok();
    let granted = app.control.secrets.grants.of_credential(&app.tenant, name).await?;
    match granted {
        Some(prefixes) if prefixes.iter().all(|prefix| covers(&limits, prefix)) => Ok(()),
        None if !exists && !limits.is_empty() => {
            let administration = app.control.secrets.administration();
            for prefix in limits {
                let request = GrantRequest::Credential { credential: name.to_owned(), prefix };
                administration.create_grant(&app.tenant, &caller.actor, request).await?;
            }
            Ok(())
        }
        Some(_) | None => {
            let message = format!(
                "credential '{name}' is for playbooks outside the paths granted to {}",
                caller.name
            );
            Err(refused("credential_not_granted", message))
        }
    }
}

/// Returns the path prefixes that limit a caller, or `None` if a role it acts with is not limited
/// in the tenant.
async fn limits(app: &App, caller: &Caller) -> Result<GrantedPrefixes, ApiError> {
    let mut prefixes = Vec::new();
    for role in [Role::Author, Role::Operator] {
        if caller.acting.holds_any_of(Roles::for_role(role)) {
            let granted =
                app.control.secrets.grants.prefixes(&caller.tenant, role, &caller.grantee).await?;
            let Some(granted) = granted else { return Ok(None) };
            prefixes.extend(granted);
        }
    }
    let others = Roles::ADMIN.and(Roles::INTERNAL).and(Roles::WORKER).and(Roles::VIEWER);
    let is_limited = caller.acting.holds_any_of(Roles::AUTHOR.and(Roles::OPERATOR));
    Ok((is_limited && !caller.acting.holds_any_of(others)).then_some(prefixes))
}

fn check(caller: &Caller, limits: &[String], path: &str) -> Result<(), ApiError> {
    if covers(limits, path) {
        return Ok(());
    }
    let message = format!(
        "{} has no grant for '{path}'; an admin makes one with `noetl grant create --role ROLE \
         --to {} --prefix PREFIX`",
        caller.name, caller.grantee
    );
    Err(refused("path_not_granted", message))
}

fn refused(code: &'static str, message: String) -> ApiError {
    ApiError::with_status(StatusCode::FORBIDDEN, code, message)
}
