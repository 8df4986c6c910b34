//! Cases about access tokens.

use std::sync::Arc;

use noetl_model::{Tenant, Timestamp};

use crate::{AccessToken, Digest, NewToken, Store};

pub async fn a_token_is_read_back(store: Arc<dyn Store>) {
    let tenant = Tenant::new("acme");
    let full = NewToken {
        expires_at: Some(Timestamp::from_micros(7)),
        pool: Some("gpu".into()),
        ..new("one")
    };
    for token in [full.clone(), new("two")] {
        let kept = store.put_token(&tenant, token.clone()).await.expect("kept");
        assert_eq!((&kept.kept, &kept.tenant, kept.revoked_at), (&token, &tenant, None));
        assert_eq!(store.token(&token.id).await.expect("an answer"), Some(kept));
    }
    assert_eq!(store.token("three").await.expect("an answer"), None);
    assert_eq!(ids(store.tokens(&tenant).await.expect("a list")), ["one", "two"]);
}

pub async fn a_token_belongs_to_its_tenant(store: Arc<dyn Store>) {
    let (mine, other) = (Tenant::new("mine"), Tenant::new("other"));
    store.put_token(&mine, new("one")).await.expect("kept");
    assert!(store.tokens(&other).await.expect("a list").is_empty());
    assert!(!store.revoke_token(&other, "one").await.expect("an answer"));
    assert_eq!(store.token("one").await.expect("an answer").expect("a token").revoked_at, None);
}

pub async fn a_token_id_is_unique(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let kept = store.put_token(&tenant, new("one")).await.expect("kept");
    let again = NewToken { role: "admin".into(), ..new("one") };
    assert!(store.put_token(&Tenant::new("other"), again).await.is_err());
    assert_eq!(store.token("one").await.expect("an answer"), Some(kept));
}

pub async fn a_revoked_token_stays_revoked(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    store.put_token(&tenant, new("one")).await.expect("kept");
    assert!(store.revoke_token(&tenant, "one").await.expect("an answer"));
    let first = store.token("one").await.expect("an answer").expect("a token").revoked_at;
    assert!(first.is_some());
    assert!(store.revoke_token(&tenant, "one").await.expect("an answer"));
    let second = store.token("one").await.expect("an answer").expect("a token").revoked_at;
    assert_eq!(second, first);
    assert!(!store.revoke_token(&tenant, "two").await.expect("an answer"));
}

pub async fn concurrent_first_tokens_leave_one(store: Arc<dyn Store>) {
    let firsts = (0..8).map(|number| {
        let store = store.clone();
        async move {
            let tenant = Tenant::new(format!("tenant-{}", number % 2));
            store.put_first_token(&tenant, new(&number.to_string())).await.expect("an answer")
        }
    });
    let kept: Vec<AccessToken> =
        futures::future::join_all(firsts).await.into_iter().flatten().collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let later = store.put_first_token(&Tenant::default(), new("later")).await.expect("an answer");
    assert_eq!(later, None);
}

fn new(id: &str) -> NewToken {
    NewToken {
        id: id.into(),
        hash: Digest::of_bytes(id.as_bytes()),
        name: format!("for {id}"),
        role: "viewer".into(),
        expires_at: None,
        pool: None,
    }
}

fn ids(tokens: Vec<AccessToken>) -> Vec<String> {
    tokens.into_iter().map(|token| token.kept.id).collect()
}
