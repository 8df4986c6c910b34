//! Cases about the event log: appends, their outcomes, and reads.

use std::sync::Arc;
use std::task::Poll;

use noetl_model::{CommandChange, Event, EventId, ExecutionId, Seq, Timestamp};
use tokio::task::JoinSet;

use super::story::{
    Story, claimed, commit, completed, done, entered, every_end, every_fact, issued, log, said,
    said_as, started, write,
};
use crate::{Append, Committed, ExecutionStatus, Store, StoreError};

pub async fn every_fact_is_read_back(store: Arc<dyn Store>) {
    for (id, end) in (10..).zip(every_end()) {
        let mut story = Story::new(id);
        let first = story.start();
        let second = story.then(every_fact(story.command_at(3)));
        let third = story.then(vec![end]);
        let events = [&first, &second, &third].into_iter().flat_map(|append| &append.events);
        let told: Vec<Event> = events.map(|event| Event::clone(event)).collect();
        write(&*store, first).await;
        write(&*store, second).await;
        write(&*store, third).await;
        let read = log(&*store, story.id()).await;
        assert_eq!(read, told);
    }
}

pub async fn a_read_starts_after_a_sequence_number_and_ends_at_its_limit(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("1"), said("2"), said("3")])).await;
    for (after, limit, places) in [
        (0, 2, vec![1, 2]),
        (2, 3, vec![3, 4, 5]),
        (4, 100, vec![5, 6]),
        (6, 1, vec![]),
        (u64::MAX, 1, vec![]),
        (0, 0, vec![]),
    ] {
        let read = store.read(story.id(), Seq(after), limit).await;
        let read: Vec<u64> = read.expect("a read").iter().map(|e| e.seq.0).collect();
        assert_eq!(read, places, "after {after}, at most {limit}");
    }
}

pub async fn an_unknown_execution_has_an_empty_log(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    assert_eq!(log(&*store, ExecutionId::new(11)).await, []);
}

pub async fn an_append_behind_the_log_is_a_conflict_and_writes_nothing(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut late = story.clone();
    write(&*store, story.then(vec![said("first")])).await;
    let outcome = commit(&*store, late.then(vec![said("late"), issued("late")])).await;
    assert_eq!(outcome, Committed::Conflict { found: Seq(4) });
    assert_eq!(log(&*store, story.id()).await.len(), 4);
    assert_row(&*store, &story).await;
    let command = store.command(late.command_at(5)).await.expect("a read");
    assert_eq!(command, None);
}

pub async fn an_append_ahead_of_the_log_is_a_conflict_and_writes_nothing(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut ahead = story.clone();
    let _lost = ahead.then(vec![said("lost")]);
    let outcome = commit(&*store, ahead.then(vec![done()])).await;
    assert_eq!(outcome, Committed::Conflict { found: Seq(3) });
    assert_eq!(log(&*store, story.id()).await.len(), 3);
    assert_row(&*store, &story).await;
}

pub async fn an_append_on_a_log_of_the_same_length_but_other_events_is_a_conflict(
    store: Arc<dyn Store>,
) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut mine = story.clone();
    // An append was decided here but not committed, while another process appended as many events.
    let mut lost = mine.then(vec![said("lost")]);
    let on_top = mine.then(vec![said("on top of it")]);
    let mut event = Event::clone(&lost.events[0]);
    event.id = EventId::new(77);
    lost.events[0] = Arc::new(event);
    write(&*store, lost).await;
    assert_eq!(commit(&*store, on_top.clone()).await, Committed::Conflict { found: Seq(4) });
    let fits = Append { after: Some(EventId::new(77)), ..on_top };
    assert_eq!(commit(&*store, fits).await, Committed::Appended);
}

pub async fn a_locked_execution_is_read_and_appended_to(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut held = store.hold(story.id()).await.expect("it is free");
    let tail = held.read(Seq(2), 10).await.expect("a read");
    assert_eq!(tail.iter().map(|event| event.seq).collect::<Vec<_>>(), [Seq(3)]);
    let outcome = held.commit(story.then(vec![said("held")])).await;
    assert_eq!(outcome.expect("a commit"), Committed::Appended);
    let held = store.hold(story.id()).await.expect("it is free again");
    drop(held);
    write(&*store, story.then(vec![said("let go")])).await;
    assert_eq!(log(&*store, story.id()).await.len(), 5);
    assert!(store.hold(ExecutionId::new(99)).await.is_ok(), "one that does not exist");
}

pub async fn an_append_to_an_unknown_execution_is_a_conflict_at_the_start(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let _lost = story.start();
    let outcome = commit(&*store, story.then(vec![said("hello")])).await;
    assert_eq!(outcome, Committed::Conflict { found: Seq::START });
    assert_eq!(log(&*store, story.id()).await, []);
}

pub async fn one_conflict_never_fails_its_batch(store: Arc<dyn Store>) {
    let mut stories = [10, 11, 12].map(Story::new);
    let starts = stories.each_mut().map(Story::start);
    assert_eq!(store.commit(starts.to_vec()).await.expect("a commit"), [Committed::Appended; 3]);
    let _lost = stories[1].then(vec![said("lost")]);
    let batch = stories.each_mut().map(|story| story.then(vec![done()]));
    let outcomes = store.commit(batch.to_vec()).await.expect("a commit");
    let conflict = Committed::Conflict { found: Seq(3) };
    assert_eq!(outcomes, [Committed::Appended, conflict, Committed::Appended]);
    for (story, length) in stories.iter().zip([4, 3, 4]) {
        assert_eq!(log(&*store, story.id()).await.len(), length);
    }
}

pub async fn items_for_one_execution_chain_in_one_batch(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let mut batch = vec![story.start()];
    batch.push(story.then(vec![claimed(story.command_at(3), "local")]));
    batch.push(story.then(vec![completed(story.command_at(3)), done()]));
    let outcomes = store.commit(batch).await.expect("a commit");
    assert_eq!(outcomes, [Committed::Appended; 3]);
    assert_eq!(log(&*store, story.id()).await.len(), 6);
    assert_row(&*store, &story).await;
}

pub async fn an_item_after_a_conflict_is_checked_against_the_log(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut ahead = story.clone();
    let _lost = ahead.then(vec![said("lost")]);
    let batch = vec![
        ahead.then(vec![said("ahead")]),
        story.then(vec![said("right")]),
        ahead.then(vec![said("further ahead")]),
    ];
    let outcomes = store.commit(batch).await.expect("a commit");
    assert_eq!(
        outcomes,
        [
            Committed::Conflict { found: Seq(3) },
            Committed::Appended,
            Committed::Conflict { found: Seq(4) },
        ]
    );
}

pub async fn a_start_repeated_with_its_key_changes_nothing(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let mut again = story.clone();
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("on its way")])).await;
    assert_eq!(commit(&*store, again.start()).await, Committed::Repeated);
    assert_eq!(log(&*store, story.id()).await.len(), 4);
    assert_row(&*store, &story).await;
}

pub async fn a_start_with_another_key_and_a_used_id_is_rejected(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut other = Story { key: 1, ..Story::new(10) };
    assert_eq!(commit(&*store, other.start()).await, Committed::Taken);
    assert_eq!(log(&*store, story.id()).await.len(), 3);
}

pub async fn a_start_by_another_tenant_with_a_used_id_is_rejected(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let theirs = Story::new(10).of("acme").start();
    assert_eq!(commit(&*store, theirs).await, Committed::Taken);
}

pub async fn two_starts_in_one_batch_are_one_start(store: Arc<dyn Store>) {
    let other = Story { key: 1, ..Story::new(10) };
    let batch = [Story::new(10), Story::new(10), other].map(|mut story| story.start());
    let outcomes = store.commit(batch.to_vec()).await.expect("a commit");
    assert_eq!(outcomes, [Committed::Appended, Committed::Repeated, Committed::Taken]);
    assert_eq!(log(&*store, ExecutionId::new(10)).await.len(), 3);
}

pub async fn an_append_with_a_gap_rejects_the_batch(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut gap = story.clone();
    let _lost = gap.then(vec![said("lost")]);
    let gap = Append { expected: Seq(3), ..gap.then(vec![said("behind a gap")]) };
    refused(&*store, vec![Story::new(11).start(), gap]).await;
    assert_eq!(log(&*store, ExecutionId::new(11)).await, []);
    assert_eq!(log(&*store, story.id()).await.len(), 3);
    write(&*store, story.then(vec![said("as if nothing was")])).await;
}

pub async fn an_append_without_events_is_rejected(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    refused(&*store, vec![story.then(vec![])]).await;
    write(&*store, story.start()).await;
    refused(&*store, vec![story.then(vec![])]).await;
}

pub async fn an_append_with_an_event_of_another_execution_is_rejected(store: Arc<dyn Store>) {
    let mine = Story::new(10).start();
    let theirs = Story::new(11).start();
    let mixed = Append { events: theirs.events, ..mine };
    refused(&*store, vec![mixed]).await;
}

pub async fn a_row_with_another_version_than_its_events_is_rejected(store: Arc<dyn Store>) {
    let mut append = Story::new(10).start();
    append.row.version = Seq(2);
    refused(&*store, vec![append]).await;
}

pub async fn an_end_without_a_final_status_is_rejected(store: Arc<dyn Store>) {
    let mut append = Story::new(10).start();
    append.row.ended_at = Some(Timestamp::from_micros(1));
    refused(&*store, vec![append]).await;
    let mut append = Story::new(10).start();
    append.row.status = ExecutionStatus::Failed;
    refused(&*store, vec![append]).await;
}

pub async fn a_second_command_with_one_id_rejects_the_batch(store: Arc<dyn Store>) {
    let mut first = Story::new(10);
    write(&*store, first.start()).await;
    let mut second = Story::new(11);
    let mut clash = second.start();
    let mut event = Event::clone(&clash.events[2]);
    event.id = first.event_at(3);
    clash.events[2] = Arc::new(event);
    clash.commands = CommandChange::of_all(clash.events.iter().map(AsRef::as_ref));
    let fine = first.then(vec![said("fine by itself")]);
    refused(&*store, vec![fine.clone(), clash]).await;
    assert_eq!(log(&*store, second.id()).await, []);
    assert_eq!(log(&*store, first.id()).await.len(), 3);
    write(&*store, fine).await;
}

pub async fn an_empty_batch_changes_nothing(store: Arc<dyn Store>) {
    assert_eq!(store.commit(vec![]).await.expect("a commit"), []);
    assert_eq!(store.newest_id().await.expect("a read"), None);
}

pub async fn concurrent_appends_to_one_log_have_one_winner(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let store = store.clone();
        let append = story.clone().then(vec![said(&n.to_string())]);
        tasks.spawn(async move { commit(&*store, append).await });
    }
    let outcomes = tasks.join_all().await;
    let won = outcomes.iter().filter(|o| **o == Committed::Appended);
    assert_eq!(won.count(), 1);
    let lost = Committed::Conflict { found: Seq(4) };
    assert_eq!(outcomes.iter().filter(|o| **o == lost).count(), 15);
    assert_eq!(log(&*store, story.id()).await.len(), 4);
}

pub async fn concurrent_batches_are_appended_in_call_order(store: Arc<dyn Store>) {
    let mut stories: Vec<Story> = (10..34).map(Story::new).collect();
    let mut asked = Vec::new();
    for round in 0..20 {
        // Every batch combines different executions and may include a start.
        let batch = stories.iter_mut().enumerate().filter(|(n, _)| (n + round) % 3 != 0);
        let batch = batch.map(|(_, story)| match story.row.version {
            Seq::START => story.start(),
            _ => story.then(vec![said(&round.to_string())]),
        });
        let batch = batch.collect();
        let mut commit = store.commit(batch);
        let soon = futures::poll!(&mut commit);
        asked.push((soon, commit));
    }
    for (soon, commit) in asked {
        let outcomes = match soon {
            Poll::Ready(outcomes) => outcomes,
            Poll::Pending => commit.await,
        };
        let outcomes = outcomes.expect("a commit");
        assert_eq!(outcomes, vec![Committed::Appended; 16]);
    }
    for story in stories {
        let places: Vec<Seq> = log(&*store, story.id()).await.iter().map(|e| e.seq).collect();
        assert_eq!(places, (1..=story.row.version.0).map(Seq).collect::<Vec<_>>());
    }
}

pub async fn an_event_is_found_by_its_id(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let mut other = Story::new(11);
    write(&*store, story.start()).await;
    write(&*store, other.start()).await;
    write(&*store, story.then(vec![entered("b"), said("half way")])).await;
    let find = async |execution: ExecutionId, event: EventId| {
        store.find_event(execution, event).await.expect("a read")
    };
    assert_eq!(find(story.id(), story.event_at(5)).await, Some(Seq(5)));
    assert_eq!(find(story.id(), story.event_at(4)).await, Some(Seq(4)), "decided");
    assert_eq!(find(story.id(), story.event_at(6)).await, None, "unknown");
    assert_eq!(find(other.id(), story.event_at(5)).await, None, "other log");
    write(&*store, story.then(vec![said_as(7), said_as(7)])).await;
    assert_eq!(find(story.id(), EventId::new(7)).await, Some(Seq(6)), "the id it came with");
}

pub async fn an_event_id_is_unique_within_a_log(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![entered("b"), said("half way")])).await;
    let before = log(&*store, story.id()).await;
    for taken in [story.event_at(4), story.event_at(5)] {
        let mut twice = story.clone().then(vec![said("the same id again")]);
        let mut event = Event::clone(&twice.events[0]);
        event.id = taken;
        twice.events[0] = Arc::new(event);
        let other = Story::new(11).start();
        let refused = store.commit(vec![other, twice]).await;
        assert!(is_taken(&refused), "{refused:?}");
    }
    let mut within = story.clone().then(vec![said("one"), said("two")]);
    let mut event = Event::clone(&within.events[1]);
    event.id = within.events[0].id;
    within.events[1] = Arc::new(event);
    let refused = store.commit(vec![within]).await;
    assert!(is_taken(&refused), "{refused:?}");
    assert_eq!(log(&*store, story.id()).await, before);
    assert!(log(&*store, ExecutionId::new(11)).await.is_empty(), "its batch");
    let mut elsewhere = Story::new(12);
    let mut start = elsewhere.start();
    let mut event = Event::clone(&start.events[1]);
    event.id = story.event_at(5);
    start.events[1] = Arc::new(event);
    write(&*store, start).await;
}

pub async fn an_execution_ends_once(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let twice = story.clone().then(every_end());
    assert!(store.commit(vec![twice]).await.is_err());
    write(&*store, story.then(vec![done()])).await;
    for end in every_end() {
        let again = story.clone().then(vec![end]);
        assert!(store.commit(vec![again]).await.is_err());
    }
    let row = store.execution(&story.tenant, story.id()).await;
    assert_eq!(row.expect("a read"), Some(story.row));
}

pub async fn the_newest_id_is_the_largest_ever_appended(store: Arc<dyn Store>) {
    assert_eq!(store.newest_id().await.expect("a read"), None);
    let mut newer = Story::new(20);
    let older = Story::new(10).then(vec![started()]);
    write(&*store, newer.then(vec![started(), said("ahead")])).await;
    write(&*store, older).await;
    let newest = store.newest_id().await.expect("a read");
    assert_eq!(newest, Some(newer.event_at(2)));
    let refused = Story::new(20).then(vec![started(), said("1"), said("2")]);
    assert_eq!(commit(&*store, refused).await, Committed::Repeated);
    let newest = store.newest_id().await.expect("a read");
    assert_eq!(newest, Some(newer.event_at(2)), "what was not written");
}

async fn refused(store: &dyn Store, batch: Vec<Append>) {
    let refusal = store.commit(batch).await;
    let is_refused = |error: &StoreError| matches!(error.failure(), StoreError::Backend { .. });
    assert!(refusal.as_ref().is_err_and(is_refused), "expected a refusal, got {refusal:?}");
}

async fn assert_row(store: &dyn Store, story: &Story) {
    let row = store.execution(&story.tenant, story.id()).await;
    assert_eq!(row.expect("a read").as_ref(), Some(&story.row));
}

fn is_taken(outcome: &Result<Vec<Committed>, StoreError>) -> bool {
    outcome.as_ref().is_err_and(|error| matches!(error.failure(), StoreError::EventTaken(_)))
}
