//! Secrets and tokens that were resolved for playbooks, and what a playbook's own `keychain` says.

mod declared;
pub mod settings;

use std::sync::Arc;

use noetl_model::{CatalogId, Clock, ExecutionId, Tenant, Timestamp, Value};
use noetl_store::{
    CacheKind, Credential, KeychainEntry, KeychainFilter, KeychainScope, NewKeychainEntry, Store,
};

use self::settings::label;
use crate::audit::{Asking, Given};
use crate::catalog::Playbooks;
use crate::credentials::{CredentialError, Credentials, SHORT_NAME};
use crate::sealing::{SealedAt, key_version};
use crate::variables::NAME_MAX;

/// Where an entry of the keychain is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeychainPlace {
    pub catalog: CatalogId,
    /// The name the playbook gives it.
    pub name: String,
    pub scope: KeychainScope,
    /// The execution it is for.
    pub execution: Option<ExecutionId>,
}

impl KeychainPlace {
    /// What the entry is found by.
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

/// What to keep in the keychain.
#[derive(Clone)]
pub struct KeychainRequest {
    /// What is secret.
    pub data: Value,
    /// The type of the credential behind it.
    pub kind: Option<String>,
    pub cache: CacheKind,
    /// When it ends to be good; never when absent.
    pub expires_at: Option<Timestamp>,
    /// Whether it is to be renewed before that.
    pub auto_renew: bool,
    /// How to renew it.
    pub renew_config: Option<Value>,
}

/// What was found under a name.
#[derive(Clone)]
pub enum KeychainFound {
    /// An entry that is good, with what it holds.
    Found(KeychainEntry, Value),
    /// One that is not good any more.
    Expired(KeychainEntry),
    NotFound,
}

/// A secret by the name a step uses for it.
#[derive(Clone)]
pub enum Revealed {
    Stored(Box<Credential>, Value),
    /// What the keychain of an execution's playbook says.
    Keychain {
        /// When the execution was started.
        since: Timestamp,
        data: Value,
    },
}

/// The keychain service. Cheap to clone.
#[derive(Clone)]
pub struct Keychains {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    credentials: Credentials,
    playbooks: Playbooks,
}

impl Keychains {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        credentials: Credentials,
        playbooks: Playbooks,
    ) -> Self {
        Self { store, clock, credentials, playbooks }
    }

    /// A secret by the name a step uses for it: a credential, else what is kept in the keychain for
    /// the execution that asks, else what its playbook declares under that name.
    pub async fn reveal(
        &self,
        tenant: &Tenant,
        name: &str,
        asking: &Asking,
    ) -> Result<Revealed, CredentialError> {
        let missing = match self.credentials.reveal(tenant, name, asking).await {
            Ok((credential, data)) => return Ok(Revealed::Stored(Box::new(credential), data)),
            Err(error @ CredentialError::NotFound(_)) => error,
            Err(error) => return Err(error),
        };
        // A runtime that asks for itself names the execution 0.
        let Some(execution) = asking.execution.filter(|id| id.get() > 0) else {
            return Err(missing);
        };
        let found = self.store.execution(tenant, execution).await;
        let Some(row) = found.map_err(CredentialError::Store)? else { return Err(missing) };
        let parent = asking.parent.or(row.parent);
        if let Some(data) =
            self.kept_for(tenant, row.catalog, name, (execution, parent), asking).await?
        {
            return Ok(Revealed::Keychain { since: row.started_at, data });
        }
        match self.declared(tenant, &row, name, asking).await? {
            Some(data) => Ok(Revealed::Keychain { since: row.started_at, data }),
            None => Err(missing),
        }
    }

    /// What is kept in the keychain for an execution: its own, what it shares, what all share.
    async fn kept_for(
        &self,
        tenant: &Tenant,
        catalog: CatalogId,
        name: &str,
        (execution, parent): (ExecutionId, Option<ExecutionId>),
        asking: &Asking,
    ) -> Result<Option<Value>, CredentialError> {
        let places = [
            (KeychainScope::Local, Some(execution)),
            (KeychainScope::Shared, Some(execution)),
            (KeychainScope::Shared, parent),
            (KeychainScope::Shared, None),
            (KeychainScope::Global, None),
        ];
        for (scope, execution) in places {
            let place = KeychainPlace { catalog, name: name.to_owned(), scope, execution };
            if let KeychainFound::Found(_, data) = self.get(tenant, &place, asking).await? {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The entry at a place, to use it: the use is counted and recorded.
    pub async fn get(
        &self,
        tenant: &Tenant,
        place: &KeychainPlace,
        asking: &Asking,
    ) -> Result<KeychainFound, CredentialError> {
        let key = place.cache_key();
        let used = self.store.use_keychain_entry(tenant, &key).await;
        let Some(entry) = used.map_err(CredentialError::Store)? else {
            let seen = self.store.keychain_entry(tenant, &key).await;
            let seen = seen.map_err(CredentialError::Store)?;
            return Ok(seen.map_or(KeychainFound::NotFound, KeychainFound::Expired));
        };
        let name = label(&place.name);
        let at = SealedAt::Keychain { tenant, key: &key };
        self.credentials.follow_binding().await?;
        let opened = self.credentials.unseal(tenant, &at, (&name, None), &entry.kept.sealed);
        let given = if opened.is_ok() { Given::Ok } else { Given::Failed };
        let version = key_version(&entry.kept.sealed);
        self.credentials.record(tenant, asking, &name, given, version).await?;
        Ok(KeychainFound::Found(entry, opened?))
    }

    /// Keeps an entry in the place of any that is there.
    pub async fn put(
        &self,
        tenant: &Tenant,
        place: KeychainPlace,
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

    /// Removes an entry. Whether there was one.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        place: &KeychainPlace,
    ) -> Result<bool, CredentialError> {
        let removed = self.store.delete_keychain_entry(tenant, &place.cache_key()).await;
        removed.map_err(CredentialError::Store)
    }

    /// The entries of a playbook, expired ones too, and the time now. What they hold stays sealed.
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
    fn an_entry_is_found_by_name_playbook_and_who_shares_it() {
        let key = |scope, execution: Option<i64>| {
            let execution = execution.map(ExecutionId::new);
            let name = "api".to_owned();
            KeychainPlace { catalog: CatalogId::new(7), name, scope, execution }.cache_key()
        };
        assert_eq!(key(KeychainScope::Local, Some(9)), "api:7:9");
        assert_eq!(key(KeychainScope::Local, None), "api:7:local");
        assert_eq!(key(KeychainScope::Shared, Some(9)), "api:7:shared:9");
        assert_eq!(key(KeychainScope::Shared, None), "api:7:shared");
        assert_eq!(key(KeychainScope::Global, Some(9)), "api:7:global");
    }
}
