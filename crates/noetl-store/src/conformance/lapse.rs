//! Cases about the passage of time, for stores whose clock a test can move.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Clock, CommandId, ExecutionId, Tenant};

use super::clock::HandClock;
use super::due::{due, with};
use super::holdings::ended;
use super::keychain::entry;
use super::leases::take;
use super::outbox_on;
use super::results::result;
use super::retention::shortest;
use super::runtimes::runtime;
use super::schedules::schedule;
use super::secret_audit::used;
use super::story::{Story, began, claimed, done, unlimited, write};
use super::subscriptions::{new, reserve, stamp};
use super::transient::variable;
use crate::command_leases::{HELD_MAX, SILENCE_MAX, START_WITHIN};
use crate::retention::{PurgeCounts, RetentionPolicy};
use crate::{
    ActiveLease, CursorUpdate, DedupOutcome, HeldBy, NewKeychainEntry, NewSchedule, NewTimer,
    NewVariable, RuntimeFilter, RuntimeKind, SecretUse, Store, SubscriptionAction,
    SubscriptionState,
};

const TTL: Duration = Duration::from_secs(10);
const INSTANT: Duration = Duration::from_micros(1);

pub async fn a_lease_expires_at_its_end(store: Arc<dyn Store>, clock: &HandClock) {
    let lease = take(&*store, "t", "a", TTL).await;
    assert_eq!(lease.until, clock.now().plus(TTL));
    clock.pass(TTL - INSTANT);
    assert_eq!(store.acquire("t", "b", TTL).await.expect("an answer"), None);
    assert_eq!(store.advance("c", 1, Some(&lease)).await.expect("an answer"), CursorUpdate::Moved);
    clock.pass(INSTANT);
    assert_eq!(store.lease("t").await.expect("a read"), None);
    assert_eq!(store.advance("c", 2, Some(&lease)).await.expect("an answer"), CursorUpdate::Fenced);
    assert!(!store.renew(&lease, TTL).await.expect("an answer"));
    assert_eq!(take(&*store, "t", "b", TTL).await.epoch, 2);
}

pub async fn a_renewed_lease_lasts_from_its_renewal(store: Arc<dyn Store>, clock: &HandClock) {
    let lease = take(&*store, "t", "a", TTL).await;
    clock.pass(TTL - INSTANT);
    assert!(store.renew(&lease, TTL).await.expect("an answer"));
    clock.pass(TTL - INSTANT);
    let live = store.lease("t").await.expect("a read").expect("a live lease");
    assert_eq!(live.until, clock.now().plus(INSTANT));
}

pub async fn a_timer_is_ready_at_its_time_and_after_its_claim_expires(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    let at = clock.now().plus(TTL);
    let rows = vec![NewTimer { at, ..due(1, 0) }, NewTimer { at, ..due(2, 0) }];
    write(&*store, with(Story::new(10).start(), rows, &[])).await;
    let take = async || {
        let taken = store.claim_due(1, TTL).await.expect("an answer");
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

pub async fn an_outbox_claim_expires_after_its_lease(store: Arc<dyn Store>, clock: &HandClock) {
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
    // The delay is longer than a claim, whose expiration must not make the row available early.
    let delay = outbox_on().lease * 2;
    assert!(store.mark_failed(claimed[0].id, "no", delay).await.expect("an answer"));
    clock.pass(delay - INSTANT);
    assert_eq!(store.pending().await.expect("a count"), 2);
    clock.pass(INSTANT);
    assert_eq!(store.pending().await.expect("a count"), 3);
    assert_eq!(store.claim(1).await.expect("a claim")[0].attempts, 2);
}

pub async fn a_published_row_of_the_outbox_is_purged_at_its_age(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    write(&*store, Story::new(10).start()).await;
    let rows = store.claim(2).await.expect("a claim");
    clock.pass(TTL);
    store.mark_published(&[rows[0].id]).await.expect("a count");
    clock.pass(TTL - INSTANT);
    assert_eq!(store.purge_published(TTL).await.expect("a count"), 0, "its age is not the event's");
    clock.pass(INSTANT);
    assert_eq!(store.purge_published(TTL).await.expect("a count"), 1);
}

pub async fn a_runtime_is_stale_without_a_heartbeat(store: Arc<dyn Store>, clock: &HandClock) {
    let (tenant, kind) = (Tenant::default(), RuntimeKind::WorkerPool);
    for (id, name) in [(1, "a"), (2, "b")] {
        store.register_runtime(&tenant, runtime(id, kind, name)).await.expect("a runtime");
    }
    clock.pass(TTL - INSTANT);
    let since = store.heartbeat(&tenant, kind, "a").await.expect("an answer");
    assert_eq!(since, Some(TTL - INSTANT));
    assert_eq!(store.purge_stale(TTL).await.expect("a count"), 0);
    clock.pass(INSTANT);
    assert_eq!(store.purge_stale(TTL).await.expect("a count"), 1);
    let left = store.runtimes(&tenant, &RuntimeFilter::default()).await.expect("a list");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].said.name, "a");
    assert_eq!(left[0].heartbeat, clock.now().minus(INSTANT));
}

pub async fn a_reservation_lasts_for_its_window(store: Arc<dyn Store>, clock: &HandClock) {
    let tenant = Tenant::default();
    let known = DedupOutcome::Known(ExecutionId::new(10));
    assert_eq!(reserve(&*store, &tenant, 1, "k", 10, TTL).await, DedupOutcome::New);
    clock.pass(TTL - INSTANT);
    assert_eq!(reserve(&*store, &tenant, 1, "k", 11, TTL).await, known);
    assert_eq!(store.prune_reserved(TTL).await.expect("a count"), 0);
    // A repeat does not extend the reservation.
    clock.pass(INSTANT);
    assert_eq!(reserve(&*store, &tenant, 1, "k", 12, TTL).await, DedupOutcome::New);
    clock.pass(TTL);
    assert_eq!(store.prune_reserved(TTL).await.expect("a count"), 1);
}

pub async fn a_subscription_records_its_last_change(store: Arc<dyn Store>, clock: &HandClock) {
    let tenant = Tenant::default();
    let one = new(1, "sub/a");
    let row = store.register_subscription(&tenant, one.clone()).await.expect("a row");
    assert_eq!((row.created_at, row.updated_at), (one.stamp.at, one.stamp.at));
    // The store's clock does not affect it: the row and its event have the stamp's time.
    clock.pass(TTL);
    let (from, action, later) =
        (SubscriptionState::Registered, SubscriptionAction::Activate, stamp());
    let moved = store.transition(&tenant, row.id, from, action, later).await.expect("an answer");
    let moved = moved.expect("it was registered");
    assert_eq!((moved.created_at, moved.updated_at), (row.created_at, later.at));
}

pub async fn a_schedule_is_ready_at_its_time(store: Arc<dyn Store>, clock: &HandClock) {
    let tenant = Tenant::default();
    let next_run_at = Some(clock.now().plus(TTL));
    let said = NewSchedule { next_run_at, ..schedule(1, None) };
    store.put_schedule(&tenant, said).await.expect("a schedule");
    clock.pass(TTL - INSTANT);
    assert_eq!(store.ready_schedules(10).await.expect("a list"), []);
    clock.pass(INSTANT);
    assert_eq!(store.ready_schedules(10).await.expect("a list").len(), 1);
}

pub async fn every_table_is_purged_by_its_own_window(store: Arc<dyn Store>, clock: &HandClock) {
    let tenant = Tenant::default();
    let minute = shortest().length().expect("a window");
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let row = store.claim(1).await.expect("a claim");
    store.mark_published(&[row[0].id]).await.expect("a count");
    // Only the worker pool is purged.
    let kinds = [RuntimeKind::WorkerPool, RuntimeKind::ServerApi, RuntimeKind::Broker];
    for (id, kind) in (1..).zip(kinds) {
        store.register_runtime(&tenant, runtime(id, kind, "a")).await.expect("a runtime");
    }
    reserve(&*store, &tenant, 1, "k", 10, TTL).await;
    let used = SecretUse { at: clock.now(), ..used(1, 0) };
    store.audit_secret(&tenant, used).await.expect("kept");
    let expires_at = Some(clock.now().plus(minute));
    let kept = NewKeychainEntry { expires_at, ..entry("k") };
    store.put_keychain_entry(&tenant, kept).await.expect("kept");
    let kept = NewVariable { expires_at, ..variable("v") };
    store.put_variables(&tenant, story.id(), vec![kept]).await.expect("kept");
    let mut kept = result(1, 10, "r");
    kept.summary.expires_at = expires_at;
    store.put_result(&tenant, kept).await.expect("kept");

    let none = RetentionPolicy::KEEP;
    let one = PurgeCounts::default();
    let policies = [
        (RetentionPolicy { runtimes: shortest(), ..none }, PurgeCounts { runtimes: 1, ..one }),
        (RetentionPolicy { outbox: shortest(), ..none }, PurgeCounts { outbox: 1, ..one }),
        (RetentionPolicy { dedup: shortest(), ..none }, PurgeCounts { dedup: 1, ..one }),
        (RetentionPolicy { audit: shortest(), ..none }, PurgeCounts { audit: 1, ..one }),
        (
            RetentionPolicy { expired: true, ..none },
            PurgeCounts { keychain: 1, variables: 1, results: 1, ..one },
        ),
    ];
    let purge = async |policy: &RetentionPolicy, dry_run| {
        store.purge(policy, dry_run).await.expect("a report").removed
    };
    clock.pass(minute - INSTANT);
    for (policy, _) in &policies {
        assert_eq!(purge(policy, false).await, PurgeCounts::default(), "{policy:?}");
    }
    clock.pass(INSTANT);
    for (policy, removed) in &policies {
        assert_eq!(purge(policy, true).await, *removed, "{policy:?}");
        assert_eq!(purge(policy, false).await, *removed, "{policy:?}");
        assert_eq!(purge(policy, false).await, PurgeCounts::default(), "{policy:?}");
    }
}

pub async fn an_execution_is_purged_after_its_window(store: Arc<dyn Store>, clock: &HandClock) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    story.row.updated_at = clock.now();
    write(&*store, story.then(vec![done()])).await;
    let policy = RetentionPolicy { executions: shortest(), ..RetentionPolicy::KEEP };
    let purged = async || store.purge(&policy, false).await.expect("a report").removed.executions;
    // The last event is one instant later than the clock.
    clock.pass(shortest().length().expect("a window"));
    assert_eq!(purged().await, 0);
    clock.pass(INSTANT);
    assert_eq!(purged().await, 1);
}

pub async fn a_claim_of_a_remote_worker_is_renewed_after_its_start(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let id = story.command_at(4);
    write(&*store, story.then(vec![unlimited("b"), claimed(id, "w")])).await;
    clock.pass(START_WITHIN - INSTANT);
    // A heartbeat does not renew the lease of a command that has not started.
    assert_eq!(store.touch_worker(None, "w").await.expect("an answer"), 0);
    assert_eq!(ended(&*store).await, []);
    write(&*store, story.then(vec![began(id, "w")])).await;
    clock.pass(SILENCE_MAX - INSTANT);
    assert_eq!(ended(&*store).await, []);
    assert_eq!(store.touch_worker(None, "w").await.expect("an answer"), 1);
    clock.pass(SILENCE_MAX - INSTANT);
    assert_eq!(ended(&*store).await, []);
    clock.pass(INSTANT);
    assert_eq!(ended(&*store).await, [id]);
}

pub async fn a_lease_of_a_remote_worker_that_never_starts_expires(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let id = story.command_at(3);
    write(&*store, story.then(vec![claimed(id, "w")])).await;
    clock.pass(START_WITHIN);
    assert_eq!(ended(&*store).await, [id]);
}

pub async fn only_leases_renewed_by_worker_name_have_a_limit(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    // The tool of the first command has a timeout of 1.5 s.
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let ids = [story.command_at(3), story.command_at(4), story.command_at(5)];
    let mut facts = vec![unlimited("b"), unlimited("c")];
    for id in ids {
        facts.extend([claimed(id, "w"), began(id, "w")]);
    }
    write(&*store, story.then(facts)).await;
    store.renew_leases(None, "w", &ids[2..], HELD_MAX * 3).await.expect("an answer");
    let mut lost = Vec::new();
    let step = Duration::from_secs(30);
    for _ in 0..=HELD_MAX.as_secs() / step.as_secs() {
        clock.pass(step);
        store.touch_worker(None, "w").await.expect("an answer");
        lost.push(ended(&*store).await);
    }
    let when = |id: CommandId| lost.iter().position(|ids| ids.contains(&id));
    assert_eq!(when(ids[0]), Some(2), "after the limit of its tool, and a while");
    assert_eq!(when(ids[1]), Some(119), "after the longest time there is");
    assert_eq!(when(ids[2]), None, "it is named");
}

pub async fn a_lower_limit_ends_leases_of_workers_that_do_not_name_commands(
    store: Arc<dyn Store>,
    clock: &HandClock,
) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    // The tool of the first command has a timeout of 1.5 s, so its lease ends before the new limit.
    let [short, lowered, named, other] = [3, 4, 5, 6].map(|place| story.command_at(place));
    let mut facts = vec![unlimited("b"), unlimited("c"), unlimited("d")];
    for (id, worker) in [(short, "w"), (lowered, "w"), (named, "w"), (other, "v")] {
        facts.extend([claimed(id, worker), began(id, worker)]);
    }
    write(&*store, story.then(facts)).await;
    store.renew_leases(None, "w", &[named], HELD_MAX * 3).await.expect("an answer");
    let within = Duration::from_secs(300);
    let (acme, stranger) = (Tenant::new("acme"), Tenant::new("stranger"));
    let limit = async |scope, by| store.limit_held(scope, by, within).await.expect("an answer");
    let worker = HeldBy::Worker("w");
    assert_eq!(limit(Some(&stranger), worker).await, []);
    assert_eq!(limit(None, HeldBy::Worker("nobody")).await, []);
    let limited = limit(Some(&acme), worker).await;
    assert_eq!(limited.iter().map(|limit| limit.commands).collect::<Vec<_>>(), [1]);
    let of = |held: &[ActiveLease], id| held.iter().find(|held| held.id == id).copied();
    let held = store.held(&[short, lowered, named, other]).await.expect("an answer");
    assert_eq!(of(&held, lowered).and_then(|held| held.at_most), Some(limited[0].at_most));
    assert_eq!(of(&held, named).map(|held| held.at_most), Some(None));
    assert!(of(&held, other).and_then(|held| held.at_most) > Some(limited[0].at_most));
    // A second call a moment later changes no limit: the first one counts.
    clock.pass(INSTANT);
    assert_eq!(limit(None, worker).await, []);
    let all = limit(None, HeldBy::Commands(&[short, lowered, named, other])).await;
    assert_eq!(all.iter().map(|limit| limit.commands).collect::<Vec<_>>(), [1], "of worker v");
    let mut lost = Vec::new();
    for _ in 0..7 {
        clock.pass(Duration::from_secs(45));
        for worker in ["w", "v"] {
            store.touch_worker(None, worker).await.expect("an answer");
        }
        lost.push(ended(&*store).await);
    }
    let when = |id: CommandId| lost.iter().position(|ids| ids.contains(&id));
    assert_eq!(when(short), Some(1), "at the limit of its tool");
    assert_eq!(when(lowered), Some(6), "after 5 minutes, though its worker is heard of");
    assert_eq!(when(other), Some(6));
    assert_eq!(when(named), None, "its worker names it");
}
