//! Cases about subscriptions and the messages they have seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use noetl_model::{CatalogId, EventId, ExecutionId, SubscriptionId, Tenant, Timestamp};
use tokio::task::JoinSet;

use super::leases::LONG;
use crate::SubscriptionAction::{Activate, Deactivate, Drain, Pause, Resume};
use crate::SubscriptionState::{Active, Deactivated, Draining, Paused, Registered};
use crate::{
    DedupOutcome, EventStamp, NewSubscription, Store, SubscriptionAction, SubscriptionRow,
    SubscriptionState,
};

pub async fn a_registered_subscription_is_read_back(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    let new_one = new(5, "sub/a");
    let row = register(&*store, &mine, new_one.clone()).await;
    let expected = SubscriptionRow {
        id: SubscriptionId::new(5),
        path: "sub/a".into(),
        catalog: CatalogId::new(7),
        state: Registered,
        last_event: "subscription.registered".into(),
        created_at: new_one.stamp.at,
        updated_at: new_one.stamp.at,
    };
    assert_eq!(row, expected);
    assert_eq!(read(&*store, &mine, 5).await, Some(expected.clone()));
    assert_eq!(read(&*store, &theirs, 5).await, None);
    assert_eq!(read(&*store, &mine, 6).await, None);
    register(&*store, &mine, new(4, "sub/A")).await;
    register(&*store, &theirs, new(3, "sub/a")).await;
    let listed = store.subscriptions(&mine).await.expect("a list");
    assert_eq!(listed.iter().map(|row| row.id.get()).collect::<Vec<_>>(), [4, 5]);
}

pub async fn a_path_has_one_subscription_until_it_is_deactivated(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let first = register(&*store, &tenant, new(1, "sub/a")).await;
    let later = NewSubscription { catalog: CatalogId::new(8), ..new(2, "sub/a") };
    assert_eq!(register(&*store, &tenant, later.clone()).await, first);
    act(&*store, &tenant, 1, Registered, Activate).await.expect("active");
    let again = register(&*store, &tenant, later.clone()).await;
    assert_eq!((again.id, again.state), (first.id, Active));
    act(&*store, &tenant, 1, Active, Deactivate).await.expect("deactivated");
    let second = register(&*store, &tenant, later).await;
    assert_eq!((second.id.get(), second.catalog.get(), second.state), (2, 8, Registered));
    assert_eq!(read(&*store, &tenant, 1).await.expect("it stays").state, Deactivated);
}

pub async fn a_subscription_s_id_is_its_own(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    register(&*store, &mine, new(1, "sub/a")).await;
    for (tenant, path) in [(&mine, "sub/b"), (&theirs, "sub/a")] {
        let taken = store.register_subscription(tenant, new(1, path)).await;
        assert!(taken.is_err(), "{taken:?}");
    }
    assert_eq!(store.subscriptions(&theirs).await.expect("a list"), []);
}

pub async fn concurrent_registrations_of_a_path_get_one_id(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for id in 1..=12 {
        let store = store.clone();
        tasks.spawn(async move {
            register(&*store, &Tenant::default(), new(id, "sub/a")).await.id.get()
        });
    }
    let ids = tasks.join_all().await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let listed = store.subscriptions(&Tenant::default()).await.expect("a list");
    assert_eq!(listed.len(), 1);
}

pub async fn every_action_is_accepted_only_from_its_states(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let ways: [(SubscriptionState, &[(SubscriptionState, SubscriptionAction)]); 5] = [
        (Registered, &[]),
        (Active, &[(Registered, Activate)]),
        (Paused, &[(Registered, Activate), (Active, Pause)]),
        (Draining, &[(Registered, Activate), (Active, Drain)]),
        (Deactivated, &[(Registered, Deactivate)]),
    ];
    let mut id = 0;
    for (state, way) in ways {
        for action in SubscriptionAction::ALL {
            id += 1;
            register(&*store, &tenant, new(id, &format!("sub/{id}"))).await;
            for (from, action) in way {
                act(&*store, &tenant, id, *from, *action).await.expect("the way there");
            }
            let before = read(&*store, &tenant, id).await.expect("a row");
            let moved = act(&*store, &tenant, id, state, action).await;
            let after = read(&*store, &tenant, id).await.expect("a row");
            if action.from().contains(&state) {
                assert_eq!(moved.as_ref(), Some(&after), "{state:?} {action:?}");
                assert_eq!(after.state, action.target_state());
                assert_eq!(after.last_event, action.event_type());
            } else {
                assert_eq!((moved, after), (None, before), "{state:?} {action:?}");
            }
        }
    }
}

pub async fn a_subscription_changes_only_from_the_expected_state(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    register(&*store, &mine, new(1, "sub/a")).await;
    assert_eq!(act(&*store, &mine, 1, Active, Pause).await, None);
    assert_eq!(act(&*store, &theirs, 1, Registered, Activate).await, None);
    assert_eq!(act(&*store, &mine, 2, Registered, Activate).await, None);
    assert_eq!(read(&*store, &mine, 1).await.expect("a row").state, Registered);
    act(&*store, &mine, 1, Registered, Activate).await.expect("active");

    let mut tasks = JoinSet::new();
    for action in [Pause, Drain, Deactivate, Pause, Drain, Deactivate] {
        let store = store.clone();
        tasks.spawn(
            async move { act(&*store, &Tenant::default(), 1, Active, action).await.is_some() },
        );
    }
    let won = tasks.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
}

pub async fn a_replaced_subscription_stays_deactivated(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    register(&*store, &tenant, new(1, "sub/a")).await;
    act(&*store, &tenant, 1, Registered, Deactivate).await.expect("deactivated");
    // Without a rival, a deactivated subscription can be activated again.
    act(&*store, &tenant, 1, Deactivated, Activate).await.expect("active");
    act(&*store, &tenant, 1, Active, Deactivate).await.expect("deactivated");
    register(&*store, &tenant, new(2, "sub/a")).await;
    assert_eq!(act(&*store, &tenant, 1, Deactivated, Activate).await, None);
    act(&*store, &tenant, 1, Deactivated, Deactivate).await.expect("a repeat");
    act(&*store, &tenant, 2, Registered, Activate).await.expect("the other is not held up");
    act(&*store, &tenant, 2, Active, Resume).await.expect("a repeat");
}

pub async fn a_message_is_reserved_once(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    for (tenant, subscription, key, execution, expected) in [
        (&mine, 1, "k", 10, DedupOutcome::New),
        (&mine, 1, "k", 11, DedupOutcome::Known(ExecutionId::new(10))),
        (&mine, 1, "k", 10, DedupOutcome::Known(ExecutionId::new(10))),
        (&mine, 1, "K", 12, DedupOutcome::New),
        (&mine, 2, "k", 13, DedupOutcome::New),
        (&theirs, 1, "k", 14, DedupOutcome::New),
        (&mine, 0, "", 15, DedupOutcome::New),
        (&mine, 0, "", 16, DedupOutcome::Known(ExecutionId::new(15))),
    ] {
        let answer = reserve(&*store, tenant, subscription, key, execution, LONG).await;
        assert_eq!(answer, expected, "{tenant} {subscription} {key} {execution}");
    }
}

pub async fn a_message_outside_its_window_is_new(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let known = |execution| DedupOutcome::Known(ExecutionId::new(execution));
    assert_eq!(reserve(&*store, &tenant, 1, "k", 10, LONG).await, DedupOutcome::New);
    assert_eq!(reserve(&*store, &tenant, 1, "k", 11, Duration::ZERO).await, DedupOutcome::New);
    assert_eq!(reserve(&*store, &tenant, 1, "k", 12, Duration::MAX).await, known(11));
}

pub async fn a_reservation_is_released_only_by_its_execution(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    reserve(&*store, &mine, 1, "k", 10, LONG).await;
    for (tenant, subscription, key, execution, is_back) in [
        (&mine, 1, "k", 11, false),
        (&mine, 2, "k", 10, false),
        (&theirs, 1, "k", 10, false),
        (&mine, 1, "k", 10, true),
        (&mine, 1, "k", 10, false),
    ] {
        let (subscription, execution) =
            (SubscriptionId::new(subscription), ExecutionId::new(execution));
        let answer = store.unreserve(tenant, subscription, key, execution).await;
        assert_eq!(answer.expect("an answer"), is_back, "{tenant} {subscription} {execution}");
    }
    assert_eq!(reserve(&*store, &mine, 1, "k", 11, LONG).await, DedupOutcome::New);
}

pub async fn only_old_reservations_are_pruned(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    reserve(&*store, &tenant, 1, "a", 10, LONG).await;
    reserve(&*store, &tenant, 2, "b", 11, LONG).await;
    for window in [LONG, Duration::MAX] {
        assert_eq!(store.prune_reserved(window).await.expect("a count"), 0, "{window:?}");
    }
    assert_eq!(store.prune_reserved(Duration::ZERO).await.expect("a count"), 2);
    assert_eq!(reserve(&*store, &tenant, 1, "a", 12, LONG).await, DedupOutcome::New);
}

pub async fn concurrent_reservations_have_one_winner(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for execution in 1..=12 {
        let store = store.clone();
        tasks.spawn(async move {
            match reserve(&*store, &Tenant::default(), 1, "k", execution, LONG).await {
                DedupOutcome::New => (true, execution),
                DedupOutcome::Known(winner) => (false, winner.get()),
            }
        });
    }
    let answers = tasks.join_all().await;
    assert_eq!(answers.iter().filter(|(won, _)| *won).count(), 1);
    assert!(answers.iter().all(|(_, winner)| *winner == answers[0].1), "{answers:?}");
}

/// Time of the subscriptions' events: in 2024, like that of stories.
const AT: Timestamp = Timestamp::from_millis(1_704_067_200_000);

/// Returns a unique stamp.
pub(crate) fn stamp() -> EventStamp {
    static LAST: AtomicI64 = AtomicI64::new(1_000_000);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    EventStamp { event: EventId::new(number), at: Timestamp::from_micros(AT.as_micros() + number) }
}

pub(crate) fn new(id: i64, path: &str) -> NewSubscription {
    let catalog = CatalogId::new(7);
    NewSubscription { id: SubscriptionId::new(id), path: path.into(), catalog, stamp: stamp() }
}

pub(super) async fn register(
    store: &dyn Store,
    tenant: &Tenant,
    new: NewSubscription,
) -> SubscriptionRow {
    store.register_subscription(tenant, new).await.expect("a subscription")
}

pub(super) async fn read(store: &dyn Store, tenant: &Tenant, id: i64) -> Option<SubscriptionRow> {
    store.subscription(tenant, SubscriptionId::new(id)).await.expect("a read")
}

pub(super) async fn act(
    store: &dyn Store,
    tenant: &Tenant,
    id: i64,
    from: SubscriptionState,
    action: SubscriptionAction,
) -> Option<SubscriptionRow> {
    let moved = store.transition(tenant, SubscriptionId::new(id), from, action, stamp()).await;
    moved.expect("an answer")
}

pub(super) async fn reserve(
    store: &dyn Store,
    tenant: &Tenant,
    subscription: i64,
    key: &str,
    execution: i64,
    window: Duration,
) -> DedupOutcome {
    let (subscription, execution) =
        (SubscriptionId::new(subscription), ExecutionId::new(execution));
    let reserved = store.reserve(tenant, subscription, key, execution, window).await;
    reserved.expect("an answer")
}
