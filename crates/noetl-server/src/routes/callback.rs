//! Callbacks of containers that a worker started without waiting for them.

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::callbacks::{CallbackReply, ContainerCallback, ContainerState};
use noetl_journal::CallbackOutcome;
use noetl_model::{ExecutionId, Failure, FailureKind, Value};

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;

/// Reports the outcome of a container
///
/// Completes the step that waits for the container. If no step waits for it, responds with the
/// status `accepted_stale` instead of an error, because the watcher could only retry.
#[utoipa::path(
    post,
    path = "/api/internal/container-callback/{execution_id}/{step}",
    operation_id = "container_callback",
    tag = "internal",
    params(("execution_id" = Id, Path), ("step" = String, Path)),
    request_body = ContainerCallback,
    responses((status = 202, body = CallbackReply), ErrorResponses),
)]
pub(crate) async fn container(
    Scoped(app): Scoped,
    Path((execution, step)): Path<(String, String)>,
    Json(callback): Json<ContainerCallback>,
) -> Result<(StatusCode, Json<CallbackReply>), ApiError> {
    let execution: ExecutionId = execution.parse().map_err(|_| {
        let message = format!("Invalid execution_id: '{execution}' is no decimal id");
        ApiError::invalid("invalid_execution_id", message)
    })?;
    let state = callback.state.as_str();
    let metrics = &app.control.journal.metrics;
    metrics.container_callbacks.with_label_values(&[state]).inc();
    let outcome = outcome(&callback);
    let taken =
        app.control.journal.callbacks.deliver(CallbackOutcome { execution, step, outcome }).await?;
    let status = match taken {
        Some(_) => "accepted_in_flight",
        None => {
            metrics.container_callbacks_stale.with_label_values(&[state]).inc();
            "accepted_stale"
        }
    };
    let event_id = taken.map(|event| Id::text(event.get()));
    Ok((StatusCode::ACCEPTED, Json(CallbackReply { status: status.to_owned(), event_id })))
}

/// Converts a callback to the step's result or failure.
fn outcome(callback: &ContainerCallback) -> Result<Value, Failure> {
    let kind = match callback.state {
        ContainerState::Succeeded => return Ok(callback.data()),
        ContainerState::Failed => FailureKind::ExitCode,
        ContainerState::FailedImagePull => FailureKind::NotFound,
        ContainerState::FailedOom => FailureKind::from("out_of_memory".to_owned()),
        ContainerState::FailedNodeLost => FailureKind::WorkerLost,
        ContainerState::FailedTimeout => FailureKind::Timeout,
    };
    let state = callback.state.as_str();
    let mut message = format!("container job '{}' ended as {state}", callback.job_name);
    if let Some(code) = callback.exit_code {
        message.push_str(&format!(" with exit code {code}"));
    }
    if let Some(reason) = callback.reason.as_ref().filter(|reason| !reason.is_empty()) {
        message.push_str(&format!(": {reason}"));
    }
    Err(Failure::new(kind, message).with_details(callback.data()))
}
