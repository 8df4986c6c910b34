//! Credentials: what they hold is encrypted before a store sees it.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_model::{CredentialId, ExecutionId, Tenant, Value};
use noetl_store::{Credential, CredentialFilter, NewCredential, Store, StoreError};

use crate::ids::Ids;
use crate::redaction::{LENGTH_MIN, Redaction, short_fields};
use crate::sealing::{EncryptionKey, KEY_VARIABLE, SealError};

/// A credential to keep, as its owner gives it.
#[derive(Clone)]
pub struct CredentialRequest {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// What is secret.
    pub data: Value,
    /// Whatever its owner notes.
    pub meta: Option<Value>,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// Why a credential was not kept or read.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// There is none of that id or name.
    #[error("Credential '{0}' not found")]
    NotFound(String),
    /// It has no name or no type.
    #[error("a credential needs a {0}")]
    Unnamed(&'static str),
    /// There is no key to encrypt with.
    #[error("{KEY_VARIABLE} is not set, so nothing can be encrypted or decrypted")]
    NoKey,
    /// What it holds could not be encrypted or decrypted.
    #[error("credential '{name}' cannot be used")]
    Sealed {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: SealError,
    },
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// The credential service. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    store: Arc<dyn Store>,
    ids: Ids,
    key: Option<EncryptionKey>,
    redaction: Redaction,
}

impl Credentials {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        ids: Ids,
        key: Option<EncryptionKey>,
        redaction: Redaction,
    ) -> Self {
        Self { store, ids, key, redaction }
    }

    /// What the owner of a credential should know of what it holds: values that are too short to
    /// be found again where they should not be.
    pub fn warnings(data: &Value) -> Vec<String> {
        let say = |field: String| {
            format!(
                "'{field}' is shorter than {LENGTH_MIN} characters, so it is not recognised and \
                 replaced when it turns up in results or messages"
            )
        };
        short_fields(data).into_iter().map(say).collect()
    }

    /// Keeps a credential. One that has the name is replaced, all of it but its id.
    pub async fn put(
        &self,
        tenant: &Tenant,
        request: CredentialRequest,
    ) -> Result<Credential, CredentialError> {
        for (text, what) in [(&request.name, "name"), (&request.kind, "type")] {
            if text.trim().is_empty() {
                return Err(CredentialError::Unnamed(what));
            }
        }
        let sealed = self
            .key()?
            .seal(&request.data)
            .map_err(|source| CredentialError::Sealed { name: request.name.clone(), source })?;
        self.ids.leased().map_err(CredentialError::Store)?;
        let new = NewCredential {
            id: self.ids.credential(),
            name: request.name,
            kind: request.kind,
            sealed,
            schema: None,
            meta: request.meta,
            tags: request.tags,
            description: request.description,
        };
        self.store.put_credential(tenant, new).await.map_err(CredentialError::Store)
    }

    /// The credential of this id or, if there is none, of this name. What it holds stays sealed.
    pub async fn get(
        &self,
        tenant: &Tenant,
        identifier: &str,
    ) -> Result<Credential, CredentialError> {
        if let Ok(id) = identifier.parse::<CredentialId>() {
            let found = self.store.credential(tenant, id).await;
            if let Some(found) = found.map_err(CredentialError::Store)? {
                return Ok(found);
            }
        }
        let found = self.store.credential_named(tenant, identifier).await;
        let found = found.map_err(CredentialError::Store)?;
        found.ok_or_else(|| CredentialError::NotFound(identifier.to_owned()))
    }

    /// What a credential holds. From here on its secrets are known in this process by value, and
    /// replaced wherever they turn up.
    pub fn open(&self, tenant: &Tenant, credential: &Credential) -> Result<Value, CredentialError> {
        let name = &credential.kept.name;
        let data = self
            .key()?
            .open(&credential.kept.sealed)
            .map_err(|source| CredentialError::Sealed { name: name.clone(), source })?;
        self.redaction.note(tenant, name, &data);
        Ok(data)
    }

    /// The credentials a filter takes, by name.
    pub async fn list(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<Credential>, CredentialError> {
        self.store.credentials(tenant, filter).await.map_err(CredentialError::Store)
    }

    /// Removes the credential of this id or name.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        identifier: &str,
    ) -> Result<CredentialId, CredentialError> {
        let id = self.get(tenant, identifier).await?.kept.id;
        let removed = self.store.delete_credential(tenant, id).await;
        match removed.map_err(CredentialError::Store)? {
            true => Ok(id),
            false => Err(CredentialError::NotFound(identifier.to_owned())),
        }
    }

    fn key(&self) -> Result<&EncryptionKey, CredentialError> {
        self.key.as_ref().ok_or(CredentialError::NoKey)
    }
}

/// A credential whose secrets are open.
#[derive(Clone)]
pub struct OpenCredential {
    /// The name it is kept under.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// What it holds.
    pub data: Value,
}

/// How many executions' tenants are remembered: a few per command that runs.
const TENANTS_MAX: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// Credentials for the commands of executions, each by the tenant of its own. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LocalSecrets {
    pub(crate) redaction: Redaction,
    credentials: Credentials,
    /// An execution never changes its tenant.
    tenants: Arc<Mutex<LruCache<ExecutionId, Tenant>>>,
}

impl LocalSecrets {
    pub(crate) fn new(credentials: Credentials) -> Self {
        let redaction = credentials.redaction.clone();
        let tenants = Arc::new(Mutex::new(LruCache::new(TENANTS_MAX)));
        Self { redaction, credentials, tenants }
    }

    /// The tenant an execution belongs to.
    pub(crate) async fn tenant(&self, execution: ExecutionId) -> Result<Tenant, StoreError> {
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

    pub(crate) async fn credential(
        &self,
        execution: ExecutionId,
        alias: &str,
    ) -> Result<OpenCredential, CredentialError> {
        let tenant = self.tenant(execution).await.map_err(CredentialError::Store)?;
        let found = self.credentials.get(&tenant, alias).await?;
        let data = self.credentials.open(&tenant, &found)?;
        Ok(OpenCredential { name: found.kept.name, kind: found.kept.kind, data })
    }

    pub(crate) async fn note(
        &self,
        execution: ExecutionId,
        alias: &str,
        data: &Value,
    ) -> Result<(), StoreError> {
        let tenant = self.tenant(execution).await?;
        self.redaction.note(&tenant, alias, data);
        Ok(())
    }
}
