//! Content in a directory, and what a crash or a disk can leave there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noetl_blobs::{BlobLocation, ObjectBlobs, OpenError, open};
use noetl_store::{BlobError, Blobs, MemoryStore, SystemClock, blobs_suite, collect_garbage};
use tempfile::TempDir;

blobs_suite!(directory, async || {
    let directory = TempDir::new().expect("a temporary directory");
    let blobs: Arc<dyn Blobs> = Arc::new(place(directory.path()));
    (blobs, directory)
});

#[tokio::test]
async fn content_survives_a_restart_of_the_process() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("not/yet/there");
    let blob = place(&path).put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    assert_eq!(place(&path).blob(&blob).await.expect("content"), b"content");
}

#[tokio::test]
async fn damaged_content_is_detected_and_repaired_by_a_put() {
    let directory = TempDir::new().expect("a temporary directory");
    let blobs = place(directory.path());
    let blob = blobs.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    for damage in ["", "cont", "CONTENT"] {
        let [file] = files(directory.path()).try_into().expect("one file");
        fs::write(file, damage).expect("damage");
        let error = blobs.blob(&blob).await.expect_err("damaged content");
        assert!(matches!(error, BlobError::Corrupt { .. }), "{error:?}");
        blobs.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
        assert_eq!(blobs.blob(&blob).await.expect("content"), b"content");
    }
}

/// A writer that is killed between writing its copy and removing the older one leaves two copies.
#[tokio::test]
async fn a_copy_left_by_a_crash_is_not_listed_and_is_removed() {
    let directory = TempDir::new().expect("a temporary directory");
    let blobs = place(directory.path());
    let blob = blobs.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    let leave_copy = || {
        let [file] = files(directory.path()).try_into().expect("one file");
        let older = file.with_file_name("0000000000000000007-00000000000000aa");
        fs::write(older, "older").expect("a copy");
    };
    leave_copy();
    let listed = blobs.blobs(None, 10).await.expect("a page").blobs;
    assert_eq!((listed.len(), listed[0].bytes), (1, 7));
    assert_eq!(blobs.blob(&blob).await.expect("content"), b"content");
    blobs.touch_blob(blob.digest).await.expect("an answer");
    assert_eq!(files(directory.path()).len(), 1);
    leave_copy();
    let report = collect_garbage(&blobs, &MemoryStore::new(), Duration::ZERO, false).await;
    assert_eq!(report.expect("a report").removed, [blob.digest]);
    assert!(files(directory.path()).is_empty());
}

#[tokio::test]
async fn incomplete_and_foreign_files_are_not_content() {
    let directory = TempDir::new().expect("a temporary directory");
    let blobs = place(directory.path());
    let blob = blobs.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    let [file] = files(directory.path()).try_into().expect("one file");
    // What an upload that was cut short is called.
    let mut partial = file.clone().into_os_string();
    partial.push("#1");
    fs::write(partial, "cont").expect("a file");
    for name in ["9999999999999999999-zz", "notes.txt"] {
        fs::write(file.with_file_name(name), "not ours").expect("a file");
    }
    fs::write(directory.path().join("README"), "not ours").expect("a file");
    let listed = blobs.blobs(None, 10).await.expect("a page").blobs;
    assert_eq!((listed.len(), listed[0].bytes), (1, 7));
    assert_eq!(blobs.blob(&blob).await.expect("content"), b"content");
}

#[tokio::test]
async fn removing_content_leaves_no_files() {
    let directory = TempDir::new().expect("a temporary directory");
    let blobs = place(directory.path());
    for number in 0..10_u8 {
        blobs.put_blob(vec![number], "text/plain").await.expect("kept");
    }
    collect_garbage(&blobs, &MemoryStore::new(), Duration::ZERO, false).await.expect("a report");
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 0);
}

#[test]
fn an_error_names_the_directory_that_cannot_be_created() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("file");
    fs::write(&path, "in the way").expect("a file");
    let error = open(&BlobLocation::Directory(path.join("x")), [], Arc::new(SystemClock));
    let error = error.expect_err("a file is in the way");
    assert!(matches!(&error, OpenError::Directory { .. }), "{error:?}");
    assert!(error.to_string().ends_with("file/x"), "{error}");
}

#[test]
fn the_database_location_opens_no_separate_store() {
    let opened = open(&BlobLocation::Database, [], Arc::new(SystemClock)).expect("nothing to open");
    assert!(opened.is_none());
}

fn place(path: &Path) -> ObjectBlobs {
    let opened = open(&BlobLocation::Directory(path.to_owned()), [], Arc::new(SystemClock));
    opened.expect("a place").expect("a directory is a place of its own")
}

/// Returns every file below a directory.
fn files(path: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(path).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => paths.extend(files(&path)),
            false => paths.push(path),
        }
    }
    paths
}
