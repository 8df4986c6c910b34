//! Bytes by key: what workers keep for each other, and the modules they load.
//!
//! Neither belongs to a tenant: they are written and read by workers and operators, whose keys say
//! what is whose.

use async_trait::async_trait;
use noetl_model::Timestamp;

use crate::{Digest, StoreError};

/// What is known of an object without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSummary {
    pub key: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// What its bytes are.
    pub media_type: String,
    /// How many they are.
    pub size: u64,
    /// When it was put.
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// All but its bytes.
    pub summary: ObjectSummary,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Objects by key. Each call is atomic: a reader meets an object as one put left it.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Keeps an object in the place of any with the same key.
    async fn put_object(
        &self,
        key: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ObjectSummary, StoreError>;

    /// The object with this key.
    async fn object(&self, key: &str) -> Result<Option<Object>, StoreError>;

    /// Removes an object. Whether it was there.
    async fn delete_object(&self, key: &str) -> Result<bool, StoreError>;

    /// Objects whose key begins with `prefix` and comes after `after`, in the order of the bytes
    /// of their keys.
    async fn objects(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError>;

    /// The first objects whose key ends with `suffix`, in the order of the bytes of their keys.
    async fn objects_ending(
        &self,
        suffix: &str,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError>;
}

/// What is known of a module without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSummary {
    pub path: String,
    /// Its version, chosen by whoever puts it.
    pub version: i32,
    /// The digest of its bytes.
    pub digest: Digest,
    /// What its bytes are.
    pub media_type: String,
    /// How many they are.
    pub size: u64,
    /// When it was put.
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// All but its bytes.
    pub summary: PluginSummary,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Modules by path and version. Each call is atomic: a reader meets a module as one put left it.
#[async_trait]
pub trait Plugins: Send + Sync {
    /// Keeps a module in the place of any with the same path and version.
    async fn put_plugin(
        &self,
        path: &str,
        version: i32,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<PluginSummary, StoreError>;

    /// The module at this path: the given version, or the highest.
    async fn plugin(&self, path: &str, version: Option<i32>) -> Result<Option<Plugin>, StoreError>;

    /// Removes one version of a module. Whether it was there.
    async fn delete_plugin(&self, path: &str, version: i32) -> Result<bool, StoreError>;

    /// Modules whose path begins with `prefix` and which come after `after`, in the order of the
    /// bytes of their paths, and of their versions at one path.
    async fn plugins(
        &self,
        prefix: &str,
        after: Option<(&str, i32)>,
        limit: usize,
    ) -> Result<Vec<PluginSummary>, StoreError>;
}
