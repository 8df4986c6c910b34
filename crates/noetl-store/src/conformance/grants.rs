//! Conformance cases of the `Grants` trait, run on every store.

use std::sync::Arc;

use noetl_model::Tenant;

use crate::{Grant, GrantKind, NewGrant, Store};

pub async fn a_grant_is_read_back_and_removed(store: Arc<dyn Store>) {
    let tenant = Tenant::new("acme");
    let path = NewGrant { subject: Some("token:1".into()), ..new("one", GrantKind::Path) };
    for grant in [path, new("two", GrantKind::Credential)] {
        let kept = store.put_grant(&tenant, grant.clone()).await.expect("kept");
        assert_eq!((&kept.kept, &kept.tenant), (&grant, &tenant));
        assert!(store.grants(&tenant).await.expect("a list").contains(&kept));
    }
    assert_eq!(ids(store.grants(&tenant).await.expect("a list")), ["one", "two"]);
    assert!(store.remove_grant(&tenant, "one").await.expect("an answer"));
    assert!(!store.remove_grant(&tenant, "one").await.expect("an answer"));
    assert_eq!(ids(store.grants(&tenant).await.expect("a list")), ["two"]);
}

pub async fn a_grant_belongs_to_its_tenant(store: Arc<dyn Store>) {
    let (own, other) = (Tenant::new("own"), Tenant::new("other"));
    store.put_grant(&own, new("one", GrantKind::Path)).await.expect("kept");
    assert!(store.put_grant(&other, new("one", GrantKind::Path)).await.is_err());
    assert!(store.grants(&other).await.expect("a list").is_empty());
    assert!(!store.remove_grant(&other, "one").await.expect("an answer"));
    assert_eq!(store.grants(&own).await.expect("a list").len(), 1);
}

fn new(id: &str, kind: GrantKind) -> NewGrant {
    NewGrant {
        id: id.into(),
        kind,
        target: format!("for {id}"),
        subject: None,
        prefix: "team-a/".into(),
    }
}

fn ids(grants: Vec<Grant>) -> Vec<String> {
    grants.into_iter().map(|grant| grant.kept.id).collect()
}
