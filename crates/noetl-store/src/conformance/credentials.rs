//! Cases about credentials.

use std::sync::Arc;

use noetl_model::{CredentialId, Tenant};
use serde_json::json;

use crate::{CredentialFilter, NewCredential, SealedText, Store};

pub async fn a_credential_is_read_back_by_id_and_name(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let new = NewCredential {
        schema: Some(json!({"type": "object"})),
        meta: Some(json!(null)),
        tags: vec!["b".into(), "a".into(), "b".into()],
        description: Some("the main database".into()),
        ..credential(1, "pg")
    };
    let put = store.put_credential(&tenant, new.clone()).await.expect("kept");
    assert_eq!(put.kept, new);
    assert_eq!(put.kept.sealed.as_str(), "sealed pg");
    assert_eq!(put.created_at, put.updated_at);
    let by_id = store.credential(&tenant, new.id).await.expect("a read");
    assert_eq!(by_id.as_ref(), Some(&put));
    let by_name = store.credential_named(&tenant, "pg").await.expect("a read");
    assert_eq!(by_name, Some(put));
    assert_eq!(store.credential(&tenant, CredentialId::new(2)).await.expect("a read"), None);
    assert_eq!(store.credential_named(&tenant, "PG").await.expect("a read"), None);
}

pub async fn a_replaced_credential_retains_its_id_and_creation_time(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let full = NewCredential {
        tags: vec!["a".into()],
        meta: Some(json!({})),
        description: Some("old".into()),
        ..credential(1, "pg")
    };
    let first = store.put_credential(&tenant, full).await.expect("kept");
    let changed = NewCredential {
        kind: "http".into(),
        sealed: SealedText::new("other"),
        ..credential(2, "pg")
    };
    let second = store.put_credential(&tenant, changed.clone()).await.expect("kept");
    assert_eq!(second.kept, NewCredential { id: CredentialId::new(1), ..changed });
    assert_eq!(second.created_at, first.created_at);
    assert!(second.updated_at >= first.updated_at);
    let all = store.credentials(&tenant, &CredentialFilter::default()).await;
    assert_eq!(all.expect("a list"), [second]);
}

pub async fn a_credential_with_a_used_id_is_rejected(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    store.put_credential(&tenant, credential(1, "pg")).await.expect("kept");
    for (tenant, name) in [(tenant.clone(), "other"), (Tenant::new("acme"), "pg")] {
        let refused = store.put_credential(&tenant, credential(1, name)).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(names(&*store, &tenant, None, None).await, ["pg"]);
}

pub async fn credentials_are_listed_by_name_type_and_text(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for (id, name, kind, description) in [
        (1, "pg_b", "postgres", None),
        (2, "Pg_a", "postgres", Some("100% Ärger")),
        (3, "api", "http", Some("for PG_B")),
    ] {
        let new = NewCredential {
            kind: kind.into(),
            description: description.map(str::to_owned),
            ..credential(id, name)
        };
        store.put_credential(&tenant, new).await.expect("kept");
    }
    for (kind, text, expected) in [
        (None, None, vec!["Pg_a", "api", "pg_b"]),
        (Some("postgres"), None, vec!["Pg_a", "pg_b"]),
        (Some("Postgres"), None, vec![]),
        (None, Some("pg_b"), vec!["api", "pg_b"]),
        (None, Some("ärg"), vec!["Pg_a"]),
        (None, Some("%"), vec!["Pg_a"]),
        (None, Some(""), vec!["Pg_a", "api", "pg_b"]),
        (Some("http"), Some("a"), vec!["api"]),
        (Some("http"), Some("ärger"), vec![]),
    ] {
        assert_eq!(names(&*store, &tenant, kind, text).await, expected, "{kind:?} {text:?}");
    }
}

pub async fn a_deleted_credential_frees_its_name(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    store.put_credential(&tenant, credential(1, "pg")).await.expect("kept");
    let id = CredentialId::new(1);
    assert!(!store.delete_credential(&Tenant::new("acme"), id).await.expect("no"));
    assert!(store.delete_credential(&tenant, id).await.expect("removed"));
    assert!(!store.delete_credential(&tenant, id).await.expect("no"));
    assert_eq!(store.credential(&tenant, id).await.expect("a read"), None);
    let again = store.put_credential(&tenant, credential(2, "pg")).await.expect("kept");
    assert_eq!(again.kept.id, CredentialId::new(2));
}

pub async fn another_tenant_s_credentials_do_not_exist(store: Arc<dyn Store>) {
    let mine = Tenant::default();
    let theirs = Tenant::new("acme");
    store.put_credential(&theirs, credential(1, "pg")).await.expect("kept");
    assert_eq!(store.credential(&mine, CredentialId::new(1)).await.expect("a read"), None);
    assert_eq!(store.credential_named(&mine, "pg").await.expect("a read"), None);
    assert!(names(&*store, &mine, None, None).await.is_empty());
    store.put_credential(&mine, credential(2, "pg")).await.expect("kept");
    let kept = store.credential_named(&theirs, "pg").await.expect("a read");
    assert_eq!(kept.expect("theirs").kept.id, CredentialId::new(1));
}

fn credential(id: i64, name: &str) -> NewCredential {
    NewCredential {
        id: CredentialId::new(id),
        name: name.into(),
        kind: "postgres".into(),
        sealed: SealedText::new(format!("sealed {name}")),
        schema: None,
        meta: None,
        tags: Vec::new(),
        description: None,
    }
}

async fn names(
    store: &dyn Store,
    tenant: &Tenant,
    kind: Option<&str>,
    text: Option<&str>,
) -> Vec<String> {
    let filter = CredentialFilter { kind: kind.map(str::to_owned), text: text.map(str::to_owned) };
    let listed = store.credentials(tenant, &filter).await.expect("a list");
    listed.into_iter().map(|credential| credential.kept.name).collect()
}
