//! Cases about subscriptions and the messages they have seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use noetl_model::event::Reported;
use noetl_model::row::EventRow;
use noetl_model::{
    CatalogId, Event, EventId, ExecutionId, Origin, Seq, SubscriptionId, Tenant, Timestamp,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::leases::LONG;
use crate::SubscriptionAction::{Activate, Deactivate, Drain, Pause, Resume};
use crate::SubscriptionState::{Active, Deactivated, Draining, Paused, Registered};
use crate::{
    ExecutionFilter, NewNote, NewSubscription, Noted, Reserved, Stamp, Store, SubscriptionAction,
    SubscriptionRow, SubscriptionState,
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

pub async fn a_path_keeps_its_subscription_until_it_is_deactivated(store: Arc<dyn Store>) {
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

pub async fn every_action_moves_from_where_it_is_allowed(store: Arc<dyn Store>) {
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
                assert_eq!(after.state, action.to());
                assert_eq!(after.last_event, action.event_type());
            } else {
                assert_eq!((moved, after), (None, before), "{state:?} {action:?}");
            }
        }
    }
}

pub async fn a_subscription_moves_only_from_the_state_that_was_seen(store: Arc<dyn Store>) {
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
    // Alone, it may come back.
    act(&*store, &tenant, 1, Deactivated, Activate).await.expect("active");
    act(&*store, &tenant, 1, Active, Deactivate).await.expect("deactivated");
    register(&*store, &tenant, new(2, "sub/a")).await;
    assert_eq!(act(&*store, &tenant, 1, Deactivated, Activate).await, None);
    act(&*store, &tenant, 1, Deactivated, Deactivate).await.expect("a repeat");
    act(&*store, &tenant, 2, Registered, Activate).await.expect("the other is not held up");
    act(&*store, &tenant, 2, Active, Resume).await.expect("a repeat");
}

pub async fn every_move_is_told_in_the_subscription_s_log(store: Arc<dyn Store>) {
    let tenant = Tenant::new("acme");
    let first = new(1, "sub/a");
    register(&*store, &tenant, first.clone()).await;
    // Neither a second registration nor a move that is not made says anything.
    register(&*store, &tenant, new(2, "sub/a")).await;
    assert_eq!(act(&*store, &tenant, 1, Active, Pause).await, None);
    assert_eq!(act(&*store, &tenant, 1, Registered, Pause).await, None);
    let active = act(&*store, &tenant, 1, Registered, Activate).await.expect("active");
    act(&*store, &tenant, 1, Active, Activate).await.expect("a repeat");
    act(&*store, &tenant, 1, Active, Deactivate).await.expect("over");
    act(&*store, &tenant, 1, Deactivated, Activate).await.expect("back");
    let told = log(&*store, 1).await;
    let expected = [
        (1, "subscription.registered"),
        (2, "subscription.activated"),
        (3, "subscription.activated"),
        (4, "subscription.deactivated"),
        (5, "subscription.activated"),
    ];
    assert_eq!(types(&told), expected.map(|(seq, event_type)| (seq, event_type.to_owned())));
    assert!(told.iter().all(|event| event.origin() == Origin::Decided));
    assert_eq!((told[0].id, told[0].at), (first.stamp.event, first.stamp.at));
    assert_eq!(told[1].at, active.updated_at);
    assert_eq!(log(&*store, 2).await, []);
    let rest = store.read(ExecutionId::new(1), Seq(3), 1).await.expect("a page");
    assert_eq!(rest, told[3..4]);
    assert_eq!(store.read(ExecutionId::new(1), Seq(5), 9).await.expect("a page"), []);
    let found = store.find_event(ExecutionId::new(1), told[2].id).await.expect("a look");
    assert_eq!(found, Some(Seq(3)));
    assert!(store.newest_id().await.expect("a read") >= Some(told[4].id));
    // It is no execution.
    assert_eq!(store.execution(&tenant, ExecutionId::new(1)).await.expect("a read"), None);
    let filter = ExecutionFilter { limit: 10, ..ExecutionFilter::default() };
    assert_eq!(store.executions(&tenant, &filter).await.expect("a list"), []);
}

pub async fn what_is_told_of_a_subscription_goes_out(store: Arc<dyn Store>) {
    let tenant = Tenant::new("acme");
    let first = new(1, "sub/a");
    register(&*store, &tenant, first.clone()).await;
    act(&*store, &tenant, 1, Registered, Activate).await.expect("active");
    let said = note(stamp(), "subscription.message.spooled", None);
    store.note_subscription(&tenant, SubscriptionId::new(1), said).await.expect("an answer");
    let rows = store.claim(10).await.expect("a claim");
    let subjects: Vec<&str> = rows.iter().map(|row| &*row.subject).collect();
    let expected = [
        "noetl.events.subscription.registered",
        "noetl.events.subscription.activated",
        "noetl.events.subscription.message.spooled",
    ];
    assert_eq!(subjects, expected);
    assert!(rows.iter().all(|row| row.tenant == tenant && row.execution == ExecutionId::new(1)));
    let body: serde_json::Value = serde_json::from_str(&rows[1].payload).expect("JSON");
    assert_eq!(body["prev_event_id"], first.stamp.event.get());
    assert_eq!((&body["node_id"], &body["node_name"]), (&json!("subscription"), &json!("sub/a")));
    assert_eq!(body["catalog_id"], 7);
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    assert_eq!(store.mark_published(&ids).await.expect("a count"), 3);
    assert_eq!(store.pending().await.expect("a count"), 0);
}

pub async fn a_note_is_kept_once_and_moves_nothing(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    register(&*store, &mine, new(1, "sub/a")).await;
    let before = read(&*store, &mine, 1).await;
    let id = SubscriptionId::new(1);
    let (given, minted, other) = (stamp(), stamp(), stamp());
    let kind = "subscription.message.dropped";
    for (tenant, id, note, answer) in [
        (&mine, id, note(given, kind, None), Some(Noted::Kept)),
        (&mine, id, note(given, kind, None), Some(Noted::Repeated)),
        (&mine, id, note(minted, kind, Some(5)), Some(Noted::Kept)),
        (&mine, id, note(other, kind, Some(5)), Some(Noted::Repeated)),
        (&mine, id, note(other, kind, Some(given.event.get())), Some(Noted::Repeated)),
        (&theirs, id, note(stamp(), kind, None), None),
        (&mine, SubscriptionId::new(2), note(stamp(), kind, None), None),
    ] {
        let noted = store.note_subscription(tenant, id, note.clone()).await.expect("an answer");
        assert_eq!(noted, answer, "{tenant} {id} {note:?}");
    }
    let told = log(&*store, 1).await;
    assert_eq!(told.len(), 3);
    assert_eq!(told[1], note(given, kind, None).event(id, Seq(2)));
    assert_eq!(told[2], note(minted, kind, Some(5)).event(id, Seq(3)));
    assert_eq!(read(&*store, &mine, 1).await, before);
    act(&*store, &mine, 1, Registered, Activate).await.expect("active");
    assert_eq!(log(&*store, 1).await[3].seq, Seq(4));
}

pub async fn concurrent_words_of_a_subscription_have_places_of_their_own(store: Arc<dyn Store>) {
    register(&*store, &Tenant::default(), new(1, "sub/a")).await;
    act(&*store, &Tenant::default(), 1, Registered, Activate).await.expect("active");
    let mut tasks = JoinSet::new();
    let twice = stamp();
    for number in 0..12 {
        let store = store.clone();
        tasks.spawn(async move {
            let (tenant, id) = (Tenant::default(), SubscriptionId::new(1));
            if number % 2 == 0 {
                act(&*store, &tenant, 1, Active, Resume).await.expect("a repeat");
                return;
            }
            let said = if number % 4 == 1 { twice } else { stamp() };
            let said = note(said, "subscription.rate_limited", None);
            store.note_subscription(&tenant, id, said).await.expect("an answer").expect("known");
        });
    }
    tasks.join_all().await;
    let places: Vec<u64> = log(&*store, 1).await.iter().map(|event| event.seq.0).collect();
    assert_eq!(places, Vec::from_iter(1..=12), "six moves, three notes and one of three repeats");
}

pub async fn subscriptions_are_counted_by_state(store: Arc<dyn Store>) {
    assert_eq!(store.subscription_counts().await.expect("counts"), []);
    for (id, tenant) in [(1, "a"), (2, "a"), (3, "b")] {
        register(&*store, &Tenant::new(tenant), new(id, &format!("sub/{id}"))).await;
    }
    act(&*store, &Tenant::new("b"), 3, Registered, Deactivate).await.expect("over");
    let mut counts = store.subscription_counts().await.expect("counts");
    counts.sort_by_key(|(state, _)| state.as_str());
    assert_eq!(counts, [(Deactivated, 1), (Registered, 2)]);
}

pub async fn a_message_is_reserved_once(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    for (tenant, subscription, key, execution, expected) in [
        (&mine, 1, "k", 10, Reserved::New),
        (&mine, 1, "k", 11, Reserved::Known(ExecutionId::new(10))),
        (&mine, 1, "k", 10, Reserved::Known(ExecutionId::new(10))),
        (&mine, 1, "K", 12, Reserved::New),
        (&mine, 2, "k", 13, Reserved::New),
        (&theirs, 1, "k", 14, Reserved::New),
        (&mine, 0, "", 15, Reserved::New),
        (&mine, 0, "", 16, Reserved::Known(ExecutionId::new(15))),
    ] {
        let answer = reserve(&*store, tenant, subscription, key, execution, LONG).await;
        assert_eq!(answer, expected, "{tenant} {subscription} {key} {execution}");
    }
}

pub async fn a_message_outside_its_window_is_new(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let known = |execution| Reserved::Known(ExecutionId::new(execution));
    assert_eq!(reserve(&*store, &tenant, 1, "k", 10, LONG).await, Reserved::New);
    assert_eq!(reserve(&*store, &tenant, 1, "k", 11, Duration::ZERO).await, Reserved::New);
    assert_eq!(reserve(&*store, &tenant, 1, "k", 12, Duration::MAX).await, known(11));
}

pub async fn a_message_is_given_back_by_its_execution_only(store: Arc<dyn Store>) {
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
    assert_eq!(reserve(&*store, &mine, 1, "k", 11, LONG).await, Reserved::New);
}

pub async fn old_messages_are_forgotten_and_others_stay(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    reserve(&*store, &tenant, 1, "a", 10, LONG).await;
    reserve(&*store, &tenant, 2, "b", 11, LONG).await;
    for window in [LONG, Duration::MAX] {
        assert_eq!(store.prune_reserved(window).await.expect("a count"), 0, "{window:?}");
    }
    assert_eq!(store.prune_reserved(Duration::ZERO).await.expect("a count"), 2);
    assert_eq!(reserve(&*store, &tenant, 1, "a", 12, LONG).await, Reserved::New);
}

pub async fn concurrent_reservations_have_one_winner(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for execution in 1..=12 {
        let store = store.clone();
        tasks.spawn(async move {
            match reserve(&*store, &Tenant::default(), 1, "k", execution, LONG).await {
                Reserved::New => (true, execution),
                Reserved::Known(winner) => (false, winner.get()),
            }
        });
    }
    let answers = tasks.join_all().await;
    assert_eq!(answers.iter().filter(|(won, _)| *won).count(), 1);
    assert!(answers.iter().all(|(_, winner)| *winner == answers[0].1), "{answers:?}");
}

/// When subscriptions of cases do what they do: in 2024, as stories.
const AT: Timestamp = Timestamp::from_millis(1_704_067_200_000);

/// A stamp nobody else has.
pub(super) fn stamp() -> Stamp {
    static LAST: AtomicI64 = AtomicI64::new(1_000_000);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    Stamp { event: EventId::new(number), at: Timestamp::from_micros(AT.as_micros() + number) }
}

pub(super) fn new(id: i64, path: &str) -> NewSubscription {
    let catalog = CatalogId::new(7);
    NewSubscription { id: SubscriptionId::new(id), path: path.into(), catalog, stamp: stamp() }
}

fn note(stamp: Stamp, event_type: &str, key: Option<i64>) -> NewNote {
    let said = Reported {
        event_type: event_type.into(),
        step: "ingress".into(),
        status: "APPLIED".into(),
        payload: Some(json!({"message_id": "m-1"})),
        meta: None,
        worker: Some("runtime-1".into()),
        key,
    };
    NewNote { stamp, said }
}

async fn log(store: &dyn Store, id: i64) -> Vec<Event> {
    store.read(ExecutionId::new(id), Seq::START, 100).await.expect("a log")
}

fn types(log: &[Event]) -> Vec<(u64, String)> {
    let event_type = |event: &Event| EventRow::from(event).event_type.expect("a type").into_owned();
    log.iter().map(|event| (event.seq.0, event_type(event))).collect()
}

async fn register(store: &dyn Store, tenant: &Tenant, new: NewSubscription) -> SubscriptionRow {
    store.register_subscription(tenant, new).await.expect("a subscription")
}

async fn read(store: &dyn Store, tenant: &Tenant, id: i64) -> Option<SubscriptionRow> {
    store.subscription(tenant, SubscriptionId::new(id)).await.expect("a read")
}

async fn act(
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
) -> Reserved {
    let (subscription, execution) =
        (SubscriptionId::new(subscription), ExecutionId::new(execution));
    let reserved = store.reserve(tenant, subscription, key, execution, window).await;
    reserved.expect("an answer")
}
