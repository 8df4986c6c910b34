//! Helpers for tests of published clients: an app on SQLite, and fields with the types that clients
//! expect.

use std::sync::Arc;

use noetl_model::{ExecutionId, Tenant, Timestamp};
use noetl_server::{Auth, CorsOrigins, InternalToken, Options};
use noetl_store_sqlite::SqliteStore;
use noetl_test_app::{TestApp, TestAppBuilder};
use serde_json::{Value, json};

use crate::api::{TOKEN, post};
use crate::stores::key;

/// Type that a client expects of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum As {
    /// Text that is not empty.
    Text,
    /// An id as text.
    TextId,
    /// An id as a number.
    NumberId,
    /// A whole number of at least 0.
    Count,
    /// Any number.
    Number,
    Bool,
    /// Text that is a time.
    Time,
    List,
    Map,
    /// There, and nothing.
    Null,
    /// There, whatever it is.
    Anything,
}

impl As {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::TextId => value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
            Self::NumberId => value.is_i64(),
            Self::Count => value.is_u64(),
            Self::Number => value.is_number(),
            Self::Bool => value.is_boolean(),
            Self::Time => value.as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok()),
            Self::List => value.is_array(),
            Self::Map => value.is_object(),
            Self::Null => value.is_null(),
            Self::Anything => true,
        }
    }
}

/// Reads fields as a client does: each is there, and is what the client takes it for. A name is a
/// path in the body, with dots.
pub(crate) fn reads(body: &Value, fields: &[(&str, As)]) {
    for (name, kind) in fields {
        let pointer = format!("/{}", name.replace('.', "/"));
        let value = body.pointer(&pointer).unwrap_or_else(|| panic!("no {name} in {body:#}"));
        assert!(kind.takes(value), "{name} is {value}, not {kind:?}, in {body:#}");
    }
}

fn builder() -> TestAppBuilder {
    let store = SqliteStore::open(noetl_store_sqlite::Options::memory()).expect("a store");
    TestApp::builder().over(Arc::new(store)).encryption_key(key())
}

/// Settings of an operator who lists the published web UI in `NOETL_CORS_ORIGINS`.
fn options() -> Options {
    let cors_origins = CorsOrigins::Listed(vec!["http://localhost:3001".to_owned()]);
    Options { cors_origins, ..Options::default() }
}

/// Starts an app without authentication; `slots` of its own worker.
pub(crate) async fn open_app(slots: usize) -> TestApp {
    let internal_token = InternalToken::read_by(|| Some(TOKEN.to_owned()));
    builder().slots(slots).options(Options { internal_token, ..options() }).start().await
}

/// An app that knows callers by their tokens.
pub(crate) async fn guarded_app() -> TestApp {
    builder().options(Options { auth: Auth::Token, ..options() }).start().await
}

/// Starts a playbook in the words of the published clients and waits for its end.
pub(crate) async fn ended(app: &TestApp, path: &str) -> String {
    let id = begun(app, path).await;
    let number = ExecutionId::new(id.parse().expect("digits"));
    let row = app.control.journal.executions.wait_until_finished(&Tenant::default(), number).await;
    assert!(row.expect("a store that answers").is_some_and(|row| row.status.is_final()));
    id
}

/// Starts a playbook in the words of the published clients.
pub(crate) async fn begun(app: &TestApp, path: &str) -> String {
    let body = json!({"path": path, "workload": {}, "resource_kind": "playbook"});
    let (status, body) = post(app, "/api/execute", body.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    reads(&body, &[("execution_id", As::TextId), ("status", As::Text)]);
    body["execution_id"].as_str().expect("text").to_owned()
}
