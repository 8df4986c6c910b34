//! What the database adds to what is kept: several callers at once, constraints, schemas made by
//! others.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{CatalogId, CredentialId, ExecutionId, ResultId, Tenant, Timestamp};
use noetl_store::{
    BlobRef, Blobs, CacheKind, CredentialFilter, CredentialStore, KeychainFilter, KeychainScope,
    KeychainStore, NewCredential, NewKeychainEntry, NewResult, NewVariable, Objects, Plugins,
    ResultStore, ResultSummary, SealedText, VariableKind, VariableStore, collect_garbage,
};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;
use serde_json::json;

async fn open(database: &TestDatabase) -> Arc<PostgresStore> {
    let options = Options::new(&database.url()).expect("a URL");
    Arc::new(PostgresStore::open(options).await.expect("a store"))
}

fn variable(name: &str, value: serde_json::Value) -> NewVariable {
    NewVariable {
        name: name.into(),
        kind: VariableKind::UserDefined,
        value,
        source_step: None,
        scope: None,
        expires_at: None,
    }
}

fn entry(cache_key: &str) -> NewKeychainEntry {
    NewKeychainEntry {
        cache_key: cache_key.into(),
        name: "api".into(),
        catalog: CatalogId::new(7),
        credential_kind: "secret".into(),
        cache: CacheKind::Secret,
        scope: KeychainScope::Global,
        execution: None,
        parent: None,
        sealed: SealedText::new("{}"),
        schema: None,
        expires_at: None,
        auto_renew: false,
        renew_config: None,
    }
}

fn result(id: i64, data: serde_json::Value) -> NewResult {
    let summary = ResultSummary {
        id: ResultId::new(id),
        execution: ExecutionId::new(1),
        name: "r".into(),
        scope: "execution".into(),
        source_step: None,
        bytes: 1,
        sha256: "x".into(),
        media_type: "application/json".into(),
        expires_at: None,
    };
    NewResult { summary, data }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_use_of_two_stores_is_counted() {
    let database = crate::migrated_database();
    let (one, other) = (open(&database).await, open(&database).await);
    let (tenant, execution) = (Tenant::default(), ExecutionId::new(1));
    one.put_keychain_entry(&tenant, entry("k")).await.expect("an entry");
    one.put_variables(&tenant, execution, vec![variable("v", json!(1))]).await.expect("a variable");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = if number % 2 == 0 { one.clone() } else { other.clone() };
        let tenant = tenant.clone();
        tasks.spawn(async move {
            for _ in 0..10 {
                store.use_keychain_entry(&tenant, "k").await.expect("a read").expect("an entry");
                store.read_variable(&tenant, execution, "v").await.expect("a read").expect("it");
            }
        });
    }
    tasks.join_all().await;
    let kept = one.keychain_entry(&tenant, "k").await.expect("a read").expect("an entry");
    assert_eq!(kept.access_count, 80);
    assert_eq!(one.variables(&tenant, execution).await.expect("a list")[0].access_count, 80);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_put_the_same_variables_in_any_order_all_succeed() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let execution = ExecutionId::new(1);
    let names: Vec<String> = (0..40).map(|number| format!("v{number}")).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..8 {
        let (store, mut names) = (store.clone(), names.clone());
        names.rotate_left(caller * 5);
        tasks.spawn(async move {
            let new = names.iter().map(|name| variable(name, json!(caller))).collect();
            store.put_variables(&Tenant::default(), execution, new).await.expect("variables");
        });
    }
    tasks.join_all().await;
    let kept = store.variables(&Tenant::default(), execution).await.expect("a list");
    assert_eq!(kept.len(), 40);
    assert!(kept.iter().all(|one| one.kept.value == kept[0].kept.value), "one caller's, whole");
}

#[tokio::test]
async fn a_character_that_jsonb_refuses_is_kept() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let (tenant, execution) = (Tenant::default(), ExecutionId::new(1));
    let value = json!({"text": "a\0b"});
    store
        .put_variables(&tenant, execution, vec![variable("v", value.clone())])
        .await
        .expect("a variable");
    assert_eq!(store.variables(&tenant, execution).await.expect("a list")[0].kept.value, value);
    assert!(store.put_result(&tenant, result(1, value.clone())).await.expect("an answer"));
    let found = store.result_data(&tenant, execution, "r", ResultId::new(1)).await;
    assert_eq!(found.expect("a read"), Some(value));
}

#[tokio::test]
async fn a_time_without_end_is_no_error() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let tenant = Tenant::default();
    for (key, micros, is_given) in [("late", i64::MAX, true), ("early", i64::MIN, false)] {
        let expires_at = Some(Timestamp::from_micros(micros));
        let new = NewKeychainEntry { expires_at, ..entry(key) };
        store.put_keychain_entry(&tenant, new).await.expect("an entry");
        let given = store.use_keychain_entry(&tenant, key).await.expect("a read");
        assert_eq!(given.is_some(), is_given, "{key}");
    }
    assert_eq!(store.purge_keychain(9).await.expect("a count"), 1);
    let blob = store.put_blob(vec![1, 2, 3], "text/plain").await.expect("content");
    let report = collect_garbage(&*store, &*store, Duration::MAX, false).await.expect("a report");
    assert_eq!((report.seen, report.young), (1, 1));
    assert_eq!(store.blob(&blob).await.expect("content"), [1, 2, 3]);
}

#[tokio::test]
async fn damaged_content_is_noticed_and_made_whole_by_the_next_put() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let bytes = vec![7; 100_000];
    let blob = store.put_blob(bytes.clone(), "text/plain").await.expect("content");
    database.psql("update noetl.blob set data = set_byte(data, 50000, 8)");
    assert!(store.blob(&blob).await.is_err());
    store.put_blob(bytes.clone(), "text/plain").await.expect("content");
    assert_eq!(store.blob(&blob).await.expect("content"), bytes);
    assert_eq!(blob, BlobRef::from_bytes(&bytes, "text/plain"));
}

#[tokio::test]
async fn rows_that_make_no_sense_are_refused() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let pool = sqlx::postgres::PgPool::connect(&database.url()).await.expect("a connection");
    for (constraint, sql) in [
        (
            "keychain_cache_is_known",
            "insert into noetl.keychain (cache_key, keychain_name, credential_type, cache_type, \
             scope_type, data_encrypted) values ('a', 'b', 'c', 'd', 'local', 'e')",
        ),
        (
            "keychain_scope_is_known",
            "insert into noetl.keychain (cache_key, keychain_name, credential_type, cache_type, \
             scope_type, data_encrypted) values ('a', 'b', 'c', 'token', 'd', 'e')",
        ),
        (
            "transient_type_is_known",
            "insert into noetl.transient (execution_id, var_name, var_type, body) \
             values (1, 'a', 'b', '1')",
        ),
        (
            "transient_has_content",
            "insert into noetl.transient (execution_id, var_name, var_type) \
             values (1, 'a', 'computed')",
        ),
        (
            "result_store_has_content",
            "insert into noetl.result_store (result_id, execution_id, name) values (1, 1, 'a')",
        ),
        ("blob_digest_is_sha256", "insert into noetl.blob values ('\\x00', 0, '', now(), '')"),
        ("blob_ref_digest_is_sha256", "insert into noetl.blob_ref values (1, '\\x00', 'a')"),
    ] {
        let refused = sqlx::query(sql).execute(&pool).await.expect_err(sql);
        let found = refused.as_database_error().and_then(|error| error.constraint());
        assert_eq!(found, Some(constraint), "{sql}: {refused}");
    }
    drop(store);
}

/// The tables that other programs may have made, with what they leave in them.
const MADE_BY_OTHERS: &str = r#"
create schema noetl;
create table noetl.credential (
    id bigint primary key, name text unique not null, type text not null,
    data_encrypted text not null, schema jsonb, meta jsonb, tags text[], description text,
    created_at timestamp not null default now(), updated_at timestamp not null default now()
);
insert into noetl.credential (id, name, type, data_encrypted) values (1, 'db', 'postgres', '{}');
create table noetl.keychain (
    cache_key text primary key, keychain_name text not null, catalog_id bigint not null,
    credential_type text not null, cache_type text not null, scope_type text not null,
    execution_id bigint, parent_execution_id bigint, data_encrypted text not null, schema jsonb,
    expires_at timestamptz not null, created_at timestamptz not null default now(),
    accessed_at timestamptz, access_count integer default 0, auto_renew boolean default false,
    renew_config jsonb
);
insert into noetl.keychain (cache_key, keychain_name, catalog_id, credential_type, cache_type,
    scope_type, data_encrypted, expires_at)
values ('k', 'api', 7, 'secret', 'secret', 'global', '{}', now() + interval '1 day');
create table noetl.secret_audit (
    audit_id bigint primary key, occurred_at timestamptz not null default now(), credential text,
    operation text, outcome text, worker_id text, execution_id bigint, parent_execution_id bigint,
    server_region text, broker_region text, kek_version text, notes text
);
insert into noetl.secret_audit (audit_id) values (1);
create table noetl.transient (
    execution_id bigint not null, var_name text not null, var_type text not null,
    var_value jsonb not null, source_step text, created_at timestamptz default now(),
    accessed_at timestamptz default now(), access_count integer default 0, expires_at timestamptz,
    scope text, primary key (execution_id, var_name)
);
insert into noetl.transient (execution_id, var_name, var_type, var_value)
values (1, 'v', 'computed', '{"a": 1}');
create table noetl.result_store (
    result_id bigint primary key, execution_id bigint not null, name text not null, scope text,
    source_step text, data jsonb not null, bytes bigint, sha256 text,
    media_type text default 'application/json', created_at timestamptz not null default now(),
    expires_at timestamptz
);
insert into noetl.result_store (result_id, execution_id, name, data) values (9, 1, 'r', '[1]');
create table noetl.plugin_module (
    path text, version integer, digest text, media_type text, bytes bytea not null,
    created_at timestamptz not null default now(), primary key (path, version)
);
insert into noetl.plugin_module values ('p', 1, 'sha256:abc', null, '\x0102');
create table noetl.object_store (
    object_key text primary key, digest text, media_type text, bytes bytea not null,
    created_at timestamptz not null default now()
);
insert into noetl.object_store values ('o', 'sha256:abc', null, '\x0102');
"#;

#[tokio::test]
async fn adopted_tables_gain_missing_columns() {
    let database = TestDatabase::new();
    database.psql(MADE_BY_OTHERS);
    let store = open(&database).await;
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    let execution = ExecutionId::new(1);

    let found = store.credentials(&mine, &CredentialFilter::default()).await.expect("a list");
    assert!(found[0].kept.tags.is_empty());
    let new = NewCredential { id: CredentialId::new(2), ..found[0].kept.clone() };
    let same = store.put_credential(&mine, new.clone()).await.expect("a credential");
    assert_eq!(same.kept.id.get(), 1);
    store.put_credential(&theirs, new).await.expect("one name, two tenants");

    assert!(store.use_keychain_entry(&mine, "k").await.expect("a read").is_some());
    store.put_keychain_entry(&theirs, entry("k")).await.expect("one key, two tenants, no end");
    let listed = store.keychain_entries(&mine, &KeychainFilter::default()).await.expect("a list");
    assert_eq!((listed.len(), listed[0].access_count), (1, 1));

    let filter = noetl_store::AuditFilter { limit: 9, ..Default::default() };
    let uses = noetl_store::SecretAuditStore::secret_uses(&*store, &mine, &filter).await;
    assert_eq!(uses.expect("a list").len(), 1);

    let found = store.read_variable(&mine, execution, "v").await.expect("a read");
    assert_eq!(found.expect("a variable").kept.value, json!({"a": 1}));
    let new = vec![variable("v", json!("\0"))];
    store.put_variables(&mine, execution, new.clone()).await.expect("a variable");
    store.put_variables(&theirs, execution, new).await.expect("a variable");
    let found = store.read_variable(&mine, execution, "v").await.expect("a read");
    assert_eq!(found.expect("a variable").kept.value, json!("\0"));

    let found = store.result_data(&mine, execution, "r", ResultId::new(9)).await;
    assert_eq!(found.expect("a read"), Some(json!([1])));
    assert!(!store.put_result(&mine, result(9, json!(2))).await.expect("an answer"));
    assert!(store.put_result(&mine, result(10, json!("\0"))).await.expect("an answer"));
    let listed = store.results(&mine, execution, ResultId::new(0), 9).await.expect("a list");
    assert_eq!(listed.len(), 2);

    let digest = noetl_store::Digest::of_bytes(&[1, 2]);
    let listed = store.objects("", None, 9).await.expect("a list");
    assert_eq!((listed[0].digest, listed[0].size), (digest, 2));
    let listed = store.plugins("", None, 9).await.expect("a list");
    assert_eq!((listed[0].digest, listed[0].size), (digest, 2));
    store.put_object("o", "text/plain", vec![3]).await.expect("an object");
    store.put_plugin("p", 1, "text/plain", vec![3]).await.expect("a module");
}
