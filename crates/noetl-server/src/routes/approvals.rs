//! Steps that wait for a person.

use noetl_api::Id;
use noetl_api::approvals::{ApprovalList, ApprovalView};
use noetl_control::Approval;
use noetl_model::{CommandId, Value};
use serde::Deserialize;
use utoipa::IntoParams;

use super::executions::query::{count, given};
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Json, Query};

/// Steps in a reply when nothing else is said, and at most.
const LIST: (u64, u64) = (50, 100);

/// Which steps to list. A parameter without a value counts as left out.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApprovalQuery {
    /// Behind this command: `next_after` of the reply before.
    #[param(value_type = Option<Id>)]
    after: Option<String>,
    /// At most so many.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
}

/// List steps that wait for a person
///
/// Of every execution, oldest first. Each is answered at
/// `POST /api/executions/{id}/answers/{command}` with its token.
#[utoipa::path(
    get,
    path = "/api/approvals",
    operation_id = "approvals_list",
    tag = "executions",
    params(ApprovalQuery),
    responses((status = 200, body = ApprovalList), Failures),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    Query(query): Query<ApprovalQuery>,
) -> Result<Json<ApprovalList>, ApiError> {
    let after = given(query.after.as_deref()).map(str::parse).transpose();
    let after = after.map_err(|error| ApiError::query(format!("after: {error}")))?;
    let limit = count("limit", query.limit.as_deref())?.unwrap_or(LIST.0).clamp(1, LIST.1);
    let limit = usize::try_from(limit).unwrap_or(1);
    let after = after.unwrap_or(CommandId::new(0));
    let said = app.control.executions.approvals(&app.tenant, after, limit).await?;
    Ok(Json(ApprovalList {
        approvals: said.found.into_iter().map(view).collect(),
        next_after: said.next.map(|next| Id::text(next.get())),
    }))
}

fn view(waits: Approval) -> ApprovalView {
    ApprovalView {
        execution_id: Id::text(waits.execution.id.get()),
        path: waits.execution.path.to_string(),
        step: waits.step.to_string(),
        item: waits.item,
        command_id: Id::text(waits.command.get()),
        token: waits.token.to_string(),
        message: waits.message.map(|message| match message {
            Value::String(text) => text,
            other => other.to_string(),
        }),
        data: waits.data,
        since: waits.since,
        until: waits.until,
    }
}
