//! The catalog: playbooks by path and version.

use async_trait::async_trait;
use noetl_model::{CatalogId, Tenant, Timestamp, Value};

use crate::StoreError;

/// A document to register.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// Its id, minted by the caller.
    pub id: CatalogId,
    pub path: String,
    /// Its kind, lower-case.
    pub kind: String,
    /// The document as it was sent.
    pub content: String,
    /// Its `workflow` block as JSON.
    pub layout: Option<Value>,
    /// Its `workload` block as JSON.
    pub payload: Option<Value>,
    pub meta: Option<Value>,
    /// When it was registered.
    pub at: Timestamp,
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogEntry {
    pub id: CatalogId,
    pub path: String,
    /// Its version: 1, 2, 3 … per path.
    pub version: u32,
    /// Its kind, lower-case.
    pub kind: String,
    /// The document as it was sent.
    pub content: String,
    /// Its `workflow` block as JSON.
    pub layout: Option<Value>,
    /// Its `workload` block as JSON.
    pub payload: Option<Value>,
    pub meta: Option<Value>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was deleted; what is deleted is found by its id only.
    pub deleted_at: Option<Timestamp>,
}

/// One version of a document, without what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogVersion {
    pub id: CatalogId,
    pub path: String,
    pub version: u32,
    /// Its kind, lower-case.
    pub kind: String,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

/// Which document a path has, without what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogHead {
    pub id: CatalogId,
    pub path: String,
    pub version: u32,
}

/// How much of the catalog is one tenant's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogSize {
    /// Versions of documents.
    pub documents: u64,
    /// What was written in them, in bytes.
    pub bytes: u64,
}

/// Documents by path and version.
///
/// A version that is deleted stays: executions that were started from it go on, and its number is
/// never given again. It is found by its id and in the list of its path's versions, and nowhere else.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// Adds a version: one more than the path's highest, deleted or not. Two callers never get the same one.
    ///
    /// An id that is taken is a bug of the caller, and an error.
    async fn register(&self, tenant: &Tenant, entry: NewEntry) -> Result<CatalogEntry, StoreError>;

    /// The entry with this id, deleted or not; none for another tenant's.
    async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError>;

    /// The entry at this path: the given version, or the highest.
    async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError>;

    /// All versions of all entries, newest first, at equal times the larger id first; only of one kind when given (lower-case).
    async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError>;

    /// The highest version of every path where it is of this kind (lower-case), in the byte order of
    /// paths. A path whose highest version is of another kind is not there.
    async fn newest_of(&self, tenant: &Tenant, kind: &str) -> Result<Vec<CatalogHead>, StoreError>;

    /// All versions of a path, deleted ones too, highest first.
    async fn versions(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<Vec<CatalogVersion>, StoreError>;

    /// How much a tenant has, deleted versions too.
    async fn catalog_size(&self, tenant: &Tenant) -> Result<CatalogSize, StoreError>;

    /// Deletes a version of a path, or all of them when none is named; without a time they are
    /// restored. Answers with those that were not so already, as they are now, highest first.
    async fn set_deleted(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Vec<CatalogVersion>, StoreError>;
}
