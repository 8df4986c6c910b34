//! Cases about imported rows.

use std::collections::HashSet;
use std::sync::Arc;

use noetl_model::event::ImportedEvent;
use noetl_model::{
    CatalogId, EventId, ExecutionId, Fact, Seq, SubscriptionId, Tenant, Timestamp, Value,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::story::{Story, commit, imported, said, write};
use crate::{
    Committed, EventStamp, ExecutionFilter, ExecutionStatus, Import, ImportOutcome,
    NewSubscription, Store,
};

/// Returns every additional column that a row can have.
fn more() -> Value {
    json!({
        "node_id": "n", "catalog_id": 41, "parent_event_id": 5, "prev_event_id": -6,
        "stage_id": 71, "frame_id": i64::MAX, "stack_trace": "at a\nat b",
        "organization_id": "org", "aggregate_type": "stage", "aggregate_id": "stage/9",
        "trace_component": {"b": [1.50, null], "a": "ä"}, "current_index": 3,
        "event_time": "2026-01-01T00:00:00.000001Z", "idempotency_key": "k"
    })
}

fn row(execution: i64, event: i64, event_type: &str) -> Import {
    Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(execution),
        event: EventId::new(event),
        at: Timestamp::from_micros(1_704_067_200_000_000 + event % 1_000_000),
        row: ImportedEvent { event_type: Some(event_type.to_owned()), ..ImportedEvent::default() },
    }
}

fn whole(execution: i64, event: i64) -> Import {
    let Fact::Imported(imported) = imported() else { unreachable!("the story has one") };
    let Value::Object(more) = more() else { unreachable!("it is an object") };
    Import { row: ImportedEvent { key: None, more, ..*imported }, ..row(execution, event, "") }
}

async fn import(store: &dyn Store, rows: Vec<Import>) -> Vec<ImportOutcome> {
    store.import(rows).await.expect("an answer")
}

pub async fn imported_rows_are_read_back_unchanged(store: Arc<dyn Store>) {
    use ImportOutcome::Kept;
    // A log whose IDs do not follow its order.
    let rows = vec![whole(10, 900), row(10, 7, "x"), whole(11, 900)];
    assert_eq!(import(&*store, rows.clone()).await, [Kept, Kept, Kept]);
    let log = store.read(ExecutionId::new(10), Seq::START, 9).await.expect("a log");
    assert_eq!(log, [rows[0].event(Seq(1)), rows[1].event(Seq(2))]);
    assert_eq!(import(&*store, vec![row(10, 8, "y")]).await, [Kept]);
    let tail = store.read(ExecutionId::new(10), Seq(2), 9).await.expect("a tail");
    assert_eq!(tail, [row(10, 8, "y").event(Seq(3))]);
    assert_eq!(import(&*store, Vec::new()).await, []);
}

pub async fn imported_executions_are_listed_and_have_no_work(store: Arc<dyn Store>) {
    let mut start = row(10, 1, "playbook_started");
    start.row.node_name = Some(Arc::from("demo/Far"));
    start.row.more.insert("catalog_id".into(), json!(55));
    start.row.parent_execution = Some(ExecutionId::new(3));
    let mut entered = row(10, 2, "step.enter");
    entered.row.node_name = Some(Arc::from("a"));
    import(&*store, vec![start, entered, row(10, 3, "command.completed")]).await;
    let tenant = Tenant::default();
    let filter = ExecutionFilter { limit: 9, path: Some("far".into()), ..Default::default() };
    let listed = store.executions(&tenant, &filter).await.expect("a list");
    let [listed] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((&*listed.path, listed.catalog.get(), listed.version), ("demo/Far", 55, Seq(3)));
    assert_eq!((listed.steps_entered, listed.steps_completed), (1, 1));
    assert_eq!(
        (listed.parent, listed.current_step.as_deref()),
        (Some(ExecutionId::new(3)), Some("a"))
    );
    assert_eq!(listed.status, ExecutionStatus::Running);
    let unfinished = store.unfinished(ExecutionId::new(0), 9).await.expect("a list");
    assert_eq!(unfinished, [], "nobody has to go on with it");

    import(&*store, vec![row(10, 9, "playbook.failed"), row(10, 8, "playbook_completed")]).await;
    let listed = store.execution(&tenant, ExecutionId::new(10)).await.expect("a read");
    let listed = listed.expect("an execution");
    assert_eq!((listed.status, listed.version), (ExecutionStatus::Failed, Seq(5)));
    let known = [10, 11].map(ExecutionId::new);
    let imported = store.imported(&known).await.expect("an answer");
    assert_eq!(imported, HashSet::from([ExecutionId::new(10)]));
}

pub async fn an_existing_row_is_a_duplicate(store: Arc<dyn Store>) {
    use ImportOutcome::{Duplicate, Kept};
    let twice = vec![row(10, 1, "a"), row(10, 1, "other"), row(11, 1, "a")];
    assert_eq!(import(&*store, twice).await, [Kept, Duplicate, Kept]);
    let again = vec![row(10, 1, "a"), row(10, 2, "b"), row(11, 1, "a")];
    assert_eq!(import(&*store, again).await, [Duplicate, Kept, Duplicate]);
    let log = store.read(ExecutionId::new(10), Seq::START, 9).await.expect("a log");
    assert_eq!(log, [row(10, 1, "a").event(Seq(1)), row(10, 2, "b").event(Seq(2))]);
}

pub async fn a_native_execution_rejects_imported_rows(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let rows = vec![row(10, 5, "playbook.completed"), row(11, 5, "x")];
    let outcomes = import(&*store, rows).await;
    assert_eq!(outcomes, [ImportOutcome::StartedHere, ImportOutcome::Kept]);
    let log = store.read(story.id(), Seq::START, 9).await.expect("a log");
    assert_eq!(log.len(), 3);
    write(&*store, story.then(vec![said("it goes on")])).await;
    let imported = store.imported(&[story.id()]).await.expect("an answer");
    assert_eq!(imported, HashSet::new());
}

pub async fn an_imported_execution_cannot_be_driven(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let start = story.start();
    import(&*store, vec![row(10, 1, "x"), row(10, 2, "x"), row(10, 3, "x")]).await;
    assert_eq!(commit(&*store, start).await, Committed::Taken);
    let mut next = story.then(vec![said("x")]);
    next.after = Some(EventId::new(3));
    let refused = commit(&*store, next).await;
    assert_eq!(refused, Committed::Conflict { found: Seq(3) });
}

pub async fn a_subscription_rejects_imported_rows(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let stamp = EventStamp { event: EventId::new(9), at: Timestamp::from_micros(9) };
    let (id, path, catalog) = (SubscriptionId::new(5), "sub/a".to_owned(), CatalogId::new(7));
    let new = NewSubscription { id, path, catalog, stamp };
    store.register_subscription(&tenant, new).await.expect("a subscription");
    let logs = store.logs_of_subscriptions(&[4, 5, 6].map(ExecutionId::new)).await;
    assert_eq!(logs.expect("an answer"), HashSet::from([ExecutionId::new(5)]));
    let foreign = Import { tenant: Tenant::new("acme"), ..row(5, 9, "x") };
    let outcomes = import(&*store, vec![row(5, 1, "x"), foreign, row(6, 1, "x")]).await;
    use ImportOutcome::{Kept, StartedHere};
    assert_eq!(outcomes, [StartedHere, StartedHere, Kept]);
    let listed = store.execution(&tenant, ExecutionId::new(5)).await.expect("a read");
    assert_eq!(listed, None);
    let log = store.read(ExecutionId::new(5), Seq::START, 9).await.expect("a log");
    assert_eq!(log.len(), 1);
}

pub async fn an_execution_of_another_tenant_rejects_imported_rows(store: Arc<dyn Store>) {
    import(&*store, vec![row(10, 1, "x")]).await;
    let foreign = Import { tenant: Tenant::new("acme"), ..row(10, 2, "x") };
    let own = Import { tenant: Tenant::new("acme"), ..row(11, 2, "x") };
    let outcomes = import(&*store, vec![foreign, own]).await;
    assert_eq!(outcomes, [ImportOutcome::Foreign, ImportOutcome::Kept]);
    let (acme, other) = (Tenant::new("acme"), Tenant::default());
    let of = async |tenant, id| {
        store.execution(tenant, ExecutionId::new(id)).await.expect("a read").is_some()
    };
    assert!(of(&other, 10).await && of(&acme, 11).await);
    assert!(!of(&acme, 10).await && !of(&other, 11).await);
}

pub async fn imported_ids_do_not_count_as_the_newest(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let newest = store.newest_id().await.expect("a read");
    let rows = vec![row(11, i64::MAX, "x"), row(11, i64::MIN, "y"), row(-11, 0, "z")];
    assert_eq!(import(&*store, rows).await, [ImportOutcome::Kept; 3]);
    assert_eq!(store.newest_id().await.expect("a read"), newest);
}

pub async fn imported_rows_are_published(store: Arc<dyn Store>) {
    import(&*store, vec![whole(10, 900), row(10, 7, "x y")]).await;
    import(&*store, vec![whole(10, 900)]).await;
    let rows = store.claim(9).await.expect("rows");
    let events: Vec<_> = rows
        .iter()
        .map(|row| (row.event.get(), row.subject.as_deref().unwrap_or_default()))
        .collect();
    let expected = [(900, "noetl.events.action_completed"), (7, "noetl.events.x_y")];
    assert_eq!(events, expected);
    let payload: Value = serde_json::from_str(&rows[0].payload).expect("JSON");
    for (name, value) in more().as_object().expect("an object") {
        assert_eq!(&payload[name], value, "{name}");
    }
    let bare: Value = serde_json::from_str(&rows[1].payload).expect("JSON");
    assert_eq!(bare["prev_event_id"], json!(900));
}

pub async fn concurrent_imports_store_every_row_once(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for turn in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            // The order of the executions alternates, and two tasks import each row.
            let rows = (0..40).map(|at| {
                let execution = 10 + if turn % 2 == 0 { at % 4 } else { 3 - at % 4 };
                row(execution, (turn / 2) * 100 + at / 4, "x")
            });
            import(&*store, rows.collect()).await
        });
    }
    let outcomes: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    let kept = outcomes.iter().filter(|outcome| **outcome == ImportOutcome::Kept).count();
    assert_eq!(kept, 160);
    for execution in 10..14 {
        let log = store.read(ExecutionId::new(execution), Seq::START, 99).await.expect("a log");
        let places: Vec<u64> = log.iter().map(|event| event.seq.0).collect();
        assert_eq!(places, (1..=40).collect::<Vec<_>>());
        let ids: HashSet<_> = log.iter().map(|event| event.id).collect();
        assert_eq!(ids.len(), 40);
    }
}
