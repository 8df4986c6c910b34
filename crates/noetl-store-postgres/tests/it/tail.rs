//! The log by position, with several writers and with rows of an adopted database.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use noetl_store::conformance::story::{Story, said, write};
use noetl_store::tail::{LogTail, PAGE_BYTES, TailRow};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;
use tokio::task::JoinSet;

async fn open(database: &TestDatabase, lane: u16) -> Arc<PostgresStore> {
    let options = Options::new(&database.url()).expect("a URL").lane(lane);
    Arc::new(PostgresStore::open(options).await.expect("a store"))
}

/// Reads what came since, as a follower does that must not miss anything.
async fn look(store: &PostgresStore, at: &mut BTreeMap<u16, i64>, seen: &mut Vec<TailRow>) {
    for lane in store.lanes().await.expect("lanes") {
        let cursor = at.entry(lane.number).or_default();
        let page = store.tail(lane.number, *cursor, 50).await.expect("rows");
        if let Some(last) = page.last() {
            *cursor = last.position;
        }
        seen.extend(page);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_misses_nothing_that_several_writers_commit_out_of_the_order_of_ids() {
    let database = crate::migrated_database();
    // Two in one lane, so that they wait for each other, and one in another.
    let stores = [open(&database, 3).await, open(&database, 3).await, open(&database, 9).await];
    let mut writing = JoinSet::new();
    let (stories, rounds) = (12, 25);
    for number in 0..stories {
        let store = stores[usize::try_from(number).expect("a place") % 3].clone();
        writing.spawn(async move {
            // Later tasks have smaller ids.
            let mut story = Story::new(1000 - number);
            write(&*store, story.start()).await;
            for round in 0..rounds {
                write(&*store, story.then(vec![said(&round.to_string())])).await;
            }
        });
    }
    let (mut at, mut seen) = (BTreeMap::new(), Vec::new());
    let reader = open(&database, 0).await;
    while !writing.is_empty() {
        look(&reader, &mut at, &mut seen).await;
        while let Some(ended) = writing.try_join_next() {
            ended.expect("a writer that ends");
        }
    }
    loop {
        let before = seen.len();
        look(&reader, &mut at, &mut seen).await;
        if seen.len() == before {
            break;
        }
    }
    let expected = usize::try_from(stories * (3 + rounds)).expect("a count");
    assert_eq!(seen.len(), expected, "every row once");
    let distinct: HashSet<_> =
        seen.iter().map(|row| (row.row.execution_id, row.row.event_id)).collect();
    assert_eq!(distinct.len(), expected);
    let mut logs: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for row in &seen {
        logs.entry(row.row.execution_id).or_default().push(row.row.seq.0);
    }
    assert!(logs.values().all(|log| log.is_sorted()), "an execution's rows come in their order");
    assert!(!seen.is_sorted_by_key(|row| row.row.event_id), "the order of ids is another");
}

#[tokio::test]
async fn rows_of_an_adopted_database_come_by_id_and_with_every_column() {
    let database = TestDatabase::new();
    database.psql(include_str!("old_schema.sql"));
    let store = open(&database, 0).await;
    let count: usize = database.psql("select count(*) from noetl.event").parse().expect("a count");
    assert!(count > 5);
    // One id in two logs: both come in one page, or one would be passed over.
    database.psql(
        "insert into noetl.event_row (execution_id, event_id, catalog_id, event_type, stage_id, \
         trace_component, origin) select execution_id + 1000, event_id, catalog_id, 'twin', 7, \
         '{\"a\": null}', 'imported' from noetl.event_row order by event_id limit 1",
    );
    for limit in [1, 2, 100] {
        let mut rows: Vec<TailRow> = Vec::new();
        loop {
            let after = rows.last().map_or(i64::MIN, |row| row.position);
            let page = store.tail_adopted(after, limit).await.expect("rows");
            if page.is_empty() {
                break;
            }
            rows.extend(page);
        }
        assert_eq!(rows.len(), count + 1, "{limit}");
        assert!(rows.is_sorted_by_key(|row| row.row.event_id));
        let twin = rows.iter().find(|row| row.row.event_type.as_deref() == Some("twin"));
        let payload = twin.expect("the twin").payload().expect("a payload");
        let body: noetl_model::Value = serde_json::from_str(&payload).expect("JSON");
        assert_eq!(body["stage_id"], 7);
        assert_eq!(body["trace_component"], serde_json::json!({"a": null}));
        assert_eq!(body["seq"], noetl_model::Value::Null);
    }
    assert!(store.lanes().await.expect("lanes").iter().all(|lane| lane.newest == 0));
}

#[tokio::test]
async fn large_rows_of_an_adopted_database_come_in_pages_of_bytes() {
    let database = TestDatabase::new();
    database.psql(include_str!("old_schema.sql"));
    let store = open(&database, 0).await;
    // Pairs that share an id, each row of half a page.
    database.psql(&format!(
        "insert into noetl.event_row (execution_id, event_id, catalog_id, event_type, result, origin) \
         select e.execution_id + twin, e.event_id + n, e.catalog_id, 'large', \
         jsonb_build_object('status', 'ok', 'reference', jsonb_build_object('x', repeat('x', {}))), \
         'imported' from (select * from noetl.event_row order by event_id desc limit 1) e, \
         generate_series(1, 5) n, generate_series(1000, 1001) twin",
        PAGE_BYTES / 2
    ));
    let is_large = |row: &TailRow| row.row.event_type.as_deref() == Some("large");
    let (mut after, mut pages) = (i64::MIN, Vec::new());
    loop {
        let page = store.tail_adopted(after, 5_000).await.expect("rows");
        let Some(last) = page.last() else { break };
        after = last.position;
        pages.push(page.iter().filter(|row| is_large(row)).count());
    }
    assert_eq!(pages, [2, 2, 2, 2, 2]);
}
