//! Applies random calls on runtimes, subscriptions, and schedules to two stores.
//!
//! The comparison omits times that a store sets itself; times given by a caller are far in the past
//! or the future.

use std::time::Duration;

use noetl_model::{ExecutionId, ScheduleId, Seq, SubscriptionId, Tenant, Timestamp};
use serde_json::json;

use super::super::due::FUTURE;
use super::super::leases::LONG;
use super::super::runtimes::runtime;
use super::super::schedules::schedule;
use super::super::subscriptions::{new, stamp};
use super::{PATHS, Random, TENANTS};
use crate::{
    NewRuntime, NewSchedule, RuntimeFilter, RuntimeKind, RuntimeRow, ScheduleRow, Store,
    SubscriptionAction, SubscriptionRow, SubscriptionState,
};

const KINDS: [RuntimeKind; 2] = [RuntimeKind::Broker, RuntimeKind::WorkerPool];
const NAMES: [&str; 3] = ["a", "A", "ab"];
/// First subscription ID. Subscriptions and executions share one ID space, so that no two logs
/// share an ID.
const FIRST_SUBSCRIPTION: i64 = 1_000_000;
/// Number of schedule IDs: few enough that calls reuse them.
const SCHEDULES: usize = 8;
/// Run times: two in the past and one in the future.
const TIMES: [Timestamp; 3] = [Timestamp::from_micros(100), Timestamp::from_micros(200), FUTURE];

/// Results of earlier calls, for reuse by later ones.
#[derive(Default)]
pub(super) struct Registry {
    runtimes: i64,
    subscriptions: usize,
    executions: i64,
}

impl Registry {
    /// Applies one operation to both stores.
    pub(super) async fn step(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        match random.below(4) {
            0 => self.runtime(random, place, left, right).await,
            1 => self.subscription(random, place, left, right).await,
            2 => self.message(random, place, left, right).await,
            _ => self.schedule(random, place, left, right).await,
        }
    }

    async fn runtime(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        let tenant = Tenant::new(random.pick(&TENANTS));
        let (kind, name) = (random.pick(&KINDS), random.pick(&NAMES));
        match random.below(8) {
            0 => {
                let one = left.deregister(&tenant, kind, name).await.expect(place);
                let other = right.deregister(&tenant, kind, name).await.expect(place);
                assert_eq!(one, other, "{place}");
            }
            1 => {
                let window = random.pick(&[LONG, LONG, LONG, Duration::ZERO]);
                let one = left.purge_stale(window).await.expect(place);
                assert_eq!(one, right.purge_stale(window).await.expect(place), "{place}");
            }
            2 => {
                let one = left.heartbeat(&tenant, kind, name).await.expect(place);
                let other = right.heartbeat(&tenant, kind, name).await.expect(place);
                assert_eq!(one.is_some(), other.is_some(), "{place}");
            }
            _ => {
                self.runtimes += 1;
                let said = NewRuntime {
                    status: random.pick(&["active", "draining"]).into(),
                    labels: Some(json!({"n": self.runtimes})),
                    ..runtime(self.runtimes, kind, name)
                };
                let one = left.register_runtime(&tenant, said.clone()).await.expect(place);
                let other = right.register_runtime(&tenant, said).await.expect(place);
                assert_eq!(one.said, other.said, "{place}");
            }
        }
    }

    async fn subscription(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        let tenant = Tenant::new(random.pick(&TENANTS));
        if random.below(3) == 0 {
            self.subscriptions += 1;
            let id = i64::try_from(self.subscriptions).expect("few subscriptions");
            let new = new(FIRST_SUBSCRIPTION + id, random.pick(&PATHS));
            let one = left.register_subscription(&tenant, new.clone()).await.expect(place);
            let other = right.register_subscription(&tenant, new).await.expect(place);
            assert_eq!(one, other, "{place}");
            return;
        }
        let id = number(random, self.subscriptions + 2);
        let id = SubscriptionId::new(FIRST_SUBSCRIPTION + id);
        let seen = left.subscription(&tenant, id).await.expect(place).map(|row| row.state);
        let guess = random.pick(&SubscriptionState::ALL);
        let from = if random.below(4) == 0 { guess } else { seen.unwrap_or(guess) };
        let action = random.pick(&SubscriptionAction::ALL);
        let stamp = stamp();
        let one = left.transition(&tenant, id, from, action, stamp).await.expect(place);
        let other = right.transition(&tenant, id, from, action, stamp).await.expect(place);
        assert_eq!(one, other, "{place}");
        let one = left.read(id.log(), Seq::START, 1000).await.expect(place);
        let other = right.read(id.log(), Seq::START, 1000).await.expect(place);
        assert_eq!(one, other, "{place}");
    }

    async fn message(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        let tenant = Tenant::new(random.pick(&TENANTS));
        let (scope, key) = (SubscriptionId::new(number(random, 2)), random.pick(&NAMES));
        self.executions += 1;
        let execution = ExecutionId::new(self.executions);
        match random.below(8) {
            0 => {
                let window = random.pick(&[LONG, LONG, Duration::ZERO]);
                let one = left.prune_reserved(window).await.expect(place);
                assert_eq!(one, right.prune_reserved(window).await.expect(place), "{place}");
            }
            1 | 2 => {
                let count = usize::try_from(self.executions).expect("few messages");
                let execution = ExecutionId::new(number(random, count));
                let one = left.unreserve(&tenant, scope, key, execution).await.expect(place);
                let other = right.unreserve(&tenant, scope, key, execution).await.expect(place);
                assert_eq!(one, other, "{place}");
            }
            _ => {
                let window = random.pick(&[LONG, LONG, Duration::ZERO]);
                let one = left.reserve(&tenant, scope, key, execution, window).await;
                let other = right.reserve(&tenant, scope, key, execution, window).await;
                assert_eq!(one.expect(place), other.expect(place), "{place}");
            }
        }
    }

    async fn schedule(
        &mut self,
        random: &mut Random,
        place: &str,
        left: &dyn Store,
        right: &dyn Store,
    ) {
        let number = number(random, SCHEDULES);
        let id = ScheduleId::new(number);
        // Occasionally use an ID of another tenant.
        let own = TENANTS[usize::try_from(number).expect("a small number") % TENANTS.len()];
        let tenant = Tenant::new(if random.below(6) == 0 { random.pick(&TENANTS) } else { own });
        let (due, next) = (random.pick(&TIMES), random.pick(&TIMES));
        let next = (random.below(5) > 0).then_some(next);
        match random.below(8) {
            0 => {
                let one = left.remove_schedule(&tenant, id).await.expect(place);
                let other = right.remove_schedule(&tenant, id).await.expect(place);
                assert_eq!(one, other, "{place}");
            }
            1 | 2 => {
                self.executions += 1;
                let execution = ExecutionId::new(self.executions);
                let one = left.fix_run(&tenant, id, due, execution).await.expect(place);
                let other = right.fix_run(&tenant, id, due, execution).await.expect(place);
                assert_eq!(one, other, "{place}");
            }
            3 | 4 => {
                let one = left.move_on(&tenant, id, due, next, place).await.expect(place);
                let other = right.move_on(&tenant, id, due, next, place).await.expect(place);
                assert_eq!(one, other, "{place}");
            }
            _ => {
                let is_enabled = random.below(4) > 0;
                let said = NewSchedule { is_enabled, next_run_at: next, ..schedule(number, None) };
                let one = left.put_schedule(&tenant, said.clone()).await.ok();
                let other = right.put_schedule(&tenant, said).await.ok();
                assert_eq!(one.map(unstamped), other.map(unstamped), "{place}");
            }
        }
    }

    /// Compares every read of both stores.
    pub(super) async fn compare_reads(&self, place: &str, left: &dyn Store, right: &dyn Store) {
        for tenant in TENANTS.map(Tenant::new) {
            for filter in filters() {
                let one = left.runtimes(&tenant, &filter).await.expect(place);
                let other = right.runtimes(&tenant, &filter).await.expect(place);
                assert_eq!(said(one), said(other), "{place}, {tenant}, {filter:?}");
            }
            // A store may contain subscriptions from before.
            let last = FIRST_SUBSCRIPTION + i64::try_from(self.subscriptions).expect("few");
            let is_ours = |row: &SubscriptionRow| row.id.get() <= last;
            let mut one = left.subscriptions(&tenant).await.expect(place);
            let mut other = right.subscriptions(&tenant).await.expect(place);
            one.retain(is_ours);
            other.retain(is_ours);
            assert_eq!(one, other, "{place}, {tenant}");
            let one = left.schedules(&tenant).await.expect(place).into_iter().map(unstamped);
            let other = right.schedules(&tenant).await.expect(place).into_iter().map(unstamped);
            assert_eq!(Vec::from_iter(one), Vec::from_iter(other), "{place}, {tenant}");
            for number in 0..i64::try_from(self.subscriptions + 2).expect("few subscriptions") {
                let id = SubscriptionId::new(FIRST_SUBSCRIPTION + number);
                let one = left.subscription(&tenant, id).await.expect(place);
                let other = right.subscription(&tenant, id).await.expect(place);
                assert_eq!(one, other, "{place}, {tenant}, {id}");
                let id = ScheduleId::new(number);
                let one = left.schedule(&tenant, id).await.expect(place).map(unstamped);
                let other = right.schedule(&tenant, id).await.expect(place).map(unstamped);
                assert_eq!(one, other, "{place}, {tenant}, {id}");
            }
        }
        for limit in [1, 3, 1000] {
            let one = left.ready_schedules(limit).await.expect(place).into_iter().map(unstamped);
            let other = right.ready_schedules(limit).await.expect(place);
            let other = other.into_iter().map(unstamped);
            assert_eq!(Vec::from_iter(one), Vec::from_iter(other), "{place}, {limit}");
        }
    }
}

fn number(random: &mut Random, bound: usize) -> i64 {
    i64::try_from(random.below(bound)).expect("a small number")
}

fn said(rows: Vec<RuntimeRow>) -> Vec<NewRuntime> {
    rows.into_iter().map(|row| row.said).collect()
}

fn unstamped(row: ScheduleRow) -> ScheduleRow {
    ScheduleRow { created_at: Timestamp::default(), updated_at: Timestamp::default(), ..row }
}

fn filters() -> Vec<RuntimeFilter> {
    let all = RuntimeFilter::default();
    vec![
        RuntimeFilter { kind: Some(RuntimeKind::WorkerPool), ..all.clone() },
        RuntimeFilter { status: Some("active".into()), name: Some("a".into()), ..all.clone() },
        all,
    ]
}
