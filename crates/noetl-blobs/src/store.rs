//! Blobs as objects of an `object_store` backend.

mod spooled;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use noetl_model::{Clock, Timestamp};
use noetl_store::{
    BlobError, BlobPage, BlobRef, Blobs, Digest, SpooledFile, StoreError, StoredBlob,
};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::object_key::{ObjectKey, directory};

/// Maximum listings per read. A read lists again if the object it chose was replaced before it was
/// read, which requires another write of the same blob each time.
const LOOKS_MAX: usize = 64;

/// Maximum attempts per write. A write fails if its directory is removed at the same time, because
/// the last other file in it was deleted, which requires another deletion each time.
const WRITES_MAX: usize = 16;

/// Error of a read that found its object replaced [`LOOKS_MAX`] times.
const REPLACED: &str = "it was replaced each time it was looked for";

/// Blob store in a directory or a bucket.
pub struct ObjectBlobs {
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for ObjectBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectBlobs({})", self.store)
    }
}

impl ObjectBlobs {
    /// Creates a blob store over `store`, with write times from `clock`.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Lists the objects of a blob, oldest first.
    async fn generations(&self, digest: Digest) -> Result<Vec<ObjectKey>, BlobError> {
        let listed = self.store.list(Some(&directory(digest)));
        let listed: Vec<_> = listed.try_collect().await.map_err(failed("look for content"))?;
        let mut generations: Vec<ObjectKey> =
            listed.iter().filter_map(|meta| ObjectKey::from_path(&meta.location)).collect();
        generations.sort();
        Ok(generations)
    }

    /// Deletes objects. An object that is already deleted counts as success.
    async fn remove(&self, generations: &[ObjectKey]) -> Result<(), BlobError> {
        for generation in generations {
            match self.store.delete(&generation.path()).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed("remove content")(error)),
            }
        }
        Ok(())
    }

    /// Deletes the objects that a new write replaced. The new object is valid regardless, so a
    /// failure only leaves an extra copy until the next write of the blob or the next garbage
    /// collection.
    async fn replace(&self, older: &[ObjectKey]) {
        if let Err(error) = self.remove(older).await {
            tracing::warn!(%error, "failed to delete replaced blob object");
        }
    }

    async fn write(&self, path: &Path, bytes: Vec<u8>) -> Result<(), BlobError> {
        let payload = object_store::PutPayload::from(bytes);
        let mut tries = 1;
        loop {
            match self.store.put(path, payload.clone()).await {
                Ok(_) => return Ok(()),
                Err(error) if tries < WRITES_MAX && is_not_found(&error) => tries += 1,
                Err(error) => return Err(failed("keep content")(error)),
            }
        }
    }

    /// Reads an object. Returns `None` if it was replaced since it was listed.
    async fn fetch(&self, generation: &ObjectKey) -> Result<Option<Vec<u8>>, BlobError> {
        let read = async {
            let object = self.store.get(&generation.path()).await?;
            object.bytes().await
        };
        match read.await {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(failed("read content")(error)),
        }
    }

    /// Returns the newest object of each blob under the prefix `part`, for digests after `after`.
    async fn part(
        &self,
        part: &Path,
        after: Option<Digest>,
    ) -> Result<BTreeMap<Digest, StoredBlob>, BlobError> {
        let listed = match after {
            // The offset excludes only keys before the directory, so the result can include `after`
            // itself.
            Some(after) => self.store.list_with_offset(Some(part), &directory(after)),
            None => self.store.list(Some(part)),
        };
        let listed: Vec<_> = listed.try_collect().await.map_err(failed("list content"))?;
        let mut newest: BTreeMap<Digest, StoredBlob> = BTreeMap::new();
        for meta in &listed {
            let Some(key) = ObjectKey::from_path(&meta.location) else { continue };
            let (digest, written_at) = (key.digest, key.written_at);
            let blob = StoredBlob { digest, bytes: meta.size, written_at };
            let known = newest.entry(digest).or_insert(blob);
            if known.written_at < written_at {
                *known = blob;
            }
        }
        Ok(newest)
    }
}

#[async_trait]
impl Blobs for ObjectBlobs {
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError> {
        let media_type = media_type.to_owned();
        let named = blocking(move || (BlobRef::from_bytes(&bytes, &media_type), bytes));
        let (blob, bytes) = named.await?;
        let known = self.generations(blob.digest).await?;
        let new = ObjectKey::after(blob.digest, self.clock.now(), known.last());
        self.write(&new.path(), bytes).await?;
        self.replace(&known).await;
        Ok(blob)
    }

    async fn put_spooled(&self, content: Arc<SpooledFile>) -> Result<BlobRef, BlobError> {
        let blob = content.blob().clone();
        let known = self.generations(blob.digest).await?;
        let new = ObjectKey::after(blob.digest, self.clock.now(), known.last());
        self.write_spooled(&new.path(), &content).await?;
        self.replace(&known).await;
        Ok(blob)
    }

    async fn blob_part(
        &self,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Vec<u8>, BlobError> {
        for _ in 0..LOOKS_MAX {
            let known = self.generations(blob.digest).await?;
            let newest = known.last().ok_or(BlobError::Missing { digest: blob.digest })?;
            if let Some(part) = self.fetch_part(newest, blob, from, most).await? {
                return Ok(part);
            }
        }
        Err(StoreError::backend("read content", REPLACED).into())
    }

    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError> {
        let known = self.generations(digest).await?;
        let Some(newest) = known.last() else { return Ok(false) };
        let new = ObjectKey::after(digest, self.clock.now(), Some(newest));
        match self.store.copy(&newest.path(), &new.path()).await {
            Ok(()) => {
                self.replace(&known).await;
                Ok(true)
            }
            // The blob was rewritten, which updates its time as requested, or deleted.
            Err(error) if is_not_found(&error) => Ok(!self.generations(digest).await?.is_empty()),
            Err(error) => Err(failed("touch content")(error)),
        }
    }

    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        for _ in 0..LOOKS_MAX {
            let known = self.generations(blob.digest).await?;
            let missing = BlobError::Missing { digest: blob.digest };
            let newest = known.last().ok_or(missing)?;
            if let Some(bytes) = self.fetch(newest).await? {
                let asked = blob.clone();
                return blocking(move || asked.check(&bytes).map(|()| bytes)).await?;
            }
        }
        Err(StoreError::backend("read content", REPLACED).into())
    }

    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError> {
        let known = self.generations(digest).await?;
        if known.last().is_none_or(|newest| newest.written_at != seen) {
            return Ok(false);
        }
        // Deletes exactly the listed objects, oldest first: a later write has a different key, and
        // an interrupted deletion leaves the newest object in place.
        self.remove(&known).await?;
        Ok(self.generations(digest).await?.is_empty())
    }

    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError> {
        let now = self.clock.now();
        let mut page = Vec::new();
        let parts = self.store.list_with_delimiter(None).await;
        let mut parts = parts.map_err(failed("list content"))?.common_prefixes;
        parts.sort();
        let first = after.map(|after| after.to_string()[..2].to_owned());
        for part in parts {
            let name = part.filename().unwrap_or_default();
            if page.len() >= limit || first.as_deref().is_some_and(|first| name < first) {
                continue;
            }
            let inside = after.filter(|_| first.as_deref() == Some(name));
            let blobs = self.part(&part, inside).await?.into_values();
            let wanted = blobs.filter(|blob| after.is_none_or(|after| blob.digest > after));
            page.extend(wanted.take(limit - page.len()));
        }
        Ok(BlobPage { now, blobs: page })
    }
}

fn failed(action: &'static str) -> impl Fn(object_store::Error) -> BlobError {
    move |error| StoreError::backend(action, error).into()
}

/// Returns `true` if the error or one of its sources means that a file or object doesn't exist.
fn is_not_found(error: &object_store::Error) -> bool {
    if matches!(error, object_store::Error::NotFound { .. }) {
        return true;
    }
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::NotFound) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Runs a computation over a large blob on the blocking thread pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlobError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::backend("compute a digest", error).into())
}

#[cfg(test)]
mod tests;
