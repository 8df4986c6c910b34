//! [`Blobs`] and [`BlobRefs`] of the in-memory store.

use std::ops::Bound;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Timestamp};

use super::MemoryStore;
use crate::{BlobError, BlobPage, BlobRef, BlobRefs, Blobs, Digest, StoreError, StoredBlob};

#[async_trait]
impl Blobs for MemoryStore {
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError> {
        let blob = BlobRef::from_bytes(&bytes, media_type);
        let now = self.clock.now();
        let mut state = self.state();
        let known = state.kept.blobs.get(&blob.digest).map(|(_, written_at)| *written_at);
        state.kept.blobs.insert(blob.digest, (bytes, later(now, known)));
        Ok(blob)
    }

    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError> {
        let now = self.clock.now();
        let mut state = self.state();
        let known = state.kept.blobs.get_mut(&digest);
        Ok(known.map(|(_, written_at)| *written_at = later(now, Some(*written_at))).is_some())
    }

    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        let found = self.state().kept.blobs.get(&blob.digest).map(|(bytes, _)| bytes.clone());
        let bytes = found.ok_or(BlobError::Missing { digest: blob.digest })?;
        blob.check(&bytes)?;
        Ok(bytes)
    }

    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError> {
        let mut state = self.state();
        let is_as_seen = state.kept.blobs.get(&digest).is_some_and(|(_, at)| *at == seen);
        if !is_as_seen || state.kept.references.iter().any(|(_, to)| *to == digest) {
            return Ok(false);
        }
        Ok(state.kept.blobs.remove(&digest).is_some())
    }

    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError> {
        let now = self.clock.now();
        let state = self.state();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = state.kept.blobs.range((from, Bound::Unbounded)).take(limit);
        let blobs = found.map(|(digest, (bytes, written_at))| StoredBlob {
            digest: *digest,
            bytes: BlobRef::from_bytes(bytes, "").bytes,
            written_at: *written_at,
        });
        Ok(BlobPage { now, blobs: blobs.collect() })
    }
}

/// Returns the time of a write after one at `known`. Always later than `known`, even if the clock
/// stands still or goes back, so that the two writes differ.
fn later(now: Timestamp, known: Option<Timestamp>) -> Timestamp {
    let next = known.map(|known| Timestamp::from_micros(known.as_micros().saturating_add(1)));
    next.map_or(now, |next| next.max(now))
}

#[async_trait]
impl BlobRefs for MemoryStore {
    async fn references(&self, execution: ExecutionId) -> Result<Vec<Digest>, StoreError> {
        let state = self.state();
        let all = state.kept.references.iter();
        Ok(all.filter(|(from, _)| *from == execution).map(|(_, to)| *to).collect())
    }

    async fn unreferenced(&self, among: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        let state = self.state();
        let is_free = |digest: &&Digest| !state.kept.references.iter().any(|(_, to)| to == *digest);
        Ok(among.iter().filter(is_free).copied().collect())
    }

    async fn drop_references(&self, execution: ExecutionId) -> Result<usize, StoreError> {
        let mut state = self.state();
        let before = state.kept.references.len();
        state.kept.references.retain(|(from, _)| *from != execution);
        Ok(before - state.kept.references.len())
    }
}
