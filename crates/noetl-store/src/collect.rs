//! Removing content nobody refers to.
//!
//! A writer puts content and commits a reference to it a little later; in between, nothing refers
//! to it. So content goes only when it was last written longer ago than a grace, and only as it was
//! seen: a put or a touch after the look makes the time later, and the removal finds another time
//! and leaves it. A put after the removal finds nothing and writes it anew. Every step can be
//! repeated, so a run that is cut short is finished by the next.

use std::collections::HashSet;
use std::time::Duration;

use noetl_model::Timestamp;

use crate::{BlobError, BlobRefs, Blobs, Digest, StoredBlob};

/// Content looked at in one go: enough that a page costs little per entry, few enough for one
/// question to a database.
const PAGE: usize = 256;

/// What a run did, or would have done.
#[derive(Debug, Default)]
pub struct Collected {
    /// Content that was looked at.
    pub seen: usize,
    /// Content that is younger than the grace.
    pub young: usize,
    /// Content that is referred to.
    pub referenced: usize,
    /// Content that was removed; in a dry run, that would have been.
    pub removed: Vec<Digest>,
    /// The bytes of it.
    pub removed_bytes: u64,
    /// Content that was written or referred to between the look and the removal, and stays.
    pub spared: usize,
    /// Content that could not be removed. The next run tries again.
    pub failed: Vec<(Digest, BlobError)>,
}

/// Removes content that nothing in `refs` refers to and that was last written at least `grace` ago
/// by the clock of the place. In a dry run it only says what it would remove.
///
/// `grace` has to be longer than any writer takes from its put to its commit. One thing that cannot
/// be removed does not keep the rest; an error is returned only when a list cannot be read.
pub async fn collect(
    blobs: &dyn Blobs,
    refs: &dyn BlobRefs,
    grace: Duration,
    dry_run: bool,
) -> Result<Collected, BlobError> {
    let mut report = Collected::default();
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

/// What is old enough to go, and how many are not.
fn by_age(blobs: &[StoredBlob], now: Timestamp, grace: Duration) -> (Vec<StoredBlob>, usize) {
    let is_old = |blob: &&StoredBlob| now.since(blob.written_at) >= grace;
    let old: Vec<StoredBlob> = blobs.iter().filter(is_old).copied().collect();
    let young = blobs.len() - old.len();
    (old, young)
}

impl Collected {
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
