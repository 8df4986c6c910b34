//! Snapshots of executions for external readers.

use std::collections::HashSet;

use noetl_api::Id;
use noetl_api::internal::{AdvanceReply, AdvanceRequest, AdvancedSnapshot, NotAdvanced};
use noetl_model::ExecutionId;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;

/// Updates snapshots of executions
///
/// Updates each execution separately, in order. A failure doesn't affect the others.
#[utoipa::path(
    post,
    path = "/api/internal/projection/advance",
    tag = "internal",
    request_body = AdvanceRequest,
    responses((status = 200, body = AdvanceReply), ErrorResponses),
)]
pub(crate) async fn advance(
    Scoped(app): Scoped,
    Json(request): Json<AdvanceRequest>,
) -> Result<Json<AdvanceReply>, ApiError> {
    let mut reply = AdvanceReply { advanced: Vec::new(), failed: Vec::new() };
    let mut seen = HashSet::new();
    for id in request.execution_ids.into_iter().filter(|id| seen.insert(*id)) {
        let execution_id = Id::number(id);
        let error = match app.control.views.projections.advance(ExecutionId::new(id)).await {
            Ok(Some(done)) => {
                let (version, events) = (done.version.get(), done.events);
                reply.advanced.push(AdvancedSnapshot { execution_id, version, events });
                continue;
            }
            Ok(None) => "Validation error: No events found for execution".to_owned(),
            // The database error is written to the server log; the caller can only retry.
            Err(error) => format!("Database error: {}", ApiError::from(error).message()),
        };
        reply.failed.push(NotAdvanced { execution_id, error });
    }
    Ok(Json(reply))
}
