use serde_json::json;

use super::*;

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not a map"),
    }
}

fn check(tool: &str, own: Value, kind: &str, data: Value, expected: Result<Value, &str>) {
    let mut config = map(own);
    let credential = ToolCredential { name: "c".into(), kind: kind.into(), data: map(data) };
    let done = inject(tool, &mut config, &credential);
    let actual = match &done {
        Ok(()) => Ok(Value::Object(config)),
        Err(failure) => Err(failure.message.as_str()),
    };
    assert_eq!(actual, expected);
}

#[test]
fn a_credential_fills_missing_database_settings() {
    let stored = json!({
        "db_host": "h", "db_port": "5433", "db_user": "u", "db_password": "p", "db_name": "d",
    });
    check(
        "postgres",
        json!({"query": "q", "database": "mine", "user": null}),
        "postgres",
        stored.clone(),
        Ok(json!({
            "query": "q", "database": "mine", "user": "u", "host": "h", "port": "5433",
            "password": "p",
        })),
    );
    // An address of the step's own keeps its host; only what it may lack is offered.
    check(
        "postgres",
        json!({"connection": "postgres://elsewhere/x"}),
        "PostgreSQL",
        stored,
        Ok(json!({
            "connection": "postgres://elsewhere/x", "default_user": "u", "default_password": "p",
        })),
    );
    check(
        "postgres",
        json!({}),
        "postgres",
        json!({"dsn": "postgres://h/d"}),
        Ok(json!({"connection": "postgres://h/d"})),
    );
    check(
        "sqlite",
        json!({"database": "mine.db"}),
        "sqlite",
        json!({"path": "theirs.db"}),
        Ok(json!({"database": "mine.db"})),
    );
    check(
        "nats",
        json!({}),
        "nats",
        json!({"host": "h", "user": "u", "password": "p"}),
        Ok(json!({"url": "nats://h:4222", "user": "u", "password": "p"})),
    );
}

#[test]
fn a_credential_becomes_a_header_or_a_query_parameter() {
    check(
        "http",
        json!({"url": "u"}),
        "bearer",
        json!({"token": "t"}),
        Ok(json!({"url": "u", "headers": {"Authorization": "Bearer t"}})),
    );
    check(
        "http",
        json!({"headers": {"authorization": "mine", "a": 1}}),
        "bearer",
        json!({"token": "t"}),
        Ok(json!({"headers": {"authorization": "mine", "a": 1}})),
    );
    check(
        "http",
        json!({}),
        "basic",
        json!({"username": "u", "password": "p"}),
        Ok(json!({"headers": {"Authorization": "Basic dTpw"}})),
    );
    check(
        "http",
        json!({}),
        "api-key",
        json!({"api_key": "k"}),
        Ok(json!({"headers": {"X-API-Key": "k"}})),
    );
    check(
        "http",
        json!({"params": {"page": 1}}),
        "api_key",
        json!({"value": "k", "in": "query", "param": "appid"}),
        Ok(json!({"params": {"page": 1, "appid": "k"}})),
    );
}

#[test]
fn errors_name_fields_of_the_wrong_type() {
    check(
        "postgres",
        json!({}),
        "bearer",
        json!({"token": "t"}),
        Err("credential 'c' is of type 'bearer', which the postgres tool cannot use; it takes \
             'postgres'"),
    );
    check(
        "http",
        json!({}),
        "bearer",
        json!({"token": ""}),
        Err("credential 'c' of type 'bearer' has no `token`"),
    );
    check(
        "http",
        json!({}),
        "api_key",
        json!({"value": "k", "in": "body"}),
        Err("credential 'c': `in` must be 'header' or 'query', not 'body'"),
    );
    check(
        "python",
        json!({}),
        "bearer",
        json!({}),
        Err("the python tool takes no `auth`; hand it the one field it needs through `input`, \
             from `keychain` or a secrets step"),
    );
}

#[test]
fn a_credential_prints_no_secret() {
    let data = map(json!({"password": "hunter2"}));
    let credential = ToolCredential { name: "c".into(), kind: "postgres".into(), data };
    let debug = format!("{credential:?}");
    assert!(debug.contains("password") && !debug.contains("hunter2"), "{debug}");
}
