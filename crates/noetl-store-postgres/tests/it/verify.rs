//! What holds of every log, whatever happened to it.

use noetl_model::{ExecutionId, Fact, Seq};
use noetl_store::Store;
use noetl_testkit::postgres::{TestDatabase, TestServer};

/// Where SQL can be run past the store.
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

/// Fails unless the log has no gap, at most one end, an account of every command, positions in the
/// order of its places within a lane, and an execution row that agrees with it.
pub(crate) async fn verify(database: &impl Sql, store: &dyn Store, execution: ExecutionId) {
    verify_log(store, execution).await;
    verify_positions(database);
}

/// The same of one log without its positions.
pub(crate) async fn verify_log(store: &dyn Store, execution: ExecutionId) {
    let log = store.read(execution, Seq::START, 1_000_000).await.expect("a log");
    for (place, event) in (1..).zip(&log) {
        assert_eq!(event.seq, Seq(place), "no gap");
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

/// Fails unless the positions of every log are in the order of its places within a lane.
pub(crate) fn verify_positions(database: &impl Sql) {
    let sql = "select count(*) from (select position - lag(position) over (partition by \
               execution_id, lane order by seq) as step from noetl.event) s where step <= 0";
    assert_eq!(database.run(sql), "0", "positions are in commit order");
}
