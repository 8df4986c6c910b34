//! Databases of every earlier schema with executions in flight: after the upgrade they finish.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_journal::StartRequest;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{ExecutionStatus, SystemClock};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

use crate::fixture::Fixture;
use crate::postgres::verify::verify_log;

const HEAD: &str =
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\nworkflow:\n";

/// Finishes without a timer.
const CHAIN: &str = "  - {step: a, tool: {kind: noop, result: 1}, next: {arcs: [{step: b}]}}\n  \
                     - {step: b, tool: {kind: noop, result: \"{{ a }}\"}}\n";

/// Sleeps, and so has a timer.
const WAITING: &str = "  - {step: a, tool: {kind: wait, seconds: 0.5}, next: {arcs: [{step: b}]}}\n  \
                       - {step: b, tool: {kind: noop, result: 1}}\n";

/// First version with executions: the first migration adopts the tables of a published server.
const FIRST: usize = 2;

/// Tables of an execution in flight, parents before children. A version has `event` or what replaced it.
const TABLES: [&str; 8] = [
    "catalog",
    "execution",
    "event",
    "event_row",
    "event_append",
    "event_lookup",
    "command",
    "due",
];

/// Returns the migrations in order.
fn migrations() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../noetl-store-postgres/migrations");
    let files = std::fs::read_dir(directory).expect("a directory");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    // The file without a number runs after each migration.
    let is_numbered = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('0'))
    };
    let files = files.into_iter().filter(is_numbered);
    files.map(|file| std::fs::read_to_string(file).expect("a text")).collect()
}

async fn open(database: &TestDatabase, slots: usize) -> (Arc<ControlPlane>, Arc<PostgresStore>) {
    let options = Options::new(&database.url()).expect("a URL");
    let store = Arc::new(PostgresStore::open(options).await.expect("a store"));
    let options = ControlOptions { slots, ..ControlOptions::default() };
    let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await;
    (Arc::new(control.expect("a control plane")), store)
}

async fn start(control: &ControlPlane, steps: &str) -> ExecutionId {
    let (tenant, text) = (Tenant::default(), format!("{HEAD}{steps}"));
    let entry = control.catalog.register(&tenant, text, "playbook", false).await;
    let catalog = Some(entry.expect("a playbook").0.id);
    let request = StartRequest { catalog, ..StartRequest::default() };
    control.journal.executions.start(&tenant, request).await.expect("a start").execution
}

/// Returns a database with the tables and columns of an earlier version.
fn as_of(version: usize, newest: &TestDatabase) -> TestDatabase {
    let database = TestDatabase::new();
    // One call for all: starting psql takes longer than most migrations.
    let mut script = String::from(
        "create schema noetl; create table noetl.schema_migration (version integer primary key, \
         name text not null, applied_at timestamptz not null default now());\n",
    );
    for (index, migration) in migrations().iter().take(version).enumerate() {
        let number = index + 1;
        let note = format!("insert into noetl.schema_migration values ({number}, 'm{number}')");
        writeln!(script, "begin;\n{migration};\ncommit;\n{note};").expect("a text grows");
    }
    database.psql(&script);
    for table in TABLES {
        let columns = format!(
            "select string_agg(quote_ident(column_name), ', ') from information_schema.columns \
             join information_schema.tables using (table_schema, table_name) \
             where table_schema = 'noetl' and table_name = '{table}' \
             and table_type = 'BASE TABLE' and is_generated = 'NEVER'"
        );
        let columns = database.psql(&columns);
        if columns.is_empty() {
            continue;
        }
        let rows = format!("select coalesce(json_agg(t), '[]') from noetl.{table} t");
        let rows = newest.psql(&rows).replace('\'', "''");
        database.psql(&format!(
            "insert into noetl.{table} ({columns}) overriding system value select {columns} \
             from json_populate_recordset(null::noetl.{table}, '{rows}')"
        ));
    }
    database
}

#[tokio::test(flavor = "multi_thread")]
async fn every_earlier_schema_is_upgraded_with_executions_in_flight() {
    let newest = TestDatabase::new();
    let (control, store) = open(&newest, 0).await;
    let (unclaimed, waits) = (start(&control, CHAIN).await, start(&control, WAITING).await);
    control.close().await;
    drop((control, store));
    for version in FIRST..=migrations().len() {
        let database = as_of(version, &newest);
        let has_timers = database.psql("select to_regclass('noetl.due') is not null") == "t";
        let (control, store) = open(&database, 4).await;
        let worker = noetl_test_app::worker(&control);
        // Executions with a timer cannot be older than timers.
        for id in [Some(unclaimed), has_timers.then_some(waits)].into_iter().flatten() {
            let row = control.journal.executions.wait_until_finished(&Tenant::default(), id).await;
            let row = row.expect("an answer").expect("an execution");
            assert_eq!(row.status, ExecutionStatus::Completed, "{version}: {:?}", row.error);
            verify_log(&*store, id).await;
        }
        // New executions finish too.
        let id = start(&control, CHAIN).await;
        let row = control.journal.executions.wait_until_finished(&Tenant::default(), id).await;
        let row = row.expect("an answer").expect("an execution");
        assert_eq!(row.status, ExecutionStatus::Completed, "{version}: {:?}", row.error);
        control.drain();
        worker.await.expect("a worker that ends");
        control.close().await;
    }
}

fn fixtures() -> Vec<Fixture> {
    Fixture::all(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../noetl-store-postgres/tests/fixtures"
    )))
}

/// Makes the database of a fixture.
fn loaded(fixture: &Fixture) -> TestDatabase {
    let database = TestDatabase::new();
    let output = Command::new("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(&fixture.sql)
        .arg(database.url())
        .output()
        .expect("psql is installed with the server");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let version = database.psql("select max(version) from noetl.schema_migration");
    assert_eq!(version, fixture.schema().to_string());
    database
}

async fn opened(database: &TestDatabase) -> Arc<PostgresStore> {
    let options = Options::new(&database.url()).expect("a URL");
    Arc::new(PostgresStore::open(options).await.expect("a store"))
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_of_earlier_programs_are_upgraded_and_their_executions_finish() {
    for fixture in fixtures() {
        let database = loaded(&fixture);
        fixture.check(opened(&database).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_event_fails_the_upgrade_check() {
    for fixture in fixtures() {
        let database = loaded(&fixture);
        let store = opened(&database).await;
        let last = database.psql("select max(event_id) from noetl.event");
        database.psql(&format!(
            "delete from noetl.event_row where event_id = {last};
             delete from noetl.event_append where last_event_id = {last}"
        ));
        let checked = tokio::spawn(async move { fixture.check(store).await }).await;
        assert!(checked.expect_err("a failed check").is_panic());
    }
}

#[test]
fn the_newest_schema_has_a_fixture() {
    let newest = fixtures().last().map(Fixture::schema);
    let reason = "add one with scripts/upgrade-fixture.sh";
    assert_eq!(newest, Some(migrations().len()), "{reason}");
}
