//! Cases about snapshots.

use std::sync::Arc;

use noetl_model::Tenant;
use serde_json::json;

use crate::{Snapshot, Store};

pub async fn a_snapshot_is_read_back_byte_for_byte(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    assert_eq!(read(&*store, &tenant, "1").await, None);
    // Neither the order of keys nor whitespace nor the form of a number may change.
    let body = "{ \"b\": 1.50, \"a\" : [1e2, \"ä\\u0001\"] }";
    let meta = json!({"applied_count": 3, "routing_meta": null});
    let snapshot = Snapshot::new(-7, body.into(), meta);
    assert!(save(&*store, &tenant, "1", snapshot.clone()).await);
    assert_eq!(read(&*store, &tenant, "1").await, Some(snapshot));
}

pub async fn a_snapshot_is_never_replaced_by_an_older_one(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for (version, body, is_kept) in
        [(5, "5", true), (5, "55", false), (4, "4", false), (6, "6", true)]
    {
        let snapshot = Snapshot::new(version, body.into(), json!({}));
        assert_eq!(save(&*store, &tenant, "1", snapshot).await, is_kept, "{body}");
    }
    let found = read(&*store, &tenant, "1").await.expect("a snapshot");
    assert_eq!((found.version, &*found.body), (6, "6"));
}

pub async fn a_damaged_snapshot_is_ignored(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let whole = Snapshot::new(1, "{}".into(), json!({}));
    let damaged = Snapshot { body: "[]".into(), ..whole };
    assert!(save(&*store, &tenant, "1", damaged).await);
    assert_eq!(read(&*store, &tenant, "1").await, None);
    let newer = Snapshot::new(2, "{}".into(), json!({}));
    assert!(save(&*store, &tenant, "1", newer.clone()).await);
    assert_eq!(read(&*store, &tenant, "1").await, Some(newer));
}

pub async fn a_deleted_snapshot_can_be_saved_with_an_older_version(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    save(&*store, &tenant, "1", Snapshot::new(5, "5".into(), json!({}))).await;
    save(&*store, &tenant, "2", Snapshot::new(5, "5".into(), json!({}))).await;
    for expected in [true, false] {
        let forgotten = store.forget(&tenant, "state", "1").await;
        assert_eq!(forgotten.expect("an answer"), expected);
    }
    assert_eq!(read(&*store, &tenant, "1").await, None);
    assert!(read(&*store, &tenant, "2").await.is_some());
    assert!(save(&*store, &tenant, "1", Snapshot::new(1, "1".into(), json!({}))).await);
}

pub async fn snapshots_are_distinct_by_tenant_type_and_id(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    save(&*store, &tenant, "1", Snapshot::new(1, "1".into(), json!({}))).await;
    let theirs = Tenant::new("acme");
    assert_eq!(read(&*store, &theirs, "1").await, None);
    assert!(!store.forget(&theirs, "state", "1").await.expect("an answer"));
    let other = store.snapshot(&tenant, "State", "1").await;
    assert_eq!(other.expect("a read"), None);
    assert!(save(&*store, &theirs, "1", Snapshot::new(0, "0".into(), json!({}))).await);
    assert_eq!(read(&*store, &tenant, "1").await.expect("a snapshot").version, 1);
}

async fn read(store: &dyn Store, tenant: &Tenant, id: &str) -> Option<Snapshot> {
    store.snapshot(tenant, "state", id).await.expect("a read")
}

async fn save(store: &dyn Store, tenant: &Tenant, id: &str, snapshot: Snapshot) -> bool {
    store.save(tenant, "state", id, snapshot).await.expect("an answer")
}
