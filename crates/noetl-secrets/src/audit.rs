//! Audit of secrets: records each request for a secret, its purpose, and its outcome.

mod verify;

use std::sync::Arc;

use noetl_model::{ExecutionId, Tenant};
use noetl_store::{AuditFilter, SecretUse, SecretsStore, StoreError};
use tracing::warn;

use noetl_identity::IdGenerator;

pub use verify::{AuditCheck, verify_audit};

/// Caller and purpose of a request for a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRequest {
    /// Identity of the caller: `token:ID`, `oidc:SUBJECT`, `session:CREDENTIAL/USER_ID via …`, or a
    /// part of the control plane. Never a name that a caller sent.
    pub who: String,
    /// Worker name, as reported by the worker.
    pub worker: Option<String>,
    /// Requested operation, such as `resolve`.
    pub operation: &'static str,
    /// Execution that needs the secret.
    pub execution: Option<ExecutionId>,
    pub parent: Option<ExecutionId>,
}

/// Outcome of a request for a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretOutcome {
    Ok,
    /// No secret has that name.
    NotFound,
    /// The caller has no permission.
    Denied,
    /// Decryption or sealing failed.
    Failed,
}

impl SecretOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// Audit service. Cheap to clone.
#[derive(Clone)]
pub struct SecretAuditLog {
    store: Arc<dyn SecretsStore>,
    ids: IdGenerator,
    /// Whether a secret is withheld if its use cannot be recorded.
    is_required: bool,
}

impl SecretAuditLog {
    pub(crate) fn new(store: Arc<dyn SecretsStore>, ids: IdGenerator, is_required: bool) -> Self {
        Self { store, ids, is_required }
    }

    /// Records a request for a secret, before the secret is returned. On an error, the caller must
    /// not return it.
    pub async fn record(
        &self,
        tenant: &Tenant,
        asking: &SecretRequest,
        credential: &str,
        given: SecretOutcome,
        key_version: Option<String>,
    ) -> Result<(), StoreError> {
        let used = SecretUse {
            id: self.ids.audit(),
            at: self.ids.now(),
            credential: credential.to_owned(),
            operation: asking.operation.to_owned(),
            outcome: given.as_str().to_owned(),
            worker: Some(asking.who.clone()),
            execution: asking.execution,
            parent: asking.parent,
            server_region: None,
            broker_region: None,
            key_version,
            notes: asking.worker.as_ref().map(|worker| format!("worker {worker}")),
        };
        let recorded = match self.ids.ensure_leased() {
            Ok(()) => self.store.audit_secret(tenant, used).await.map(|_| ()),
            Err(error) => Err(error),
        };
        match recorded {
            Err(error) if self.is_required => Err(error),
            Err(error) => {
                let cause = &error as &dyn std::error::Error;
                warn!(credential, who = asking.who, cause, "failed to audit use of secret");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the uses that match a filter, latest first.
    pub async fn list(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError> {
        self.store.secret_uses(tenant, filter).await
    }
}
