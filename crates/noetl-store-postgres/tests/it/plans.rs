//! Plans of the statements that publish, import, and read the log. They must not depend on statistics:
//! a fresh database has none, and neither has the partition of a new quarter.

use std::time::{Duration, Instant};

use noetl_model::event::ImportedEvent;
use noetl_model::{EventId, ExecutionId, Seq, Tenant, Timestamp};
use noetl_store::tail::LogTail;
use noetl_store::{CommandFilter, CommandStore, EventLog, Import, ImportOutcome, ImportStore};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

const LANE: u16 = 3;

/// A statement, and what its plan may and must contain.
struct Case {
    sql: &'static str,
    settings: &'static str,
    types: &'static str,
    /// With `X` for the execution.
    arguments: &'static str,
    /// Ends of the names of the indexes that the plan reads, each at least once.
    indexes: &'static [&'static str],
    /// Parts of the conditions that may be checked row by row.
    filters: &'static [&'static str],
    /// How many times rows are sorted that the statement has selected before.
    sorts: usize,
}

const BY_KEY: &str = include_str!("../../queries/begin_by_key.sql");
const IN_ORDER: &str = include_str!("../../queries/begin_in_order.sql");

const CASES: &[Case] = &[
    Case {
        sql: include_str!("../../queries/import_lock.sql"),
        settings: IN_ORDER,
        types: "bigint[]",
        arguments: "array[X]",
        indexes: &["execution_pkey", "_execution_id_seq_idx", "event_default_pkey"],
        filters: &[],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/import_close.sql"),
        settings: IN_ORDER,
        types: "bigint[], bigint[], text[], text[], bigint[], text[], bigint[], timestamptz[], \
                timestamptz[], timestamptz[], text[], bigint[], bigint[], bigint[], text[], \
                bigint[], bigint[], bigint[]",
        arguments: "array[X], null, null, null, null, null, null, null, null, null, null, null, \
                    null, null, null, null, null, null",
        indexes: &["execution_pkey"],
        filters: &[],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/event_read.sql"),
        settings: IN_ORDER,
        types: "bigint, bigint, bigint",
        arguments: "X, 7, 500",
        indexes: &["_execution_id_seq_idx", "_pkey"],
        filters: &["last_seq"],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/event_rows.sql"),
        settings: IN_ORDER,
        types: "bigint, bigint, bigint, timestamp, bigint, bigint",
        arguments: "X, X, X + 9999999, null, 500, 8000000",
        indexes: &["_pkey"],
        filters: &["packed_before", "bytes_before", "created_at", "is_key"],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/event_least_since.sql"),
        settings: IN_ORDER,
        types: "bigint, bigint",
        arguments: "X, 7",
        indexes: &["_execution_id_seq_idx", "_pkey"],
        filters: &["(seq >", "last_seq"],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/event_tail.sql"),
        settings: IN_ORDER,
        types: "smallint, bigint, bigint, bigint",
        arguments: "3, 7, 500, 8000000",
        indexes: &[
            "_lane_position_idx",
            "_execution_id_seq_idx",
            "execution_pkey",
            "subscription_pkey",
            "_pkey",
        ],
        filters: &["bytes_before"],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/event_tail_adopted.sql"),
        settings: IN_ORDER,
        types: "bigint, bigint, bigint",
        arguments: "7, 500, 8000000",
        indexes: &["_event_id_idx", "execution_pkey"],
        filters: &["bytes_before"],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/outbox_claim.sql"),
        settings: IN_ORDER,
        types: "interval, bigint, bigint",
        arguments: "'1 minute', 500, 8000000",
        indexes: &["outbox_open", "outbox_pkey"],
        filters: &["CASE status", "counted.bytes"],
        sorts: 2,
    },
    Case {
        sql: include_str!("../../queries/outbox_pending.sql"),
        settings: BY_KEY,
        types: "interval",
        arguments: "'1 minute'",
        indexes: &["outbox_open"],
        filters: &["CASE status"],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/command_take_ended.sql"),
        settings: IN_ORDER,
        types: "bigint, interval",
        arguments: "500, '1 minute'",
        indexes: &["command_lease", "command_pkey"],
        filters: &[],
        sorts: 0,
    },
    Case {
        sql: include_str!("../../queries/command_end_held.sql"),
        settings: BY_KEY,
        types: "text, text",
        arguments: "'default', 'w'",
        indexes: &["command_holder", "command_pkey", "execution_pkey"],
        filters: &["SubPlan"],
        sorts: 1,
    },
    Case {
        sql: include_str!("../../queries/command_limit_worker.sql"),
        settings: BY_KEY,
        types: "text, text, interval",
        arguments: "'default', 'w', '5 minutes'",
        indexes: &["command_holder", "command_pkey", "execution_pkey"],
        filters: &["lease_max", "SubPlan"],
        sorts: 1,
    },
    Case {
        sql: include_str!("../../queries/command_limit_listed.sql"),
        settings: BY_KEY,
        types: "text, bigint[], interval",
        arguments: "'default', '{1,2,3}', '5 minutes'",
        indexes: &["command_event", "command_pkey", "execution_pkey"],
        filters: &["lease_max", "SubPlan"],
        sorts: 1,
    },
];

/// Adds rows of one execution in the quarter that is `quarter` after this one.
fn add_rows(database: &TestDatabase, quarter: u32, from: u32, to: u32) {
    database.psql(&format!(
        "with bounds as (
             select lower_bound + 5 as id from noetl.event_bounds_2()
             where lower_bound is not null order by lower_bound offset {quarter} limit 1
         ), execution as (
             insert into noetl.execution (execution_id, status) select id, 'RUNNING' from bounds
             on conflict do nothing
         ), outbox as (
             insert into noetl.outbox (execution_id, event_id, body)
             select id, id + 100 + n, '1' from bounds, generate_series({from}, {to}) n
         ), command as (
             insert into noetl.command (command_id, event_id, execution_id, step_name, lease_until)
             select n, id + 100 + n, id, 'a', now() from bounds, generate_series({from}, {to}) n
         ), lookup as (
             insert into noetl.event_lookup (execution_id, id, is_key, seq)
             select id, id + 100 + n, false, n from bounds, generate_series({from}, {to}) n
         ), append as (
             insert into noetl.event_append (
                 execution_id, first_seq, last_seq, last_event_id, created_at, lane, position, body
             )
             select id, n, n, id + 100 + n, now(), {LANE}, {quarter} * 100000 + n, '[[\"told\"]]'
             from bounds, generate_series({from}, {to}) n
         )
         insert into noetl.event_row (execution_id, seq, event_id, event_type, lane, position, meta)
         select id, n, id + 100 + n, 'told', {LANE}, {quarter} * 100000 + n, '{{}}'
         from bounds, generate_series({from}, {to}) n"
    ));
}

/// Makes the planner expect one row of each execution, in pages that are cheap to reach.
fn expect_one_row(database: &TestDatabase) {
    let partition = partition(database);
    database.psql(&format!(
        "alter table noetl.{partition} alter column execution_id set (n_distinct = -1)"
    ));
    database.psql(&format!("analyze noetl.{partition}"));
    database.psql(
        "do $$ begin
             execute format('alter database %I set random_page_cost = 1.1', current_database());
         end $$",
    );
}

/// Spreads an index of this quarter's partition over many pages, so that it has one level more.
fn deepen(database: &TestDatabase, index: &str) {
    let index = format!("noetl.{}_{index}", partition(database));
    database.psql(&format!("alter index {index} set (fillfactor = 10)"));
    database.psql(&format!("reindex index {index}"));
}

/// Returns the name of this quarter's partition.
fn partition(database: &TestDatabase) -> String {
    let sql = "select partition from noetl.event_bounds_2() \
               where lower_bound is not null order by lower_bound limit 1";
    database.psql(sql)
}

/// Explains every case with a plan for these values, and with one for any.
fn check_plans(database: &TestDatabase, quarter: u32, state: &str) {
    let execution = format!(
        "(select lower_bound + 5 from noetl.event_bounds_2()
          where lower_bound is not null order by lower_bound offset {quarter} limit 1)"
    );
    let execution = database.psql(&format!("select {execution}"));
    let mut script = String::new();
    let cases = || {
        let modes = ["force_custom_plan", "force_generic_plan"];
        CASES.iter().flat_map(move |case| modes.map(|mode| (case, mode)))
    };
    for (case, mode) in cases() {
        let arguments = case.arguments.replace('X', &execution);
        script += &format!(
            "{} set local plan_cache_mode = {mode};
             prepare wanted ({}) as {};
             explain (costs off) execute wanted ({arguments});
             rollback; deallocate wanted; select '{END}';\n",
            case.settings, case.types, case.sql
        );
    }
    let plans = database.psql(&script);
    for ((case, mode), plan) in cases().zip(plans.split(END)) {
        check_plan(case, plan, &format!("{state}, {mode}:\n{}{plan}", case.sql));
    }
}

/// Ends each plan in the output of `psql`.
const END: &str = "end of plan";

fn check_plan(case: &Case, plan: &str, shown: &str) {
    for forbidden in ["Seq Scan", "Bitmap", "Hash", "Merge Join"] {
        assert!(!plan.contains(forbidden), "{forbidden}: {shown}");
    }
    let nodes: Vec<&str> =
        plan.lines().map(|line| line.trim().trim_start_matches("->  ")).collect();
    let sorts = nodes.iter().filter(|node| **node == "Sort").count();
    assert_eq!(sorts, case.sorts, "{shown}");
    for filter in nodes.iter().filter_map(|node| node.strip_prefix("Filter: ")) {
        assert!(case.filters.iter().any(|part| filter.contains(part)), "{filter}: {shown}");
    }
    let used = nodes.iter().filter_map(|node| Some(node.split_once(" using ")?.1));
    let read: Vec<&str> = used.filter_map(|index| index.split(' ').next()).collect();
    for index in &read {
        assert!(case.indexes.iter().any(|end| index.ends_with(end)), "{index}: {shown}");
    }
    for end in case.indexes {
        assert!(read.iter().any(|index| index.ends_with(end)), "not {end}: {shown}");
    }
}

#[tokio::test]
async fn plans_are_the_same_for_empty_small_large_and_analyzed_tables() {
    let database = crate::migrated_database();
    for table in ["execution", "outbox", "command", "event_lookup"] {
        database.psql(&format!("alter table noetl.{table} set (autovacuum_enabled = off)"));
    }
    check_plans(&database, 0, "empty");
    add_rows(&database, 0, 1, 20);
    check_plans(&database, 0, "small");
    add_rows(&database, 0, 21, 12_000);
    check_plans(&database, 0, "large");
    check_plans(&database, 1, "large, of an empty quarter");
    database.psql(
        "analyze noetl.event_row, noetl.event_append, noetl.event_lookup, noetl.execution, \
         noetl.outbox, noetl.command",
    );
    check_plans(&database, 0, "analyzed");
    check_plans(&database, 1, "analyzed, of an empty quarter");
    add_rows(&database, 1, 20_001, 20_020);
    check_plans(&database, 1, "analyzed, of a new quarter");
    expect_one_row(&database);
    // The deeper of two indexes looks more expensive, whatever is looked for.
    for index in ["lane_position_idx", "pkey"] {
        deepen(&database, index);
        check_plans(&database, 0, &format!("one row of each execution, with a deep {index}"));
    }
}

/// Imports, publishes, and reads a log in a database that nothing has analyzed, and counts the index
/// entries and rows that the server read for it.
#[tokio::test]
async fn a_fresh_database_reads_no_more_of_a_log_than_was_asked_for() {
    let database = crate::migrated_database();
    let options = Options::new(&database.url()).expect("a URL").lane(LANE);
    let store = PostgresStore::open(options).await.expect("a store");
    let (mut importing, mut publishing) = (Duration::ZERO, Duration::ZERO);
    let (mut position, mut previous) = (0, None);
    for batch in (1..=ROWS).collect::<Vec<_>>().chunks(BATCH) {
        // Plans are made while there are few rows, and kept.
        let first = import(batch[0]);
        let found = store.find_event(first.execution, first.event).await;
        assert_eq!(found.expect("an answer"), None);
        let since = Instant::now();
        let imports = batch.iter().copied().map(import).collect();
        let outcomes = store.import(imports).await.expect("an import");
        importing += since.elapsed();
        assert!(outcomes.iter().all(|outcome| *outcome == ImportOutcome::Kept), "{outcomes:?}");
        let since = Instant::now();
        let page = store.tail(LANE, position, BATCH).await.expect("rows");
        publishing += since.elapsed();
        assert_eq!(page.len(), batch.len());
        for row in page {
            assert_eq!(row.previous, previous);
            (position, previous) = (row.position, Some(row.row.event_id));
        }
    }

    let since = Instant::now();
    let execution = import(1).execution;
    let mut after = Seq::START;
    while let Some(last) = store.read(execution, after, BATCH).await.expect("events").pop() {
        after = last.seq;
    }
    assert_eq!(after, Seq(ROWS.into()));
    for number in (1..=ROWS).step_by(BATCH) {
        let found = store.find_event(execution, import(number).event).await.expect("an answer");
        assert_eq!(found, Some(Seq(number.into())));
    }
    let asked: Vec<EventId> =
        (1..=ROWS).step_by(BATCH).map(|number| import(number).event).collect();
    let found = store.find_events(execution, &asked).await.expect("an answer");
    assert_eq!(found, asked.into_iter().collect());
    let reading = since.elapsed();
    eprintln!("{ROWS} rows: import {importing:?}, publish {publishing:?}, read {reading:?}");

    store.close().await;
    // Each row is read by the tailer, once more as the row before another, and by the reader.
    let read = entries_read(&database, "event").await;
    assert!(read < u64::from(ROWS) * 4, "{read} entries were read for {ROWS} rows");
}

const ROWS: u32 = 12_000;

/// Rows of one import, and of one page.
const BATCH: usize = 100;

fn import(number: u32) -> Import {
    let execution = 363_837_417_062_400_005;
    Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(execution),
        event: EventId::new(execution + i64::from(number)),
        at: Timestamp::from_millis(1_790_000_000_000 + i64::from(number)),
        row: ImportedEvent { event_type: Some("told".to_owned()), ..ImportedEvent::default() },
    }
}

/// Returns how many entries of the indexes of a table and its partitions, and how many rows in scans of
/// all of it, were read since the database was created. Waits for connections to end, which is when
/// they report.
async fn entries_read(database: &TestDatabase, table: &str) -> u64 {
    let others = "select count(*) from pg_stat_activity \
                  where datname = current_database() and pid <> pg_backend_pid()";
    while database.psql(others) != "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let sql = format!(
        "select (select sum(idx_tup_read) from pg_stat_user_indexes where relname ~ '^{table}')
         + (select sum(seq_tup_read) from pg_stat_user_tables where relname ~ '^{table}')"
    );
    database.psql(&sql).parse().expect("a number")
}

#[tokio::test]
async fn pending_commands_are_found_by_index_after_their_table_grew() {
    let database = crate::migrated_database();
    let options = Options::new(&database.url()).expect("a URL");
    let store = PostgresStore::open(options).await.expect("a store");
    let tenant = Some(Tenant::default());
    let wanted = CommandFilter { tenant, ..CommandFilter::default() };
    for (from, to) in [(1, 20), (21, 5000)] {
        database.psql(&format!(
            "insert into noetl.execution (execution_id, status)
             select n, 'RUNNING' from generate_series({from}, {to}) n;
             insert into noetl.command (command_id, event_id, execution_id, step_name, tool_kind, issued_seq)
             select n, n, n, 'a', 'b', 1 from generate_series({from}, {to}) n"
        ));
        for _ in 0..20 {
            let found = store.pending_commands(&wanted, 5).await.expect("commands");
            assert_eq!(found.len(), 5);
        }
    }
    store.close().await;
    for table in ["command", "execution"] {
        let read = entries_read(&database, table).await;
        assert!(read < 500, "{read} entries of {table} were read for 200 rows");
    }
}
