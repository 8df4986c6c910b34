//! Cases about timers.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{ExecutionId, TimerId, Timestamp};
use serde_json::json;
use tokio::task::JoinSet;

use super::leases::LONG;
use super::story::{Story, commit, said, write};
use crate::{Append, Committed, NewTimer, Store, TimerRow};

/// A time after the end of every case.
pub(super) const FUTURE: Timestamp = Timestamp::from_millis(4_000_000_000_000);

pub async fn a_row_is_written_with_its_append_and_read_back(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    let new = NewTimer {
        target: ExecutionId::new(77),
        payload: json!({"b": [1.5, null], "a": "ä"}),
        ..due(5, 100)
    };
    write(&*store, with(story.start(), vec![new.clone()], &[])).await;
    let expected = TimerRow {
        id: new.id,
        tenant: story.tenant.clone(),
        execution: story.id(),
        kind: new.kind,
        target: new.target,
        at: new.at,
        payload: new.payload,
        attempts: 0,
    };
    assert_eq!(sent(&*store, &story).await, std::slice::from_ref(&expected));
    assert_eq!(store.next_due().await.expect("a read"), Some(expected.at));
    let nobody = store.timers_of(ExecutionId::new(77)).await;
    assert_eq!(nobody.expect("a list"), [], "rows are listed by their sender");
    let taken = take(&*store, 9, LONG).await;
    assert_eq!(taken, [TimerRow { attempts: 1, ..expected }]);
}

pub async fn timers_of_later_appends_have_the_tenant_of_the_execution(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    write(&*store, with(story.then(vec![said("x")]), vec![due(5, 100)], &[])).await;
    assert_eq!(sent(&*store, &story).await[0].tenant, story.tenant);
}

pub async fn a_delivery_reports_remaining_timers_to_their_senders(store: Arc<dyn Store>) {
    let mut stories: Vec<Story> = [10, 11, 12].into_iter().map(Story::new).collect();
    let kind = |number, kind: &str| NewTimer { kind: kind.to_owned(), ..due(number, 100) };
    write(&*store, with(stories[0].start(), vec![kind(1, "a"), kind(2, "a")], &[])).await;
    write(&*store, with(stories[1].start(), vec![kind(3, "b")], &[])).await;
    write(&*store, with(stories[2].start(), vec![kind(4, "a"), kind(5, "b")], &[])).await;
    let ids: Vec<ExecutionId> = stories.iter().rev().map(Story::id).collect();
    let senders = async |kind: &str| store.with_pending_timer(kind, &ids).await.expect("a list");
    assert_eq!(senders("a").await, [stories[0].id(), stories[2].id()]);
    assert_eq!(senders("c").await, []);
    take(&*store, 9, LONG).await;
    assert_eq!(senders("b").await, [stories[1].id(), stories[2].id()], "lent is not delivered");
    store.delete_timers(&[TimerId::new(4)]).await.expect("a write");
    assert_eq!(senders("a").await, [stories[0].id()]);
    assert_eq!(store.with_pending_timer("a", &[]).await.expect("a list"), []);
}

pub async fn rows_of_a_rejected_append_do_not_exist(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, with(story.start(), vec![due(1, 100)], &[])).await;
    let mut late = story.clone();
    write(&*store, story.then(vec![said("first")])).await;
    let refused = with(late.then(vec![said("late")]), vec![due(2, 100)], &[1]);
    assert!(matches!(commit(&*store, refused).await, Committed::Conflict { .. }));
    let repeated = with(Story::new(10).start(), vec![due(3, 100)], &[1]);
    assert_eq!(commit(&*store, repeated).await, Committed::Repeated);
    assert_eq!(numbers(&sent(&*store, &story).await), [1]);
}

pub async fn the_first_of_two_rows_with_one_id_stays(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let mut other = Story::new(11);
    let rows = vec![due(1, 100), NewTimer { kind: "second".into(), ..due(1, 200) }];
    write(&*store, with(story.start(), rows, &[])).await;
    let third = NewTimer { kind: "third".into(), ..due(1, 300) };
    write(&*store, with(other.start(), vec![third], &[])).await;
    let rows = sent(&*store, &story).await;
    assert_eq!((rows.len(), &*rows[0].kind), (1, "timer"));
    assert_eq!(sent(&*store, &other).await, []);
}

pub async fn a_delivered_timer_is_deleted_with_the_append_that_answers_it(store: Arc<dyn Store>) {
    let mut parent = Story::new(10);
    write(&*store, with(parent.start(), vec![due(1, 100), due(2, 100)], &[])).await;
    // Another execution may handle the timer, and an unknown timer is not an error.
    let mut child = Story::new(11);
    write(&*store, with(child.start(), vec![], &[1, 999])).await;
    assert_eq!(numbers(&sent(&*store, &parent).await), [2]);
    // A timer that one batch both sends and handles never becomes visible.
    let both = with(parent.then(vec![said("x")]), vec![due(3, 100)], &[3]);
    write(&*store, both).await;
    assert_eq!(numbers(&sent(&*store, &parent).await), [2]);
    let sends = with(parent.then(vec![said("y")]), vec![due(4, 100)], &[]);
    let answers = with(parent.then(vec![said("z")]), vec![], &[4, 2]);
    store.commit(vec![sends, answers]).await.expect("a commit");
    assert_eq!(sent(&*store, &parent).await, []);
}

pub async fn ready_timers_are_claimed_longest_ready_first(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let future = NewTimer { at: FUTURE, ..due(9, 0) };
    let rows = vec![due(4, 300), future, due(3, 100), due(2, 100), due(1, 200)];
    write(&*store, with(story.start(), rows, &[])).await;
    assert_eq!(take(&*store, 0, LONG).await, []);
    assert_eq!(numbers(&take(&*store, 3, LONG).await), [2, 3, 1]);
    assert_eq!(numbers(&take(&*store, usize::MAX, LONG).await), [4]);
    assert_eq!(take(&*store, 9, LONG).await, [], "all that was ready is lent");
    let listed = sent(&*store, &story).await;
    assert_eq!(numbers(&listed), [2, 3, 1, 4, 9], "a row that is lent still waits");
}

pub async fn a_timer_with_an_expired_claim_is_claimed_again(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, with(story.start(), vec![due(1, 100)], &[])).await;
    for attempts in 1..=3 {
        let taken = take(&*store, 9, Duration::ZERO).await;
        assert_eq!(taken.iter().map(|row| row.attempts).collect::<Vec<_>>(), [attempts]);
        assert_eq!(taken[0].at, Timestamp::from_micros(100), "its time stays");
    }
    take(&*store, 9, LONG).await;
    let next = store.next_due().await.expect("a read").expect("it waits");
    assert!(next > Timestamp::from_micros(100), "nothing before the lease is over: {next}");
}

pub async fn a_delivered_row_is_deleted_claimed_or_not(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, with(story.start(), vec![due(1, 100), due(2, 200), due(3, 300)], &[])).await;
    take(&*store, 1, LONG).await;
    let ids = [1, 2, 2, 999].map(TimerId::new);
    for expected in [2, 0] {
        assert_eq!(store.delete_timers(&ids).await.expect("an answer"), expected);
    }
    assert_eq!(store.delete_timers(&[]).await.expect("an answer"), 0);
    assert_eq!(numbers(&sent(&*store, &story).await), [3]);
    store.delete_timers(&[TimerId::new(3)]).await.expect("an answer");
    assert_eq!(store.next_due().await.expect("a read"), None);
}

pub async fn a_timer_is_postponed_and_advanced(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, with(story.start(), vec![due(1, 100)], &[])).await;
    let id = TimerId::new(1);
    assert!(store.reschedule(id, FUTURE).await.expect("an answer"));
    assert_eq!(store.next_due().await.expect("a read"), Some(FUTURE));
    assert_eq!(take(&*store, 9, LONG).await, []);
    let early = Timestamp::from_micros(50);
    assert!(store.reschedule(id, early).await.expect("an answer"));
    assert_eq!(store.next_due().await.expect("a read"), Some(early));
    let taken = take(&*store, 9, LONG).await;
    assert_eq!((numbers(&taken), taken[0].attempts), (vec![1], 1));
    assert!(!store.reschedule(TimerId::new(2), early).await.expect("an answer"), "unknown");
}

pub async fn concurrent_claims_never_share_a_timer(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let rows = (0..40).map(|number| due(number, 100)).collect();
    write(&*store, with(story.start(), rows, &[])).await;
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let store = store.clone();
        tasks.spawn(async move { numbers(&take(&*store, 4, LONG).await) });
    }
    let mut all = tasks.join_all().await.concat();
    all.sort_unstable();
    assert_eq!(all, Vec::from_iter(0..40));
}

pub(crate) fn due(id: i64, at: i64) -> NewTimer {
    NewTimer {
        id: TimerId::new(id),
        kind: "timer".into(),
        target: ExecutionId::new(10),
        at: Timestamp::from_micros(at),
        payload: json!({}),
    }
}

/// Adds these timers and deliveries to an append.
pub(super) fn with(append: Append, due: Vec<NewTimer>, delivered: &[i64]) -> Append {
    let delivered = delivered.iter().copied().map(TimerId::new).collect();
    Append { due, delivered, ..append }
}

async fn sent(store: &dyn Store, story: &Story) -> Vec<TimerRow> {
    store.timers_of(story.id()).await.expect("a list")
}

async fn take(store: &dyn Store, limit: usize, lease_for: Duration) -> Vec<TimerRow> {
    store.claim_due(limit, lease_for).await.expect("an answer")
}

fn numbers(rows: &[TimerRow]) -> Vec<i64> {
    rows.iter().map(|row| row.id.get()).collect()
}
