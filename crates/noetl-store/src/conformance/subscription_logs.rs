//! Cases about the logs of subscriptions.

use std::sync::Arc;

use noetl_model::event::ReportedEvent;
use noetl_model::row::EventRow;
use noetl_model::{Event, ExecutionId, Origin, Seq, SubscriptionId, Tenant};
use serde_json::json;
use tokio::task::JoinSet;

use super::subscriptions::{act, new, read, register, stamp};
use crate::SubscriptionAction::{Activate, Deactivate, Pause, Resume};
use crate::SubscriptionState::{Active, Deactivated, Registered};
use crate::{EventStamp, ExecutionFilter, NewRuntimeEvent, RuntimeEventOutcome, Store};

pub async fn every_change_is_recorded_in_the_subscriptions_log(store: Arc<dyn Store>) {
    let tenant = Tenant::new("acme");
    let first = new(1, "sub/a");
    register(&*store, &tenant, first.clone()).await;
    // Neither a second registration nor a rejected transition adds an event.
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
    // A subscription is not an execution.
    assert_eq!(store.execution(&tenant, ExecutionId::new(1)).await.expect("a read"), None);
    let filter = ExecutionFilter { limit: 10, ..ExecutionFilter::default() };
    assert_eq!(store.executions(&tenant, &filter).await.expect("a list"), []);
}

pub async fn events_of_a_subscription_are_published(store: Arc<dyn Store>) {
    let tenant = Tenant::new("acme");
    let first = new(1, "sub/a");
    register(&*store, &tenant, first.clone()).await;
    act(&*store, &tenant, 1, Registered, Activate).await.expect("active");
    let said = note(stamp(), "subscription.message.spooled", None);
    store.note_subscription(&tenant, SubscriptionId::new(1), said).await.expect("an answer");
    let rows = store.claim(10).await.expect("a claim");
    let subjects: Vec<&str> = rows.iter().filter_map(|row| row.subject.as_deref()).collect();
    let expected = [
        "noetl.events.subscription.registered",
        "noetl.events.subscription.activated",
        "noetl.events.subscription.message.spooled",
    ];
    assert_eq!(subjects, expected);
    assert!(
        rows.iter().all(|row| row.tenant == tenant && row.execution == Some(ExecutionId::new(1)))
    );
    let body: serde_json::Value = serde_json::from_str(&rows[1].payload).expect("JSON");
    assert_eq!(body["prev_event_id"], first.stamp.event.get());
    assert_eq!((&body["node_id"], &body["node_name"]), (&json!("subscription"), &json!("sub/a")));
    assert_eq!(body["catalog_id"], 7);
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    assert_eq!(store.mark_published(&ids).await.expect("a count"), 3);
    assert_eq!(store.pending().await.expect("a count"), 0);
}

pub async fn a_runtime_event_is_recorded_once_and_changes_no_state(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    register(&*store, &mine, new(1, "sub/a")).await;
    let before = read(&*store, &mine, 1).await;
    let id = SubscriptionId::new(1);
    let (given, minted, other) = (stamp(), stamp(), stamp());
    let kind = "subscription.message.dropped";
    for (tenant, id, note, answer) in [
        (&mine, id, note(given, kind, None), Some(RuntimeEventOutcome::Kept)),
        (&mine, id, note(given, kind, None), Some(RuntimeEventOutcome::Repeated)),
        (&mine, id, note(minted, kind, Some(5)), Some(RuntimeEventOutcome::Kept)),
        (&mine, id, note(other, kind, Some(5)), Some(RuntimeEventOutcome::Repeated)),
        (
            &mine,
            id,
            note(other, kind, Some(given.event.get())),
            Some(RuntimeEventOutcome::Repeated),
        ),
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

pub async fn concurrent_events_of_a_subscription_have_distinct_sequence_numbers(
    store: Arc<dyn Store>,
) {
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

fn note(stamp: EventStamp, event_type: &str, key: Option<i64>) -> NewRuntimeEvent {
    let said = ReportedEvent {
        event_type: event_type.into(),
        step: "ingress".into(),
        status: "APPLIED".into(),
        payload: Some(json!({"message_id": "m-1"})),
        meta: None,
        worker: Some("runtime-1".into()),
        key,
        columns: None,
    };
    NewRuntimeEvent { stamp, said }
}

async fn log(store: &dyn Store, id: i64) -> Vec<Event> {
    store.read(ExecutionId::new(id), Seq::START, 100).await.expect("a log")
}

fn types(log: &[Event]) -> Vec<(u64, String)> {
    let event_type = |event: &Event| EventRow::from(event).event_type.expect("a type").into_owned();
    log.iter().map(|event| (event.seq.0, event_type(event))).collect()
}
