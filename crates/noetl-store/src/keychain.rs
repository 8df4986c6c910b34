//! Resolved secrets and tokens, kept for a while.

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Tenant, Timestamp, Value};

use crate::{Sealed, StoreError};

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// A secret as its provider gave it.
    Secret,
    /// A token that was made from one.
    Token,
}

impl CacheKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Token => "token",
        }
    }

    /// From its stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Secret, Self::Token].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Who shares an entry.
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

    /// From its stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Local, Self::Global, Self::Shared].into_iter().find(|scope| scope.as_str() == text)
    }
}

/// An entry to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewKeychainEntry {
    /// What it is found by; unique for its tenant.
    pub cache_key: String,
    /// The name the playbook gives it.
    pub name: String,
    pub catalog: CatalogId,
    /// The type of the credential behind it.
    pub credential_kind: String,
    pub cache: CacheKind,
    pub scope: KeychainScope,
    /// The execution it was resolved for.
    pub execution: Option<ExecutionId>,
    pub parent: Option<ExecutionId>,
    /// The encrypted text of its value.
    pub sealed: Sealed,
    /// The shape of its value.
    pub schema: Option<Value>,
    /// When it ends to be good; never when absent.
    pub expires_at: Option<Timestamp>,
    /// Whether it is to be renewed before that.
    pub auto_renew: bool,
    /// How to renew it.
    pub renew_config: Option<Value>,
}

/// An entry as kept.
#[derive(Debug, Clone, PartialEq)]
pub struct KeychainEntry {
    pub kept: NewKeychainEntry,
    /// When it was put.
    pub created_at: Timestamp,
    /// When it was last used.
    pub accessed_at: Option<Timestamp>,
    /// How often it was used since it was put.
    pub access_count: u64,
}

/// Which entries to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeychainFilter {
    /// Only of this playbook.
    pub catalog: Option<CatalogId>,
    /// Only of this execution.
    pub execution: Option<ExecutionId>,
}

/// Entries of tenants by cache key. Each call is atomic, another tenant's entries do not exist, and
/// an entry has expired from the instant it names on, by the store's clock.
#[async_trait]
pub trait Keychain: Send + Sync {
    /// Keeps an entry in the place of any with the same cache key. Its uses count from zero.
    async fn put_keychain_entry(
        &self,
        tenant: &Tenant,
        new: NewKeychainEntry,
    ) -> Result<KeychainEntry, StoreError>;

    /// The entry, to use its value: counts the use and answers as it is after it. An entry that
    /// has expired is not given out.
    async fn use_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError>;

    /// The entry, to look at: expired or not, and without counting.
    async fn keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError>;

    /// The entries a filter takes, expired ones too, ordered by the bytes of their cache keys.
    async fn keychain_entries(
        &self,
        tenant: &Tenant,
        filter: &KeychainFilter,
    ) -> Result<Vec<KeychainEntry>, StoreError>;

    /// Removes an entry, expired or not. Whether it was there.
    async fn delete_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<bool, StoreError>;

    /// Removes up to `limit` expired entries of all tenants, and says how many; fewer than
    /// `limit` means that none are left.
    async fn purge_keychain(&self, limit: usize) -> Result<usize, StoreError>;
}
