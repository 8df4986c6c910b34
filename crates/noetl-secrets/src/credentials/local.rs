//! Credentials for the commands of the local worker.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_model::command::LOCAL_WORKER;
use noetl_model::{ExecutionId, Tenant, Value};
use noetl_store::StoreError;
use noetl_work::{Redaction, ResolvedPlaceholder};

use super::Credentials;
use crate::audit::SecretRequest;
use crate::credential_error::CredentialError;
use crate::placeholders::Minter;

#[derive(Clone)]
pub struct OpenCredential {
    pub name: String,
    /// Credential type, such as `postgres`.
    pub kind: String,
    /// Decrypted data: usually an object of fields.
    pub data: Value,
}

/// Executions whose tenant is cached. The least recently used entry is evicted first.
const TENANTS_MAX: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// Credentials for the local worker's commands, each in the tenant of its execution. Cheap to
/// clone.
#[derive(Clone)]
pub struct LocalSecrets {
    pub redaction: Redaction,
    credentials: Credentials,
    /// Tenant by execution. The tenant of an execution never changes.
    tenants: Arc<Mutex<LruCache<ExecutionId, Tenant>>>,
}

impl LocalSecrets {
    pub fn new(credentials: Credentials) -> Self {
        let redaction = credentials.redaction.clone();
        let tenants = Arc::new(Mutex::new(LruCache::new(TENANTS_MAX)));
        Self { redaction, credentials, tenants }
    }

    /// Returns the tenant of an execution, or the default tenant if the execution does not exist.
    pub async fn tenant(&self, execution: ExecutionId) -> Result<Tenant, StoreError> {
        if let Some(tenant) = self.tenants().get(&execution) {
            return Ok(tenant.clone());
        }
        let tenant = self.credentials.store.tenant_of(execution).await?.unwrap_or_default();
        self.tenants().put(execution, tenant.clone());
        Ok(tenant)
    }

    fn tenants(&self) -> MutexGuard<'_, LruCache<ExecutionId, Tenant>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn credential(
        &self,
        execution: ExecutionId,
        alias: &str,
    ) -> Result<OpenCredential, CredentialError> {
        let tenant = self.tenant(execution).await.map_err(CredentialError::Store)?;
        let asking = SecretRequest {
            who: LOCAL_WORKER.to_owned(),
            operation: "resolve",
            execution: Some(execution),
            parent: None,
            worker: None,
        };
        let (found, data) = self.credentials.reveal(&tenant, alias, &asking).await?;
        Ok(OpenCredential { name: found.kept.name, kind: found.kept.kind, data })
    }

    pub async fn resolve(
        &self,
        execution: ExecutionId,
        text: &str,
    ) -> Result<ResolvedPlaceholder, CredentialError> {
        let tenant = self.tenant(execution).await.map_err(CredentialError::Store)?;
        let asking = SecretRequest {
            who: LOCAL_WORKER.to_owned(),
            operation: "resolve",
            execution: Some(execution),
            parent: None,
            worker: None,
        };
        self.credentials.resolve(&tenant, text, &asking).await
    }

    /// Returns the placeholder minter of an execution, if a secret was handed to the execution.
    pub fn minter(&self, tenant: &Tenant, execution: ExecutionId) -> Option<Minter> {
        self.credentials.placeholders.minter(tenant, execution)
    }

    pub async fn note(
        &self,
        execution: ExecutionId,
        alias: &str,
        data: &Value,
    ) -> Result<(), StoreError> {
        let tenant = self.tenant(execution).await?;
        self.redaction.note(&tenant, alias, None, data);
        self.credentials.placeholders.grant(execution, alias).await
    }
}
