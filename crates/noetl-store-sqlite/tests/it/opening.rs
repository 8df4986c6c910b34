//! What can be in the way of opening, and what the caller is told.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use noetl_store::conformance::story::{Story, log, write};
use noetl_store::{BlobError, Blobs};
use noetl_store_sqlite::{OpenError, Options, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

fn place() -> (PathBuf, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    (directory.path().join("noetl.db"), directory)
}

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(Options::file(path))
}

fn refusal(path: &Path) -> OpenError {
    open(path).map(|_| ()).expect_err("a refusal")
}

/// A closed store with enough in it to have many pages.
async fn filled(path: &Path) {
    let store = open(path).expect("a new store");
    for id in 0..200 {
        write(&store, Story::new(10 + id).start()).await;
    }
    store.close().await;
}

/// Makes the file look as if its owner had died.
fn leave_open(path: &Path) {
    fs::write(path.with_extension("db.lock"), "1\n").expect("a lock file");
}

#[tokio::test]
async fn a_reopened_store_has_everything() {
    let (path, _directory) = place();
    let mut story = Story::new(10);
    let store = open(&path).expect("a new store");
    write(&store, story.start()).await;
    drop(store);
    assert!(!path.with_extension("db-wal").exists(), "the log was copied");
    let store = open(&path).expect("the same store");
    assert_eq!(log(&store, story.id()).await.len(), 3);
    write(&store, story.then(vec![noetl_store::conformance::story::done()])).await;
    store.close().await;
    let store = open(&path).expect("the same store");
    assert_eq!(log(&store, story.id()).await.len(), 4);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_database_its_directory_and_its_backup_are_for_their_owner_alone() {
    let (path, _directory) = place();
    let path = path.with_file_name("data").join("noetl.db");
    let store = open(&path).expect("a new store");
    write(&store, Story::new(10).start()).await;
    let copy = path.with_file_name("copy.db");
    noetl_store_sqlite::backup(&path, &copy, |_, _| {}).expect("a copy");
    assert_eq!(mode(path.parent().expect("a directory")), 0o700);
    for file in [path.clone(), path.with_extension("db-wal"), path.with_extension("db-shm"), copy] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    store.close().await;
}

#[tokio::test]
async fn a_database_that_others_could_read_is_closed_to_them_when_it_is_opened() {
    let (path, _directory) = place();
    filled(&path).await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).expect("another mode");
    open(&path).expect("the same store").close().await;
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_missing_directory_is_made() {
    let (path, _directory) = place();
    let deep = path.with_file_name("a").join("b").join("noetl.db");
    open(&deep).expect("a new store").close().await;
    assert!(deep.exists());
}

#[test]
fn an_empty_file_becomes_a_store() {
    let (path, _directory) = place();
    fs::write(&path, "").expect("an empty file");
    open(&path).expect("a new store");
}

#[test]
fn a_text_file_is_not_a_database() {
    let (path, _directory) = place();
    for text in ["hello", &"not a database, but longer than a header of one. ".repeat(500)] {
        fs::write(&path, text).expect("a file");
        let error = refusal(&path);
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("{} is not a SQLite file", path.display()));
        assert_eq!(fs::read_to_string(&path).expect("the file"), text, "left as it was");
    }
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    for application in [0, 77] {
        let (path, _directory) = place();
        let theirs = Connection::open(&path).expect("a database");
        theirs.execute_batch("create table theirs (id integer)").expect("a table");
        theirs.pragma_update(None, "application_id", application).expect("a mark");
        theirs.close().expect("a closed database");
        let before = fs::read(&path).expect("the file");
        let error = refusal(&path);
        assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");
        let text = format!("{} is a SQLite file of another program", path.display());
        assert_eq!(error.to_string(), text);
        assert_eq!(fs::read(&path).expect("the file"), before);
    }
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let (path, _directory) = place();
    drop(open(&path).expect("a new store"));
    let file = Connection::open(&path).expect("the database");
    file.pragma_update(None, "user_version", 999).expect("a version");
    file.close().expect("a closed database");
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Newer { found: 999, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("has schema version 999, and this program knows "), "{text}");
    assert!(text.ends_with(": a newer version wrote the file"), "{text}");
}

#[tokio::test]
async fn a_file_of_the_first_version_is_brought_up_to_date() {
    let (path, _directory) = place();
    let file = Connection::open(&path).expect("a new database");
    file.execute_batch(include_str!("../../migrations/0001_store.sql")).expect("a schema");
    file.pragma_update(None, "application_id", 0x4e6f_544c).expect("a mark");
    file.pragma_update(None, "user_version", 1).expect("a version");
    file.close().expect("a closed database");
    let store = open(&path).expect("a store");
    let blob = store.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    assert_eq!(store.blob(&blob).await.expect("content"), b"content");
}

#[tokio::test]
async fn damaged_content_is_found_out_and_made_whole_by_a_put() {
    let (path, _directory) = place();
    let store = open(&path).expect("a store");
    let blob = store.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    drop(store);
    let file = Connection::open(&path).expect("the database");
    file.execute("update blob_data set data = x'00010203040506'", []).expect("damage");
    file.close().expect("a closed database");
    let store = open(&path).expect("a store");
    let error = store.blob(&blob).await.expect_err("damaged content");
    assert!(matches!(error, BlobError::Corrupt { .. }), "{error:?}");
    store.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    assert_eq!(store.blob(&blob).await.expect("content"), b"content");
}

#[tokio::test]
async fn a_damaged_file_that_was_left_open_is_found_out() {
    let (path, _directory) = place();
    filled(&path).await;
    let mut bytes = fs::read(&path).expect("the file");
    let middle = bytes.len() / 2 / 8192 * 8192;
    bytes[middle..middle + 4096].fill(0xa5);
    fs::write(&path, &bytes).expect("the file");
    leave_open(&path);
    for _ in 0..2 {
        let error = refusal(&path);
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains(" is damaged: "), "{error}");
    }
}

#[tokio::test]
async fn a_damaged_schema_is_found_out() {
    let (path, _directory) = place();
    filled(&path).await;
    let mut bytes = fs::read(&path).expect("the file");
    bytes[100..8192].fill(0xa5);
    fs::write(&path, &bytes).expect("the file");
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn a_sound_file_that_was_left_open_opens() {
    let (path, _directory) = place();
    filled(&path).await;
    leave_open(&path);
    open(&path).expect("the same store");
}

#[test]
fn a_second_owner_is_told_the_name_of_the_first() {
    let (path, _directory) = place();
    let first = open(&path).expect("a new store");
    let error = refusal(&path);
    let me = std::process::id();
    assert!(matches!(error, OpenError::InUse { pid: Some(pid), .. } if pid == me), "{error:?}");
    let text = format!("{} is in use by process {me}", path.display());
    assert_eq!(error.to_string(), text);
    drop(first);
    open(&path).expect("the lock was given back");
}

#[test]
fn a_directory_in_the_file_s_place_is_named() {
    let (path, _directory) = place();
    fs::create_dir(&path).expect("a directory");
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("could not open {}", path.display()));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let (path, _directory) = place();
    fs::write(&path, "in the way").expect("a file");
    let error = refusal(&path.join("noetl.db"));
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("could not make the directory {}", path.display()));
}

#[test]
fn a_lock_file_that_cannot_be_made_is_named() {
    let (path, _directory) = place();
    let lock = path.with_extension("db.lock");
    fs::create_dir(&lock).expect("a directory");
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("could not open the lock file {}", lock.display()));
}
