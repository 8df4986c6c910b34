//! What is left after a process died or the disk was full.
//!
//! The victim is this test binary, started again with one test that does as its environment says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use noetl_model::{ExecutionId, Seq, Tenant};
use noetl_store::conformance::story::{Story, called, log, said, write};
use noetl_store::{Committed, EventLog, ExecutionStore, StoreError};
use noetl_store_sqlite::{OpenError, Options, SqliteStore};
use serde_json::json;
use tempfile::TempDir;

const PATH: &str = "NOETL_TEST_VICTIM_PATH";

/// Does nothing by itself. As a victim it appends for as long as it can and says each version
/// that it was told is durable.
#[tokio::test]
async fn a_victim_appends_until_it_cannot() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let store = SqliteStore::open(Options::file(path)).expect("a store");
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    loop {
        let append = story.clone().then(vec![said("again"), called(story.command_at(3), large())]);
        let version = append.row.version;
        match store.commit(vec![append.clone()]).await {
            Ok(outcomes) => assert_eq!(outcomes, [Committed::Appended]),
            Err(StoreError::Full(_)) => break,
            Err(other) => panic!("{other:?}"),
        }
        story.row = append.row;
        println!("durable {version}");
    }
    assert_eq!(log(&store, story.id()).await.len() as u64, story.row.version.0);
    println!("full {}", story.row.version);
    store.close().await;
}

fn large() -> noetl_model::Value {
    json!("x".repeat(20_000))
}

#[tokio::test]
async fn a_killed_owner_leaves_everything_it_was_promised() {
    for lines in [1, 7, 40] {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("noetl.db");
        let mut victim = victim("exec \"$0\" \"$@\"", &path);
        let mut promised = said_by(&mut victim).take(lines).last().expect("a promise").1;
        let held = SqliteStore::open(Options::file(&path)).map(|_| ()).expect_err("a lock");
        assert!(
            matches!(held, OpenError::InUse { pid: Some(pid), .. } if pid == victim.id()),
            "{held:?}"
        );
        victim.kill().expect("a kill");
        victim.wait().expect("an end");
        for (_, version) in said_by(&mut victim) {
            promised = version;
        }
        check(&path, promised).await;
    }
}

#[tokio::test]
async fn a_full_disk_fails_the_commit_and_nothing_else() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("noetl.db");
    // A limit on the size of files (in blocks of 512 bytes) whose signal is ignored fails writes
    // as a full disk does, without the right to mount one.
    let mut victim = victim("trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"", &path);
    let (word, promised) = said_by(&mut victim).last().expect("a promise");
    assert_eq!(word, "full");
    assert!(promised > Seq(20), "some of it was written");
    assert!(victim.wait().expect("an end").success());
    check(&path, promised).await;
}

fn victim(script: &str, path: &Path) -> Child {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    command.arg(std::env::current_exe().expect("this program"));
    command.args(["--exact", "durability::a_victim_appends_until_it_cannot", "--nocapture"]);
    command.env(PATH, path).stdout(Stdio::piped());
    command.spawn().expect("a victim")
}

/// What a victim says, as words and versions, until it ends or the caller has enough.
fn said_by(victim: &mut Child) -> impl Iterator<Item = (String, Seq)> {
    let output = victim.stdout.as_mut().expect("a pipe");
    let lines = BufReader::with_capacity(1, output).lines();
    lines.map_while(Result::ok).filter_map(|line| {
        let (word, number) = line.split_once(' ')?;
        Some((word.to_owned(), Seq(number.parse().ok()?)))
    })
}

/// Everything that was promised is there, without a gap, and the store goes on.
async fn check(path: &Path, promised: Seq) {
    let store = SqliteStore::open(Options::file(path)).expect("a readable store");
    let id = ExecutionId::new(10);
    let row = store.execution(&Tenant::default(), id).await.expect("a read");
    let row = row.expect("an execution");
    assert!(row.version >= promised, "{} is less than {promised}", row.version);
    let log = log(&store, id).await;
    let places: Vec<u64> = log.iter().map(|event| event.seq.0).collect();
    assert_eq!(places, Vec::from_iter(1..=row.version.0));
    let mut story = Story { row, ..Story::new(10) };
    write(&store, story.then(vec![said("after it")])).await;
}
