//! Route that lists pending approvals.

use noetl_api::Id;
use noetl_api::approvals::{ApprovalList, ApprovalView};
use noetl_journal::Approval;
use noetl_model::{CommandId, Value};
use serde::Deserialize;
use utoipa::IntoParams;

use super::executions::query::{count, given};
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Query};
use crate::http::openapi::ErrorResponses;

/// Default and maximum page size.
const LIST: (u64, u64) = (50, 100);

/// Query parameters of the list of approvals. A parameter without a value counts as omitted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApprovalQuery {
    /// Return approvals after this command. Use `next_after` of the previous response.
    #[param(value_type = Option<Id>)]
    after: Option<String>,
    /// Maximum approvals to return, from 1 to 100. Default: 50.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
}

/// Lists pending approvals
///
/// Returns the approvals of all executions, oldest first. To answer one, send its token to `POST
/// /api/executions/{id}/answers/{command}`.
#[utoipa::path(
    get,
    path = "/api/approvals",
    operation_id = "approvals_list",
    tag = "executions",
    params(ApprovalQuery),
    responses((status = 200, body = ApprovalList), ErrorResponses),
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
    let said = app.control.journal.executions.approvals(&app.tenant, after, limit).await?;
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
