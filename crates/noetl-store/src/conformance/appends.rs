//! Cases about appends as units of storage: split by size, with IDs in any order.

use std::sync::Arc;

use noetl_model::event::ImportedEvent;
use noetl_model::row::body::BODY_MAX;
use noetl_model::{CommandChange, Event, EventId, ExecutionId, Seq, Tenant, Timestamp};

use super::story::{Story, commit, log, said, write};
use crate::{
    Append, Committed, ExecutionStatus, Import, ImportOutcome, ReadBound, Store, StoreError,
};

/// Replaces the IDs of the events of an append.
fn with_ids(mut append: Append, after: i64, ids: &[i64]) -> Append {
    for (event, id) in append.events.iter_mut().zip(ids) {
        *event = Arc::new(Event { id: EventId::new(*id), ..Event::clone(event) });
    }
    append.after = Some(EventId::new(after));
    append.commands = CommandChange::of_all(append.events.iter().map(AsRef::as_ref));
    append
}

pub async fn a_large_append_is_read_searched_and_followed_by_event(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let text = "x".repeat(BODY_MAX / 3);
    let large = story.then((0..12).map(|n| said(&format!("{n} {text}"))).collect());
    let expected: Vec<Event> = large.events.iter().map(|event| Event::clone(event)).collect();
    write(&*store, large).await;
    write(&*store, story.then(vec![said("small")])).await;
    let id = story.id();
    let all = log(&*store, id).await;
    assert_eq!(all[3..15], expected);
    for after in 0..16 {
        let read = store.read(id, Seq(after as u64), 4).await.expect("a read");
        assert_eq!(read, all[after..all.len().min(after + 4)]);
    }
    for event in &expected {
        let found = store.find_event(id, event.id).await.expect("a read");
        assert_eq!(found, Some(event.seq));
        let until = ReadBound::Event(event.id);
        let after = Some(EventId::new(event.id.get() - 1));
        let rows = store.read_rows(id, after, until, 9).await.expect("a read");
        assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [event.seq]);
    }
    for lane in store.lanes().await.expect("lanes").into_iter().filter(|lane| lane.newest > 0) {
        let mut found: Vec<(i64, Seq, Option<EventId>)> = Vec::new();
        loop {
            let after = found.last().map_or(0, |(position, ..)| *position);
            let page = store.tail(lane.number, after, 2).await.expect("a page");
            if page.is_empty() {
                break;
            }
            found.extend(page.iter().map(|row| (row.position, row.row.seq, row.previous)));
        }
        let sequence: Vec<_> = found.iter().map(|(_, seq, _)| seq.0).collect();
        assert_eq!(sequence, (1..=16).collect::<Vec<_>>());
        assert!(found.is_sorted_by(|one, next| one.0 < next.0));
        let previous: Vec<_> = found.iter().skip(1).map(|(.., previous)| *previous).collect();
        let before: Vec<_> = all.iter().map(|event| Some(event.id)).collect();
        assert_eq!(previous, before[..15]);
    }
}

pub async fn late_and_overlapping_ids_of_appends_are_found_once(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let newest = story.event_at(3).get();
    // Below, above, and between the IDs of the log, in one append; then inside the range of that append.
    let first = [newest + 100, 50, newest + 300, newest + 200];
    let second = [newest + 150, newest + 400, newest + 250, -1];
    write(&*store, with_ids(story.then(vec![said("1"); 4]), newest, &first)).await;
    write(&*store, with_ids(story.then(vec![said("2"); 4]), first[3], &second)).await;
    for (id, seq) in first.into_iter().chain(second).zip(4..) {
        let found = store.find_event(story.id(), EventId::new(id)).await.expect("a read");
        assert_eq!(found, Some(Seq(seq)), "{id}");
        let twice = with_ids(story.clone().then(vec![said("twice")]), second[3], &[id]);
        let rejected = store.commit(vec![twice]).await.expect_err("an ID that is in the log");
        assert!(matches!(rejected.failure(), StoreError::EventTaken(_)), "{rejected:?}");
    }
    for missing in [49, 51, newest + 99, newest + 201, newest + 399, newest + 401] {
        let found = store.find_event(story.id(), EventId::new(missing)).await.expect("a read");
        assert_eq!(found, None, "{missing}");
    }
    let mut ids: Vec<i64> = (1..=3).map(|seq| story.event_at(seq).get()).collect();
    ids.extend(first.into_iter().chain(second));
    ids.sort_unstable();
    for limit in [1, 3, 100] {
        let mut found: Vec<EventId> = Vec::new();
        loop {
            let after = found.last().copied();
            let rows = store.read_rows(story.id(), after, ReadBound::End, limit).await;
            let rows = rows.expect("a page");
            if rows.is_empty() {
                break;
            }
            found.extend(rows.iter().map(|row| row.event_id));
        }
        assert_eq!(found.iter().map(|id| id.get()).collect::<Vec<_>>(), ids);
    }
    for after in 0..=11 {
        let events = log(&*store, story.id()).await;
        let least = events.iter().filter(|event| event.seq.0 > after).map(|event| event.id).min();
        let found = store.least_id_since(story.id(), Seq(after)).await.expect("a read");
        assert_eq!(found, least, "after {after}");
    }
    let next = with_ids(story.then(vec![said("3")]), second[3], &[newest + 500]);
    assert_eq!(commit(&*store, next).await, Committed::Appended);
}

pub async fn an_imported_log_may_end_several_times(store: Arc<dyn Store>) {
    let row = |event: i64, event_type: &str| Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(10),
        event: EventId::new(event),
        at: Timestamp::from_micros(event),
        row: ImportedEvent { event_type: Some(event_type.to_owned()), ..ImportedEvent::default() },
    };
    let ends = [
        vec![
            row(40, "playbook.failed"),
            row(10, "playbook_started"),
            row(60, "playbook.completed"),
        ],
        vec![row(50, "playbook.failed"), row(60, "playbook.failed"), row(30, "step.enter")],
        vec![row(70, "playbook_cancelled")],
    ];
    let expected = [
        (vec![true; 3], ExecutionStatus::Completed),
        // The second event 60 is a duplicate.
        (vec![true, false, true], ExecutionStatus::Completed),
        (vec![true], ExecutionStatus::Cancelled),
    ];
    for (rows, (new, status)) in ends.into_iter().zip(expected) {
        let outcomes = store.import(rows).await.expect("an import");
        let is_new = outcomes.iter().map(|outcome| *outcome == ImportOutcome::Kept);
        assert_eq!(is_new.collect::<Vec<_>>(), new);
        let found = store.execution(&Tenant::default(), ExecutionId::new(10)).await;
        assert_eq!(found.expect("a read").expect("an execution").status, status);
    }
    let read = store.read(ExecutionId::new(10), Seq::START, 99).await.expect("a log");
    let ids: Vec<i64> = read.iter().map(|event| event.id.get()).collect();
    assert_eq!(ids, [40, 10, 60, 50, 30, 70]);
    let rows = store.read_rows(ExecutionId::new(10), None, ReadBound::End, 99).await;
    let ids: Vec<i64> = rows.expect("rows").iter().map(|row| row.event_id.get()).collect();
    assert_eq!(ids, [10, 30, 40, 50, 60, 70]);
}
