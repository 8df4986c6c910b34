//! Limits of worker tokens: a worker may act only on the commands it has leased and on their
//! executions.

use axum::http::StatusCode;
use noetl_model::{CatalogId, CommandId, ExecutionId, SubscriptionId};
use noetl_secrets::{CredentialHolder, WorkerBinding};
use noetl_store::SubscriptionState;

use super::caller::Caller;
use crate::app::App;
use crate::error::ApiError;

/// Worker routes that are closed to tokens bound to a pool, which run steps and no subscriptions.
const FOR_SUBSCRIPTIONS: [&str; 2] = ["/api/subscriptions", "/api/catalog/resource"];

/// Rejects subscription routes for a token that is bound to a pool.
pub(super) fn check_route(caller: &Caller, path: &str) -> Result<(), ApiError> {
    let is_other = FOR_SUBSCRIPTIONS.iter().any(|prefix| path.starts_with(prefix));
    match caller.binding().and_then(|binding| binding.pool).filter(|_| is_other) {
        None => Ok(()),
        Some(pool) => {
            let message = format!(
                "{} is bound to pool '{pool}' and runs steps only; a runtime of subscriptions needs \
                 a worker's token without a pool",
                caller.name
            );
            Err(refused("token_has_pool", message))
        }
    }
}

/// Returns the pool that the caller works for: the requested one, or the pool its token is bound
/// to. Rejects a request for any other pool.
pub(crate) fn pool(caller: &Caller, asked: Option<String>) -> Result<Option<String>, ApiError> {
    let asked = asked.filter(|pool| !pool.is_empty());
    let Some(own) = caller.binding().and_then(|binding| binding.pool) else { return Ok(asked) };
    match asked {
        Some(asked) if *asked != *own => {
            let message = format!("the token is bound to pool '{own}', not '{asked}'");
            Err(refused("pool_not_allowed", message))
        }
        Some(_) | None => Ok(Some(own.to_string())),
    }
}

/// Returns `true` if the caller may report on a command. Limits only tokens that are bound to a
/// pool; the command lookup checks the tenant.
pub(crate) async fn owns(app: &App, caller: &Caller, command: CommandId) -> Result<bool, ApiError> {
    match caller.binding().filter(|binding| binding.pool.is_some()) {
        None => Ok(true),
        Some(binding) => Ok(app.control.secrets.worker_access.owns(&binding, command).await?),
    }
}

/// Rejects a worker that has leased no command of an execution.
pub(crate) async fn check_execution(
    app: &App,
    caller: &Caller,
    execution: ExecutionId,
) -> Result<(), ApiError> {
    let Some(binding) = caller.binding() else { return Ok(()) };
    match app.control.secrets.worker_access.works_on(&binding, execution).await? {
        true => Ok(()),
        false => Err(not_held(caller, execution)),
    }
}

/// Rejects a start by a worker unless its parent is an execution that the worker has leased a
/// command of, or an active subscription.
pub(crate) async fn check_start(
    app: &App,
    caller: &Caller,
    parent: Option<ExecutionId>,
) -> Result<(), ApiError> {
    let Some(binding) = caller.binding() else { return Ok(()) };
    let Some(parent) = parent else {
        let message = "a worker starts executions for a command or a subscription only: \
                       parent_execution_id names it";
        return Err(refused("parent_needed", message.to_owned()));
    };
    match works_for(app, &binding, parent).await? {
        true => Ok(()),
        false => Err(not_held(caller, parent)),
    }
}

/// Rejects a worker that reads an execution which it neither works on nor started for a command or
/// a subscription.
pub(crate) async fn check_read(
    app: &App,
    caller: &Caller,
    execution: ExecutionId,
) -> Result<(), ApiError> {
    let Some(binding) = caller.binding() else { return Ok(()) };
    // The handler responds with 404 to an unknown execution.
    let row = app.control.journal.executions.get(&app.tenant, execution).await?;
    let Some(row) = row else { return Ok(()) };
    if app.control.secrets.worker_access.works_on(&binding, execution).await? {
        return Ok(());
    }
    match row.parent {
        Some(parent) if works_for(app, &binding, parent).await? => Ok(()),
        Some(_) | None => Err(not_held(caller, execution)),
    }
}

/// Returns `true` if `parent` is an execution that the worker has leased a command of, or, for a
/// worker without a pool, a subscription that is not deactivated.
async fn works_for(
    app: &App,
    binding: &WorkerBinding,
    parent: ExecutionId,
) -> Result<bool, ApiError> {
    if binding.pool.is_none() {
        let id = SubscriptionId::new(parent.get());
        let found = app.control.triggers.subscriptions.get(&app.tenant, id).await;
        if found.is_ok_and(|row| row.state != SubscriptionState::Deactivated) {
            return Ok(true);
        }
    }
    Ok(app.control.secrets.worker_access.works_on(binding, parent).await?)
}

/// Returns `true` if a leased command of the worker names the credential. Returns `true` for
/// callers that are not limited to leased commands.
pub(crate) async fn may_read_credential(
    app: &App,
    caller: &Caller,
    holder: CredentialHolder<'_>,
    name: &str,
) -> Result<bool, ApiError> {
    match caller.binding() {
        None => Ok(true),
        Some(binding) => {
            Ok(app.control.secrets.worker_access.may_read(&binding, holder, name).await?)
        }
    }
}

/// Rejects a worker that doesn't name an execution it works on, or whose execution doesn't use the
/// catalog entry.
pub(crate) async fn check_entry(
    app: &App,
    caller: &Caller,
    execution: Option<ExecutionId>,
    catalog: CatalogId,
) -> Result<(), ApiError> {
    let Some(binding) = caller.binding() else { return Ok(()) };
    let Some(execution) = execution else {
        let message =
            "a worker names the execution whose keychain it reads: execution_id is missing";
        return Err(refused("execution_needed", message.to_owned()));
    };
    match app.control.secrets.worker_access.works_on_entry(&binding, execution, catalog).await? {
        true => Ok(()),
        false => Err(not_held(caller, execution)),
    }
}

fn not_held(caller: &Caller, execution: ExecutionId) -> ApiError {
    let message = format!("{} holds no command of execution {execution}", caller.name);
    refused("command_not_held", message)
}

/// Creates the rejection for a credential that no leased command names.
pub(crate) fn credential_not_named(caller: &Caller, name: &str) -> ApiError {
    let message = format!(
        "{} holds no command that names credential '{name}'; a worker reads the credentials of \
         commands that it has leased",
        caller.name
    );
    refused("credential_not_named", message)
}

fn refused(code: &'static str, message: String) -> ApiError {
    ApiError::with_status(StatusCode::FORBIDDEN, code, message)
}
