//! Every write is slow.

use noetl_test_services::postgres::TestDatabase;

use crate::postgres::faults::plane::Plane;

/// Delays every append like a very slow disk.
const SLOW: &str = "create function noetl.wait() returns trigger language plpgsql as \
     $$ begin perform pg_sleep(0.1); return null; end $$; \
     create trigger slow after insert on noetl.event_append for each statement \
     execute function noetl.wait()";

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_causes_larger_batches_and_no_failures() {
    let database = TestDatabase::new();
    let plane = Plane::open(&database.url()).await;
    let mut trouble = plane.control.journal.watch.last_commit_error();
    trouble.mark_unchanged();
    database.psql(SLOW);
    let load = plane.load(5).await;
    let executions = load.ends_whole(&plane, &database).await;
    assert!(!trouble.has_changed().expect("a control plane"), "{:?}", trouble.borrow());
    // Without batches there is one transaction per start and per step.
    let transactions: usize = database
        .psql("select count(distinct xmin::text) from noetl.event_append")
        .parse()
        .expect("a number");
    let alone = executions * 6;
    assert!(transactions * 2 < alone, "{transactions} transactions, {alone} alone");
    plane.close().await;
}
