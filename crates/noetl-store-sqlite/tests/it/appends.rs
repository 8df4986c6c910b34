//! Appends as rows of the file, and the view that shows their events.

use std::path::Path;

use noetl_model::event::ImportedEvent;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Fact, Tenant, Timestamp};
use noetl_store::conformance::story::{Story, done, every_fact, log, said, write};
use noetl_store::retention::{RetentionPolicy, RetentionWindow};
use noetl_store::{EventLog, Import, ImportStore, RetentionStore};
use rusqlite::{Connection, Row};

use crate::temporary;

fn number(path: &Path, sql: &str) -> i64 {
    let file = Connection::open(path).expect("the file");
    file.query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// Columns of the view, as text.
type Columns = Vec<Option<String>>;

fn view_row(row: &Row<'_>) -> rusqlite::Result<Columns> {
    use rusqlite::types::Value;
    let text = |value: Value| match value {
        Value::Null => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) => Some(number.to_string()),
        Value::Text(text) => Some(text),
        Value::Blob(_) => Some("bytes".to_owned()),
    };
    (0..18).map(|column| row.get(column).map(text)).collect()
}

fn expected_row(row: &EventRow) -> Columns {
    let id = |id: Option<i64>| id.map(|id| id.to_string());
    let text = |text: Option<&str>| text.map(str::to_owned);
    vec![
        id(Some(row.execution_id.get())),
        Some(row.seq.0.to_string()),
        id(Some(row.event_id.get())),
        id(Some(row.created_at.as_micros())),
        text(Some(row.origin.as_str())),
        text(row.event_type.as_deref()),
        text(row.node_name.as_deref()),
        text(row.node_type.as_deref()),
        text(row.status.as_deref()),
        id(row.command_id.map(|id| id.get())),
        id(row.parent_execution_id.map(|id| id.get())),
        text(row.worker_id.as_deref()),
        row.meta.clone(),
        row.error.clone(),
        row.context.clone(),
        row.result.clone(),
        row.duration.map(|duration| duration.to_string()),
        id(row.idempotency_key),
    ]
}

fn import(event: i64, row: ImportedEvent) -> Import {
    Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(20),
        event: EventId::new(event),
        at: Timestamp::from_micros(event / 2),
        row,
    }
}

#[tokio::test]
async fn the_view_shows_every_fact_as_its_row() {
    let (store, directory) = temporary();
    let path = directory.path().join("noetl.db");
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    write(&store, story.then(every_fact(story.command_at(3)))).await;
    let Fact::Imported(imported) = noetl_store::conformance::story::imported() else {
        panic!("the story has an imported fact")
    };
    let rows = [7, i64::MIN, i64::MAX, -1].map(|event| import(event, *imported.clone()));
    store.import(rows.to_vec()).await.expect("an import");
    let mut events = log(&store, story.id()).await;
    events.extend(log(&store, ExecutionId::new(20)).await);
    let expected: Vec<Columns> =
        events.iter().map(|event: &Event| expected_row(&EventRow::from(event))).collect();
    let file = Connection::open(&path).expect("the file");
    let sql =
        "select execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type,
        status, command_id, parent_execution_id, worker_id, meta, error, context, result, duration,
        idempotency_key from event order by execution_id, seq";
    let mut read = file.prepare(sql).expect("a statement");
    let found = read.query_map([], view_row).expect("rows");
    let found: Vec<Columns> = found.map(|row| row.expect("a row")).collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    let positions = "select count(*) - max(position) from event";
    assert_eq!(number(&path, positions), 0, "each event has a position of its own");
}

#[tokio::test]
async fn an_import_writes_one_row_per_execution() {
    let (store, directory) = temporary();
    let path = directory.path().join("noetl.db");
    let rows: Vec<Import> =
        (1..=2_050).map(|event| import(event, ImportedEvent::default())).collect();
    store.import(rows).await.expect("an import");
    assert_eq!(number(&path, "select count(*) from event_append"), 1);
    assert_eq!(number(&path, "select count(*) from event"), 2_050);
}

#[tokio::test]
async fn a_log_with_an_unreadable_append_is_purged() {
    let (store, directory) = temporary();
    let path = directory.path().join("noetl.db");
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    write(&store, story.then(vec![said("a"), done()])).await;
    let file = Connection::open(&path).expect("the file");
    file.execute("update event_append set body = '[' where first_seq = 4", []).expect("damage");
    assert!(store.read(story.id(), noetl_model::Seq(3), 9).await.is_err());
    let day = RetentionWindow::days("days", 1).expect("in range");
    let policy = RetentionPolicy { executions: day, ..RetentionPolicy::KEEP };
    let report = store.purge(&policy, false).await.expect("a purge");
    assert_eq!((report.removed.executions, report.removed.events), (1, 5));
    assert_eq!(number(&path, "select count(*) from event_append"), 0);
}
