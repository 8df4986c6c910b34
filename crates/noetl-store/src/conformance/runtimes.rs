//! Cases about runtimes.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{RuntimeId, Tenant};
use serde_json::json;
use tokio::task::JoinSet;

use super::leases::LONG;
use crate::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, Store};

pub async fn a_runtime_is_registered_and_read_back(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let said = NewRuntime {
        uri: Some("http://a".into()),
        labels: Some(json!({"zone": "b"})),
        capabilities: Some(json!(["python", null])),
        capacity: Some(-1),
        runtime: Some(json!(null)),
        ..runtime(1, RuntimeKind::WorkerPool, "pool-ä")
    };
    let row = register(&*store, &tenant, said.clone()).await;
    assert_eq!(row.said, said);
    assert_eq!((row.heartbeat, row.updated_at), (row.created_at, row.created_at));
    assert_eq!(list(&*store, &tenant, &RuntimeFilter::default()).await, [row]);
}

pub async fn a_registered_runtime_is_updated_and_retains_its_id(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let first = NewRuntime {
        labels: Some(json!({})),
        capacity: Some(4),
        ..runtime(1, RuntimeKind::WorkerPool, "a")
    };
    let first = register(&*store, &tenant, first).await;
    let said = NewRuntime { status: "draining".into(), ..runtime(2, RuntimeKind::WorkerPool, "a") };
    let again = register(&*store, &tenant, said.clone()).await;
    assert_eq!(again.said, NewRuntime { id: RuntimeId::new(1), ..said });
    assert_eq!(again.created_at, first.created_at);
    assert_eq!(list(&*store, &tenant, &RuntimeFilter::default()).await, [again]);
}

pub async fn runtimes_are_distinct_by_tenant_kind_and_name(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    for (id, tenant, kind, name) in [
        (1, &mine, RuntimeKind::WorkerPool, "b"),
        (2, &mine, RuntimeKind::Broker, "b"),
        (3, &theirs, RuntimeKind::WorkerPool, "b"),
        (4, &mine, RuntimeKind::WorkerPool, "B"),
        (5, &mine, RuntimeKind::ServerApi, "a_"),
    ] {
        let row = register(&*store, tenant, runtime(id, kind, name)).await;
        assert_eq!(row.said.id.get(), id);
    }
    let all = RuntimeFilter::default();
    let kind = |kind| RuntimeFilter { kind: Some(kind), ..all.clone() };
    let name = |name: &str| RuntimeFilter { name: Some(name.into()), ..all.clone() };
    let status = |text: &str| RuntimeFilter { status: Some(text.into()), ..all.clone() };
    let cases: [(RuntimeFilter, &[i64]); 6] = [
        (all.clone(), &[2, 5, 4, 1]),
        (kind(RuntimeKind::WorkerPool), &[4, 1]),
        (name("b"), &[2, 1]),
        (name("_"), &[5]),
        (status("active"), &[2, 5, 4, 1]),
        (status("Active"), &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(ids(&list(&*store, &mine, &filter).await), expected, "{filter:?}");
    }
    assert_eq!(ids(&list(&*store, &theirs, &all).await), [3]);
}

pub async fn a_runtime_s_id_is_its_own(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    register(&*store, &tenant, runtime(1, RuntimeKind::Broker, "a")).await;
    let taken = store.register_runtime(&tenant, runtime(1, RuntimeKind::Broker, "b")).await;
    assert!(taken.is_err(), "{taken:?}");
    assert_eq!(ids(&list(&*store, &tenant, &RuntimeFilter::default()).await), [1]);
}

pub async fn heartbeats_and_deregistrations_need_a_known_runtime(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    let kind = RuntimeKind::WorkerPool;
    let row = register(&*store, &mine, runtime(1, kind, "a")).await;
    for (tenant, kind, name, is_known) in [
        (&mine, kind, "a", true),
        (&theirs, kind, "a", false),
        (&mine, RuntimeKind::Broker, "a", false),
        (&mine, kind, "A", false),
    ] {
        let noted = store.heartbeat(tenant, kind, name).await;
        assert_eq!(noted.expect("an answer").is_some(), is_known);
    }
    let after = list(&*store, &mine, &RuntimeFilter::default()).await;
    assert_eq!((&after[0].said, after[0].created_at), (&row.said, row.created_at));
    assert!(after[0].heartbeat >= row.heartbeat);
    assert!(!store.deregister(&theirs, kind, "a").await.expect("an answer"));
    for is_known in [true, false] {
        assert_eq!(store.deregister(&mine, kind, "a").await.expect("an answer"), is_known);
    }
    assert_eq!(store.heartbeat(&mine, kind, "a").await.expect("an answer"), None);
}

pub async fn stale_worker_pools_are_purged_and_others_stay(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    register(&*store, &mine, runtime(1, RuntimeKind::WorkerPool, "a")).await;
    register(&*store, &theirs, runtime(2, RuntimeKind::WorkerPool, "a")).await;
    register(&*store, &mine, runtime(3, RuntimeKind::Broker, "a")).await;
    register(&*store, &mine, runtime(4, RuntimeKind::ServerApi, "a")).await;
    for window in [LONG, Duration::from_secs(u64::MAX), Duration::MAX] {
        assert_eq!(store.purge_stale(window).await.expect("a count"), 0, "{window:?}");
    }
    assert_eq!(store.purge_stale(Duration::ZERO).await.expect("a count"), 2);
    let left = list(&*store, &mine, &RuntimeFilter::default()).await;
    assert_eq!(ids(&left), [3, 4], "servers and brokers stay");
}

pub async fn concurrent_registrations_create_one_runtime(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for id in 1..=12 {
        let store = store.clone();
        tasks.spawn(async move {
            let said = runtime(id, RuntimeKind::WorkerPool, "a");
            register(&*store, &Tenant::default(), said).await.said.id
        });
    }
    let ids = tasks.join_all().await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

/// Returns a runtime with few properties.
pub(super) fn runtime(id: i64, kind: RuntimeKind, name: &str) -> NewRuntime {
    NewRuntime {
        id: RuntimeId::new(id),
        kind,
        name: name.into(),
        uri: None,
        status: "active".into(),
        labels: None,
        capabilities: None,
        capacity: None,
        runtime: None,
    }
}

async fn register(store: &dyn Store, tenant: &Tenant, said: NewRuntime) -> RuntimeRow {
    store.register_runtime(tenant, said).await.expect("a runtime")
}

async fn list(store: &dyn Store, tenant: &Tenant, filter: &RuntimeFilter) -> Vec<RuntimeRow> {
    store.runtimes(tenant, filter).await.expect("a list")
}

fn ids(rows: &[RuntimeRow]) -> Vec<i64> {
    rows.iter().map(|row| row.said.id.get()).collect()
}
