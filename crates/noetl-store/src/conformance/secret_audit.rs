//! Cases about the audit log of secret uses.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{AuditId, ExecutionId, Tenant, Timestamp};

use crate::{AuditChain, AuditFilter, AuditHead, AuditLink, SecretUse, Store};

pub async fn an_audit_record_is_read_back(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let full = SecretUse {
        worker: Some("worker-1".into()),
        execution: Some(ExecutionId::new(5)),
        parent: Some(ExecutionId::new(4)),
        server_region: Some("eu".into()),
        broker_region: Some("us".into()),
        key_version: Some("v1".into()),
        notes: Some("sealed".into()),
        ..used(2, 20)
    };
    for used in [full.clone(), used(1, 10)] {
        assert!(store.audit_secret(&tenant, used).await.expect("added"));
    }
    let listed = store.secret_uses(&tenant, &all()).await.expect("a list");
    assert_eq!(listed, [full, used(1, 10)]);
}

pub async fn a_repeated_audit_record_changes_nothing(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    assert!(store.audit_secret(&tenant, used(1, 10)).await.expect("added"));
    for tenant in [tenant.clone(), Tenant::new("acme")] {
        let again = SecretUse { outcome: "denied".into(), ..used(1, 20) };
        assert!(!store.audit_secret(&tenant, again).await.expect("a repeat"));
    }
    let listed = store.secret_uses(&tenant, &all()).await.expect("a list");
    assert_eq!(listed, [used(1, 10)]);
}

pub async fn uses_are_listed_latest_first_and_by_filter(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for (id, at, credential, execution) in [
        (1, 20, "pg", None),
        (2, 10, "api", Some(5)),
        (3, 20, "pg", Some(5)),
        (4, 30, "pg", Some(6)),
    ] {
        let used = SecretUse {
            credential: credential.into(),
            execution: execution.map(ExecutionId::new),
            ..used(id, at)
        };
        store.audit_secret(&tenant, used).await.expect("added");
    }
    let at = |micros| Some(Timestamp::from_micros(micros));
    let credential = |name: &str| Some(name.to_owned());
    let execution = |id| Some(ExecutionId::new(id));
    for (filter, expected) in [
        (all(), vec![4, 3, 1, 2]),
        (AuditFilter { limit: 2, ..all() }, vec![4, 3]),
        (AuditFilter { limit: 0, ..all() }, vec![]),
        (AuditFilter { credential: credential("pg"), ..all() }, vec![4, 3, 1]),
        (AuditFilter { credential: credential("PG"), ..all() }, vec![]),
        (AuditFilter { execution: execution(5), ..all() }, vec![3, 2]),
        (AuditFilter { from: at(20), ..all() }, vec![4, 3, 1]),
        (AuditFilter { to: at(20), ..all() }, vec![3, 1, 2]),
        (AuditFilter { from: at(20), to: at(20), ..all() }, vec![3, 1]),
        (AuditFilter { from: at(21), to: at(20), ..all() }, vec![]),
        (AuditFilter { credential: credential("pg"), execution: execution(5), ..all() }, vec![3]),
    ] {
        let listed = store.secret_uses(&tenant, &filter).await.expect("a list");
        let ids: Vec<i64> = listed.iter().map(|used| used.id.get()).collect();
        assert_eq!(ids, expected, "{filter:?}");
    }
    let theirs = store.secret_uses(&Tenant::new("acme"), &all()).await;
    assert_eq!(theirs.expect("a list"), []);
}

pub async fn a_purge_removes_the_earliest_uses_up_to_its_limit(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let ahead = Timestamp::from_millis(4_000_000_000_000).as_micros();
    for (id, at) in [(1, 30), (2, 10), (3, 20), (4, ahead)] {
        store.audit_secret(&tenant, used(id, at)).await.expect("added");
    }
    let theirs = Tenant::new("acme");
    store.audit_secret(&theirs, used(5, 25)).await.expect("added");
    for (age, limit, purged, left) in [
        (Duration::MAX, 10, 0, vec![4, 1, 3, 2]),
        (Duration::ZERO, 0, 0, vec![4, 1, 3, 2]),
        (Duration::ZERO, 1, 1, vec![4, 1, 3]),
        (Duration::ZERO, 2, 2, vec![4, 1]),
        (Duration::ZERO, 10, 1, vec![4]),
    ] {
        assert_eq!(store.purge_secret_uses(age, limit).await.expect("a purge"), purged);
        let listed = store.secret_uses(&tenant, &all()).await.expect("a list");
        let ids: Vec<i64> = listed.iter().map(|used| used.id.get()).collect();
        assert_eq!(ids, left, "{age:?} {limit}");
    }
    assert_eq!(store.secret_uses(&theirs, &all()).await.expect("a list"), []);
}

pub async fn uses_are_linked_in_the_order_they_were_recorded(store: Arc<dyn Store>) {
    let acme = Tenant::new("acme");
    let start = store.audit_chain().await.expect("a chain");
    assert_eq!(start, AuditChain { head: AuditHead::START, outside: 0 });
    let mut head = start.head;
    let mut expected = Vec::new();
    // Uses may be recorded out of order, and texts may contain anything.
    let odd =
        SecretUse {
            credential: "a:b\n\u{2028}ü".into(), notes: Some(String::new()), ..used(5, 7)
        };
    for (tenant, used) in
        [(Tenant::default(), used(9, 30)), (acme.clone(), used(3, 10)), (acme.clone(), odd)]
    {
        assert!(store.audit_secret(&tenant, used.clone()).await.expect("added"));
        assert!(!store.audit_secret(&tenant, used.clone()).await.expect("a repeat"));
        let (link, next) = head.next(&tenant, &used);
        expected.push(AuditLink { used: Some((tenant, used)), ..link });
        head = next;
        assert_eq!(store.audit_chain().await.expect("a chain").head, head);
    }
    assert_eq!(store.audit_links(0, 10).await.expect("links"), expected);
    assert_eq!(store.audit_links(1, 1).await.expect("links"), expected[1..2]);
    assert_eq!(store.audit_links(3, 10).await.expect("links"), []);
    for link in &expected {
        assert_eq!(link.is_as_recorded(), Some(true));
    }
}

pub async fn the_link_of_a_purged_use_stays(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for id in 1..=3 {
        store.audit_secret(&tenant, used(id, id)).await.expect("added");
    }
    let before = store.audit_links(0, 10).await.expect("links");
    let head = store.audit_chain().await.expect("a chain");
    assert_eq!(store.purge_secret_uses(Duration::ZERO, 2).await.expect("a purge"), 2);
    assert_eq!(store.audit_chain().await.expect("a chain"), head);
    let after = store.audit_links(0, 10).await.expect("links");
    assert_eq!(after[2], before[2]);
    for (after, before) in after.iter().zip(&before).take(2) {
        assert_eq!((after.is_as_recorded(), &after.hash), (None, &before.hash));
    }
    // The same ID is a new use after a purge.
    store.audit_secret(&tenant, used(1, 9)).await.expect("added");
    let links = store.audit_links(0, 10).await.expect("links");
    assert_eq!(
        links.iter().map(|link| link.used.is_some()).collect::<Vec<_>>(),
        [false, false, true, true]
    );
    let mut before = AuditHead::START.hash;
    for link in links {
        assert!(link.follows(&before), "{link:?}");
        before = link.hash;
    }
}

pub async fn concurrent_audit_records_form_one_chain(store: Arc<dyn Store>) {
    let mut recording = Vec::new();
    for id in 1..=40 {
        let store = store.clone();
        recording.push(tokio::spawn(async move {
            store.audit_secret(&Tenant::default(), used(id, id)).await.expect("added")
        }));
    }
    for one in recording {
        assert!(one.await.expect("no panic"));
    }
    let links = store.audit_links(0, 100).await.expect("links");
    let mut before = AuditHead::START;
    for link in links {
        assert!(link.follows(&before.hash) && link.is_as_recorded() == Some(true), "{link:?}");
        before = AuditHead { seq: before.seq + 1, hash: link.hash };
        assert_eq!(link.seq, before.seq);
    }
    assert_eq!(before.seq, 40);
    assert_eq!(store.audit_chain().await.expect("a chain").head, before);
}

pub(super) fn used(id: i64, at: i64) -> SecretUse {
    SecretUse {
        id: AuditId::new(id),
        at: Timestamp::from_micros(at),
        credential: "pg".into(),
        operation: "resolve".into(),
        outcome: "ok".into(),
        worker: None,
        execution: None,
        parent: None,
        server_region: None,
        broker_region: None,
        key_version: None,
        notes: None,
    }
}

fn all() -> AuditFilter {
    AuditFilter { limit: 100, ..AuditFilter::default() }
}
