//! Garbage collection of unreferenced blobs.
//!
//! A writer puts a blob and commits a reference to it later; in between, the blob is unreferenced.
//! The collector therefore removes a blob only if it was last written before a grace period, and
//! only in the state it listed: a put or a touch after the listing advances the time of writing,
//! and the removal then leaves the blob alone. A put after the removal stores the blob again. Every
//! step is idempotent, so the next run completes an interrupted one.

use std::collections::HashSet;
use std::time::Duration;

use noetl_model::Timestamp;

use crate::{BlobError, BlobRefs, Blobs, Digest, StoredBlob};

/// Number of blobs per page: large enough to amortize the listing, small enough for one query.
const PAGE: usize = 256;

/// Report of a run, or of a dry run.
#[derive(Debug, Default)]
pub struct GcReport {
    pub seen: usize,
    /// Number of blobs younger than the grace period.
    pub young: usize,
    /// Number of blobs that are referenced.
    pub referenced: usize,
    /// Blobs that were removed, or that a dry run would remove.
    pub removed: Vec<Digest>,
    /// Total size of the removed blobs.
    pub removed_bytes: u64,
    /// Number of blobs that were written or referenced between listing and removal, and stay.
    pub spared: usize,
    /// Blobs that could not be removed. The next run retries them.
    pub failed: Vec<(Digest, BlobError)>,
}

/// Removes blobs that nothing in `refs` refers to and that were last written at least `grace` ago,
/// by the clock of the blob store. A dry run only reports them.
///
/// `grace` must be longer than any writer takes from its put to its commit. A blob that cannot be
/// removed does not stop the run.
///
/// # Errors
///
/// Returns an error if a page of blobs or their references cannot be read.
pub async fn collect_garbage(
    blobs: &dyn Blobs,
    refs: &dyn BlobRefs,
    grace: Duration,
    dry_run: bool,
) -> Result<GcReport, BlobError> {
    let mut report = GcReport::default();
    let mut after = None;
    loop {
        let page = blobs.blobs(after, PAGE).await?;
        let Some(last) = page.blobs.last() else { return Ok(report) };
        after = Some(last.digest);
        report.seen += page.blobs.len();
        let (old, young) = by_age(&page.blobs, page.now, grace);
        report.young += young;
        let asked: Vec<Digest> = old.iter().map(|blob| blob.digest).collect();
        let free: HashSet<Digest> = refs.unreferenced(&asked).await?.into_iter().collect();
        report.referenced += old.iter().filter(|blob| !free.contains(&blob.digest)).count();
        for blob in old.iter().filter(|blob| free.contains(&blob.digest)) {
            report.remove(blobs, blob, dry_run).await;
        }
    }
}

/// Returns the blobs older than the grace period, and the number of younger ones.
fn by_age(blobs: &[StoredBlob], now: Timestamp, grace: Duration) -> (Vec<StoredBlob>, usize) {
    let is_old = |blob: &&StoredBlob| now.since(blob.written_at) >= grace;
    let old: Vec<StoredBlob> = blobs.iter().filter(is_old).copied().collect();
    let young = blobs.len() - old.len();
    (old, young)
}

impl GcReport {
    async fn remove(&mut self, blobs: &dyn Blobs, blob: &StoredBlob, dry_run: bool) {
        let removed = match dry_run {
            true => Ok(true),
            false => blobs.delete_blob(blob.digest, blob.written_at).await,
        };
        match removed {
            Ok(true) => {
                self.removed.push(blob.digest);
                self.removed_bytes += blob.bytes;
            }
            Ok(false) => self.spared += 1,
            Err(error) => self.failed.push((blob.digest, error)),
        }
    }
}
