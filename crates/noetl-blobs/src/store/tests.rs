//! Schedules: what another writer does in the middle of a call.

use std::fmt;
use std::sync::Mutex;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use noetl_store::SystemClock;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::*;

#[tokio::test]
async fn content_put_during_a_removal_remains() {
    for what in [What::Put, What::Touch] {
        let (objects, blob) = content().await;
        let seen = newest(&objects).await;
        let blobs = interrupted(&objects, When::Delete, what);
        assert!(!blobs.delete_blob(blob.digest, seen).await.expect("an answer"), "{what:?}");
        assert_eq!(plain(&objects).blob(&blob).await.expect("content"), b"content", "{what:?}");
        assert!(newest(&objects).await > seen, "{what:?}");
    }
}

#[tokio::test]
async fn content_replaced_during_a_read_is_returned() {
    for what in [What::Put, What::Touch] {
        let (objects, blob) = content().await;
        let blobs = interrupted(&objects, When::Get, what);
        assert_eq!(blobs.blob(&blob).await.expect("content"), b"content", "{what:?}");
    }
}

#[tokio::test]
async fn content_removed_during_a_read_is_missing() {
    let (objects, blob) = content().await;
    let blobs = interrupted(&objects, When::Get, What::Remove);
    let error = blobs.blob(&blob).await.expect_err("nothing to read");
    assert!(matches!(error, BlobError::Missing { .. }), "{error:?}");
}

/// A touch succeeds only if the content then exists for another grace period.
#[tokio::test]
async fn a_touch_detects_concurrent_changes() {
    for (what, is_there) in [(What::Put, true), (What::Touch, true), (What::Remove, false)] {
        let (objects, blob) = content().await;
        let seen = newest(&objects).await;
        let blobs = interrupted(&objects, When::Copy, what);
        assert_eq!(blobs.touch_blob(blob.digest).await.expect("an answer"), is_there, "{what:?}");
        if is_there {
            assert!(newest(&objects).await > seen, "{what:?}");
        }
    }
}

/// With two concurrent writers of one blob, the first to finish removes only objects it has listed.
#[tokio::test]
async fn content_removed_during_a_put_exists_after_it() {
    for what in [What::Put, What::Touch, What::Remove] {
        let (objects, blob) = content().await;
        let blobs = interrupted(&objects, When::Put, what);
        blobs.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
        assert_eq!(plain(&objects).blob(&blob).await.expect("content"), b"content", "{what:?}");
    }
}

/// The call of the place in front of which something happens, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Put,
    Get,
    Copy,
    Delete,
}

/// Concurrent change by another writer.
#[derive(Debug, Clone, Copy)]
enum What {
    Put,
    Touch,
    Remove,
}

async fn content() -> (Arc<InMemory>, BlobRef) {
    let objects = Arc::new(InMemory::new());
    let put = plain(&objects).put_blob(b"content".to_vec(), "text/plain").await;
    (objects, put.expect("kept"))
}

fn plain(objects: &Arc<InMemory>) -> ObjectBlobs {
    ObjectBlobs::new(objects.clone(), Arc::new(SystemClock))
}

fn interrupted(objects: &Arc<InMemory>, when: When, what: What) -> ObjectBlobs {
    let inner = objects.clone();
    let meanwhile = Mutex::new(Some(happen(plain(objects), what).boxed()));
    let store = Interrupted { inner, when, meanwhile };
    ObjectBlobs::new(Arc::new(store), Arc::new(SystemClock))
}

async fn newest(objects: &Arc<InMemory>) -> Timestamp {
    let page = plain(objects).blobs(None, 1).await.expect("a page");
    page.blobs[0].written_at
}

async fn happen(other: ObjectBlobs, what: What) {
    let digest = Digest::of_bytes(b"content");
    match what {
        What::Put => {
            other.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
        }
        What::Touch => assert!(other.touch_blob(digest).await.expect("an answer")),
        What::Remove => {
            let seen = other.blobs(None, 1).await.expect("a page").blobs[0].written_at;
            assert!(other.delete_blob(digest, seen).await.expect("an answer"));
        }
    }
}

struct Interrupted {
    inner: Arc<InMemory>,
    when: When,
    meanwhile: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Interrupted {
    fn now(&self, when: When) -> BoxFuture<'static, ()> {
        let mut meanwhile = self.meanwhile.lock().expect("no test panics while it holds this");
        let due = meanwhile.take_if(|_| when == self.when);
        due.unwrap_or_else(|| async {}.boxed())
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupted")
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupted")
    }
}

#[async_trait]
impl ObjectStore for Interrupted {
    async fn put_opts(&self, at: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.now(When::Put).await;
        self.inner.put_opts(at, bytes, how).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, how).await
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        self.now(When::Get).await;
        self.inner.get_opts(at, how).await
    }

    fn delete_stream(
        &self,
        all: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let meanwhile = self.now(When::Delete);
        let inner = self.inner.clone();
        let deleted = meanwhile.map(move |()| inner.delete_stream(all));
        stream::once(deleted).flatten().boxed()
    }

    fn list(&self, under: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(under)
    }

    async fn list_with_delimiter(&self, under: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(under).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.now(When::Copy).await;
        self.inner.copy_opts(from, to, how).await
    }
}
