//! Cases about the values that a row can contain.

use std::sync::Arc;

use noetl_model::event::ReportedEvent;
use noetl_model::{CatalogId, EventId, ExecutionId, Fact, Tenant, Timestamp};
use serde_json::json;

use super::story::{Story, called, claimed, entered, log, said, write};
use crate::{NewEntry, Store};

/// Texts that are difficult for databases: quotes, wide and combining characters, control
/// characters, and the empty text.
const TEXTS: [&str; 5] = [
    "it's \"quoted\" -- ; drop table event",
    "žluťoučký 日本語 \u{1F680} e\u{301}",
    "line\nbreak\ttab\r\u{1b}[0m\u{7f}",
    "\u{feff}\u{10ffff}\u{fffd}",
    "",
];

/// The years 1 and 9999: the range that every database and every parser of times supports.
const FIRST_MICROS: i64 = -62_135_596_800_000_000;
const LAST_MICROS: i64 = 253_402_300_799_999_999;

pub async fn text_of_every_kind_survives(store: Arc<dyn Store>) {
    for (id, text) in (10..).zip(TEXTS) {
        let mut story = Story::new(id).of(&format!("tenant {text}"));
        story.row.path = Arc::from(text);
        let start = story.start();
        story.row.current_step = Some(Arc::from(text));
        story.row.error = Some(text.into());
        let reported = Fact::Reported(Box::new(ReportedEvent {
            event_type: text.into(),
            step: Arc::from(text),
            status: text.into(),
            payload: Some(json!({ text: [text] })),
            meta: Some(json!(text)),
            worker: Some(Arc::from(text)),
            key: None,
            columns: None,
        }));
        let command = story.command_at(3);
        let then = story.then(vec![entered(text), claimed(command, text), reported]);
        let told = then.events.clone();
        write(&*store, start).await;
        write(&*store, then).await;
        let read = log(&*store, story.id()).await;
        for (read, told) in read.iter().skip(3).zip(&told) {
            assert_eq!(*read, **told);
        }
        let row = store.execution(&story.tenant, story.id()).await;
        assert_eq!(row.expect("a read").as_ref(), Some(&story.row));
        let row = store.command(command).await.expect("a read");
        assert_eq!(row.expect("a command").worker.as_deref(), Some(text));
        catalog_text(&*store, &story.tenant, id, text).await;
    }
}

async fn catalog_text(store: &dyn Store, tenant: &Tenant, id: i64, text: &str) {
    let new = NewEntry {
        id: CatalogId::new(id),
        path: text.into(),
        kind: text.into(),
        content: text.into(),
        layout: Some(json!(text)),
        payload: None,
        meta: None,
        at: Timestamp::from_micros(id),
    };
    let entry = store.register(tenant, new).await.expect("a new version");
    assert_eq!((entry.version, entry.content.as_str()), (1, text));
    let found = store.entry_at(tenant, text, None).await;
    assert_eq!(found.expect("a read"), Some(entry.clone()));
    let listed = store.entries(tenant, Some(text)).await;
    assert_eq!(listed.expect("a list"), [entry]);
}

/// Checks values only: names and messages cannot contain NUL in every database.
pub async fn a_nul_in_a_value_survives(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let data = json!({"a\0b": ["\0", "a NUL \0 in the middle", "\\u0000"]});
    let mut reported = said("x");
    if let Fact::Reported(reported) = &mut reported {
        reported.payload = Some(data.clone());
        reported.meta = Some(data.clone());
    }
    let then = story.then(vec![called(story.command_at(3), data), reported]);
    let told = then.events.clone();
    write(&*store, then).await;
    let read = log(&*store, story.id()).await;
    assert_eq!((&read[3], &read[4]), (&*told[0], &*told[1]));
}

pub async fn the_order_of_keys_survives(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let data = json!({"zeta": 1, "a": {"y": 1, "x": 1.0}, "mid": 1e20, "dup": 1e16});
    let then = story.then(vec![called(story.command_at(3), data.clone())]);
    write(&*store, then).await;
    match &log(&*store, story.id()).await[3].fact {
        Fact::CallDone { data: read, .. } => assert_eq!(read.to_string(), data.to_string()),
        other => panic!("{other:?}"),
    }
}

pub async fn a_large_payload_survives(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let large = "0123456789abcdef".repeat(64 * 1024);
    let then =
        story.then(vec![called(story.command_at(3), json!({ "large": large })), said("after it")]);
    let told = then.events.clone();
    write(&*store, then).await;
    let read = log(&*store, story.id()).await;
    assert_eq!(read.len(), 5);
    assert_eq!(read[3], *told[0]);
    assert_eq!(read[4], *told[1]);
}

pub async fn numbers_survive(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let data = json!([i64::MIN, i64::MAX, u64::MAX, 0.5, -1.25e300, 1e-7, 0, -0.0]);
    let then = story.then(vec![called(story.command_at(3), data)]);
    let told = then.events.clone();
    write(&*store, then).await;
    assert_eq!(log(&*store, story.id()).await[3], *told[0]);
}

pub async fn an_event_with_the_largest_ids_and_times_survives(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    story.row.id = ExecutionId::new(i64::MAX);
    story.row.catalog = CatalogId::new(i64::MIN);
    story.row.started_at = Timestamp::from_micros(FIRST_MICROS);
    story.row.updated_at = Timestamp::from_micros(LAST_MICROS);
    story.row.version = noetl_model::Seq(1);
    let event = noetl_model::Event {
        execution: story.row.id,
        id: EventId::new(i64::MAX),
        seq: noetl_model::Seq(1),
        at: Timestamp::from_micros(LAST_MICROS),
        fact: said("the end of time"),
        actor: None,
    };
    let append = crate::Append {
        expected: noetl_model::Seq::START,
        after: None,
        start: Some(crate::StartAppend { key: u64::MAX, tenant: story.tenant.clone() }),
        events: vec![Arc::new(event.clone())],
        row: story.row.clone(),
        commands: Vec::new(),
        due: Vec::new(),
        delivered: Vec::new(),
        leases: Vec::new(),
        blobs: Vec::new(),
    };
    write(&*store, append).await;
    assert_eq!(log(&*store, story.id()).await, [event]);
    let row = store.execution(&story.tenant, story.id()).await;
    assert_eq!(row.expect("a read"), Some(story.row));
    let newest = store.newest_id().await.expect("a read");
    assert_eq!(newest, Some(EventId::new(i64::MAX)));
}
