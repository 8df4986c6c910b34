//! Applies random calls on leases, cursors, snapshots, timers, and the outbox to two stores.
//!
//! Times are far in the past or the future, so that clocks that differ by the duration of a call
//! give the same result.

use std::time::Duration;

use noetl_model::{Tenant, TimerId, Timestamp, Value};
use serde_json::json;

use super::super::due::{FUTURE, due};
use super::super::leases::LONG;
use super::{Random, TENANTS};
use crate::{Append, Lease, NewTimer, OutboxRow, Snapshot, Store};

const NAMES: [&str; 3] = ["m:0", "m:1", "tailer"];
const HOLDERS: [&str; 2] = ["a", "b"];

/// Results of earlier calls, for reuse by later ones.
#[derive(Default)]
pub(super) struct Traffic {
    /// Leases as each store returned them: expiration times differ, epochs must not.
    leases: Vec<(Lease, Lease)>,
    /// Number of timers sent.
    sent: usize,
}

impl Traffic {
    /// Applies one operation to both stores.
    pub(super) async fn step(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        match random.below(7) {
            5 => outbox(random, place, left, right).await,
            4 => self.due(random, place, left, right).await,
            0 | 1 => self.lease(random, place, left, right).await,
            2 => self.cursor(random, place, left, right).await,
            _ => snapshot(random, place, left, right).await,
        }
    }

    /// Adds timers to some appends, and marks some that were sent before as delivered.
    pub(super) fn send(&mut self, random: &mut Random, batch: &mut [Append]) {
        for append in batch {
            for _ in 0..random.below(3) {
                self.sent += 1;
                let at = random.pick(&[Timestamp::from_micros(9), Timestamp::default(), FUTURE]);
                let new = due(self.any_due(random).get(), 0);
                append.due.push(NewTimer { at, ..new });
            }
            if random.below(3) == 0 {
                append.delivered.push(self.any_due(random));
            }
        }
    }

    /// Returns the ID of a timer, sent or not.
    fn any_due(&self, random: &mut Random) -> TimerId {
        TimerId::new(i64::try_from(random.below(self.sent + 2)).expect("few rows"))
    }

    async fn due(&mut self, random: &mut Random, place: &str, left: &dyn Store, right: &dyn Store) {
        let id = self.any_due(random);
        match random.below(4) {
            0 => {
                let ids = [id, self.any_due(random)];
                let one = left.delete_timers(&ids).await.expect(place);
                assert_eq!(one, right.delete_timers(&ids).await.expect(place), "{place}");
            }
            1 => {
                let until = random.pick(&[Timestamp::default(), FUTURE]);
                let one = left.reschedule(id, until).await.expect(place);
                assert_eq!(one, right.reschedule(id, until).await.expect(place), "{place}");
            }
            _ => {
                // Claim all ready timers, so that the exact expiration of an empty lease does not
                // matter.
                let lease = random.pick(&[Duration::ZERO, LONG]);
                let mut one = left.claim_due(1000, lease).await.expect(place);
                let mut other = right.claim_due(1000, lease).await.expect(place);
                one.sort_by_key(|row| row.id);
                other.sort_by_key(|row| row.id);
                assert_eq!(one, other, "{place}");
            }
        }
    }

    async fn lease(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        let ttl = random.pick(&[Duration::ZERO, LONG]);
        let (name, holder) = (random.pick(&NAMES), random.pick(&HOLDERS));
        let chance = random.below(4);
        if chance < 2 {
            let (one, other) = match chance {
                0 => {
                    (left.acquire(name, holder, ttl).await, right.acquire(name, holder, ttl).await)
                }
                _ => {
                    let one = left.acquire_any("m:", 0..2, holder, ttl).await;
                    let other = right.acquire_any("m:", 0..2, holder, ttl).await;
                    (one.map(|taken| taken.map(|taken| taken.1)), other.map(|t| t.map(|t| t.1)))
                }
            };
            let (one, other) = (one.expect(place), other.expect(place));
            assert_eq!(one.as_ref().map(named), other.as_ref().map(named), "{place}");
            self.leases.extend(one.zip(other));
            return;
        }
        if self.leases.is_empty() {
            return;
        }
        let (one, other) = &self.leases[random.below(self.leases.len())];
        let (one, other) = match chance {
            2 => (left.renew(one, ttl).await, right.renew(other, ttl).await),
            _ => (left.release(one).await, right.release(other).await),
        };
        assert_eq!(one.expect(place), other.expect(place), "{place}");
    }

    async fn cursor(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        let name = random.pick(&NAMES);
        let position = i64::try_from(random.below(40)).expect("a small number");
        let fence = match self.leases.len() {
            0 => None,
            count => Some(random.below(count * 2)),
        };
        let fence = fence.and_then(|index| self.leases.get(index));
        let one = left.advance(name, position, fence.map(|fence| &fence.0)).await;
        let other = right.advance(name, position, fence.map(|fence| &fence.1)).await;
        assert_eq!(one.expect(place), other.expect(place), "{place}");
    }
}

/// Returns a lease without its expiration time.
fn named(lease: &Lease) -> (String, String, i64) {
    (lease.name.clone(), lease.holder.clone(), lease.epoch)
}

async fn snapshot(random: &mut Random, place: &str, left: &dyn Store, right: &dyn Store) {
    let tenant = Tenant::new(random.pick(&TENANTS));
    let (of, id) = (random.pick(&["state", "replay"]), random.pick(&["1", "2"]));
    let (one, other) = match random.below(6) {
        0 => (left.forget(&tenant, of, id).await, right.forget(&tenant, of, id).await),
        chance => {
            let version = i64::try_from(random.below(20)).expect("a small number");
            let body = format!("{{ \"version\": {version} }}");
            let mut snapshot = Snapshot::new(version, body, json!({"n": version}));
            if chance == 1 {
                snapshot.checksum.push('0');
            }
            let one = left.save(&tenant, of, id, snapshot.clone()).await;
            (one, right.save(&tenant, of, id, snapshot).await)
        }
    };
    assert_eq!(one.expect(place), other.expect(place), "{place}");
}

async fn outbox(random: &mut Random, place: &str, left: &dyn Store, right: &dyn Store) {
    let one = left.pending().await.expect(place);
    assert_eq!(one, right.pending().await.expect(place), "{place}");
    let age = random.pick(&[LONG, LONG, Duration::ZERO]);
    let one = left.purge_published(age).await.expect(place);
    assert_eq!(one, right.purge_published(age).await.expect(place), "{place}");
    // Claim all rows: the order in which two executions of one batch are published depends on the
    // store.
    let mut one = left.claim(1_000_000).await.expect(place);
    let mut other = right.claim(1_000_000).await.expect(place);
    one.sort_by_key(|row| row.execution);
    other.sort_by_key(|row| row.execution);
    assert_eq!(one.len(), other.len(), "{place}");
    for (one, other) in one.iter().zip(&other) {
        assert_same_row(place, one, other);
        // Row IDs depend on the store.
        let delay = random.pick(&[Duration::ZERO, LONG]);
        let (one, other) = match random.below(3) {
            0 => {
                let published = left.mark_published(&[one.id, one.id]).await.expect(place);
                let other = right.mark_published(&[other.id, other.id]).await.expect(place);
                (published == 1, other == 1)
            }
            1 => {
                let failed = left.mark_failed(one.id, place, delay).await.expect(place);
                (failed, right.mark_failed(other.id, place, delay).await.expect(place))
            }
            _ => continue,
        };
        assert_eq!((one, other), (true, true), "{place}");
    }
}

fn assert_same_row(place: &str, one: &OutboxRow, other: &OutboxRow) {
    // A store may normalize JSON.
    let decoded = |row: &OutboxRow| -> (OutboxRow, Value) {
        let payload = serde_json::from_str(&row.payload).expect("JSON");
        (OutboxRow { id: 0, payload: String::new(), ..row.clone() }, payload)
    };
    assert_eq!(decoded(one), decoded(other), "{place}");
}

/// Compares every read of both stores.
pub(super) async fn compare_reads(place: &str, left: &dyn Store, right: &dyn Store) {
    // The expiration of a lease depends on each store's clock; whether it is in the past does not.
    let one = left.next_due().await.expect(place).map(|next| next < FUTURE);
    let other = right.next_due().await.expect(place).map(|next| next < FUTURE);
    assert_eq!(one, other, "{place}");
    for name in NAMES {
        let one = left.lease(name).await.expect(place);
        let other = right.lease(name).await.expect(place);
        assert_eq!(one.as_ref().map(named), other.as_ref().map(named), "{place}, {name}");
        let one = left.cursor(name).await.expect(place);
        assert_eq!(one, right.cursor(name).await.expect(place), "{place}, {name}");
    }
    for prefix in ["", "m", "x"] {
        let one = left.live(prefix).await.expect(place);
        let other = right.live(prefix).await.expect(place);
        let names = |leases: &[Lease]| leases.iter().map(named).collect::<Vec<_>>();
        assert_eq!(names(&one), names(&other), "{place}, {prefix}");
    }
    for tenant in TENANTS.map(Tenant::new) {
        for (of, id) in [("state", "1"), ("state", "2"), ("replay", "1"), ("replay", "2")] {
            let one = left.snapshot(&tenant, of, id).await.expect(place);
            let other = right.snapshot(&tenant, of, id).await.expect(place);
            assert_eq!(one, other, "{place}, {tenant}, {of} {id}");
        }
    }
}
