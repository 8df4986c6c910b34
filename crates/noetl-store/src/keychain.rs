//! Cache of resolved secrets and tokens.

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Tenant, Timestamp, Value};

use crate::{SealedText, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// A secret as its provider returned it.
    Secret,
    /// A token derived from a secret.
    Token,
}

impl CacheKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Token => "token",
        }
    }

    /// Returns the kind with this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Secret, Self::Token].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Set of executions that share an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeychainScope {
    Local,
    /// Every execution of a playbook.
    Global,
    /// An execution and its children.
    Shared,
}

impl KeychainScope {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Global => "global",
            Self::Shared => "shared",
        }
    }

    /// Returns the scope with this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Local, Self::Global, Self::Shared].into_iter().find(|scope| scope.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewKeychainEntry {
    /// Lookup key, unique within the tenant.
    pub cache_key: String,
    /// Name of the entry in the playbook.
    pub name: String,
    pub catalog: CatalogId,
    /// Type of the credential that the value comes from.
    pub credential_kind: String,
    pub cache: CacheKind,
    pub scope: KeychainScope,
    /// Execution for which the value was resolved.
    pub execution: Option<ExecutionId>,
    pub parent: Option<ExecutionId>,
    /// Encrypted text of the value.
    pub sealed: SealedText,
    pub schema: Option<Value>,
    /// Expiration time; never expires if `None`.
    pub expires_at: Option<Timestamp>,
    /// Whether to renew the value before it expires.
    pub auto_renew: bool,
    pub renew_config: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct KeychainEntry {
    pub kept: NewKeychainEntry,
    pub created_at: Timestamp,
    /// Time of the last use.
    pub accessed_at: Option<Timestamp>,
    /// Number of uses since the put.
    pub access_count: u64,
}

/// Filter of a keychain listing.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeychainFilter {
    /// Includes only entries of this playbook.
    pub catalog: Option<CatalogId>,
    /// Includes only entries of this execution.
    pub execution: Option<ExecutionId>,
}

/// Entries of tenants by cache key. Each call is atomic, other tenants' entries are invisible, and
/// an entry expires at its expiration time, by the store's clock.
#[async_trait]
pub trait KeychainStore: Send + Sync {
    /// Stores an entry, replacing any with the same cache key, and resets its use count.
    async fn put_keychain_entry(
        &self,
        tenant: &Tenant,
        new: NewKeychainEntry,
    ) -> Result<KeychainEntry, StoreError>;

    /// Returns the entry for use of its value: counts the use and returns the entry after it. Does
    /// not return an expired entry.
    async fn use_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError>;

    /// Returns the entry for inspection, expired or not, without counting a use.
    async fn keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError>;

    /// Returns the entries that match a filter, including expired ones, in byte order of their
    /// cache keys.
    async fn keychain_entries(
        &self,
        tenant: &Tenant,
        filter: &KeychainFilter,
    ) -> Result<Vec<KeychainEntry>, StoreError>;

    /// Removes an entry, expired or not. Returns `true` if it existed.
    async fn delete_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<bool, StoreError>;

    /// Removes up to `limit` expired entries of all tenants and returns their number. Fewer than
    /// `limit` means that none are left.
    async fn purge_keychain(&self, limit: usize) -> Result<usize, StoreError>;
}
