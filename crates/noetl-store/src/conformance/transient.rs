//! Cases about variables. Expired ones have times in the distant past, others in the distant
//! future.

use std::sync::Arc;

use noetl_model::{ExecutionId, Tenant, Timestamp};
use serde_json::json;

use crate::{NewVariable, Store, Variable, VariableKind};

const LONG_AGO: Option<Timestamp> = Some(Timestamp::from_micros(1));
const FAR_AHEAD: Option<Timestamp> = Some(Timestamp::from_millis(4_000_000_000_000));

pub async fn variables_are_read_back_in_the_order_of_names(store: Arc<dyn Store>) {
    let values = [json!({"b": [1.5, null], "a": "ä\"\n"}), json!(null), json!(0), json!("")];
    let mut new: Vec<NewVariable> = Vec::new();
    for ((name, kind), value) in ["b", "a", "B", "c"].into_iter().zip(VariableKind::ALL).zip(values)
    {
        let source_step = Some("step".to_owned());
        new.push(NewVariable { kind, value, source_step, ..variable(name) });
    }
    let scoped =
        NewVariable { scope: Some("shared".into()), expires_at: FAR_AHEAD, ..variable("d") };
    new.push(scoped);
    put(&*store, 5, new.clone()).await;
    let listed = list(&*store, 5).await;
    new.sort_by(|one, other| one.name.cmp(&other.name));
    let kept: Vec<NewVariable> = listed.iter().map(|variable| variable.kept.clone()).collect();
    assert_eq!(kept, new);
    assert!(listed.iter().all(|read| read.access_count == 0 && read.accessed_at.is_none()));
    assert!(list(&*store, 6).await.is_empty());
}

pub async fn a_read_by_name_is_counted(store: Arc<dyn Store>) {
    put(&*store, 5, vec![variable("a"), variable("b")]).await;
    for count in 1..=3 {
        let found = read(&*store, 5, "a").await.expect("a variable");
        assert_eq!(found.access_count, count);
        assert!(found.accessed_at >= Some(found.created_at), "{found:?}");
        let listed = list(&*store, 5).await;
        assert_eq!(listed[0], found);
        assert_eq!(listed[1].access_count, 0);
    }
    assert_eq!(read(&*store, 5, "A").await, None);
    assert_eq!(read(&*store, 6, "a").await, None);
}

pub async fn a_replaced_variable_starts_with_new_counts(store: Arc<dyn Store>) {
    put(&*store, 5, vec![variable("a")]).await;
    read(&*store, 5, "a").await;
    let second = NewVariable { value: json!(2), ..variable("a") };
    let third = NewVariable { value: json!(3), ..variable("a") };
    put(&*store, 5, vec![second, third.clone()]).await;
    let listed = list(&*store, 5).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].kept, third);
    assert_eq!((listed[0].access_count, listed[0].accessed_at), (0, None));
    put(&*store, 5, Vec::new()).await;
    assert_eq!(list(&*store, 5).await, listed);
}

pub async fn an_expired_variable_does_not_exist(store: Arc<dyn Store>) {
    let old = |name| NewVariable { expires_at: LONG_AGO, ..variable(name) };
    put(&*store, 5, vec![old("a"), old("b"), variable("c")]).await;
    assert_eq!(read(&*store, 5, "a").await, None);
    assert_eq!(list(&*store, 5).await.len(), 1);
    let tenant = Tenant::default();
    let execution = ExecutionId::new(5);
    assert!(!store.delete_variable(&tenant, execution, "a").await.expect("no"));
    assert_eq!(store.delete_variables(&tenant, execution).await.expect("removed"), 1);
    assert_eq!(store.purge_variables(10).await.expect("a purge"), 0);
    put(&*store, 5, vec![old("a")]).await;
    put(&*store, 5, vec![variable("a")]).await;
    assert!(read(&*store, 5, "a").await.is_some());
}

pub async fn deleted_variables_are_gone(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let execution = ExecutionId::new(5);
    put(&*store, 5, vec![variable("a"), variable("b"), variable("c")]).await;
    put(&*store, 6, vec![variable("a")]).await;
    assert!(store.delete_variable(&tenant, execution, "a").await.expect("removed"));
    assert!(!store.delete_variable(&tenant, execution, "a").await.expect("no"));
    assert_eq!(list(&*store, 5).await.len(), 2);
    assert_eq!(store.delete_variables(&tenant, execution).await.expect("removed"), 2);
    assert_eq!(store.delete_variables(&tenant, execution).await.expect("none"), 0);
    assert_eq!(list(&*store, 6).await.len(), 1);
}

pub async fn a_purge_removes_expired_variables_up_to_its_limit(store: Arc<dyn Store>) {
    let old = |name| NewVariable { expires_at: LONG_AGO, ..variable(name) };
    let later = NewVariable { expires_at: FAR_AHEAD, ..variable("c") };
    for execution in [5, 6] {
        put(&*store, execution, vec![old("a"), old("b"), later.clone(), variable("d")]).await;
    }
    for (limit, purged) in [(0, 0), (3, 3), (3, 1), (3, 0)] {
        assert_eq!(store.purge_variables(limit).await.expect("a purge"), purged);
    }
    assert_eq!(list(&*store, 5).await.len(), 2);
}

pub async fn another_tenant_s_variables_do_not_exist(store: Arc<dyn Store>) {
    let theirs = Tenant::new("acme");
    let execution = ExecutionId::new(5);
    put(&*store, 5, vec![variable("a")]).await;
    assert_eq!(store.read_variable(&theirs, execution, "a").await.expect("a read"), None);
    assert_eq!(store.variables(&theirs, execution).await.expect("a list"), []);
    assert!(!store.delete_variable(&theirs, execution, "a").await.expect("no"));
    assert_eq!(store.delete_variables(&theirs, execution).await.expect("none"), 0);
    assert_eq!(list(&*store, 5).await.len(), 1);
}

pub(crate) fn variable(name: &str) -> NewVariable {
    NewVariable {
        name: name.into(),
        kind: VariableKind::UserDefined,
        value: json!(1),
        source_step: None,
        scope: None,
        expires_at: None,
    }
}

async fn put(store: &dyn Store, execution: i64, new: Vec<NewVariable>) {
    let kept = store.put_variables(&Tenant::default(), ExecutionId::new(execution), new).await;
    kept.expect("kept");
}

async fn read(store: &dyn Store, execution: i64, name: &str) -> Option<Variable> {
    let read = store.read_variable(&Tenant::default(), ExecutionId::new(execution), name).await;
    read.expect("a read")
}

async fn list(store: &dyn Store, execution: i64) -> Vec<Variable> {
    let listed = store.variables(&Tenant::default(), ExecutionId::new(execution)).await;
    listed.expect("a list")
}
