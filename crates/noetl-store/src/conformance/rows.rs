//! Cases about reading an event log in order of event IDs.

use std::sync::Arc;

use noetl_model::event::ImportedEvent;
use noetl_model::row::EventRow;
use noetl_model::{CommandChange, Event, EventId, ExecutionId, Seq, Tenant, Timestamp};
use serde_json::json;

use super::story::{Story, every_fact, log, said, write};
use crate::tail::PAGE_BYTES;
use crate::{Append, Import, ReadBound, Store};

const NONE: [i64; 0] = [];

/// Assigns these IDs to the events of an append.
fn with_ids(mut append: Append, ids: &[i64]) -> Append {
    for (event, id) in append.events.iter_mut().zip(ids) {
        *event = Arc::new(Event { id: EventId::new(*id), ..Event::clone(event) });
    }
    append.commands = CommandChange::of_all(append.events.iter().map(AsRef::as_ref));
    append
}

/// Creates a log whose IDs go down, up, and below zero: 10,000,001 to 10,000,003, 7, 20,000,000,
/// and -5.
async fn out_of_order(store: &dyn Store) -> Story {
    let mut story = Story::new(10);
    write(store, story.start()).await;
    write(store, with_ids(story.then(vec![said("early"), said("late")]), &[7, 20_000_000])).await;
    let last = story.then(vec![said("before all")]);
    write(store, Append { after: Some(EventId::new(20_000_000)), ..with_ids(last, &[-5]) }).await;
    story
}

async fn ids(store: &dyn Store, after: Option<i64>, until: ReadBound, limit: usize) -> Vec<i64> {
    let after = after.map(EventId::new);
    let rows = store.read_rows(ExecutionId::new(10), after, until, limit).await;
    rows.expect("a read").iter().map(|row| row.event_id.get()).collect()
}

pub async fn rows_are_those_of_the_events(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(every_fact(story.command_at(3)))).await;
    let events = log(&*store, story.id()).await;
    let rows = store.read_rows(story.id(), None, ReadBound::End, usize::MAX).await.expect("a read");
    let whole: Vec<EventRow> = events.iter().map(EventRow::from).collect();
    assert!(whole.iter().any(|row| row.context.is_some()), "there is something to leave out");
    let bare = whole.into_iter().map(|row| EventRow { context: None, ..row });
    assert_eq!(rows, bare.collect::<Vec<_>>());
}

pub async fn pages_of_large_rows_are_limited_by_bytes(store: Arc<dyn Store>) {
    let large = |event: i64| {
        let text = json!("x".repeat(PAGE_BYTES / 4));
        let row = match event % 3 {
            0 => {
                let result = json!({"status": "ok", "reference": {"text": text}});
                ImportedEvent { result: Some(result), ..ImportedEvent::default() }
            }
            1 => ImportedEvent { meta: Some(json!({"text": text})), ..ImportedEvent::default() },
            _ => {
                let more = [("stack_trace".to_owned(), text)].into_iter().collect();
                ImportedEvent { more, ..ImportedEvent::default() }
            }
        };
        Import {
            tenant: Tenant::default(),
            execution: ExecutionId::new(10),
            event: EventId::new(event),
            at: Timestamp::from_micros(event),
            row,
        }
    };
    for event in 1..=9 {
        store.import(vec![large(event)]).await.expect("an answer");
    }
    let store = &*store;
    // The first row that fills the page is its last. Four rows are a little more than a page, with
    // the JSON around their texts.
    assert_eq!(ids(store, None, ReadBound::End, 100).await, [1, 2, 3, 4]);
    assert_eq!(ids(store, Some(4), ReadBound::End, 2).await, [5, 6]);
    assert_eq!(ids(store, Some(4), ReadBound::End, 100).await, [5, 6, 7, 8]);
    assert_eq!(ids(store, Some(8), ReadBound::End, 100).await, [9]);
    assert_eq!(ids(store, Some(9), ReadBound::End, 100).await, NONE);
}

pub async fn rows_are_read_in_id_order(store: Arc<dyn Store>) {
    let story = out_of_order(&*store).await;
    let rows = store.read_rows(story.id(), None, ReadBound::End, 100).await.expect("a read");
    let found: Vec<_> = rows.iter().map(|row| (row.event_id.get(), row.seq.0)).collect();
    let started = [(10_000_001, 1), (10_000_002, 2), (10_000_003, 3)];
    assert_eq!(found[..2], [(-5, 6), (7, 4)]);
    assert_eq!(found[2..5], started);
    assert_eq!(found[5..], [(20_000_000, 5)]);
}

pub async fn a_long_log_is_read_and_searched_by_mostly_ascending_ids(store: Arc<dyn Store>) {
    let store = &*store;
    let mut story = Story::new(10);
    write(store, with_ids(story.start(), &[1000, 1010, 1020])).await;
    let mut places = vec![(1000, 1), (1010, 2), (1020, 3)];
    for round in 0..60_i64 {
        let count = usize::try_from(round % 4 + 1).expect("a few");
        let append = story.then(vec![said("again"); count]);
        // Every seventh append has IDs between those of much earlier rows.
        let first = if round % 7 == 6 { 1100 + round * 5 } else { 2000 + round * 100 };
        let ids: Vec<i64> = (first..).step_by(7).take(count).collect();
        let after = places.last().map(|(id, _)| EventId::new(*id));
        write(store, Append { after, ..with_ids(append, &ids) }).await;
        places.extend(ids.iter().zip(places.len() as u64 + 1..).map(|(id, place)| (*id, place)));
    }
    places.sort_unstable();
    let all: Vec<i64> = places.iter().map(|(id, _)| *id).collect();
    let mut found: Vec<i64> = Vec::new();
    loop {
        let page = ids(store, found.last().copied(), ReadBound::End, 5).await;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found, all);
    for (id, place) in &places {
        let event = EventId::new(*id);
        let at = store.find_event(story.id(), event).await.expect("a read");
        assert_eq!(at, Some(Seq(*place)), "{id}");
        assert_eq!(ids(store, Some(id - 1), ReadBound::Event(event), 9).await, [*id]);
    }
    let unknown = [i64::MIN, 0, 1015, 2001, 7899, i64::MAX];
    for unknown in unknown {
        let event = EventId::new(unknown);
        assert_eq!(store.find_event(story.id(), event).await.expect("a read"), None, "{unknown}");
    }
    let asked: Vec<EventId> = all.iter().chain(&unknown).map(|id| EventId::new(*id)).collect();
    let found = store.find_events(story.id(), &asked).await.expect("a read");
    assert_eq!(found, all.iter().map(|id| EventId::new(*id)).collect());
}

pub async fn a_read_of_rows_ends_at_an_id_a_time_or_a_limit(store: Arc<dyn Store>) {
    let store = &*store;
    let story = out_of_order(store).await;
    assert_eq!(ids(store, Some(7), ReadBound::End, 2).await, [10_000_001, 10_000_002]);
    assert_eq!(ids(store, Some(8), ReadBound::End, 1).await, [10_000_001]);
    assert_eq!(ids(store, None, ReadBound::End, 0).await, NONE);
    let until = |id| ReadBound::Event(EventId::new(id));
    assert_eq!(ids(store, None, until(10_000_001), 100).await, [-5, 7, 10_000_001]);
    assert_eq!(ids(store, Some(7), until(10_000_000), 100).await, NONE);
    assert_eq!(ids(store, Some(7), until(3), 100).await, NONE);
    // Each event is one microsecond after the one recorded before it.
    let at =
        |place| ReadBound::Time(Timestamp::from_micros(story.row.started_at.as_micros() + place));
    assert_eq!(ids(store, None, at(4), 100).await, [7, 10_000_001, 10_000_002, 10_000_003]);
    assert_eq!(ids(store, Some(7), at(4), 2).await, [10_000_001, 10_000_002]);
    assert_eq!(ids(store, None, at(0), 100).await, NONE);
}

pub async fn reads_accept_the_smallest_and_largest_ids_and_times(store: Arc<dyn Store>) {
    let store = &*store;
    out_of_order(store).await;
    assert_eq!(ids(store, Some(i64::MAX), ReadBound::End, 100).await, NONE);
    assert_eq!(ids(store, Some(i64::MIN), ReadBound::End, 100).await.len(), 6);
    let until = |id| ReadBound::Event(EventId::new(id));
    assert_eq!(ids(store, None, until(i64::MIN), 100).await, NONE);
    assert_eq!(ids(store, None, until(i64::MAX), usize::MAX).await.len(), 6);
    let at = |micros| ReadBound::Time(Timestamp::from_micros(micros));
    assert_eq!(ids(store, None, at(i64::MIN), 100).await, NONE);
    // The last instant that has a text form.
    assert_eq!(ids(store, None, at(253_402_300_799_999_999), 100).await.len(), 6);
}

pub async fn the_least_id_since_a_sequence_number_ignores_earlier_rows(store: Arc<dyn Store>) {
    let story = out_of_order(&*store).await;
    for (after, least) in [(0, Some(-5)), (3, Some(-5)), (5, Some(-5)), (6, None), (u64::MAX, None)]
    {
        let found = store.least_id_since(story.id(), Seq(after)).await.expect("a read");
        assert_eq!(found, least.map(EventId::new), "after {after}");
    }
    let mut plain = Story::new(12);
    write(&*store, plain.start()).await;
    let found = store.least_id_since(plain.id(), Seq(1)).await.expect("a read");
    assert_eq!(found, Some(plain.event_at(2)));
}

pub async fn an_unknown_execution_has_no_rows(store: Arc<dyn Store>) {
    out_of_order(&*store).await;
    for id in [11, -1, 0, i64::MIN, i64::MAX] {
        let id = ExecutionId::new(id);
        let rows = store.read_rows(id, None, ReadBound::End, 100).await.expect("a read");
        assert_eq!(rows, []);
        assert_eq!(store.least_id_since(id, Seq::START).await.expect("a read"), None);
    }
}
