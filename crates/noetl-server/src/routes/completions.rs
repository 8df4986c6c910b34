//! Completion reports of NoETL workers.

use futures::future::join_all;
use noetl_api::completions::{
    CompletionItem, CompletionResult, CompletionStatus, CompletionsReply, CompletionsRequest,
    NextCommandFilter,
};
use noetl_journal::LeaseHolder;
use noetl_model::event::BlobRef;
use noetl_remote::{Completion, CompletionAck};
use noetl_work::{CommandOutcome, LEASE_BATCH_MAX};
use serde_json::value::RawValue;

use crate::app::App;
use crate::error::{ApiError, report_rejected};
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, JsonText, decode_text};
use crate::http::openapi::ErrorResponses;
use crate::routes::workers::shown;

/// Media type of large results.
const JSON: &str = "application/json";

/// Reports completions of commands
///
/// Each completion is handled separately and acknowledged at the same index. Reporting a completion
/// again has no effect. With `next`, the server hands off a new command for each completion where
/// possible.
#[utoipa::path(
    post,
    path = "/api/worker/report",
    operation_id = "worker_report",
    tag = "workers",
    request_body = CompletionsRequest,
    responses((status = 200, body = CompletionsReply), ErrorResponses),
)]
pub(crate) async fn report(
    Scoped(app): Scoped,
    caller: Caller,
    JsonText(text): JsonText,
) -> Result<Json<CompletionsReply>, ApiError> {
    let request: CompletionsRequest = decode_text(&text)?;
    if request.worker_id.contains('\0') {
        return Err(ApiError::invalid("nul_character", "text must not hold NUL characters"));
    }
    if request.ends.len() > LEASE_BATCH_MAX {
        let message =
            format!("ends: at most {LEASE_BATCH_MAX} at a time, not {}", request.ends.len());
        return Err(ApiError::invalid("invalid_amount", message));
    }
    let (scope, worker) = (caller.scope(), request.worker_id.as_str());
    let next = match request.next {
        Some(NextCommandFilter { pool, kinds }) => {
            let pool = bound::pool(&caller, pool)?;
            Some(app.control.remote.leasing.next_command_filter(&scope, worker, pool, kinds)?)
        }
        None => None,
    };
    let taken = request.ends.iter().map(|item| take(&app, &caller, worker, item, next.as_ref()));
    Ok(Json(CompletionsReply { ends: join_all(taken).await }))
}

async fn take(
    app: &App,
    caller: &Caller,
    worker: &str,
    item: &RawValue,
    next: Option<&LeaseHolder>,
) -> CompletionResult {
    // The store handles NUL characters, as in results of a local worker.
    let taken = match decode_text::<CompletionItem>(item.get().as_bytes()) {
        Ok(given) => {
            let end = completion(given);
            let execution = end.execution;
            match bound::owns(app, caller, end.command).await {
                Ok(true) => {
                    let scope = caller.scope();
                    let taken = app
                        .control
                        .remote
                        .reports
                        .record_completion(&scope, worker, end, next)
                        .await;
                    taken.map_err(|failure| report_rejected(execution, failure))
                }
                // Acknowledged as late, like a command of another tenant.
                Ok(false) => Ok(CompletionAck { counts: false, next: None }),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    match taken {
        Ok(CompletionAck { counts, next }) => CompletionResult {
            status: if counts { CompletionStatus::Taken } else { CompletionStatus::Late },
            error: None,
            next: next.map(|leased| Box::new(shown(&leased))),
        },
        Err(error) => {
            let is_callers = error.is_client_error();
            let status =
                if is_callers { CompletionStatus::Refused } else { CompletionStatus::Again };
            CompletionResult { status, error: Some(error.message().to_owned()), next: None }
        }
    }
}

pub(crate) fn completion(given: CompletionItem) -> Completion {
    let CompletionItem { execution_id, event_id, data, content, failure, ctx, step } = given;
    let outcome = failure.map_or(Ok(data), Err);
    let reference = content.filter(|_| outcome.is_ok()).map(|content| BlobRef {
        digest: content.digest.into(),
        bytes: content.bytes,
        media_type: JSON.into(),
    });
    Completion {
        execution: execution_id.into(),
        command: event_id.into(),
        ended: CommandOutcome { outcome, ctx, step },
        reference,
    }
}
