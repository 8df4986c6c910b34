//! `verify_audit`, which `noetl audit verify` runs, finds changes made without the store.

use noetl_model::{AuditId, Tenant, Timestamp};
use noetl_secrets::verify_audit;
use noetl_store::{SecretAuditStore, SecretUse};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_app::migrated_database;

fn used(id: i64) -> SecretUse {
    SecretUse {
        id: AuditId::new(id),
        at: Timestamp::from_millis(1_767_225_600_000 + id),
        credential: format!("c{id}"),
        operation: "resolve".to_owned(),
        outcome: "ok".to_owned(),
        worker: Some("w".to_owned()),
        execution: None,
        parent: None,
        server_region: None,
        broker_region: None,
        key_version: Some("v1".to_owned()),
        notes: None,
    }
}

/// Records five uses, runs this SQL, and returns the problems found with and without the earlier head.
async fn problems_after(sql: &str) -> [Vec<String>; 2] {
    let database = migrated_database();
    let options = Options::new(&database.url()).expect("a URL");
    let store = PostgresStore::open(options).await.expect("a store");
    for id in 1..=5 {
        store.audit_secret(&Tenant::default(), used(id)).await.expect("recorded");
    }
    let since = Timestamp::from_micros(i64::MIN);
    let head = verify_audit(&store, None, since).await.expect("a look").head;
    if !sql.is_empty() {
        database.psql(sql);
    }
    let mut reported = Vec::new();
    for head in [Some(head), None] {
        reported.push(verify_audit(&store, head, since).await.expect("a look").problems);
    }
    let reported: [Vec<_>; 2] = reported.try_into().expect("two looks");
    reported.map(|problems| problems.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn an_unchanged_audit_has_no_problems() {
    assert_eq!(problems_after("").await, [[""; 0]; 2]);
}

#[tokio::test]
async fn every_change_to_an_audit_record_is_detected() {
    for sql in [
        "update noetl.secret_audit set credential = 'other' where audit_id = 3",
        "update noetl.secret_audit set outcome = 'denied' where audit_id = 3",
        "update noetl.secret_audit set worker_id = null where audit_id = 3",
        "update noetl.secret_audit set tenant_id = 'other' where audit_id = 3",
        "update noetl.secret_audit set occurred_at = occurred_at + interval '1 second' where audit_id = 3",
        "delete from noetl.secret_audit where audit_id = 3",
        "delete from noetl.secret_audit where audit_id = 5",
        // Two uses swapped.
        "update noetl.secret_audit set chain_seq = -1 where chain_seq = 2; \
         update noetl.secret_audit set chain_seq = 2 where chain_seq = 3; \
         update noetl.secret_audit set chain_seq = 3 where chain_seq = -1",
        "delete from noetl.secret_audit where audit_id = 3; delete from noetl.audit_link where seq = 3",
        "delete from noetl.secret_audit where audit_id = 5; delete from noetl.audit_link where seq = 5",
        "update noetl.audit_link set content_hash = decode(repeat('00', 32), 'hex') where seq = 3",
        "update noetl.audit_link set link_hash = decode(repeat('00', 32), 'hex') where seq = 5",
        "update noetl.audit_head set seq = 4, link_hash = (select link_hash from noetl.audit_link where seq = 4)",
    ] {
        let [with_head, without] = problems_after(sql).await;
        assert!(!with_head.is_empty(), "{sql}");
        assert!(!without.is_empty(), "{sql}");
    }
}

#[tokio::test]
async fn a_saved_head_detects_a_truncated_audit() {
    let sql = "delete from noetl.secret_audit where chain_seq = 5; delete from noetl.audit_link where seq = 5; \
               update noetl.audit_head set seq = 4, link_hash = (select link_hash from noetl.audit_link where seq = 4)";
    let [with_head, without] = problems_after(sql).await;
    assert!(!with_head.is_empty(), "the head tells");
    assert_eq!(without, [""; 0], "and nothing else can");
}
