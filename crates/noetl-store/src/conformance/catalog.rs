//! Cases about the catalog.

use std::sync::Arc;

use noetl_model::{CatalogId, Tenant, Timestamp};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{CatalogEntry, CatalogSize, NewEntry, Store};

pub async fn a_registered_entry_is_read_back(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let new = NewEntry {
        layout: Some(json!([{"step": "start", "n": 1.5}])),
        payload: Some(json!(null)),
        meta: None,
        ..entry(1, "demo/greet")
    };
    let answer = register(&*store, &tenant, new.clone()).await;
    let expected = CatalogEntry {
        id: new.id,
        path: new.path,
        version: 1,
        kind: new.kind,
        content: new.content,
        layout: new.layout,
        payload: new.payload,
        meta: new.meta,
        created_at: new.at,
        deleted_at: None,
    };
    assert_eq!(answer, expected);
    let by_id = store.entry(&tenant, new.id).await.expect("a read");
    assert_eq!(by_id.as_ref(), Some(&expected));
    let by_path = store.entry_at(&tenant, "demo/greet", Some(1)).await;
    assert_eq!(by_path.expect("a read").as_ref(), Some(&expected));
    let unknown = store.entry(&tenant, CatalogId::new(2)).await;
    assert_eq!(unknown.expect("a read"), None);
}

pub async fn usage_of_a_tenant_includes_deleted_documents(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    for (id, content) in [(1, "four"), (2, "größe")] {
        let new = NewEntry { content: content.to_owned(), ..entry(id, "demo/a") };
        register(&*store, &mine, new).await;
    }
    let at = Some(Timestamp::from_micros(9));
    store.set_deleted(&mine, "demo/a", Some(1), at).await.expect("deleted");
    let size = store.catalog_size(&mine).await.expect("a size");
    assert_eq!(size, CatalogSize { documents: 2, bytes: 11 });
    let size = store.catalog_size(&theirs).await.expect("a size");
    assert_eq!(size, CatalogSize { documents: 0, bytes: 0 });
}

pub async fn versions_count_per_path_and_tenant(store: Arc<dyn Store>) {
    let mine = Tenant::default();
    let theirs = Tenant::new("acme");
    for (id, tenant, path, version) in [
        (1, &mine, "demo/a", 1),
        (2, &mine, "demo/a", 2),
        (3, &mine, "demo/b", 1),
        (4, &theirs, "demo/a", 1),
        (5, &mine, "demo/a", 3),
        (6, &mine, "Demo/a", 1),
    ] {
        let answer = register(&*store, tenant, entry(id, path)).await;
        assert_eq!(answer.version, version, "{tenant} {path}");
    }
}

pub async fn the_highest_version_is_returned_by_default(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for id in [3, 2, 1] {
        register(&*store, &tenant, entry(id, "demo/a")).await;
    }
    for (version, id) in [(None, Some(1)), (Some(1), Some(3)), (Some(4), None)] {
        let found = store.entry_at(&tenant, "demo/a", version).await;
        let found = found.expect("a read").map(|entry| entry.id.get());
        assert_eq!(found, id, "{version:?}");
    }
    let unknown = store.entry_at(&tenant, "demo/b", None).await;
    assert_eq!(unknown.expect("a read"), None);
}

pub async fn entries_are_listed_newest_first_and_by_kind(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for (id, at, kind) in
        [(1, 9, "playbook"), (2, 5, "credential"), (3, 5, "playbook"), (4, 7, "playbook")]
    {
        let new =
            NewEntry { kind: kind.into(), at: Timestamp::from_micros(at), ..entry(id, "demo/a") };
        register(&*store, &tenant, new).await;
    }
    for (kind, expected) in
        [(None, vec![1, 4, 3, 2]), (Some("playbook"), vec![1, 4, 3]), (Some("tool"), vec![])]
    {
        let entries = store.entries(&tenant, kind).await.expect("a list");
        let ids: Vec<i64> = entries.iter().map(|entry| entry.id.get()).collect();
        assert_eq!(ids, expected, "{kind:?}");
    }
}

pub async fn the_newest_of_a_kind_are_listed_by_path(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    for (id, tenant, path, kind) in [
        (1, &mine, "b", "subscription"),
        (9, &mine, "a", "subscription"),
        (8, &mine, "a", "subscription"),
        (2, &mine, "Z", "subscription"),
        (3, &mine, "was", "subscription"),
        (4, &mine, "was", "playbook"),
        (5, &mine, "is", "playbook"),
        (6, &mine, "is", "subscription"),
        (7, &theirs, "theirs", "subscription"),
    ] {
        register(&*store, tenant, NewEntry { kind: kind.into(), ..entry(id, path) }).await;
    }
    let heads = store.newest_of(&mine, "subscription").await.expect("a list");
    let heads: Vec<_> =
        heads.iter().map(|head| (head.id.get(), &*head.path, head.version)).collect();
    assert_eq!(heads, [(2, "Z", 1), (8, "a", 2), (1, "b", 1), (6, "is", 2)]);
    assert_eq!(store.newest_of(&mine, "tool").await.expect("a list"), []);
}

pub async fn another_tenant_s_entries_do_not_exist(store: Arc<dyn Store>) {
    let mine = Tenant::default();
    let theirs = Tenant::new("acme");
    register(&*store, &theirs, entry(1, "demo/a")).await;
    let by_id = store.entry(&mine, CatalogId::new(1)).await;
    assert_eq!(by_id.expect("a read"), None);
    for version in [None, Some(1)] {
        let by_path = store.entry_at(&mine, "demo/a", version).await;
        assert_eq!(by_path.expect("a read"), None);
    }
    assert_eq!(store.entries(&mine, None).await.expect("a list"), []);
}

pub async fn an_entry_with_a_used_id_is_rejected(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    register(&*store, &tenant, entry(1, "demo/a")).await;
    let again = store.register(&tenant, entry(1, "demo/b")).await;
    assert!(again.is_err(), "{again:?}");
    assert_eq!(store.entries(&tenant, None).await.expect("a list").len(), 1);
    let next = register(&*store, &tenant, entry(2, "demo/a")).await;
    assert_eq!(next.version, 2);
}

pub async fn concurrent_registers_get_distinct_versions(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for id in 1..=16 {
        let store = store.clone();
        tasks.spawn(async move {
            let answer = register(&*store, &Tenant::default(), entry(id, "demo/a")).await;
            answer.version
        });
    }
    let mut versions = tasks.join_all().await;
    versions.sort_unstable();
    assert_eq!(versions, Vec::from_iter(1..=16));
}

pub async fn a_deleted_version_is_found_by_its_id_alone(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for id in [1, 2, 3] {
        register(&*store, &tenant, entry(id, "demo/a")).await;
    }
    register(&*store, &tenant, entry(4, "demo/b")).await;
    let at = Some(Timestamp::from_micros(1_800_000_000_000_000));
    let changed = store.set_deleted(&tenant, "demo/a", Some(3), at).await.expect("a change");
    let changed: Vec<_> = changed.iter().map(|one| (one.id.get(), one.deleted_at)).collect();
    assert_eq!(changed, [(3, at)]);
    let again = store.set_deleted(&tenant, "demo/a", Some(3), at).await.expect("a repeat");
    assert_eq!(again, [], "a repeat changes nothing");
    let newest = async || {
        let found = store.entry_at(&tenant, "demo/a", None).await.expect("a read");
        found.map(|entry| entry.id.get())
    };
    assert_eq!(newest().await, Some(2));
    assert_eq!(store.entry_at(&tenant, "demo/a", Some(3)).await.expect("a read"), None);
    let by_id = store.entry(&tenant, CatalogId::new(3)).await.expect("a read");
    assert_eq!(by_id.map(|entry| entry.deleted_at), Some(at));
    let ids = async || {
        let listed = store.entries(&tenant, Some("playbook")).await.expect("a list");
        listed.iter().map(|entry| entry.id.get()).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, [4, 2, 1]);
    let heads = async || {
        let listed = store.newest_of(&tenant, "playbook").await.expect("a list");
        listed.iter().map(|head| head.id.get()).collect::<Vec<_>>()
    };
    assert_eq!(heads().await, [2, 4]);
    let changed = store.set_deleted(&tenant, "demo/a", None, at).await.expect("a change");
    let numbers: Vec<u32> = changed.iter().map(|one| one.version).collect();
    assert_eq!(numbers, [2, 1], "the rest, highest first");
    assert_eq!((newest().await, heads().await, ids().await), (None, vec![4], vec![4]));
    let next = register(&*store, &tenant, entry(5, "demo/a")).await;
    assert_eq!((next.version, newest().await), (4, Some(5)), "no number is given twice");
    let versions = store.versions(&tenant, "demo/a").await.expect("a list");
    let versions: Vec<_> = versions.iter().map(|one| (one.version, one.deleted_at)).collect();
    assert_eq!(versions, [(4, None), (3, at), (2, at), (1, at)]);
    let back = store.set_deleted(&tenant, "demo/a", None, None).await.expect("a change");
    let back: Vec<_> = back.iter().map(|one| (one.version, one.deleted_at)).collect();
    assert_eq!(back, [(3, None), (2, None), (1, None)]);
    assert_eq!(ids().await.len(), 5);
}

pub async fn only_a_tenant_s_own_path_is_deleted(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    register(&*store, &mine, entry(1, "demo/a")).await;
    register(&*store, &theirs, entry(2, "demo/a")).await;
    let at = Some(Timestamp::from_micros(1_800_000_000_000_000));
    for (path, version) in [("demo/b", None), ("demo/a", Some(2)), ("demo/a", Some(u32::MAX))] {
        let changed = store.set_deleted(&mine, path, version, at).await.expect("an answer");
        assert_eq!(changed, [], "{path} {version:?}");
    }
    assert_eq!(store.versions(&mine, "demo/b").await.expect("a list"), []);
    let changed = store.set_deleted(&mine, "demo/a", None, at).await.expect("a change");
    assert_eq!(changed.len(), 1);
    assert!(store.entry_at(&theirs, "demo/a", None).await.expect("a read").is_some());
    assert_eq!(store.versions(&theirs, "demo/a").await.expect("a list").len(), 1);
}

fn entry(id: i64, path: &str) -> NewEntry {
    NewEntry {
        id: CatalogId::new(id),
        path: path.into(),
        kind: "playbook".into(),
        content: format!("name: {path}\n"),
        layout: Some(json!([])),
        payload: Some(json!({"b": 1, "a": 2})),
        meta: Some(json!({"team": "x"})),
        at: Timestamp::from_micros(1_704_067_200_000_000 + id),
    }
}

async fn register(store: &dyn Store, tenant: &Tenant, new: NewEntry) -> CatalogEntry {
    store.register(tenant, new).await.expect("a new version")
}
