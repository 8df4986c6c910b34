//! Cases about time going by, for stores whose clock a test can move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use noetl_model::{Clock, Timestamp};

use super::due::{due, with};
use super::leases::take;
use super::outbox_on;
use super::story::{Story, write};
use crate::{Advanced, NewDue, Store};

/// Stands still until a case moves it.
#[derive(Debug)]
pub struct HandClock(AtomicI64);

impl HandClock {
    /// Moves it forward.
    pub fn pass(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).expect("a short time");
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Default for HandClock {
    /// An instant that no default could be mistaken for.
    fn default() -> Self {
        Self(AtomicI64::new(1_767_225_600_000_000))
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

const TTL: Duration = Duration::from_secs(10);
const INSTANT: Duration = Duration::from_micros(1);

pub async fn a_lease_lives_until_its_end_and_not_at_it(store: Arc<dyn Store>, clock: &HandClock) {
    let lease = take(&*store, "t", "a", TTL).await;
    assert_eq!(lease.until, clock.now().plus(TTL));
    clock.pass(TTL - INSTANT);
    assert_eq!(store.acquire("t", "b", TTL).await.expect("an answer"), None);
    assert_eq!(store.advance("c", 1, Some(&lease)).await.expect("an answer"), Advanced::Moved);
    clock.pass(INSTANT);
    assert_eq!(store.lease("t").await.expect("a read"), None);
    assert_eq!(store.advance("c", 2, Some(&lease)).await.expect("an answer"), Advanced::Fenced);
    assert!(!store.renew(&lease, TTL).await.expect("an answer"));
    assert_eq!(take(&*store, "t", "b", TTL).await.epoch, 2);
}

pub async fn a_renewed_lease_lives_from_the_renewal_on(store: Arc<dyn Store>, clock: &HandClock) {
    let lease = take(&*store, "t", "a", TTL).await;
    clock.pass(TTL - INSTANT);
    assert!(store.renew(&lease, TTL).await.expect("an answer"));
    clock.pass(TTL - INSTANT);
    let live = store.lease("t").await.expect("a read").expect("a live lease");
    assert_eq!(live.until, clock.now().plus(INSTANT));
}

pub async fn a_row_is_ready_at_its_time_and_when_its_lease_is_over(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    let at = clock.now().plus(TTL);
    let rows = vec![NewDue { at, ..due(1, 0) }, NewDue { at, ..due(2, 0) }];
    write(&*store, with(Story::new(10).start(), rows, &[])).await;
    let take = async || {
        let taken = store.take_due(1, TTL).await.expect("an answer");
        taken.first().map(|row| (row.id.get(), row.attempts))
    };
    assert_eq!(store.next_due().await.expect("a read"), Some(at));
    clock.pass(TTL - INSTANT);
    assert_eq!(take().await, None);
    clock.pass(INSTANT);
    assert_eq!(take().await, Some((1, 1)));
    clock.pass(TTL - INSTANT);
    assert_eq!(take().await, Some((2, 1)), "the first is lent");
    assert_eq!(take().await, None);
    assert_eq!(store.next_due().await.expect("a read"), Some(clock.now().plus(INSTANT)));
    clock.pass(INSTANT);
    assert_eq!(take().await, Some((1, 2)));
}

pub async fn a_claim_of_the_outbox_is_over_after_its_lease(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    write(&*store, Story::new(10).start()).await;
    let claim = async |limit| {
        let claimed = store.claim(limit).await.expect("a claim");
        claimed.iter().map(|row| row.attempts).collect::<Vec<_>>()
    };
    let lease = outbox_on().lease;
    assert_eq!(claim(2).await, [1, 1]);
    clock.pass(lease - INSTANT);
    assert_eq!(store.pending().await.expect("a count"), 1);
    clock.pass(INSTANT);
    assert_eq!(store.pending().await.expect("a count"), 3);
    assert_eq!(claim(10).await, [2, 2, 1]);
    assert!(claim(10).await.is_empty());
}

pub async fn a_failed_row_of_the_outbox_waits_for_its_delay(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    write(&*store, Story::new(10).start()).await;
    let claimed = store.claim(1).await.expect("a claim");
    // Longer than a claim, which must not bring it back.
    let delay = outbox_on().lease * 2;
    assert!(store.mark_failed(claimed[0].id, "no", delay).await.expect("an answer"));
    clock.pass(delay - INSTANT);
    assert_eq!(store.pending().await.expect("a count"), 2);
    clock.pass(INSTANT);
    assert_eq!(store.pending().await.expect("a count"), 3);
    assert_eq!(store.claim(1).await.expect("a claim")[0].attempts, 2);
}
