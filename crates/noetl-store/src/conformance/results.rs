//! Cases about results. Expired ones have times in the distant past, others in the distant future.

use std::sync::Arc;

use noetl_model::{ExecutionId, ResultId, Tenant, Timestamp, Value};
use serde_json::json;

use crate::{NewResult, ResultSummary, Store};

const LONG_AGO: Option<Timestamp> = Some(Timestamp::from_micros(1));
const FAR_AHEAD: Option<Timestamp> = Some(Timestamp::from_millis(4_000_000_000_000));

pub async fn a_result_is_read_back_by_its_complete_key(store: Arc<dyn Store>) {
    let mut new = result(1, 5, "rows");
    new.summary.source_step = Some("load".into());
    new.summary.expires_at = FAR_AHEAD;
    new.data = json!({"rows": [{"a": 1.5, "ä": null}]});
    assert!(put(&*store, new.clone()).await);
    assert_eq!(data(&*store, 5, "rows", 1).await, Some(new.data));
    for (execution, name, id) in [(6, "rows", 1), (5, "Rows", 1), (5, "rows", 2)] {
        assert_eq!(data(&*store, execution, name, id).await, None, "{execution} {name} {id}");
    }
    assert_eq!(list(&*store, 5, 0, 10).await, [new.summary]);
}

pub async fn a_result_with_a_used_id_changes_nothing(store: Arc<dyn Store>) {
    assert!(put(&*store, result(1, 5, "rows")).await);
    let again = NewResult { data: json!("other"), ..result(1, 5, "rows") };
    assert!(!put(&*store, again.clone()).await);
    let theirs = Tenant::new("acme");
    assert!(!store.put_result(&theirs, again).await.expect("a repeat"));
    assert_eq!(data(&*store, 5, "rows", 1).await, Some(json!(1)));
    let found = store.result_data(&theirs, ExecutionId::new(5), "rows", ResultId::new(1)).await;
    assert_eq!(found.expect("a read"), None);
}

pub async fn results_are_listed_in_pages_in_id_order(store: Arc<dyn Store>) {
    for (id, execution) in [(4, 5), (1, 5), (3, 6), (2, 5)] {
        put(&*store, result(id, execution, "rows")).await;
    }
    for (after, limit, expected) in [
        (i64::MIN, 10, vec![1, 2, 4]),
        (i64::MIN, 2, vec![1, 2]),
        (2, 10, vec![4]),
        (4, 10, vec![]),
        (0, 0, vec![]),
    ] {
        let listed = list(&*store, 5, after, limit).await;
        let ids: Vec<i64> = listed.iter().map(|summary| summary.id.get()).collect();
        assert_eq!(ids, expected, "after {after}, limit {limit}");
    }
}

pub async fn an_expired_result_does_not_exist_and_is_purged(store: Arc<dyn Store>) {
    for (id, expires_at) in [(1, LONG_AGO), (2, FAR_AHEAD), (3, None), (4, LONG_AGO), (5, LONG_AGO)]
    {
        let mut new = result(id, 5, "rows");
        new.summary.expires_at = expires_at;
        put(&*store, new).await;
    }
    assert_eq!(data(&*store, 5, "rows", 1).await, None);
    assert_eq!(list(&*store, 5, 0, 10).await.len(), 2);
    for (limit, purged) in [(0, 0), (2, 2), (2, 1), (2, 0)] {
        assert_eq!(store.purge_results(limit).await.expect("a purge"), purged);
    }
    assert_eq!(list(&*store, 5, 0, 10).await.len(), 2);
    assert!(put(&*store, result(1, 5, "rows")).await, "a purged id is free");
}

pub async fn results_of_an_execution_are_deleted_in_batches(store: Arc<dyn Store>) {
    for (id, execution, expires_at) in [(1, 5, None), (2, 5, LONG_AGO), (3, 5, None), (4, 6, None)]
    {
        let mut new = result(id, execution, "rows");
        new.summary.expires_at = expires_at;
        put(&*store, new).await;
    }
    let execution = ExecutionId::new(5);
    let theirs = store.delete_results(&Tenant::new("acme"), execution, 10).await;
    assert_eq!(theirs.expect("none"), 0);
    for (limit, removed) in [(2, 2), (2, 1), (2, 0)] {
        let gone = store.delete_results(&Tenant::default(), execution, limit).await;
        assert_eq!(gone.expect("removed"), removed);
    }
    assert!(list(&*store, 5, 0, 10).await.is_empty());
    assert_eq!(list(&*store, 6, 0, 10).await.len(), 1);
}

pub async fn another_tenant_s_results_do_not_exist(store: Arc<dyn Store>) {
    put(&*store, result(1, 5, "rows")).await;
    let theirs = Tenant::new("acme");
    let execution = ExecutionId::new(5);
    let found = store.result_data(&theirs, execution, "rows", ResultId::new(1)).await;
    assert_eq!(found.expect("a read"), None);
    let listed = store.results(&theirs, execution, ResultId::new(0), 10).await;
    assert_eq!(listed.expect("a list"), []);
}

pub(crate) fn result(id: i64, execution: i64, name: &str) -> NewResult {
    let summary = ResultSummary {
        id: ResultId::new(id),
        execution: ExecutionId::new(execution),
        name: name.into(),
        scope: "execution".into(),
        source_step: None,
        bytes: 1,
        sha256: "6b86".into(),
        media_type: "application/json".into(),
        expires_at: None,
    };
    NewResult { summary, data: json!(1) }
}

async fn put(store: &dyn Store, new: NewResult) -> bool {
    store.put_result(&Tenant::default(), new).await.expect("an answer")
}

async fn data(store: &dyn Store, execution: i64, name: &str, id: i64) -> Option<Value> {
    let execution = ExecutionId::new(execution);
    let found = store.result_data(&Tenant::default(), execution, name, ResultId::new(id)).await;
    found.expect("a read")
}

async fn list(store: &dyn Store, execution: i64, after: i64, limit: usize) -> Vec<ResultSummary> {
    let execution = ExecutionId::new(execution);
    let listed = store.results(&Tenant::default(), execution, ResultId::new(after), limit).await;
    listed.expect("a list")
}
