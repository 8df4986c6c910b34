//! The audit of secrets: who was given which, for what, and who was not.

mod verify;

use std::sync::Arc;

use noetl_model::{ExecutionId, Tenant};
use noetl_store::{AuditFilter, SecretUse, Store, StoreError};
use tracing::warn;

use crate::ids::Ids;

pub use verify::{AuditCheck, verify_audit};

/// Who asks for a secret, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// Identity of the caller: `token:ID`, `oidc:SUBJECT`, `session:CREDENTIAL/USER_ID via …`, or a
    /// part of the control plane. Never a name that a caller sent.
    pub who: String,
    /// Name under which a worker asks, as it says itself.
    pub worker: Option<String>,
    /// What is asked, as `resolve`.
    pub operation: &'static str,
    /// The execution it is for.
    pub execution: Option<ExecutionId>,
    pub parent: Option<ExecutionId>,
}

/// What came of asking for a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    Ok,
    /// There is none of that name.
    NotFound,
    /// The caller may not have it.
    Denied,
    /// It could not be decrypted, or not be sealed.
    Failed,
}

impl Given {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// The service of the audit. Cheap to clone.
#[derive(Clone)]
pub struct SecretUses {
    store: Arc<dyn Store>,
    ids: Ids,
    /// Whether nothing is given that cannot be recorded.
    is_required: bool,
}

impl SecretUses {
    pub(crate) fn new(store: Arc<dyn Store>, ids: Ids, is_required: bool) -> Self {
        Self { store, ids, is_required }
    }

    /// Records that a secret was asked for, before it is given. An error means that it must not be.
    pub async fn record(
        &self,
        tenant: &Tenant,
        asking: &Asking,
        credential: &str,
        given: Given,
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
        let recorded = match self.ids.leased() {
            Ok(()) => self.store.audit_secret(tenant, used).await.map(|_| ()),
            Err(error) => Err(error),
        };
        match recorded {
            Err(error) if self.is_required => Err(error),
            Err(error) => {
                let cause = &error as &dyn std::error::Error;
                warn!(credential, who = asking.who, cause, "the use of a secret is not recorded");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// The uses a filter takes, latest first.
    pub async fn list(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError> {
        self.store.secret_uses(tenant, filter).await
    }
}
