//! Cases about blob references, with blobs in the same store.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{ExecutionId, Seq};

use super::story::{Story, done, said, write};
use crate::{Append, Committed, Digest, Store, collect_garbage};

pub async fn references_are_written_with_their_append(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let [one, two, three] = digests();
    write(&*store, Append { blobs: vec![one, two, one], ..story.start() }).await;
    assert_eq!(references(&*store, 10).await, sorted([one, two]));
    write(&*store, Append { blobs: vec![two, three], ..story.then(vec![done()]) }).await;
    assert_eq!(references(&*store, 10).await, sorted([one, two, three]));
    assert!(references(&*store, 11).await.is_empty());
}

pub async fn references_of_an_uncommitted_append_do_not_exist(store: Arc<dyn Store>) {
    let [one, two, three] = digests();
    let mut story = Story::new(10);
    let repeated = Append { blobs: vec![two], ..story.clone().start() };
    let taken = Append { blobs: vec![two], ..Story { key: 1, ..story.clone() }.start() };
    write(&*store, Append { blobs: vec![one], ..story.start() }).await;
    let late = Append { blobs: vec![three], expected: Seq(3), ..story.then(vec![said("a")]) };
    let mut ahead = story.clone();
    let conflict = Append { blobs: vec![two], ..ahead.then(vec![said("b")]) };
    let mut unknown = Story::new(11);
    unknown.start();
    let unknown = Append { blobs: vec![two], ..unknown.then(vec![said("c")]) };
    let outcomes = store.commit(vec![repeated, taken, conflict, unknown, late]).await;
    let outcomes = outcomes.expect("outcomes");
    assert_eq!(outcomes[0], Committed::Repeated);
    assert_eq!(outcomes[1], Committed::Taken);
    assert!(matches!(outcomes[2], Committed::Conflict { .. }));
    assert!(matches!(outcomes[3], Committed::Conflict { .. }));
    assert_eq!(outcomes[4], Committed::Appended);
    assert_eq!(references(&*store, 10).await, sorted([one, three]));
    assert!(references(&*store, 11).await.is_empty());
}

pub async fn references_of_a_rejected_batch_do_not_exist(store: Arc<dyn Store>) {
    let [one, _, _] = digests();
    let good = Append { blobs: vec![one], ..Story::new(10).start() };
    let bad = Append { events: Vec::new(), ..Story::new(11).start() };
    store.commit(vec![good, bad]).await.expect_err("refused");
    assert!(references(&*store, 10).await.is_empty());
    assert_eq!(store.unreferenced(&[one]).await.expect("an answer"), [one]);
}

pub async fn a_blob_is_unreferenced_after_its_last_reference_is_removed(store: Arc<dyn Store>) {
    let [one, two, three] = digests();
    let asked = [three, one, two, one];
    write(&*store, Append { blobs: vec![one, two], ..Story::new(10).start() }).await;
    write(&*store, Append { blobs: vec![one], ..Story::new(11).of("acme").start() }).await;
    assert_eq!(store.unreferenced(&asked).await.expect("an answer"), [three]);
    assert_eq!(store.drop_references(ExecutionId::new(10)).await.expect("dropped"), 2);
    assert_eq!(store.drop_references(ExecutionId::new(10)).await.expect("dropped"), 0);
    assert_eq!(store.unreferenced(&asked).await.expect("an answer"), [three, two]);
    assert_eq!(store.drop_references(ExecutionId::new(11)).await.expect("dropped"), 1);
    assert_eq!(store.unreferenced(&asked).await.expect("an answer"), asked);
    assert_eq!(store.unreferenced(&[]).await.expect("an answer"), []);
}

/// Checks that a reference committed between a collection's listing and its removal retains the
/// blob, if both are in one database.
pub async fn a_blob_referenced_after_the_scan_is_retained(store: Arc<dyn Store>) {
    let blob = store.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    let seen = store.blobs(None, 1).await.expect("a page").blobs[0].written_at;
    assert_eq!(store.unreferenced(&[blob.digest]).await.expect("an answer"), [blob.digest]);
    write(&*store, Append { blobs: vec![blob.digest], ..Story::new(10).start() }).await;
    assert!(!store.delete_blob(blob.digest, seen).await.expect("an answer"));
    assert_eq!(store.blob(&blob).await.expect("content"), b"content");
    store.drop_references(ExecutionId::new(10)).await.expect("dropped");
    assert!(store.delete_blob(blob.digest, seen).await.expect("an answer"));
}

pub async fn garbage_collection_reads_all_pages(store: Arc<dyn Store>) {
    let mut held = Vec::new();
    for number in 0..600_u32 {
        let put = store.put_blob(number.to_le_bytes().to_vec(), "text/plain").await;
        let digest = put.expect("kept").digest;
        held.extend((number % 3 == 0).then_some(digest));
    }
    write(&*store, Append { blobs: held, ..Story::new(10).start() }).await;
    let blobs: Arc<dyn crate::Blobs> = store.clone();
    let refs: Arc<dyn crate::BlobRefs> = store.clone();
    let report = collect_garbage(&*blobs, &*refs, Duration::ZERO, false).await.expect("a report");
    assert_eq!((report.seen, report.referenced, report.removed.len()), (600, 200, 400));
    let left = store.blobs(None, 1000).await.expect("a page").blobs;
    assert_eq!(left.len(), 200);
}

pub(super) fn digests() -> [Digest; 3] {
    [b"one", b"two", b"six"].map(|text| Digest::of_bytes(text))
}

fn sorted<const N: usize>(mut digests: [Digest; N]) -> [Digest; N] {
    digests.sort();
    digests
}

pub(super) async fn references(store: &dyn Store, execution: i64) -> Vec<Digest> {
    store.references(ExecutionId::new(execution)).await.expect("a list")
}
