//! Every failure a caller can meet: its status, its stable code, its sentence.
//!
//! The sentence is safe to show. What caused it is logged here, once, and only for failures of the
//! control plane itself; a caller's mistake is the caller's to read.

mod forks;
mod keeping;
mod quotas;
mod triggers;
mod workers;

use std::error::Error;
use std::fmt::Write as _;

use axum::http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use noetl_api::{Diagnostic, ErrorBody};
use noetl_control::{PlaybookError, RegisterError, ReportError, StartError, SubmitError};
use noetl_engine::{Refusal, Status};
use noetl_model::{CommandId, ExecutionId};
use noetl_store::{ExecutionStatus, StoreError};
use tracing::error;

use crate::shape;

/// When to come again after the control plane could not answer, in seconds.
const COME_AGAIN: HeaderValue = HeaderValue::from_static("1");

/// The code of documents that are not YAML. Such a one is malformed, not merely wrong.
const NOT_YAML: &str = "E000";

/// A failure on its way to the caller.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    diagnostics: Vec<Diagnostic>,
    /// The verbs that would be possible.
    allowed: Option<String>,
    /// After how many seconds to come again, if that is known.
    again: Option<u64>,
}

impl ApiError {
    /// A caller's mistake with this status.
    pub(crate) fn refused(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = bounded(message.into());
        Self { status, code, message, diagnostics: Vec::new(), allowed: None, again: None }
    }

    /// The same, saying which verbs would be possible.
    pub(crate) fn allowing(self, verbs: String) -> Self {
        Self { allowed: Some(verbs), ..self }
    }

    /// Something the caller sent makes no sense.
    pub(crate) fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// The query string makes no sense.
    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, "invalid_query", message)
    }

    /// What the caller names is not there.
    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::NOT_FOUND, code, message)
    }

    /// Another one has it, or it is over.
    fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::CONFLICT, code, message)
    }

    /// A failure of the control plane that coming again will not mend.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::refused(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// A failure of the control plane that passes.
    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, code, message)
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
        Self { diagnostics, ..Self::refused(status, code, message) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What is wrong with a document, finding by finding.
    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether the caller is to blame, so that sending the same again fails the same way.
    pub(crate) fn is_callers(&self) -> bool {
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
            let again = self.again.map_or(COME_AGAIN, HeaderValue::from);
            response.headers_mut().insert(RETRY_AFTER, again);
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
        error!(cause = chain(failure), "the store did not answer");
        let which = match failure.shard() {
            None => "the database".to_owned(),
            Some(name) => format!("the database {name}"),
        };
        match failure.failure() {
            StoreError::Full(_) => {
                Self::unavailable("store_full", format!("{which} has no room left to write to"))
            }
            // A failure without the name of its database is none of one of several.
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
                error!("every new execution id was taken; two processes share a machine number");
                Self::unavailable("busy", "no free execution id was found")
            }
            SubmitError::Playbook(failure) => {
                error!(cause = chain(&*failure), "an execution's playbook is not usable");
                Self::internal("the execution's playbook is not usable")
            }
            SubmitError::Store(failure) => Self::from(&*failure),
            SubmitError::Busy => Self::unavailable("busy", "too much is under way; come again"),
            SubmitError::Unleased => {
                Self::unavailable("unleased", "this server waits for a machine number; come again")
            }
            SubmitError::Stopped => Self::unavailable("stopping", "the control plane is stopping"),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::not_found("execution_not_found", "Execution not found"),
            Refusal::AlreadyStarted => {
                Self::conflict("already_started", "the execution began before")
            }
            Refusal::AlreadyFinished(status) => {
                let status = status_text(status);
                let message = format!("the execution is {status} already");
                Self::invalid("already_finished", message)
            }
            Refusal::CommandFinished => {
                Self::conflict("command_finished", "Command already reached terminal state")
            }
            Refusal::ClaimedBy(holder) => claimed_by(&holder),
            Refusal::NotAwaited => {
                Self::conflict("not_awaited", "the command waits for no such answer")
            }
            Refusal::Workload(message) => Self::invalid("invalid_workload", message),
            Refusal::Need(_) => Self::internal("values the decision depends on were not read"),
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

/// Why an execution was not cancelled, in the wire's own words.
pub(crate) fn not_cancelled(id: ExecutionId, failure: SubmitError, has_cascade: bool) -> ApiError {
    match failure {
        SubmitError::Refused(Refusal::NotFound) => unknown_execution(id),
        SubmitError::Refused(Refusal::AlreadyFinished(status)) => {
            let message = format!("Cannot cancel execution in {} state", status_text(status));
            // Published clients that send `cascade` treat 400 as a warning, and 422 as a failure.
            match has_cascade {
                true => ApiError::refused(StatusCode::BAD_REQUEST, "already_finished", message),
                false => ApiError::invalid("already_finished", message),
            }
        }
        other => other.into(),
    }
}

/// Why a command was not claimed. A worker that hears anything but 409 asks again for ever, so
/// whatever is over or gone is a conflict.
pub(crate) fn not_claimed(failure: ReportError) -> ApiError {
    match failure {
        ReportError::Submit(SubmitError::Refused(Refusal::AlreadyFinished(Status::Cancelled))) => {
            ApiError::conflict("execution_cancelled", "Execution has been cancelled")
        }
        ReportError::Submit(SubmitError::Refused(
            Refusal::NotFound | Refusal::AlreadyFinished(_),
        )) => Refusal::CommandFinished.into(),
        other => other.into(),
    }
}

/// Why nothing was kept of what was said about an execution.
pub(crate) fn not_taken(id: ExecutionId, failure: ReportError) -> ApiError {
    match failure {
        ReportError::Submit(SubmitError::Refused(Refusal::NotFound)) => unknown_execution(id),
        other => other.into(),
    }
}

/// No such execution.
pub(crate) fn unknown_execution(id: ExecutionId) -> ApiError {
    ApiError::not_found("execution_not_found", format!("Execution not found: {id}"))
}

/// No such command: not found to a reader, a conflict to a worker.
pub(crate) fn unknown_command(status: StatusCode, id: CommandId) -> ApiError {
    ApiError::refused(status, "command_not_found", format!("command not found: {id}"))
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

/// The most of a sentence's beginning and of its end.
const SAID: (usize, usize) = (1500, 300);

/// A sentence of bounded length. Who sends a megabyte for a name is told so without reading it
/// again; what was expected stands at the end.
pub(crate) fn bounded(message: String) -> String {
    let (first, last) = SAID;
    if message.len() <= first + last {
        return message;
    }
    let (first, last) =
        (message.floor_char_boundary(first), message.ceil_char_boundary(message.len() - last));
    format!("{} … {}", &message[..first], &message[last..])
}

/// A finding with its place.
pub(crate) fn sentence(found: &Diagnostic) -> String {
    format!("{}:{}: {}", found.line, found.column, found.message)
}

/// A failure with all its causes, for the log.
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
    fn a_sentence_has_an_end_and_keeps_its_beginning() {
        let long = format!("begins {} ends", "é".repeat(1 << 20));
        let cut = bounded(long);
        assert!(cut.starts_with("begins é") && cut.ends_with("é ends"), "{cut}");
        assert!(cut.len() < 2000, "{}", cut.len());
        assert_eq!(bounded("short".to_owned()), "short");
    }

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
