//! [`Objects`] and [`Plugins`] of the in-memory store.

use async_trait::async_trait;

use super::MemoryStore;
use crate::{BlobRef, Object, ObjectSummary, Objects, Plugin, PluginSummary, Plugins, StoreError};

#[async_trait]
impl Objects for MemoryStore {
    async fn put_object(
        &self,
        key: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ObjectSummary, StoreError> {
        let named = BlobRef::from_bytes(&bytes, media_type);
        let summary = ObjectSummary {
            key: key.to_owned(),
            digest: named.digest,
            media_type: named.media_type,
            size: named.bytes,
            created_at: self.clock.now(),
        };
        let object = Object { summary: summary.clone(), bytes };
        self.state().kept.objects.insert(key.to_owned(), object);
        Ok(summary)
    }

    async fn object(&self, key: &str) -> Result<Option<Object>, StoreError> {
        Ok(self.state().kept.objects.get(key).cloned())
    }

    async fn delete_object(&self, key: &str) -> Result<bool, StoreError> {
        Ok(self.state().kept.objects.remove(key).is_some())
    }

    async fn objects(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        let state = self.state();
        let found = state.kept.objects.values().map(|object| &object.summary).filter(|summary| {
            summary.key.starts_with(prefix)
                && after.is_none_or(|after| summary.key.as_str() > after)
        });
        Ok(found.take(limit).cloned().collect())
    }

    async fn objects_ending(
        &self,
        suffix: &str,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        let state = self.state();
        let all = state.kept.objects.values().map(|object| &object.summary);
        let found = all.filter(|summary| summary.key.ends_with(suffix));
        Ok(found.take(limit).cloned().collect())
    }
}

#[async_trait]
impl Plugins for MemoryStore {
    async fn put_plugin(
        &self,
        path: &str,
        version: i32,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<PluginSummary, StoreError> {
        let named = BlobRef::from_bytes(&bytes, media_type);
        let summary = PluginSummary {
            path: path.to_owned(),
            version,
            digest: named.digest,
            media_type: named.media_type,
            size: named.bytes,
            created_at: self.clock.now(),
        };
        let plugin = Plugin { summary: summary.clone(), bytes };
        self.state().kept.plugins.insert((path.to_owned(), version), plugin);
        Ok(summary)
    }

    async fn plugin(&self, path: &str, version: Option<i32>) -> Result<Option<Plugin>, StoreError> {
        let state = self.state();
        let mut at_path = state.kept.plugins.values().filter(|plugin| {
            plugin.summary.path == path
                && version.is_none_or(|version| plugin.summary.version == version)
        });
        Ok(at_path.next_back().cloned())
    }

    async fn delete_plugin(&self, path: &str, version: i32) -> Result<bool, StoreError> {
        Ok(self.state().kept.plugins.remove(&(path.to_owned(), version)).is_some())
    }

    async fn plugins(
        &self,
        prefix: &str,
        after: Option<(&str, i32)>,
        limit: usize,
    ) -> Result<Vec<PluginSummary>, StoreError> {
        let state = self.state();
        let found = state.kept.plugins.values().map(|plugin| &plugin.summary).filter(|summary| {
            let place = (summary.path.as_str(), summary.version);
            summary.path.starts_with(prefix) && after.is_none_or(|after| place > after)
        });
        Ok(found.take(limit).cloned().collect())
    }
}
