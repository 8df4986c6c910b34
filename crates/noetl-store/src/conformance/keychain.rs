//! Cases about the keychain. Expired entries have times in the distant past, others in the distant
//! future.

use std::sync::Arc;

use noetl_model::{CatalogId, ExecutionId, Tenant, Timestamp};
use serde_json::json;

use crate::{CacheKind, KeychainFilter, KeychainScope, NewKeychainEntry, SealedText, Store};

const LONG_AGO: Option<Timestamp> = Some(Timestamp::from_micros(1));
const FAR_AHEAD: Option<Timestamp> = Some(Timestamp::from_millis(4_000_000_000_000));

pub async fn an_entry_is_read_back(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for (number, cache) in (0..).zip([CacheKind::Secret, CacheKind::Token]) {
        for scope in [KeychainScope::Local, KeychainScope::Global, KeychainScope::Shared] {
            let new = NewKeychainEntry {
                cache,
                scope,
                execution: Some(ExecutionId::new(number)),
                parent: Some(ExecutionId::new(9)),
                schema: Some(json!({"a": 1})),
                expires_at: FAR_AHEAD,
                auto_renew: true,
                renew_config: Some(json!(null)),
                ..entry("key")
            };
            let put = store.put_keychain_entry(&tenant, new.clone()).await.expect("kept");
            assert_eq!(put.kept, new);
            assert_eq!((put.accessed_at, put.access_count), (None, 0));
            let found = store.keychain_entry(&tenant, "key").await.expect("a read");
            assert_eq!(found, Some(put));
        }
    }
    assert_eq!(store.keychain_entry(&tenant, "Key").await.expect("a read"), None);
}

pub async fn uses_are_counted_and_lookups_are_not(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    store.put_keychain_entry(&tenant, entry("key")).await.expect("kept");
    for count in 1..=3 {
        let used = store.use_keychain_entry(&tenant, "key").await.expect("a read");
        let used = used.expect("an entry");
        assert_eq!(used.access_count, count);
        assert!(used.accessed_at >= Some(used.created_at), "{used:?}");
        let seen = store.keychain_entry(&tenant, "key").await.expect("a read");
        assert_eq!(seen, Some(used));
    }
    let again = store.put_keychain_entry(&tenant, entry("key")).await.expect("kept");
    assert_eq!((again.accessed_at, again.access_count), (None, 0));
    assert_eq!(store.use_keychain_entry(&tenant, "other").await.expect("a read"), None);
}

pub async fn an_expired_entry_is_listed_but_not_used(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for (expires_at, is_live) in [(LONG_AGO, false), (FAR_AHEAD, true), (None, true)] {
        let new = NewKeychainEntry { expires_at, ..entry("key") };
        store.put_keychain_entry(&tenant, new).await.expect("kept");
        let used = store.use_keychain_entry(&tenant, "key").await.expect("a read");
        assert_eq!(used.is_some(), is_live, "{expires_at:?}");
        let seen = store.keychain_entry(&tenant, "key").await.expect("a read");
        assert_eq!(seen.expect("an entry").access_count, u64::from(is_live));
    }
}

pub async fn entries_are_listed_by_playbook_and_execution(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for (key, catalog, execution, expires_at) in
        [("c", 1, Some(5), None), ("a", 1, None, LONG_AGO), ("B", 2, Some(5), None)]
    {
        let new = NewKeychainEntry {
            catalog: CatalogId::new(catalog),
            execution: execution.map(ExecutionId::new),
            expires_at,
            ..entry(key)
        };
        store.put_keychain_entry(&tenant, new).await.expect("kept");
    }
    for (catalog, execution, expected) in [
        (None, None, vec!["B", "a", "c"]),
        (Some(1), None, vec!["a", "c"]),
        (None, Some(5), vec!["B", "c"]),
        (Some(1), Some(5), vec!["c"]),
        (Some(3), None, vec![]),
    ] {
        let filter = KeychainFilter {
            catalog: catalog.map(CatalogId::new),
            execution: execution.map(ExecutionId::new),
        };
        let listed = store.keychain_entries(&tenant, &filter).await.expect("a list");
        let keys: Vec<&str> = listed.iter().map(|entry| entry.kept.cache_key.as_str()).collect();
        assert_eq!(keys, expected, "{filter:?}");
    }
}

pub async fn a_deleted_entry_does_not_exist_expired_or_not(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for expires_at in [None, LONG_AGO] {
        let new = NewKeychainEntry { expires_at, ..entry("key") };
        store.put_keychain_entry(&tenant, new).await.expect("kept");
        assert!(store.delete_keychain_entry(&tenant, "key").await.expect("removed"));
        assert!(!store.delete_keychain_entry(&tenant, "key").await.expect("no"));
        assert_eq!(store.keychain_entry(&tenant, "key").await.expect("a read"), None);
    }
}

pub async fn a_purge_removes_expired_entries_up_to_its_limit(store: Arc<dyn Store>) {
    let tenants = [Tenant::default(), Tenant::new("acme")];
    for tenant in &tenants {
        for (key, expires_at) in [("a", LONG_AGO), ("b", LONG_AGO), ("c", FAR_AHEAD), ("d", None)] {
            let new = NewKeychainEntry { expires_at, ..entry(key) };
            store.put_keychain_entry(tenant, new).await.expect("kept");
        }
    }
    for (limit, purged) in [(0, 0), (3, 3), (3, 1), (3, 0)] {
        assert_eq!(store.purge_keychain(limit).await.expect("a purge"), purged);
    }
    for tenant in &tenants {
        let left = store.keychain_entries(tenant, &KeychainFilter::default()).await;
        assert_eq!(left.expect("a list").len(), 2);
    }
}

pub async fn entries_of_another_tenant_cannot_be_changed(store: Arc<dyn Store>) {
    let mine = Tenant::default();
    let theirs = Tenant::new("acme");
    store.put_keychain_entry(&theirs, entry("key")).await.expect("kept");
    assert_eq!(store.keychain_entry(&mine, "key").await.expect("a read"), None);
    assert_eq!(store.use_keychain_entry(&mine, "key").await.expect("a read"), None);
    let listed = store.keychain_entries(&mine, &KeychainFilter::default()).await;
    assert!(listed.expect("a list").is_empty());
    assert!(!store.delete_keychain_entry(&mine, "key").await.expect("no"));
    let other = NewKeychainEntry { name: "mine".into(), ..entry("key") };
    store.put_keychain_entry(&mine, other).await.expect("kept");
    let kept = store.keychain_entry(&theirs, "key").await.expect("a read");
    assert_eq!(kept.expect("theirs").kept, entry("key"));
}

pub(super) fn entry(key: &str) -> NewKeychainEntry {
    NewKeychainEntry {
        cache_key: key.into(),
        name: "token".into(),
        catalog: CatalogId::new(1),
        credential_kind: "secret".into(),
        cache: CacheKind::Secret,
        scope: KeychainScope::Global,
        execution: None,
        parent: None,
        sealed: SealedText::new("sealed"),
        schema: None,
        expires_at: None,
        auto_renew: false,
        renew_config: None,
    }
}
