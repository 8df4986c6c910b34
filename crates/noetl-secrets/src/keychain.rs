//! Keychain: cached secrets and tokens of playbooks, and the entries that a playbook's `keychain`
//! declares.

mod declared;

use std::sync::Arc;

use noetl_catalog::Playbooks;
use noetl_model::{CatalogId, Clock, ExecutionId, Tenant, Timestamp, Value};
use noetl_store::{
    CacheKind, KeychainEntry, KeychainFilter, KeychainScope, NewKeychainEntry, SecretsStore,
    StoredCredential,
};
use noetl_work::NAME_MAX;
use noetl_work::keychain_settings::label;

use crate::audit::{SecretOutcome, SecretRequest};
use crate::credential_error::CredentialError;
use crate::credentials::{Credentials, SHORT_NAME};
use crate::sealing::{SealedAt, key_version};

/// Address of a keychain entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeychainKey {
    pub catalog: CatalogId,
    /// Entry name in the playbook.
    pub name: String,
    pub scope: KeychainScope,
    /// Execution the entry belongs to.
    pub execution: Option<ExecutionId>,
}

impl KeychainKey {
    /// Returns the key under which the entry is stored.
    pub fn cache_key(&self) -> String {
        let Self { catalog, name, scope, execution } = self;
        match (scope, execution) {
            (KeychainScope::Local, Some(execution)) => format!("{name}:{catalog}:{execution}"),
            (KeychainScope::Local, None) => format!("{name}:{catalog}:local"),
            (KeychainScope::Shared, Some(execution)) => {
                format!("{name}:{catalog}:shared:{execution}")
            }
            (KeychainScope::Shared, None) => format!("{name}:{catalog}:shared"),
            (KeychainScope::Global, _) => format!("{name}:{catalog}:global"),
        }
    }
}

#[derive(Clone)]
pub struct KeychainRequest {
    /// Secret data, encrypted before it is stored.
    pub data: Value,
    /// Type of the underlying credential.
    pub kind: Option<String>,
    pub cache: CacheKind,
    /// Expiration time. `None` means it never expires.
    pub expires_at: Option<Timestamp>,
    /// Whether the entry is to be renewed before it expires.
    pub auto_renew: bool,
    pub renew_config: Option<Value>,
}

/// Outcome of a keychain lookup.
#[derive(Clone)]
pub enum KeychainLookup {
    /// Valid entry with its decrypted data.
    Found(KeychainEntry, Value),
    Expired(KeychainEntry),
    NotFound,
}

/// Secret resolved by the name a step uses.
#[derive(Clone)]
pub enum RevealedSecret {
    Stored(Box<StoredCredential>, Value),
    /// Secret from the keychain of the execution's playbook.
    Keychain {
        /// Start time of the execution.
        since: Timestamp,
        data: Value,
    },
}

/// Keychain service. Cheap to clone.
#[derive(Clone)]
pub struct KeychainService {
    store: Arc<dyn SecretsStore>,
    clock: Arc<dyn Clock>,
    credentials: Credentials,
    playbooks: Playbooks,
}

impl KeychainService {
    pub(crate) fn new(
        store: Arc<dyn SecretsStore>,
        clock: Arc<dyn Clock>,
        credentials: Credentials,
        playbooks: Playbooks,
    ) -> Self {
        Self { store, clock, credentials, playbooks }
    }

    /// Returns a secret by the name a step uses: a credential, else a stored keychain entry for the
    /// requesting execution, else the entry its playbook declares.
    pub async fn reveal(
        &self,
        tenant: &Tenant,
        name: &str,
        asking: &SecretRequest,
    ) -> Result<RevealedSecret, CredentialError> {
        let missing = match self.credentials.reveal(tenant, name, asking).await {
            Ok((credential, data)) => {
                return Ok(RevealedSecret::Stored(Box::new(credential), data));
            }
            Err(error @ CredentialError::NotFound(_)) => error,
            Err(error) => return Err(error),
        };
        // A runtime that requests a secret for itself sends execution 0.
        let Some(execution) = asking.execution.filter(|id| id.get() > 0) else {
            return Err(missing);
        };
        let found = self.store.execution(tenant, execution).await;
        let Some(row) = found.map_err(CredentialError::Store)? else { return Err(missing) };
        let parent = asking.parent.or(row.parent);
        if let Some(data) =
            self.kept_for(tenant, row.catalog, name, (execution, parent), asking).await?
        {
            return Ok(RevealedSecret::Keychain { since: row.started_at, data });
        }
        match self.declared(tenant, &row, name, asking).await? {
            Some(data) => Ok(RevealedSecret::Keychain { since: row.started_at, data }),
            None => Err(missing),
        }
    }

    /// Returns the stored entry for an execution. Searches local, shared, and global scope in this
    /// order.
    async fn kept_for(
        &self,
        tenant: &Tenant,
        catalog: CatalogId,
        name: &str,
        (execution, parent): (ExecutionId, Option<ExecutionId>),
        asking: &SecretRequest,
    ) -> Result<Option<Value>, CredentialError> {
        let places = [
            (KeychainScope::Local, Some(execution)),
            (KeychainScope::Shared, Some(execution)),
            (KeychainScope::Shared, parent),
            (KeychainScope::Shared, None),
            (KeychainScope::Global, None),
        ];
        for (scope, execution) in places {
            let place = KeychainKey { catalog, name: name.to_owned(), scope, execution };
            if let KeychainLookup::Found(_, data) = self.get(tenant, &place, asking).await? {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Returns the entry at `place` for use. Counts the use and records it in the audit.
    pub async fn get(
        &self,
        tenant: &Tenant,
        place: &KeychainKey,
        asking: &SecretRequest,
    ) -> Result<KeychainLookup, CredentialError> {
        let key = place.cache_key();
        let used = self.store.use_keychain_entry(tenant, &key).await;
        let Some(entry) = used.map_err(CredentialError::Store)? else {
            let seen = self.store.keychain_entry(tenant, &key).await;
            let seen = seen.map_err(CredentialError::Store)?;
            return Ok(seen.map_or(KeychainLookup::NotFound, KeychainLookup::Expired));
        };
        let name = label(&place.name);
        let at = SealedAt::Keychain { tenant, key: &key };
        self.credentials.follow_binding().await?;
        let opened = self.credentials.unseal(tenant, &at, (&name, None), &entry.kept.sealed);
        let given = if opened.is_ok() { SecretOutcome::Ok } else { SecretOutcome::Failed };
        let version = key_version(&entry.kept.sealed);
        self.credentials.record(tenant, asking, &name, given, version).await?;
        Ok(KeychainLookup::Found(entry, opened?))
    }

    /// Stores an entry. Replaces an existing one with the same key.
    pub async fn put(
        &self,
        tenant: &Tenant,
        place: KeychainKey,
        request: KeychainRequest,
    ) -> Result<KeychainEntry, CredentialError> {
        if place.name.trim().is_empty() {
            return Err(CredentialError::Unnamed("name"));
        }
        if place.name.chars().count() > NAME_MAX {
            return Err(CredentialError::Unnamed(SHORT_NAME));
        }
        Credentials::check_size(&request.data)?;
        let key = place.cache_key();
        let at = SealedAt::Keychain { tenant, key: &key };
        self.credentials.follow_binding().await?;
        let sealed = self.credentials.seal(&at, &label(&place.name), &request.data)?;
        let new = NewKeychainEntry {
            cache_key: place.cache_key(),
            catalog: place.catalog,
            credential_kind: request.kind.unwrap_or_else(|| "keychain".to_owned()),
            cache: request.cache,
            scope: place.scope,
            execution: place.execution,
            parent: None,
            sealed,
            schema: None,
            expires_at: request.expires_at,
            auto_renew: request.auto_renew,
            renew_config: request.renew_config,
            name: place.name,
        };
        self.store.put_keychain_entry(tenant, new).await.map_err(CredentialError::Store)
    }

    /// Deletes an entry. Returns `false` if there was none.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        place: &KeychainKey,
    ) -> Result<bool, CredentialError> {
        let removed = self.store.delete_keychain_entry(tenant, &place.cache_key()).await;
        removed.map_err(CredentialError::Store)
    }

    /// Returns the entries of a playbook, including expired ones, and the current time. Their data
    /// stays encrypted.
    pub async fn list(
        &self,
        tenant: &Tenant,
        catalog: CatalogId,
    ) -> Result<(Vec<KeychainEntry>, Timestamp), CredentialError> {
        let filter = KeychainFilter { catalog: Some(catalog), execution: None };
        let entries = self.store.keychain_entries(tenant, &filter).await;
        Ok((entries.map_err(CredentialError::Store)?, self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_name_playbook_and_scope() {
        let key = |scope, execution: Option<i64>| {
            let execution = execution.map(ExecutionId::new);
            let name = "api".to_owned();
            KeychainKey { catalog: CatalogId::new(7), name, scope, execution }.cache_key()
        };
        assert_eq!(key(KeychainScope::Local, Some(9)), "api:7:9");
        assert_eq!(key(KeychainScope::Local, None), "api:7:local");
        assert_eq!(key(KeychainScope::Shared, Some(9)), "api:7:shared:9");
        assert_eq!(key(KeychainScope::Shared, None), "api:7:shared");
        assert_eq!(key(KeychainScope::Global, Some(9)), "api:7:global");
    }
}
