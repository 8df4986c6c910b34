//! What holds of every log, whatever happened to it.

use noetl_model::{ExecutionId, Fact, Seq};
use noetl_store::Store;
use noetl_testkit::postgres::TestDatabase;

/// Fails unless the log has no gap, at most one end, an account of every command, positions in the
/// order of its places within a lane, and an execution row that agrees with it.
pub(crate) async fn verify(database: &TestDatabase, store: &dyn Store, execution: ExecutionId) {
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
    let sql = format!(
        "select count(*) from (select position - lag(position) over (partition by lane order by seq) \
         as step from noetl.event where execution_id = {execution}) s where step <= 0"
    );
    assert_eq!(database.psql(&sql), "0", "positions are in commit order");
}
