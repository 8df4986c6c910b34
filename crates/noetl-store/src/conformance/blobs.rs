//! Cases about blob stores. They need nothing but the blob store, so that they run on blob stores
//! that are not full stores; where references matter, a memory store holds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Timestamp;
use tokio::task::JoinSet;

use super::story::{Story, write};
use crate::{
    BlobError, BlobPage, BlobRef, Blobs, Digest, GcReport, MemoryStore, SpooledFile, StoreError,
    StoredBlob, collect_garbage,
};

pub async fn a_blob_is_read_back(blobs: Arc<dyn Blobs>) {
    for bytes in [vec![], vec![0, 255, 10, 0], vec![7; 3_000_000]] {
        let put = put(&*blobs, &bytes).await;
        assert_eq!(put, BlobRef::from_bytes(&bytes, "text/plain"));
        assert!(blobs.blob(&put).await.expect("content") == bytes);
    }
}

pub async fn a_blob_from_a_file_has_the_same_digest(blobs: Arc<dyn Blobs>) {
    let mixed: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    for bytes in [vec![], b"small".to_vec(), mixed] {
        let whole = put(&*blobs, &bytes).await;
        let before = list(&*blobs).await;
        let kept = blobs.put_spooled(spooled(&bytes)).await.expect("kept");
        assert_eq!(kept, whole);
        let after = list(&*blobs).await;
        assert_eq!(after.len(), before.len());
        let written = |list: &[StoredBlob]| {
            list.iter().find(|blob| blob.digest == whole.digest).map(|blob| blob.written_at)
        };
        assert!(written(&after) > written(&before));
    }
    for bytes in [b"".to_vec(), b"from a file".to_vec(), vec![9; 2_000_001]] {
        for _ in 0..2 {
            let kept = blobs.put_spooled(spooled(&bytes)).await.expect("kept");
            assert_eq!(kept, BlobRef::from_bytes(&bytes, "text/plain"));
            assert!(blobs.blob(&kept).await.expect("content") == bytes);
        }
    }
}

pub async fn a_blob_is_read_in_parts(blobs: Arc<dyn Blobs>) {
    let bytes: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
    let whole = put(&*blobs, &bytes).await;
    for most in [300_000, bytes.len(), bytes.len() + 1] {
        let mut read = Vec::new();
        while read.len() < bytes.len() {
            let from = u64::try_from(read.len()).expect("a length");
            let part = blobs.blob_part(&whole, from, most).await.expect("a part");
            assert!(!part.is_empty() && part.len() <= most);
            read.extend(part);
        }
        assert!(read == bytes);
    }
    for from in [whole.bytes, whole.bytes + 1, u64::MAX] {
        assert_eq!(blobs.blob_part(&whole, from, 10).await.expect("nothing"), b"");
    }
    let empty = put(&*blobs, b"").await;
    assert_eq!(blobs.blob_part(&empty, 0, 10).await.expect("nothing"), b"");
    let other = BlobRef::from_bytes(b"not there", "text/plain");
    let error = blobs.blob_part(&other, 0, 10).await.expect_err("nothing to read");
    assert!(matches!(error, BlobError::Missing { digest } if digest == other.digest), "{error:?}");
    for length in [whole.bytes - 1, whole.bytes + 1, u64::MAX] {
        let wrong = BlobRef { bytes: length, ..whole.clone() };
        let error = blobs.blob_part(&wrong, 0, 10).await.expect_err("another length");
        assert!(matches!(error, BlobError::Corrupt { .. }), "{error:?}");
    }
}

pub async fn a_repeated_put_stores_one_blob_with_a_later_time(blobs: Arc<dyn Blobs>) {
    let first = put(&*blobs, b"same").await;
    let mut before = list(&*blobs).await;
    for _ in 0..3 {
        let again = blobs.put_blob(b"same".to_vec(), "text/html").await.expect("kept");
        assert_eq!((again.digest, again.bytes), (first.digest, 4));
        assert_eq!(again.media_type, "text/html");
        let after = list(&*blobs).await;
        assert_eq!(after.len(), 1);
        assert!(after[0].written_at > before[0].written_at, "{before:?} {after:?}");
        before = after;
    }
    assert_eq!(blobs.blob(&first).await.expect("content"), b"same");
}

pub async fn a_missing_blob_is_reported_as_missing(blobs: Arc<dyn Blobs>) {
    put(&*blobs, b"there").await;
    let other = BlobRef::from_bytes(b"not there", "text/plain");
    let error = blobs.blob(&other).await.expect_err("nothing to read");
    assert!(matches!(error, BlobError::Missing { digest } if digest == other.digest), "{error:?}");
    assert!(!blobs.touch_blob(other.digest).await.expect("an answer"));
    let seen = Timestamp::from_micros(1);
    assert!(!blobs.delete_blob(other.digest, seen).await.expect("an answer"));
}

pub async fn a_blob_of_another_length_is_damaged(blobs: Arc<dyn Blobs>) {
    let put = put(&*blobs, b"four").await;
    for bytes in [0, 3, 5, u64::MAX] {
        let wrong = BlobRef { bytes, ..put.clone() };
        let error = blobs.blob(&wrong).await.expect_err("another length");
        assert!(matches!(error, BlobError::Corrupt { .. }), "{error:?}");
    }
}

pub async fn a_touch_changes_only_the_time(blobs: Arc<dyn Blobs>) {
    let put = put(&*blobs, b"content").await;
    let before = list(&*blobs).await;
    assert!(blobs.touch_blob(put.digest).await.expect("an answer"));
    let after = list(&*blobs).await;
    assert!(after[0].written_at > before[0].written_at, "{before:?} {after:?}");
    assert_eq!(after, [StoredBlob { written_at: after[0].written_at, ..before[0] }]);
    assert_eq!(blobs.blob(&put).await.expect("content"), b"content");
}

pub async fn a_blob_is_removed_only_if_unchanged_since_listed(blobs: Arc<dyn Blobs>) {
    let blob = put(&*blobs, b"content").await;
    let seen = list(&*blobs).await[0].written_at;
    for wrong in [Timestamp::from_micros(1), seen.plus(Duration::from_micros(1))] {
        assert!(!blobs.delete_blob(blob.digest, wrong).await.expect("an answer"));
    }
    put(&*blobs, b"content").await;
    assert!(!blobs.delete_blob(blob.digest, seen).await.expect("an answer"));
    let seen = list(&*blobs).await[0].written_at;
    blobs.touch_blob(blob.digest).await.expect("an answer");
    assert!(!blobs.delete_blob(blob.digest, seen).await.expect("an answer"));
    assert_eq!(blobs.blob(&blob).await.expect("content"), b"content");
    let seen = list(&*blobs).await[0].written_at;
    assert!(blobs.delete_blob(blob.digest, seen).await.expect("an answer"));
    assert!(!blobs.delete_blob(blob.digest, seen).await.expect("an answer"));
    assert!(blobs.blob(&blob).await.is_err());
    assert!(list(&*blobs).await.is_empty());
    put(&*blobs, b"content").await;
    assert_eq!(blobs.blob(&blob).await.expect("content"), b"content");
}

pub async fn blobs_are_listed_in_pages_by_digest(blobs: Arc<dyn Blobs>) {
    let mut digests: Vec<Digest> = Vec::new();
    for number in 0..20_u8 {
        digests.push(put(&*blobs, &vec![number; usize::from(number)]).await.digest);
    }
    digests.sort();
    let mut found: Vec<StoredBlob> = Vec::new();
    loop {
        let after = found.last().map(|blob| blob.digest);
        let page = blobs.blobs(after, 7).await.expect("a page").blobs;
        assert!(page.len() <= 7);
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found.iter().map(|blob| blob.digest).collect::<Vec<_>>(), digests);
    assert_eq!(found.iter().map(|blob| blob.bytes).sum::<u64>(), (0..20).sum::<u64>());
    assert!(blobs.blobs(None, 0).await.expect("a page").blobs.is_empty());
    let last = digests.last().copied();
    assert!(blobs.blobs(last, 7).await.expect("a page").blobs.is_empty());
}

pub async fn concurrent_puts_of_one_blob_leave_it_intact(blobs: Arc<dyn Blobs>) {
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let blobs = blobs.clone();
        tasks.spawn(async move {
            let blob = put(&*blobs, b"shared").await;
            if number % 2 == 0 {
                assert!(blobs.touch_blob(blob.digest).await.expect("an answer"));
            }
            blobs.blob(&blob).await.expect("content right after its put")
        });
    }
    for read in tasks.join_all().await {
        assert_eq!(read, b"shared");
    }
    assert_eq!(list(&*blobs).await.len(), 1);
}

pub async fn garbage_collection_removes_old_unreferenced_blobs(blobs: Arc<dyn Blobs>) {
    let refs = MemoryStore::new();
    let free = put(&*blobs, b"free").await;
    let held = put(&*blobs, b"held").await;
    let mut story = Story::new(10);
    write(&refs, crate::Append { blobs: vec![held.digest], ..story.start() }).await;
    for (grace, dry_run, removed, young, referenced) in [
        (Duration::from_secs(3600), false, vec![], 2, 0),
        (Duration::ZERO, true, vec![free.digest], 0, 1),
        (Duration::ZERO, false, vec![free.digest], 0, 1),
        (Duration::ZERO, false, vec![], 0, 1),
    ] {
        let seen = list(&*blobs).await.len();
        let report = collect_garbage(&*blobs, &refs, grace, dry_run).await.expect("a report");
        assert_eq!(report.removed, removed, "{grace:?} {dry_run}");
        assert_eq!((report.seen, report.young, report.referenced), (seen, young, referenced));
        assert_eq!(report.removed_bytes, 4 * removed.len() as u64);
        assert!(report.spared == 0 && report.failed.is_empty(), "{report:?}");
    }
    assert!(blobs.blob(&free).await.is_err());
    assert_eq!(blobs.blob(&held).await.expect("content"), b"held");
}

/// Checks the schedule that loses a blob if removal ignores the time of writing: a writer puts a
/// blob that the collection has just found old and unreferenced, and refers to it after the
/// collection has ended.
pub async fn a_blob_put_during_collection_is_not_lost(blobs: Arc<dyn Blobs>) {
    let blob = put(&*blobs, b"content").await;
    for meanwhile in [Meanwhile::Put, Meanwhile::Touch] {
        let racing = Racing { inner: blobs.clone(), meanwhile };
        let report = run(&racing).await;
        assert_eq!((report.removed, report.spared), (vec![], 1), "{meanwhile:?}");
        assert_eq!(blobs.blob(&blob).await.expect("content"), b"content");
    }
    assert_eq!(run(&*blobs).await.removed, [blob.digest]);
    put(&*blobs, b"content").await;
    assert_eq!(blobs.blob(&blob).await.expect("content"), b"content");
}

pub async fn a_failed_removal_does_not_stop_the_others(blobs: Arc<dyn Blobs>) {
    for number in 0..5_u8 {
        put(&*blobs, &[number]).await;
    }
    let stuck = list(&*blobs).await[2].digest;
    let racing = Racing { inner: blobs.clone(), meanwhile: Meanwhile::Fail(stuck) };
    let report = run(&racing).await;
    assert_eq!((report.removed.len(), report.failed.len()), (4, 1));
    assert_eq!(report.failed[0].0, stuck);
    assert_eq!(run(&*blobs).await.removed, [stuck]);
}

/// Event between the listing of a collection and its removal.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    /// A writer puts `content`.
    Put,
    /// A writer touches a blob that is about to be removed.
    Touch,
    /// The blob store fails for this digest.
    Fail(Digest),
}

struct Racing {
    inner: Arc<dyn Blobs>,
    meanwhile: Meanwhile,
}

#[async_trait]
impl Blobs for Racing {
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError> {
        self.inner.put_blob(bytes, media_type).await
    }

    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError> {
        self.inner.touch_blob(digest).await
    }

    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        self.inner.blob(blob).await
    }

    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError> {
        match self.meanwhile {
            Meanwhile::Put => {
                put(&*self.inner, b"content").await;
            }
            Meanwhile::Touch => assert!(self.inner.touch_blob(digest).await?),
            Meanwhile::Fail(stuck) if stuck == digest => {
                return Err(StoreError::backend("remove content", "down for a test").into());
            }
            Meanwhile::Fail(_) => {}
        }
        self.inner.delete_blob(digest, seen).await
    }

    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError> {
        self.inner.blobs(after, limit).await
    }
}

async fn run(blobs: &dyn Blobs) -> GcReport {
    let refs = MemoryStore::new();
    collect_garbage(blobs, &refs, Duration::ZERO, false).await.expect("a report")
}

async fn put(blobs: &dyn Blobs, bytes: &[u8]) -> BlobRef {
    blobs.put_blob(bytes.to_vec(), "text/plain").await.expect("kept")
}

/// Returns these bytes in a file of their own.
fn spooled(bytes: &[u8]) -> Arc<SpooledFile> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("noetl-spooled-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("a file");
    let file = std::fs::File::open(&path).expect("the file");
    std::fs::remove_file(&path).expect("a file without a name");
    Arc::new(SpooledFile::new(BlobRef::from_bytes(bytes, "text/plain"), file))
}

async fn list(blobs: &dyn Blobs) -> Vec<StoredBlob> {
    blobs.blobs(None, 1000).await.expect("a page").blobs
}
