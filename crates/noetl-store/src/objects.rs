//! Objects, which workers store for one another, and the plugin modules that workers load.
//!
//! Neither belongs to a tenant: workers and operators write and read them, and the keys identify
//! the owner.

use async_trait::async_trait;
use noetl_model::Timestamp;

use crate::{Digest, StoreError};

/// An object without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSummary {
    pub key: String,
    pub digest: Digest,
    /// Media type of the bytes.
    pub media_type: String,
    /// Size in bytes of the content.
    pub size: u64,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub summary: ObjectSummary,
    pub bytes: Vec<u8>,
}

/// Objects by key. Each call is atomic: a reader sees the object of exactly one put.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Stores an object, replacing any with the same key.
    async fn put_object(
        &self,
        key: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ObjectSummary, StoreError>;

    /// Returns the object with this key.
    async fn object(&self, key: &str) -> Result<Option<Object>, StoreError>;

    /// Removes an object. Returns `true` if it existed.
    async fn delete_object(&self, key: &str) -> Result<bool, StoreError>;

    /// Returns objects whose key starts with `prefix` and sorts after `after`, in byte order of the
    /// keys.
    async fn objects(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError>;

    /// Returns the first objects whose key ends with `suffix`, in byte order of the keys.
    async fn objects_ending(
        &self,
        suffix: &str,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError>;
}

/// A plugin module without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSummary {
    pub path: String,
    /// Version, chosen by the caller.
    pub version: i32,
    pub digest: Digest,
    /// Media type of the bytes.
    pub media_type: String,
    /// Size in bytes of the content.
    pub size: u64,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    pub summary: PluginSummary,
    pub bytes: Vec<u8>,
}

/// Plugin modules by path and version. Each call is atomic: a reader sees the module of exactly one
/// put.
#[async_trait]
pub trait Plugins: Send + Sync {
    /// Stores a module, replacing any with the same path and version.
    async fn put_plugin(
        &self,
        path: &str,
        version: i32,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<PluginSummary, StoreError>;

    /// Returns the module at this path: the given version, or the highest.
    async fn plugin(&self, path: &str, version: Option<i32>) -> Result<Option<Plugin>, StoreError>;

    /// Removes one version of a module. Returns `true` if it existed.
    async fn delete_plugin(&self, path: &str, version: i32) -> Result<bool, StoreError>;

    /// Returns modules whose path starts with `prefix` and that sort after `after`, in byte order
    /// of the paths, then by version.
    async fn plugins(
        &self,
        prefix: &str,
        after: Option<(&str, i32)>,
        limit: usize,
    ) -> Result<Vec<PluginSummary>, StoreError>;
}
