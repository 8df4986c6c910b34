//! Checks that a commit waits for the disk, by counting the syncs of a process that commits.
//!
//! The process is this test binary, started again with a library in front of `fsync` and `fdatasync`.
//! Two variants that wait for less show that the check can fail.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use noetl_store::conformance::story::{Story, said, write};
use noetl_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::Connection;
use tempfile::TempDir;

/// Commits of a child, far too few for a checkpoint.
const COMMITS: usize = 20;

/// Directory of a child's database.
const DIRECTORY: &str = "NOETL_TEST_SYNCS_DIRECTORY";
/// Settings a child commits with.
const SETTINGS: &str = "NOETL_TEST_SYNCS_SETTINGS";
/// File to which the library adds a line per sync.
const NOTES: &str = "NOETL_TEST_SYNCS";

/// Passes without doing anything, except in a child: there it commits, and prints how often the
/// write-ahead log was synced meanwhile.
#[tokio::test]
async fn a_child_commits_and_counts_syncs() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let path = Path::new(&directory).join("noetl.db");
    let notes = std::env::var_os(NOTES).expect("a file for notes");
    let settings = std::env::var_os(SETTINGS).and_then(|text| OsString::into_string(text).ok());
    let syncs = match settings.as_deref() {
        Some("default") => committed_by_store(Options::file(path), Path::new(&notes)).await,
        Some("normal") => {
            let options = Options { synchronous: Synchronous::Normal, ..Options::file(path) };
            committed_by_store(options, Path::new(&notes)).await
        }
        Some("off") => committed_without_syncs(&path, Path::new(&notes)),
        other => panic!("no settings {other:?}"),
    };
    println!("syncs {syncs}");
}

async fn committed_by_store(options: Options, notes: &Path) -> usize {
    let store = SqliteStore::open(options).expect("a store");
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    let before = syncs_of_log(notes);
    for _ in 0..COMMITS {
        write(&store, story.then(vec![said("again")])).await;
    }
    let syncs = syncs_of_log(notes) - before;
    store.close().await;
    syncs
}

/// Commits through a connection like the store's, except for the setting that the store never uses.
fn committed_without_syncs(path: &Path, notes: &Path) -> usize {
    let connection = Connection::open(path).expect("a database");
    connection
        .execute_batch(
            "pragma journal_mode = wal; pragma synchronous = off; pragma wal_autocheckpoint = 0; \
             create table t (text text)",
        )
        .expect("a table");
    let before = syncs_of_log(notes);
    for _ in 0..COMMITS {
        connection.execute("insert into t values ('again')", []).expect("a commit");
    }
    syncs_of_log(notes) - before
}

/// Returns how often a write-ahead log was synced so far.
fn syncs_of_log(notes: &Path) -> usize {
    let notes = std::fs::read_to_string(notes).unwrap_or_default();
    notes.lines().filter(|line| line.ends_with("-wal")).count()
}

/// Returns the syncs that a child with these settings counted during its commits.
fn syncs(settings: &str) -> usize {
    let directory = TempDir::new().expect("a temporary directory");
    let library = directory.path().join("syncs.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/syncs.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    assert!(compiled.expect("a C compiler").success());
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "syncs::a_child_commits_and_counts_syncs", "--nocapture"])
        .env("LD_PRELOAD", &library)
        .env(NOTES, directory.path().join("notes"))
        .env(DIRECTORY, directory.path())
        .env(SETTINGS, settings)
        .output()
        .expect("a child");
    assert!(child.status.success(), "{child:?}");
    let text = String::from_utf8_lossy(&child.stdout);
    let counted = text.lines().find_map(|line| line.split_once("syncs ")?.1.parse().ok());
    counted.unwrap_or_else(|| panic!("no count in {text}"))
}

#[test]
fn every_commit_of_a_store_syncs_the_write_ahead_log() {
    let syncs = syncs("default");
    assert!(syncs >= COMMITS, "{syncs} syncs for {COMMITS} commits");
}

#[test]
fn commits_that_do_not_wait_for_the_disk_are_noticed() {
    for settings in ["normal", "off"] {
        let syncs = syncs(settings);
        assert!(syncs < COMMITS, "{settings}: {syncs} syncs for {COMMITS} commits");
    }
}
