//! Credentials. Their data is encrypted before it reaches a store.

mod learn;
mod local;
mod resolve;

use std::sync::Arc;

use noetl_identity::IdGenerator;
use noetl_model::{CredentialId, Tenant, Value};
use noetl_store::{
    CredentialFilter, NewCredential, RuntimeFilter, RuntimeKind, SealedText, SecretsStore,
    StoredCredential,
};
use noetl_work::{
    LENGTH_MIN, NAME_MAX, Redaction, SealedReply, WorkerKeyError, seal_for, short_fields,
};

use crate::audit::{SecretAuditLog, SecretOutcome, SecretRequest};
use crate::binding;
use crate::credential_error::{CredentialError, DATA_MAX};
use crate::grants::Grants;
use crate::placeholders::Placeholders;
use crate::sealing::{EncryptionKey, SealedAt, key_version};

pub use local::LocalSecrets;
pub use local::OpenCredential;

/// Requirement on the names of credentials and keychain entries.
pub(crate) const SHORT_NAME: &str = "name of at most 500 characters";

/// Credential to store, as sent by its owner.
#[derive(Clone)]
pub struct CredentialRequest {
    pub name: String,
    pub kind: String,
    /// Secret data, encrypted before it is stored.
    pub data: Value,
    /// Free-form metadata of the owner.
    pub meta: Option<Value>,
    pub tags: Vec<String>,
    pub description: Option<String>,
}

/// Credential service. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    store: Arc<dyn SecretsStore>,
    ids: IdGenerator,
    key: Option<EncryptionKey>,
    redaction: Redaction,
    uses: SecretAuditLog,
    placeholders: Placeholders,
    grants: Grants,
}

impl Credentials {
    pub(crate) fn new(
        store: Arc<dyn SecretsStore>,
        ids: IdGenerator,
        key: Option<EncryptionKey>,
        redaction: Redaction,
        uses: SecretAuditLog,
        placeholders: Placeholders,
        grants: Grants,
    ) -> Self {
        Self { store, ids, key, redaction, uses, placeholders, grants }
    }

    /// Returns warnings for the owner of a credential: the fields too short to be recognized and
    /// redacted.
    pub fn warnings(kind: &str, data: &Value) -> Vec<String> {
        let say = |field: String| {
            format!(
                "'{field}' is shorter than {LENGTH_MIN} characters, so it is not recognised and \
                 replaced when it turns up in results or messages"
            )
        };
        short_fields(Some(kind), data).into_iter().map(say).collect()
    }

    /// Stores a credential. An existing one of the same name is replaced, except its ID.
    pub async fn put(
        &self,
        tenant: &Tenant,
        request: CredentialRequest,
    ) -> Result<StoredCredential, CredentialError> {
        Self::check(&request)?;
        let at = SealedAt::Credential { tenant, name: &request.name };
        self.follow_binding().await?;
        let sealed = self.seal(&at, &request.name, &request.data)?;
        // Registered for redaction before it is stored, because it may appear in a report before
        // its first use.
        self.redaction.note(tenant, &request.name, Some(&request.kind), &request.data);
        self.ids.ensure_leased().map_err(CredentialError::Store)?;
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

    /// Validates the names and size of a credential.
    pub(crate) fn check(request: &CredentialRequest) -> Result<(), CredentialError> {
        for (text, what) in [(&request.name, "name"), (&request.kind, "type")] {
            if text.trim().is_empty() {
                return Err(CredentialError::Unnamed(what));
            }
            if text.chars().count() > NAME_MAX {
                return Err(CredentialError::Unnamed(match what {
                    "name" => SHORT_NAME,
                    _ => "type of at most 500 characters",
                }));
            }
        }
        Self::check_size(&request.data)
    }

    /// Rejects data that is too large for redaction.
    pub(crate) fn check_size(data: &Value) -> Result<(), CredentialError> {
        match data.to_string().len() {
            ..=DATA_MAX => Ok(()),
            bytes => Err(CredentialError::TooLarge(bytes)),
        }
    }

    /// Returns the credential with this ID or, if none, this name. Its data stays encrypted.
    pub async fn get(
        &self,
        tenant: &Tenant,
        identifier: &str,
    ) -> Result<StoredCredential, CredentialError> {
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

    /// Returns the credential with this ID or name, and its decrypted data. Records the caller and
    /// purpose in the audit before it returns.
    pub async fn reveal(
        &self,
        tenant: &Tenant,
        identifier: &str,
        asking: &SecretRequest,
    ) -> Result<(StoredCredential, Value), CredentialError> {
        let found = match self.get(tenant, identifier).await {
            Ok(found) => found,
            Err(error @ CredentialError::NotFound(_)) => {
                self.record(tenant, asking, identifier, SecretOutcome::NotFound, None).await?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        self.follow_binding().await?;
        let lacking = self.grants.lacking(tenant, &found.kept.name, asking.execution).await;
        if let Some(path) = lacking.map_err(CredentialError::Store)? {
            self.record(tenant, asking, &found.kept.name, SecretOutcome::Denied, None).await?;
            return Err(CredentialError::NotGranted { name: found.kept.name, path });
        }
        let opened = self.open(tenant, &found);
        let given = if opened.is_ok() { SecretOutcome::Ok } else { SecretOutcome::Failed };
        let version = key_version(&found.kept.sealed);
        self.record(tenant, asking, &found.kept.name, given, version).await?;
        let data = opened?;
        // A runtime that requests a credential for itself sends execution 0.
        if let Some(execution) = asking.execution.filter(|id| id.get() > 0) {
            let granted = self.placeholders.grant(execution, &found.kept.name).await;
            granted.map_err(CredentialError::Store)?;
        }
        Ok((found, data))
    }

    /// Records a request for a secret in the audit.
    pub async fn record(
        &self,
        tenant: &Tenant,
        asking: &SecretRequest,
        name: &str,
        given: SecretOutcome,
        key_version: Option<String>,
    ) -> Result<(), CredentialError> {
        let recorded = self.uses.record(tenant, asking, name, given, key_version).await;
        recorded.map_err(CredentialError::Unrecorded)
    }

    /// Seals a response for a worker with the public key it registered.
    pub async fn seal_for(
        &self,
        tenant: &Tenant,
        worker: &str,
        plain: &[u8],
    ) -> Result<SealedReply, CredentialError> {
        let public = self.worker_key(tenant, worker).await?;
        seal_for(&public, plain).map_err(|error: WorkerKeyError| CredentialError::Worker {
            worker: worker.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Returns the public key that a worker registered.
    pub async fn worker_key(
        &self,
        tenant: &Tenant,
        worker: &str,
    ) -> Result<String, CredentialError> {
        let refused = |reason: &str| CredentialError::Worker {
            worker: worker.to_owned(),
            reason: reason.to_owned(),
        };
        let filter = RuntimeFilter {
            kind: Some(RuntimeKind::WorkerPool),
            name: Some(worker.to_owned()),
            ..RuntimeFilter::default()
        };
        let listed = self.store.runtimes(tenant, &filter).await.map_err(CredentialError::Store)?;
        let found = listed.into_iter().find(|row| row.said.name == worker);
        let said = found.ok_or_else(|| refused("it has not registered"))?.said;
        let key = said.runtime.as_ref().and_then(|said| said.get("worker_public_key"));
        let key = key.and_then(Value::as_str).filter(|key| !key.trim().is_empty());
        key.map(str::to_owned).ok_or_else(|| refused("it registered no public key"))
    }

    /// Adopts the envelope version that other processes have switched to.
    pub(crate) async fn follow_binding(&self) -> Result<(), CredentialError> {
        let Some(key) = &self.key else { return Ok(()) };
        binding::follow(&*self.store, key).await.map_err(CredentialError::Store)
    }

    /// Encrypts a value for its location.
    pub(crate) fn seal(
        &self,
        at: &SealedAt<'_>,
        name: &str,
        data: &Value,
    ) -> Result<SealedText, CredentialError> {
        let sealed = self.key()?.seal_at(at, data);
        sealed.map_err(|source| CredentialError::Sealed { name: name.to_owned(), source })
    }

    /// Decrypts the value at a location. Registers its secrets for redaction in this process.
    pub(crate) fn unseal(
        &self,
        tenant: &Tenant,
        at: &SealedAt<'_>,
        (name, kind): (&str, Option<&str>),
        sealed: &SealedText,
    ) -> Result<Value, CredentialError> {
        let data = self
            .key()?
            .open_at(at, sealed)
            .map_err(|source| CredentialError::Sealed { name: name.to_owned(), source })?;
        self.redaction.note(tenant, name, kind, &data);
        Ok(data)
    }

    fn open(
        &self,
        tenant: &Tenant,
        credential: &StoredCredential,
    ) -> Result<Value, CredentialError> {
        let (name, kind) = (&*credential.kept.name, &*credential.kept.kind);
        let at = SealedAt::Credential { tenant, name };
        self.unseal(tenant, &at, (name, Some(kind)), &credential.kept.sealed)
    }

    /// Returns the credentials that match a filter, by name.
    pub async fn list(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<StoredCredential>, CredentialError> {
        self.store.credentials(tenant, filter).await.map_err(CredentialError::Store)
    }

    /// Deletes the credential with this ID or name, and returns its ID.
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
