//! Sessions in the tables of the published login playbooks.

use noetl_model::{FailureKind, Timestamp, Value};
use noetl_test_services::postgres::TestDatabase;
use noetl_tools::{GatewaySession, GatewaySessions, ToolCredential};
use serde_json::json;

use crate::harness::map;

/// Tables with the columns that the lookup reads, and sessions of three users.
const TABLES: &str = "create schema auth;
create table auth.users (user_id serial primary key, email varchar(255) not null, display_name varchar(255), is_active boolean not null default true);
create table auth.sessions (session_token text primary key, user_id int not null, expires_at timestamptz, is_active boolean not null default true);
create table auth.roles (role_id serial primary key, role_name varchar(100) not null);
create table auth.user_roles (user_id int not null, role_id int not null, expires_at timestamptz);
insert into auth.users (email, display_name, is_active) values ('ada@example.com', 'Ada', true), ('bob@example.com', null, true), ('eve@example.com', 'Eve', false);
insert into auth.roles (role_name) values ('user'), ('admin'), ('former');
insert into auth.user_roles values (1, 1, null), (1, 2, now() + interval '1 day'), (1, 3, now() - interval '1 day');
insert into auth.sessions values ('ada', 1, '2100-01-02T03:04:05Z', true), ('bob', 2, now() + interval '1 day', true),
  ('expired', 1, now() - interval '1 second', true), ('ended', 1, now() + interval '1 day', false),
  ('eve', 3, now() + interval '1 day', true), ('endless', 1, null, true);
";

fn credential(kind: &str, data: Value) -> ToolCredential {
    ToolCredential { name: "pg_auth".to_owned(), kind: kind.to_owned(), data: map(data) }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_active_sessions_of_active_users_are_valid() {
    let database = TestDatabase::new();
    database.psql(TABLES);
    let credential = credential("postgres", json!({"connection_string": database.url()}));
    let sessions = GatewaySessions::default();
    let ada = sessions.find(&credential, "ada").await.expect("a lookup");
    let expected = GatewaySession {
        user_id: 1,
        email: "ada@example.com".to_owned(),
        display_name: "Ada".to_owned(),
        roles: vec!["admin".to_owned(), "user".to_owned()],
        expires_at: "2100-01-02T03:04:05Z".parse::<Timestamp>().expect("a time"),
    };
    assert_eq!(ada, Some(expected));
    let bob = sessions.find(&credential, "bob").await.expect("a lookup").expect("a session");
    assert_eq!((bob.display_name.as_str(), bob.roles.len()), ("bob@example.com", 0));
    for invalid in ["expired", "ended", "eve", "endless", "nobody", "", "' or true --"] {
        let session = sessions.find(&credential, invalid).await.expect("a lookup");
        assert_eq!(session, None, "{invalid}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_lookup_is_not_an_invalid_session() {
    let sessions = GatewaySessions::default();
    let absent =
        json!({"db_host": "127.0.0.1", "db_port": 1, "db_user": "u", "db_password": "hunter2"});
    let failure =
        sessions.find(&credential("postgres", absent), "ada").await.expect_err("no server");
    assert_eq!(failure.kind, FailureKind::Connection);
    assert!(!failure.message.contains("hunter2"), "{}", failure.message);
    let failure =
        sessions.find(&credential("bearer", json!({})), "ada").await.expect_err("no database");
    assert_eq!(failure.kind, FailureKind::Config);
    let database = TestDatabase::new();
    let empty = credential("postgres", json!({"connection_string": database.url()}));
    let failure = sessions.find(&empty, "ada").await.expect_err("no tables");
    assert!(failure.message.contains("auth.sessions"), "{}", failure.message);
}
