//! Routes that read, set, and delete the variables of an execution.

use noetl_api::Id;
use noetl_api::vars::{
    PutVariable, PutVariables, VariableDeleted, VariableView, VariablesDeleted, VariablesSet,
};
use noetl_model::ExecutionId;
use noetl_store::{NewVariable, Variable, VariableKind};

use crate::error::ApiError;
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;

/// Lists the variables of an execution
///
/// Sorted by name. Doesn't count as an access.
#[utoipa::path(
    get,
    path = "/api/vars/{execution_id}",
    operation_id = "vars_list",
    tag = "executions",
    params(("execution_id" = String, Path)),
    responses((status = 200, body = Vec<VariableView>), ErrorResponses),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<i64>,
) -> Result<Json<Vec<VariableView>>, ApiError> {
    bound::check_execution(&app, &caller, ExecutionId::new(id)).await?;
    let found = app.control.data.variables.list(&app.tenant, ExecutionId::new(id)).await?;
    Ok(Json(found.into_iter().map(view).collect()))
}

/// Sets variables of an execution
///
/// Sets all of them or none.
#[utoipa::path(
    post,
    path = "/api/vars/{execution_id}",
    operation_id = "vars_set",
    tag = "executions",
    params(("execution_id" = String, Path)),
    request_body = PutVariables,
    responses((status = 200, body = VariablesSet), ErrorResponses),
)]
pub(crate) async fn set(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<i64>,
    Json(request): Json<PutVariables>,
) -> Result<Json<VariablesSet>, ApiError> {
    bound::check_execution(&app, &caller, ExecutionId::new(id)).await?;
    let listed = match request {
        PutVariables::Listed { variables } => variables,
        PutVariables::Flat(map) => {
            map.into_iter().map(|(name, value)| PutVariable::new(name, value)).collect()
        }
    };
    let new = listed.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let set = app.control.data.variables.put(&app.tenant, ExecutionId::new(id), new).await?;
    let status = "ok".to_owned();
    Ok(Json(VariablesSet { execution_id: Id::number(id), variables_set: set, status }))
}

/// Deletes all variables of an execution
#[utoipa::path(
    delete,
    path = "/api/vars/{execution_id}",
    operation_id = "vars_clear",
    tag = "executions",
    params(("execution_id" = String, Path)),
    responses((status = 200, body = VariablesDeleted), ErrorResponses),
)]
pub(crate) async fn clear(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<i64>,
) -> Result<Json<VariablesDeleted>, ApiError> {
    bound::check_execution(&app, &caller, ExecutionId::new(id)).await?;
    let removed = app.control.data.variables.clear(&app.tenant, ExecutionId::new(id)).await?;
    let status = "ok".to_owned();
    Ok(Json(VariablesDeleted { execution_id: Id::number(id), variables_deleted: removed, status }))
}

/// Reads a variable
///
/// Counts the access.
#[utoipa::path(
    get,
    path = "/api/vars/{execution_id}/{name}",
    operation_id = "vars_get",
    tag = "executions",
    params(("execution_id" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = VariableView), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    caller: Caller,
    Path((id, name)): Path<(i64, String)>,
) -> Result<Json<VariableView>, ApiError> {
    bound::check_execution(&app, &caller, ExecutionId::new(id)).await?;
    let found = app.control.data.variables.get(&app.tenant, ExecutionId::new(id), &name).await?;
    found.map(view).map(Json).ok_or_else(|| missing(id, &name))
}

/// Deletes a variable
#[utoipa::path(
    delete,
    path = "/api/vars/{execution_id}/{name}",
    operation_id = "vars_delete",
    tag = "executions",
    params(("execution_id" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = VariableDeleted), ErrorResponses),
)]
pub(crate) async fn delete(
    Scoped(app): Scoped,
    caller: Caller,
    Path((id, name)): Path<(i64, String)>,
) -> Result<Json<VariableDeleted>, ApiError> {
    bound::check_execution(&app, &caller, ExecutionId::new(id)).await?;
    match app.control.data.variables.delete(&app.tenant, ExecutionId::new(id), &name).await? {
        true => {
            let status = "deleted".to_owned();
            Ok(Json(VariableDeleted { execution_id: Id::number(id), var_name: name, status }))
        }
        false => Err(missing(id, &name)),
    }
}

fn read(variable: PutVariable) -> Result<NewVariable, ApiError> {
    let kind = VariableKind::from_text(&variable.var_type).ok_or_else(|| {
        let kinds = VariableKind::ALL.map(VariableKind::as_str).join(", ");
        let PutVariable { var_name, var_type, .. } = &variable;
        let message = format!("var_type of '{var_name}' is one of {kinds}, not '{var_type}'");
        ApiError::invalid("invalid_var_type", message)
    })?;
    Ok(NewVariable {
        name: variable.var_name,
        kind,
        value: variable.var_value,
        source_step: variable.source_step,
        scope: None,
        expires_at: None,
    })
}

fn view(variable: Variable) -> VariableView {
    let Variable { kept, created_at, accessed_at, access_count } = variable;
    VariableView {
        var_name: kept.name,
        var_type: kept.kind.as_str().to_owned(),
        var_value: kept.value,
        source_step: kept.source_step,
        created_at,
        accessed_at,
        access_count,
    }
}

fn missing(id: i64, name: &str) -> ApiError {
    let message = format!("execution {id} has no variable '{name}'");
    ApiError::not_found("variable_not_found", message)
}
