//! Cases about the walk over encrypted texts.

use std::sync::Arc;

use noetl_model::{CatalogId, CredentialId, Tenant, Timestamp};

use crate::{
    CacheKind, KeychainScope, NewCredential, NewKeychainEntry, SealedLocation, SealedText, Store,
};

pub async fn encrypted_values_are_listed_in_pages(store: Arc<dyn Store>) {
    let expected = fill(&*store).await;
    for limit in [1, 2, 3, 100] {
        let mut walked = Vec::new();
        let mut after: Option<SealedLocation> = None;
        loop {
            let page = store.sealed_rows(after.as_ref(), limit).await.expect("a page");
            assert!(page.len() <= limit);
            after = page.last().map(|row| row.location.clone());
            let is_last = page.len() < limit;
            walked.extend(page.into_iter().map(|row| (row.location, row.sealed)));
            if is_last {
                break;
            }
        }
        assert_eq!(walked, expected, "{limit} at a time");
    }
}

pub async fn a_sealed_text_is_replaced_only_if_unchanged(store: Arc<dyn Store>) {
    let all = fill(&*store).await;
    for (location, was) in &all {
        let (now, other) = (SealedText::new("now"), SealedText::new("other"));
        assert!(!store.reseal(location, &other, &now).await.expect("an answer"), "{location:?}");
        assert!(store.reseal(location, was, &now).await.expect("an answer"), "{location:?}");
        assert!(!store.reseal(location, was, &other).await.expect("an answer"), "{location:?}");
    }
    let gone = SealedLocation::Credential(CredentialId::new(99));
    let nothing = store.reseal(&gone, &SealedText::new("a"), &SealedText::new("b")).await;
    assert!(!nothing.expect("an answer"));
    let rows = store.sealed_rows(None, 100).await.expect("a page");
    assert!(rows.iter().all(|row| row.sealed == SealedText::new("now")), "{rows:?}");
    assert_eq!(rows.len(), all.len());
}

pub async fn replacing_a_sealed_text_changes_no_other_column(store: Arc<dyn Store>) {
    fill(&*store).await;
    let tenant = Tenant::default();
    let credential = CredentialId::new(2);
    let before = store.credential(&tenant, credential).await.expect("a read").expect("one");
    store.use_keychain_entry(&tenant, "k").await.expect("a use");
    let entry = store.keychain_entry(&tenant, "k").await.expect("a read").expect("one");
    let now = SealedText::new("now");
    let location = SealedLocation::Credential(credential);
    assert!(store.reseal(&location, &before.kept.sealed, &now).await.expect("an answer"));
    let location = SealedLocation::Keychain(tenant.clone(), "k".to_owned());
    assert!(store.reseal(&location, &entry.kept.sealed, &now).await.expect("an answer"));
    let mut expected = before;
    expected.kept.sealed = now.clone();
    let after = store.credential(&tenant, credential).await.expect("a read");
    assert_eq!(after, Some(expected));
    let mut expected = entry;
    expected.kept.sealed = now;
    assert_eq!(store.keychain_entry(&tenant, "k").await.expect("a read"), Some(expected));
}

pub async fn the_first_setting_of_a_name_stays(store: Arc<dyn Store>) {
    let (one, other) = (SealedText::new("one"), SealedText::new("other"));
    assert_eq!(store.sealed_setting("s").await.expect("a read"), None);
    assert_eq!(store.put_sealed_setting("s", &one).await.expect("kept"), one);
    assert_eq!(store.put_sealed_setting("s", &other).await.expect("an answer"), one);
    assert_eq!(store.sealed_setting("s").await.expect("a read"), Some(one));
    assert_eq!(store.sealed_setting("S").await.expect("a read"), None);
}

pub async fn encrypted_rows_name_their_owner(store: Arc<dyn Store>) {
    fill(&*store).await;
    let rows = store.sealed_rows(None, 100).await.expect("a page");
    let owned: Vec<_> = rows
        .iter()
        .map(|row| (row.tenant.as_str(), row.name.as_str(), row.kind.as_str()))
        .collect();
    let (acme, default) = ("acme", Tenant::default());
    assert_eq!(owned[0], (acme, "credential 1", "t"));
    assert_eq!(owned[1], (default.as_str(), "credential 2", "t"));
    assert_eq!(owned[3], (acme, "k", "t"));
    assert_eq!(owned.last(), Some(&(default.as_str(), "setting b", "")));
}

/// Stores credentials and entries of two tenants, and settings; returns them in walk order.
async fn fill(store: &dyn Store) -> Vec<(SealedLocation, SealedText)> {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    for (tenant, id) in [(&mine, 3), (&theirs, 1), (&mine, 2)] {
        let new = NewCredential {
            id: CredentialId::new(id),
            name: format!("credential {id}"),
            kind: "t".into(),
            sealed: SealedText::new(format!("sealed {id}")),
            schema: None,
            meta: None,
            tags: Vec::new(),
            description: None,
        };
        store.put_credential(tenant, new).await.expect("kept");
    }
    let past = Some(Timestamp::from_micros(1_000_000));
    for (tenant, key, expires_at) in
        [(&mine, "k", None), (&theirs, "z", None), (&theirs, "k", past), (&mine, "Ä", None)]
    {
        let new = NewKeychainEntry {
            cache_key: key.into(),
            name: key.into(),
            catalog: CatalogId::new(1),
            credential_kind: "t".into(),
            cache: CacheKind::Secret,
            scope: KeychainScope::Global,
            execution: None,
            parent: None,
            sealed: SealedText::new(format!("sealed {tenant} {key}")),
            schema: None,
            expires_at,
            auto_renew: false,
            renew_config: None,
        };
        store.put_keychain_entry(tenant, new).await.expect("kept");
    }
    for name in ["setting b", "setting a"] {
        let sealed = SealedText::new(format!("sealed {name}"));
        store.put_sealed_setting(name, &sealed).await.expect("kept");
    }
    let credentials = [1, 2, 3].map(|id| {
        (SealedLocation::Credential(CredentialId::new(id)), SealedText::new(format!("sealed {id}")))
    });
    let entries = [(&theirs, "k"), (&theirs, "z"), (&mine, "k"), (&mine, "Ä")].map(|(of, key)| {
        let location = SealedLocation::Keychain(of.clone(), key.to_owned());
        (location, SealedText::new(format!("sealed {of} {key}")))
    });
    let settings = ["setting a", "setting b"].map(|name| {
        (SealedLocation::Setting(name.to_owned()), SealedText::new(format!("sealed {name}")))
    });
    credentials.into_iter().chain(entries).chain(settings).collect()
}
