//! Invariants of every event log.

use noetl_model::{ExecutionId, Fact, Seq};
use noetl_store::Store;
use noetl_test_services::postgres::{TestDatabase, TestServer};

/// A database that runs SQL without the store.
pub(crate) trait Sql {
    fn run(&self, sql: &str) -> String;
}

impl Sql for TestDatabase {
    fn run(&self, sql: &str) -> String {
        self.psql(sql)
    }
}

impl Sql for TestServer {
    fn run(&self, sql: &str) -> String {
        self.psql(sql)
    }
}

/// Checks that the log has no gap, at most one end, a row for every command, positions in the order of
/// its sequence numbers within a lane, and a matching execution row.
pub(crate) async fn verify(database: &impl Sql, store: &dyn Store, execution: ExecutionId) {
    verify_log(store, execution).await;
    verify_positions(database);
}

/// Checks one log like [`verify`], without its positions.
pub(crate) async fn verify_log(store: &dyn Store, execution: ExecutionId) {
    let log = store.read(execution, Seq::START, 1_000_000).await.expect("a log");
    for (seq, event) in (1..).zip(&log) {
        assert_eq!(event.seq, Seq(seq), "no gap");
    }
    let ends = log.iter().filter(|event| event.fact.is_end()).count();
    let tenant = store.tenant_of(execution).await.expect("a read").expect("a tenant");
    let row = store.execution(&tenant, execution).await.expect("a read").expect("a row");
    assert_eq!(ends, usize::from(row.status.is_final()), "one end");
    assert_eq!(row.version, log.last().expect("events").seq);
    for event in &log {
        if let Fact::CommandIssued(_) = event.fact {
            let command = store.command(event.id.into()).await.expect("a read");
            let command = command.expect("every command has its row");
            assert!(command.state.is_terminal() || !row.status.is_final(), "{command:?}");
        }
    }
}

/// Checks that the positions of every log follow its sequence numbers within a lane.
pub(crate) fn verify_positions(database: &impl Sql) {
    let sql = "select count(*) from (select position - lag(position) over (partition by \
               execution_id, lane order by seq) as step from noetl.event) s where step <= 0";
    assert_eq!(database.run(sql), "0", "positions are in commit order");
}
