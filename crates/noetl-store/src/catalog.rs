//! The catalog: playbooks by path and version.

use async_trait::async_trait;
use noetl_model::{CatalogId, Tenant, Timestamp, Value};

use crate::StoreError;

#[derive(Debug, Clone)]
pub struct NewEntry {
    /// Catalog ID, minted by the caller.
    pub id: CatalogId,
    pub path: String,
    /// Kind of the document, in lower case.
    pub kind: String,
    pub content: String,
    /// The document's `workflow` block as JSON.
    pub layout: Option<Value>,
    /// The document's `workload` block as JSON.
    pub payload: Option<Value>,
    pub meta: Option<Value>,
    /// Time the version was registered.
    pub at: Timestamp,
}

/// A version of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogEntry {
    pub id: CatalogId,
    pub path: String,
    /// Version number: 1, 2, 3, and so on per path.
    pub version: u32,
    /// Kind of the document, in lower case.
    pub kind: String,
    pub content: String,
    /// The document's `workflow` block as JSON.
    pub layout: Option<Value>,
    /// The document's `workload` block as JSON.
    pub payload: Option<Value>,
    pub meta: Option<Value>,
    /// Time the version was registered.
    pub created_at: Timestamp,
    /// Time of deletion. Only lookups by ID return a deleted entry.
    pub deleted_at: Option<Timestamp>,
}

/// A version of a document, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogVersion {
    pub id: CatalogId,
    pub path: String,
    pub version: u32,
    /// Kind of the document, in lower case.
    pub kind: String,
    /// Time the version was registered.
    pub created_at: Timestamp,
    /// Time of deletion; `None` if the version is not deleted.
    pub deleted_at: Option<Timestamp>,
}

/// Current version of a path, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogHead {
    pub id: CatalogId,
    pub path: String,
    pub version: u32,
}

/// Size of one tenant's catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogSize {
    pub documents: u64,
    /// Total size of their texts, in bytes.
    pub bytes: u64,
}

/// Documents by path and version.
///
/// Deletion is logical: executions that were started from a deleted version continue, and its
/// number is never reused. Only lookups by ID and the list of its path's versions return it.
#[async_trait]
pub trait CatalogStore: Send + Sync {
    /// Adds a version with the number after the path's highest one, deleted or not. Concurrent
    /// callers never get the same number.
    ///
    /// An ID that is already in use is a bug of the caller, and an error.
    async fn register(&self, tenant: &Tenant, entry: NewEntry) -> Result<CatalogEntry, StoreError>;

    /// Returns the entry with this ID, deleted or not, or `None` if it belongs to another tenant.
    async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError>;

    /// Returns the entry at this path: the given version, or the highest.
    async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError>;

    /// Returns all versions of all entries, newest first, then by descending ID. `kind`, in lower
    /// case, restricts them to one kind.
    async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError>;

    /// Returns the highest version of every path, if it has this kind (in lower case), in byte
    /// order of the paths. Omits a path whose highest version has another kind.
    async fn newest_of(&self, tenant: &Tenant, kind: &str) -> Result<Vec<CatalogHead>, StoreError>;

    /// Returns all versions of a path, including deleted ones, highest first.
    async fn versions(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<Vec<CatalogVersion>, StoreError>;

    /// Returns the size of a tenant's catalog, including deleted versions.
    async fn catalog_size(&self, tenant: &Tenant) -> Result<CatalogSize, StoreError>;

    /// Deletes one version of a path, or all if `version` is `None`. Restores them if `at` is
    /// `None`. Returns the versions that changed, as they are now, highest first.
    async fn set_deleted(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Vec<CatalogVersion>, StoreError>;
}
