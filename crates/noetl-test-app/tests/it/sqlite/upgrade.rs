//! Files of every earlier schema with executions in flight: after the upgrade they finish.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_journal::StartRequest;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{ExecutionStatus, SystemClock};
use noetl_store_sqlite::{OpenError, Options, SqliteStore};
use noetl_views::verify;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fixture::Fixture;

const HEAD: &str =
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\nworkflow:\n";

/// Finishes without a timer.
const CHAIN: &str = "  - {step: a, tool: {kind: noop, result: 1}, next: {arcs: [{step: b}]}}\n  \
                     - {step: b, tool: {kind: noop, result: \"{{ a }}\"}}\n";

/// Sleeps, and so has a timer.
const WAITING: &str = "  - {step: a, tool: {kind: wait, seconds: 0.5}, next: {arcs: [{step: b}]}}\n  \
                       - {step: b, tool: {kind: noop, result: 1}}\n";

/// Returns the migrations in order.
fn migrations() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../noetl-store-sqlite/migrations");
    let files = std::fs::read_dir(directory).expect("a directory");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).expect("a text")).collect()
}

async fn open(path: &Path, slots: usize) -> Arc<ControlPlane> {
    let store = SqliteStore::open(Options::file(path)).expect("a store");
    let options = ControlOptions { slots, ..ControlOptions::default() };
    let control = ControlPlane::open(options, Arc::new(store), Arc::new(SystemClock)).await;
    Arc::new(control.expect("a control plane"))
}

async fn start(control: &ControlPlane, steps: &str) -> ExecutionId {
    let (tenant, text) = (Tenant::default(), format!("{HEAD}{steps}"));
    let entry = control.catalog.register(&tenant, text, "playbook", false).await;
    let catalog = Some(entry.expect("a playbook").0.id);
    let request = StartRequest { catalog, ..StartRequest::default() };
    control.journal.executions.start(&tenant, request).await.expect("a start").execution
}

/// Starts two executions: one with an unclaimed command, and one that waits for a timer.
async fn start_two(path: &Path) -> [ExecutionId; 2] {
    let control = open(path, 0).await;
    let begun = [start(&control, CHAIN).await, start(&control, WAITING).await];
    control.close().await;
    begun
}

/// Writes a file with the tables and columns of an earlier version.
fn as_of(version: usize, path: &Path, newest: &Path) {
    let file = Connection::open(path).expect("a file");
    for migration in migrations().iter().take(version) {
        file.execute_batch(migration).expect("a migration");
    }
    let marks = format!("pragma application_id = 0x4e6f544c; pragma user_version = {version};");
    file.execute_batch(&marks).expect("marks");
    file.execute("attach ?1 as newest", [newest.to_str().expect("a path")]).expect("a file");
    for table in names(&file, "select name from main.sqlite_schema where type = 'table'") {
        // The view of events has fewer columns than the tables of earlier versions.
        let columns = format!(
            "select name from pragma_table_info('{table}', 'main') intersect
             select name from pragma_table_info('{table}', 'newest')"
        );
        let columns = names(&file, &columns).join(", ");
        let copy = format!(
            "insert or replace into main.{table} ({columns}) select {columns} from newest.{table}"
        );
        file.execute_batch(&copy).expect("rows");
    }
}

fn names(file: &Connection, sql: &str) -> Vec<String> {
    let mut statement = file.prepare(sql).expect("a statement");
    let names = statement.query_map([], |row| row.get::<_, String>(0)).expect("names");
    names.map(|name| name.expect("a name")).filter(|name| !name.starts_with("sqlite_")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_earlier_schema_is_upgraded_with_executions_in_flight() {
    let directory = TempDir::new().expect("a directory");
    let newest = directory.path().join("newest.db");
    let [unclaimed, waits] = start_two(&newest).await;
    let all = migrations().len();
    for version in 1..=all {
        let path = directory.path().join(format!("v{version}.db"));
        as_of(version, &path, &newest);
        let file = Connection::open(&path).expect("a file");
        let has_timers =
            !names(&file, "select name from sqlite_schema where name = 'due'").is_empty();
        drop(file);
        let control = open(&path, 4).await;
        let worker = noetl_test_app::worker(&control);
        // Executions with a timer cannot be older than timers.
        for id in [Some(unclaimed), has_timers.then_some(waits)].into_iter().flatten() {
            let row = control.journal.executions.wait_until_finished(&Tenant::default(), id).await;
            let row = row.expect("an answer").expect("an execution");
            assert_eq!(row.status, ExecutionStatus::Completed, "{version}: {:?}", row.error);
        }
        // New executions finish too.
        let id = start(&control, CHAIN).await;
        let row = control.journal.executions.wait_until_finished(&Tenant::default(), id).await;
        let row = row.expect("an answer").expect("an execution");
        assert_eq!(row.status, ExecutionStatus::Completed, "{version}: {:?}", row.error);
        control.drain();
        worker.await.expect("a worker that ends");
        control.close().await;
        drop(control);
        if has_timers {
            let store = SqliteStore::look_at(path).expect("a look");
            let verified = verify(&store, ExecutionId::new(i64::MIN), 100).await.expect("a look");
            assert!(verified.problems.is_empty(), "{version}: {:?}", verified.problems);
        }
    }
}

#[tokio::test]
async fn a_newer_schema_is_rejected_and_left_unchanged() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("noetl.db");
    start_two(&path).await;
    let file = Connection::open(&path).expect("a file");
    let version = migrations().len() + 1;
    file.execute_batch(&format!("pragma user_version = {version}")).expect("a mark");
    drop(file);
    let before = std::fs::read(&path).expect("bytes");
    let refused = SqliteStore::open(Options::file(&path)).map(|_| ()).expect_err("a refusal");
    let OpenError::Newer { found, known, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!((*found, *known + 1), (version as i64, version as i64));
    assert_eq!(std::fs::read(&path).expect("bytes"), before, "nothing was written");
}

fn fixtures() -> Vec<Fixture> {
    Fixture::all(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../noetl-store-sqlite/tests/fixtures"
    )))
}

/// Makes the database of a fixture in this directory, and returns its path.
fn loaded(fixture: &Fixture, directory: &TempDir) -> PathBuf {
    let name = fixture.sql.with_extension("db");
    let path = directory.path().join(name.file_name().expect("a name"));
    let file = Connection::open(&path).expect("a file");
    let sql = std::fs::read_to_string(&fixture.sql).expect("a fixture");
    file.execute_batch(&sql).expect("its rows");
    let version = file.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    assert_eq!(version, Ok(fixture.schema() as i64));
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_of_earlier_programs_are_upgraded_and_their_executions_finish() {
    let directory = TempDir::new().expect("a directory");
    for fixture in fixtures() {
        let path = loaded(&fixture, &directory);
        let store = SqliteStore::open(Options::file(path)).expect("a store");
        fixture.check(Arc::new(store)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_event_fails_the_upgrade_check() {
    for fixture in fixtures() {
        let directory = TempDir::new().expect("a directory");
        let path = loaded(&fixture, &directory);
        drop(SqliteStore::open(Options::file(&path)).expect("a store"));
        let file = Connection::open(&path).expect("a file");
        let last = |table| {
            file.execute(
                &format!("delete from {table} where rowid = (select max(rowid) from {table})"),
                [],
            )
        };
        // Appends are behind the rows of earlier versions.
        let deleted = last("event_append").expect("a deletion");
        assert!(deleted == 1 || last("event_row") == Ok(1));
        drop(file);
        let store = SqliteStore::open(Options::file(path)).expect("a store");
        let checked = tokio::spawn(async move { fixture.check(Arc::new(store)).await }).await;
        assert!(checked.expect_err("a failed check").is_panic());
    }
}

#[test]
fn the_newest_schema_has_a_fixture() {
    let newest = fixtures().last().map(Fixture::schema);
    let reason = "add one with scripts/upgrade-fixture.sh";
    assert_eq!(newest, Some(migrations().len()), "{reason}");
}
