//! Error responses: the HTTP status, stable code, and message of every failure.
//!
//! The message is safe to show to callers. The cause is logged here, once, and only for failures of
//! the control plane; client errors are not logged.

mod access;
mod forks;
mod quotas;
mod resources;
mod triggers;
mod workers;

use std::error::Error;
use std::fmt::Write as _;

use axum::http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use noetl_api::{Diagnostic, ErrorBody};
use noetl_catalog::{PlaybookError, RegisterError};
use noetl_engine::{Rejection, Status};
use noetl_journal::{StartError, SubmitError};
use noetl_model::{CommandId, ExecutionId};
use noetl_remote::ReportError;
use noetl_store::{ExecutionStatus, StoreError};
use tracing::error;

use crate::shape::{self, bounded};

/// Default `Retry-After` of retryable responses, in seconds.
const RETRY_AFTER_SECS: HeaderValue = HeaderValue::from_static("1");

/// Diagnostic code of a document that is not YAML. Such a document gets status 400 instead of 422.
const NOT_YAML: &str = "E000";

/// Error response of a route.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    diagnostics: Vec<Diagnostic>,
    /// Value of the `Allow` header: the methods that the route supports.
    allowed: Option<String>,
    /// Value of the `Retry-After` header, in seconds. `None` for the default of 1.
    retry_after: Option<u64>,
}

impl ApiError {
    /// Creates an error with this status.
    pub(crate) fn with_status(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = bounded(message.into());
        Self { status, code, message, diagnostics: Vec::new(), allowed: None, retry_after: None }
    }

    /// Sets the `Allow` header to the supported methods.
    pub(crate) fn allowing(self, verbs: String) -> Self {
        Self { allowed: Some(verbs), ..self }
    }

    /// Creates a 422 error: the request is well formed but invalid.
    pub(crate) fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::with_status(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// Creates a 400 error for an invalid query string.
    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::with_status(StatusCode::BAD_REQUEST, "invalid_query", message)
    }

    /// Creates a 404 error: the named object doesn't exist.
    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::with_status(StatusCode::NOT_FOUND, code, message)
    }

    /// Creates a 409 error: another client owns the object, or it already ended.
    fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::with_status(StatusCode::CONFLICT, code, message)
    }

    /// Creates a 500 error: a failure of the control plane that a retry doesn't fix.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::with_status(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// Creates a 503 error: a transient failure of the control plane.
    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::with_status(StatusCode::SERVICE_UNAVAILABLE, code, message)
    }

    fn document(status: StatusCode, diagnostics: &[noetl_playbook::Diagnostic]) -> Self {
        let diagnostics: Vec<Diagnostic> = diagnostics.iter().map(shape::diagnostic).collect();
        let mut errors = diagnostics.iter().filter(|found| found.severity == "error");
        let message = match (errors.next(), errors.count()) {
            (None, _) => "the document cannot be used".to_owned(),
            (Some(first), 0) => sentence(first),
            (Some(first), more) => format!("{} (and {more} more)", sentence(first)),
        };
        let code = if status == StatusCode::BAD_REQUEST { "not_yaml" } else { "invalid_document" };
        Self { diagnostics, ..Self::with_status(status, code, message) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the diagnostics of a rejected document.
    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Returns `true` if the request is at fault, so that resending it fails in the same way.
    pub(crate) fn is_client_error(&self) -> bool {
        self.status.is_client_error()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody::new(self.status.as_u16(), self.code, self.message);
        let body = ErrorBody { diagnostics: self.diagnostics, ..body };
        let mut response = (self.status, axum::Json(body)).into_response();
        let passes = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
        if passes.contains(&self.status) {
            let retry_after = self.retry_after.map_or(RETRY_AFTER_SECS, HeaderValue::from);
            response.headers_mut().insert(RETRY_AFTER, retry_after);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(verbs) = self.allowed.and_then(|verbs| HeaderValue::from_str(&verbs).ok()) {
            response.headers_mut().insert(ALLOW, verbs);
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(failure: StoreError) -> Self {
        Self::from(&failure)
    }
}

impl From<&StoreError> for ApiError {
    fn from(failure: &StoreError) -> Self {
        error!(cause = chain(failure), "store is unavailable");
        let which = match failure.shard() {
            None => "the database".to_owned(),
            Some(name) => format!("the database {name}"),
        };
        match failure.failure() {
            StoreError::Full(_) => {
                Self::unavailable("store_full", format!("{which} has no room left to write to"))
            }
            // An error without a shard name comes from the only database.
            StoreError::Unknown(_)
            | StoreError::EventTaken(_)
            | StoreError::Refused(_)
            | StoreError::Backend { .. }
            | StoreError::Shard { .. } => {
                Self::unavailable("store_unavailable", format!("{which} does not answer"))
            }
            StoreError::Row(_) => {
                Self::internal(format!("{which} holds a row that is not readable"))
            }
        }
    }
}

impl From<RegisterError> for ApiError {
    fn from(failure: RegisterError) -> Self {
        match failure {
            RegisterError::Invalid(found) => {
                Self::document(StatusCode::UNPROCESSABLE_ENTITY, &found)
            }
            RegisterError::Quota(over) => over.into(),
            RegisterError::Store(failure) => failure.into(),
        }
    }
}

impl From<&PlaybookError> for ApiError {
    fn from(failure: &PlaybookError) -> Self {
        match failure {
            PlaybookError::NotFound => {
                Self::not_found("playbook_not_found", "there is no such playbook")
            }
            PlaybookError::Invalid(found) => {
                let is_yaml = found.iter().all(|found| found.code != NOT_YAML);
                let status = match is_yaml {
                    true => StatusCode::UNPROCESSABLE_ENTITY,
                    false => StatusCode::BAD_REQUEST,
                };
                Self::document(status, found)
            }
            PlaybookError::Store(failure) => failure.into(),
        }
    }
}

impl From<StartError> for ApiError {
    fn from(failure: StartError) -> Self {
        match failure {
            StartError::Unnamed => {
                Self::invalid("playbook_unnamed", "name the playbook by path or catalog_id")
            }
            StartError::NotFound(message) => Self::not_found("playbook_not_found", message),
            StartError::Playbook(failure) => Self::from(&failure),
            StartError::Submit(failure) => failure.into(),
            StartError::Quota(over) => over.into(),
            StartError::Store(failure) => failure.into(),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(failure: SubmitError) -> Self {
        match failure {
            SubmitError::Refused(refusal) => refusal.into(),
            SubmitError::Taken => {
                error!("all generated execution IDs are in use; two processes share a machine ID");
                Self::unavailable("busy", "no free execution id was found")
            }
            SubmitError::Playbook(failure) => {
                error!(cause = chain(&*failure), "failed to load playbook of execution");
                Self::internal("failed to load the execution's playbook")
            }
            SubmitError::Store(failure) => Self::from(&*failure),
            SubmitError::Busy => {
                Self::unavailable("busy", "journal queue is full; retry after 1 second")
            }
            SubmitError::Unleased => {
                Self::unavailable("unleased", "machine ID lease lapsed; retry after 1 second")
            }
            SubmitError::Stopped => Self::unavailable("stopping", "the control plane is stopping"),
        }
    }
}

impl From<Rejection> for ApiError {
    fn from(refusal: Rejection) -> Self {
        match refusal {
            Rejection::NotFound => Self::not_found("execution_not_found", "Execution not found"),
            Rejection::AlreadyStarted => {
                Self::conflict("already_started", "the execution began before")
            }
            Rejection::AlreadyFinished(status) => {
                let status = status_text(status);
                let message = format!("the execution is {status} already");
                Self::invalid("already_finished", message)
            }
            Rejection::CommandFinished => {
                Self::conflict("command_finished", "Command already reached terminal state")
            }
            Rejection::ClaimedBy(holder) => claimed_by(&holder),
            Rejection::NotAwaited => {
                Self::conflict("not_awaited", "command does not wait for this answer")
            }
            Rejection::Workload(message) => Self::invalid("invalid_workload", message),
            Rejection::Need(_) => Self::internal("values the decision depends on were not read"),
        }
    }
}

impl From<ReportError> for ApiError {
    fn from(failure: ReportError) -> Self {
        match failure {
            ReportError::UnknownExecution(id) => unknown_execution(id),
            ReportError::Reserved(_) => Self::invalid("reserved_event_type", failure.to_string()),
            ReportError::BadType(_) => Self::invalid("invalid_event_type", failure.to_string()),
            ReportError::TooDeep => Self::invalid("too_deep", failure.to_string()),
            ReportError::NoContent(_) => Self::invalid("content_not_found", failure.to_string()),
            ReportError::Worker(failure) => failure.into(),
            ReportError::ClaimedBy(holder) => claimed_by(&holder),
            ReportError::Submit(failure) => failure.into(),
            ReportError::Store(failure) => failure.into(),
        }
    }
}

/// Converts a failed cancellation, with the message texts of the published contract.
pub(crate) fn not_cancelled(id: ExecutionId, failure: SubmitError, has_cascade: bool) -> ApiError {
    match failure {
        SubmitError::Refused(Rejection::NotFound) => unknown_execution(id),
        SubmitError::Refused(Rejection::AlreadyFinished(status)) => {
            let message = format!("Cannot cancel execution in {} state", status_text(status));
            // Published clients that send `cascade` treat 400 as a warning, and 422 as a failure.
            match has_cascade {
                true => ApiError::with_status(StatusCode::BAD_REQUEST, "already_finished", message),
                false => ApiError::invalid("already_finished", message),
            }
        }
        other => other.into(),
    }
}

/// Converts a failed claim. A worker retries forever on any status but 409, so a command that ended
/// or no longer exists is a conflict.
pub(crate) fn not_claimed(failure: ReportError) -> ApiError {
    match failure {
        ReportError::Submit(SubmitError::Refused(Rejection::AlreadyFinished(
            Status::Cancelled,
        ))) => ApiError::conflict("execution_cancelled", "Execution has been cancelled"),
        ReportError::Submit(SubmitError::Refused(
            Rejection::NotFound | Rejection::AlreadyFinished(_),
        )) => Rejection::CommandFinished.into(),
        other => other.into(),
    }
}

/// Converts the rejection of a report about an execution.
pub(crate) fn report_rejected(id: ExecutionId, failure: ReportError) -> ApiError {
    match failure {
        ReportError::Submit(SubmitError::Refused(Rejection::NotFound)) => unknown_execution(id),
        other => other.into(),
    }
}

/// Creates the 404 error for an unknown execution.
pub(crate) fn unknown_execution(id: ExecutionId) -> ApiError {
    ApiError::not_found("execution_not_found", format!("Execution not found: {id}"))
}

/// Creates the error for an unknown command: 404 for readers, 409 for workers.
pub(crate) fn unknown_command(status: StatusCode, id: CommandId) -> ApiError {
    ApiError::with_status(status, "command_not_found", format!("command not found: {id}"))
}

fn claimed_by(holder: &str) -> ApiError {
    ApiError::conflict("command_claimed", format!("Command already claimed by {holder}"))
}

fn status_text(status: Status) -> &'static str {
    match status {
        Status::Absent => "UNKNOWN",
        Status::Running => ExecutionStatus::Running.as_str(),
        Status::Completed => ExecutionStatus::Completed.as_str(),
        Status::Failed => ExecutionStatus::Failed.as_str(),
        Status::Cancelled => ExecutionStatus::Cancelled.as_str(),
    }
}

/// Formats a diagnostic as `line:column: message`.
pub(crate) fn sentence(found: &Diagnostic) -> String {
    format!("{}:{}: {}", found.line, found.column, found.message)
}

/// Formats an error with all its sources, for the server log.
fn chain(failure: &dyn Error) -> String {
    let mut text = failure.to_string();
    let mut cause = failure.source();
    while let Some(next) = cause {
        let _ = write!(text, ": {next}");
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_several_that_fails_is_named_and_its_causes_are_not() {
        let failure = StoreError::backend("read the event log", "a secret of the driver");
        let error = ApiError::from(failure.on_shard(&"shard 1".into()));
        assert_eq!(error.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(error.code, "store_unavailable");
        assert_eq!(error.message, "the database shard 1 does not answer");
        let full = StoreError::Full("a secret".into()).on_shard(&"shard 1".into());
        assert_eq!(ApiError::from(full).code, "store_full");
        let alone = ApiError::from(StoreError::backend("read", "a secret"));
        assert_eq!(alone.message, "the database does not answer");
    }
}
