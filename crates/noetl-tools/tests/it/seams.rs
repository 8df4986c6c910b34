use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_test_services::postgres::TestDatabase;
use noetl_tools::{Artifacts, CredentialSource, ToolCall, ToolCredential};
use serde_json::json;

use crate::harness::{call, map, registry};

/// Values in memory, by numbers.
#[derive(Default)]
struct InMemoryArtifacts(Mutex<Vec<Value>>);

#[async_trait]
impl Artifacts for InMemoryArtifacts {
    async fn get(&self, reference: &str) -> Result<Value, Failure> {
        let place =
            reference.strip_prefix("shelf://").and_then(|place| place.parse::<usize>().ok());
        let value = place.and_then(|place| self.0.lock().unwrap().get(place).cloned());
        value.ok_or_else(|| Failure::new(FailureKind::NotFound, format!("no {reference}")))
    }

    async fn put(&self, value: Value) -> Result<Value, Failure> {
        let mut values = self.0.lock().unwrap();
        values.push(value);
        Ok(json!({"kind": "result_ref", "ref": format!("shelf://{}", values.len() - 1)}))
    }
}

/// In-memory credentials by name.
#[derive(Default)]
struct InMemoryCredentials(BTreeMap<&'static str, (&'static str, Map)>);

impl InMemoryCredentials {
    fn with(mut self, name: &'static str, kind: &'static str, data: Value) -> Self {
        self.0.insert(name, (kind, map(data)));
        self
    }
}

#[async_trait]
impl CredentialSource for InMemoryCredentials {
    async fn get(&self, alias: &str) -> Result<ToolCredential, Failure> {
        let (kind, data) = self.0.get(alias).ok_or_else(|| {
            Failure::new(FailureKind::NotFound, format!("there is no credential '{alias}'"))
        })?;
        Ok(ToolCredential { name: alias.to_owned(), kind: (*kind).to_owned(), data: data.clone() })
    }
}

fn with_credentials(config: Value, credentials: InMemoryCredentials) -> ToolCall {
    let mut call = call(config);
    call.credentials = Some(Arc::new(credentials));
    call
}

#[tokio::test]
async fn results_are_stored_and_read_by_reference() {
    let shelf: Arc<dyn Artifacts> = Arc::new(InMemoryArtifacts::default());
    let run = async |config: Value, input: Value| {
        let mut step = call(config);
        step.input = map(input);
        step.artifacts = Some(Arc::clone(&shelf));
        registry().run("artifact", step).await
    };
    let reference = run(json!({"action": "put"}), json!({"value": [1, 2]})).await.unwrap();
    assert_eq!(reference["ref"], "shelf://0");
    for input in [
        json!({"result_ref": "shelf://0"}),
        json!({"ref": reference}),
        json!({"result_ref": {"_ref": " shelf://0 "}}),
    ] {
        assert_eq!(run(json!({"action": "get"}), input).await, Ok(json!([1, 2])));
    }
    run(json!({"action": "put"}), json!({"a": 1})).await.unwrap();
    let whole = run(json!({"result_ref": "shelf://1"}), json!({})).await;
    assert_eq!(whole, Ok(json!({"a": 1})));

    for (config, input, message) in [
        (json!({"action": "get"}), json!({"ref": "shelf://9"}), "no shelf://9"),
        (
            json!({"action": "get"}),
            json!({}),
            "an artifact get needs `input.result_ref`, such as `{{ step._ref }}`",
        ),
        (json!({}), json!({"ref": 5}), "the reference must be a text, not a number"),
        (json!({"action": "put"}), json!({}), "an artifact put needs a `value`"),
        (json!({"action": "list"}), json!({}), "`action` must be 'get' or 'put', not 'list'"),
    ] {
        assert_eq!(run(config, input).await.unwrap_err().message, message);
    }
    let mut alone = call(json!({}));
    alone.input = map(json!({"ref": "shelf://0"}));
    let failure = registry().run("artifact", alone).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ToolMissing);
}

#[tokio::test]
async fn a_credential_is_described_without_its_secrets() {
    let credentials = || {
        InMemoryCredentials::default().with(
            "pg",
            "postgres",
            json!({"user": "u", "password": "hunter2"}),
        )
    };
    let run =
        async |config| registry().run("secrets", with_credentials(config, credentials())).await;
    let answer = run(json!({"credential": "pg"})).await.unwrap();
    assert_eq!(answer, json!({"name": "pg", "type": "postgres", "fields": ["user", "password"]}));
    let answer = run(json!({"name": "pg", "field": "password"})).await.unwrap();
    assert_eq!(answer["value"], "hunter2");
    let failure = run(json!({"credential": "pg", "field": "token"})).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::NotFound, "credential 'pg' has no field 'token'; it has user, password")
    );
    let failure = run(json!({"credential": "other"})).await.unwrap_err();
    assert_eq!(failure.message, "there is no credential 'other'");
    assert_eq!(run(json!({})).await.unwrap_err().kind, FailureKind::Config);
    let failure = registry().run("secrets", call(json!({"credential": "pg"}))).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ToolMissing);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_opens_a_database() {
    let database = TestDatabase::new();
    let credentials = || {
        InMemoryCredentials::default()
            .with("pg", "postgres", json!({"connection": database.url()}))
            .with("wrong", "bearer", json!({"token": "t"}))
    };
    let run = async |kind: &str, config| {
        registry().run(kind, with_credentials(config, credentials())).await
    };
    for auth in [
        json!("pg"),
        json!({"type": "postgres", "credential": "pg"}),
        json!({"type": "postgres", "key": "pg"}),
        json!({"main": {"type": "postgres", "credential": "pg"}}),
        json!({"main": "pg"}),
    ] {
        let answer = run("postgres", json!({"auth": auth, "query": "select 1 as a"})).await;
        assert_eq!(answer.unwrap()["rows"], json!([{"a": 1}]), "{auth}");
    }
    let answer = run("postgres", json!({"credential": "pg", "query": "select 1 as a"})).await;
    assert_eq!(answer.unwrap()["row_count"], 1);

    database.psql("create table t (a int)");
    let moved = json!({
        "source": {"kind": "postgres", "auth": "pg", "query": "select 5 as a"},
        "target": {"kind": "postgres", "auth": "pg", "table": "t"},
    });
    assert_eq!(run("transfer", moved).await.unwrap()["rows_transferred"], 1);
    assert_eq!(database.psql("select a from t"), "5");

    for (kind, config, message) in [
        (
            "postgres",
            json!({"auth": "wrong", "query": "select 1"}),
            "credential 'wrong' is of type 'bearer', which the postgres tool cannot use; it takes \
             'postgres'",
        ),
        ("postgres", json!({"auth": "absent", "query": "x"}), "there is no credential 'absent'"),
        (
            "postgres",
            json!({"auth": 5, "query": "x"}),
            "`auth` must name a stored credential or be a map with `type`, not a number",
        ),
        (
            "postgres",
            json!({"auth": {}, "query": "x"}),
            "`auth` must name a stored credential or be a map with `type`, not a map",
        ),
        (
            "transfer",
            json!({"source": {"kind": "postgres", "auth": "absent"}, "target": {}}),
            "`source`: there is no credential 'absent'",
        ),
        (
            "python",
            json!({"auth": "pg", "code": "result = 1"}),
            "the python tool takes no `auth`; hand it the one field it needs through `input`, from \
             `keychain` or a secrets step",
        ),
    ] {
        assert_eq!(run(kind, config).await.unwrap_err().message, message);
    }
    let alone = call(json!({"auth": "pg", "query": "select 1"}));
    let failure = registry().run("postgres", alone).await.unwrap_err();
    assert_eq!(
        failure.message,
        "`auth` names the stored credential 'pg', but this worker has no credentials"
    );
}
