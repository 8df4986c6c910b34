//! Error responses for credentials, variables, results, dead letters, and objects.

use axum::http::StatusCode;
use noetl_results::{ObjectError, ResolveError, SaveError};
use noetl_secrets::CredentialError;
use noetl_triggers::DeadLetterError;
use tracing::error;

use super::{ApiError, chain};

impl From<CredentialError> for ApiError {
    fn from(failure: CredentialError) -> Self {
        let message = failure.to_string();
        match failure {
            CredentialError::NotFound(_) => Self::not_found("credential_not_found", message),
            CredentialError::NotGranted { .. } => {
                Self::with_status(StatusCode::FORBIDDEN, "credential_not_granted", message)
            }
            CredentialError::Unnamed(_) | CredentialError::TooLarge(_) => {
                Self::invalid("invalid_credential", message)
            }
            CredentialError::Unresolved { .. } => Self::invalid("keychain_unresolved", message),
            CredentialError::Worker { .. } => {
                Self::with_status(StatusCode::BAD_REQUEST, "no_worker_key", message)
            }
            CredentialError::NoKey => Self::unavailable("no_encryption_key", message),
            CredentialError::Unrecorded(_) | CredentialError::ChangeUnrecorded(_) => {
                error!(cause = chain(&failure), "failed to write secret audit record");
                Self::unavailable("secret_audit_unavailable", message)
            }
            CredentialError::Sealed { .. } => {
                error!(cause = chain(&failure), "failed to decrypt credential");
                Self::with_status(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "credential_unreadable",
                    chain(&failure),
                )
            }
            CredentialError::Store(failure) => failure.into(),
        }
    }
}

impl From<SaveError> for ApiError {
    fn from(failure: SaveError) -> Self {
        let message = failure.to_string();
        match failure {
            SaveError::NoExecution(_) => Self::not_found("execution_not_found", message),
            SaveError::Name { .. } => Self::invalid("invalid_name", message),
            SaveError::TooDeep(_) => Self::invalid("too_deep", message),
            SaveError::Store(failure) => failure.into(),
        }
    }
}

impl From<ResolveError> for ApiError {
    fn from(failure: ResolveError) -> Self {
        let message = failure.to_string();
        match failure {
            ResolveError::Malformed(_) => {
                Self::with_status(StatusCode::BAD_REQUEST, "malformed_reference", message)
            }
            ResolveError::NotFound => Self::not_found("result_not_found", message),
            ResolveError::Store(failure) => failure.into(),
        }
    }
}

impl From<DeadLetterError> for ApiError {
    fn from(failure: DeadLetterError) -> Self {
        match failure {
            DeadLetterError::Subscription(failure) => failure.into(),
            DeadLetterError::Object(failure) => failure.into(),
            DeadLetterError::Report(failure) => failure.into(),
        }
    }
}

impl From<ObjectError> for ApiError {
    fn from(failure: ObjectError) -> Self {
        let message = failure.to_string();
        match failure {
            ObjectError::NotFound { what: "object", .. } => {
                Self::not_found("object_not_found", message)
            }
            ObjectError::NotFound { what: "suite", .. } => {
                Self::not_found("suite_not_found", message)
            }
            ObjectError::NotFound { .. } => Self::not_found("module_not_found", message),
            ObjectError::Digest { .. } => Self::conflict("digest_mismatch", message),
            ObjectError::Foreign(_) => {
                Self::with_status(StatusCode::FORBIDDEN, "another_tenant", message)
            }
            ObjectError::Key => Self::invalid("invalid_key", message),
            ObjectError::Damaged { .. } => {
                error!(cause = message, "stored object is damaged");
                Self::internal(message)
            }
            ObjectError::Store(failure) => failure.into(),
        }
    }
}
