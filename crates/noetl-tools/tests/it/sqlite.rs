use std::time::Duration;

use noetl_model::{Failure, FailureKind, Value};
use noetl_tools::{Options, OutputLimits, ToolRegistry};
use serde_json::json;

use crate::harness::{call, detail, registry, run};

async fn sqlite(config: Value) -> Result<Value, Failure> {
    run("sqlite", config).await
}

#[tokio::test]
async fn a_database_in_memory_is_fresh_each_time() {
    let text = "create table t (a integer, b text, c blob, d real); \
                insert into t values (1, 'x', x'00ff', 1.5), (null, '00501', null, 2); \
                select a, b, c, d, a as a from t";
    for _ in 0..2 {
        let answer = sqlite(json!({"query": text})).await.unwrap();
        assert_eq!(answer["columns"], json!(["a", "b", "c", "d", "a_2"]));
        assert_eq!(
            answer["rows"],
            json!([
                {"a": 1, "b": "x", "c": "AP8=", "d": 1.5, "a_2": 1},
                {"a": null, "b": "00501", "c": null, "d": 2.0, "a_2": null},
            ])
        );
        assert_eq!(answer["command_0"], json!({"affected_rows": 0}));
        assert_eq!(answer["command_1"], json!({"affected_rows": 2}));
        assert_eq!((&answer["row_count"], &answer["affected_rows"]), (&json!(2), &json!(0)));
    }
}

#[tokio::test]
async fn a_file_persists_and_parameters_are_values() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db").display().to_string();
    let made = json!({"db_path": path, "commands": [
        "create table t (a, b unique)",
        {"sql": "insert into t values (?, ?)", "params": ["'); drop table t; --", true]},
        {"sql": "insert into t values (:a, @b)", "params": {"a": [1], "b": 18_446_744_073_709_551_615_u64}},
    ]});
    sqlite(made).await.unwrap();
    let answer = sqlite(json!({"database": path, "query": "select * from t"})).await.unwrap();
    assert_eq!(
        answer["rows"],
        json!([{"a": "'); drop table t; --", "b": 1}, {"a": "[1]", "b": "18446744073709551615"}])
    );
    let config = json!({"db_path": path, "query": "insert into t values (3, 1) returning a"});
    let failure = sqlite(config).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::DbConstraint);
    assert_eq!(detail(&failure, "sqlite")["code"], 2067);
    let config = json!({"db_path": path, "query": "insert into t values (3, 3) returning a, b"});
    let answer = sqlite(config).await.unwrap();
    assert_eq!(
        (&answer["rows"], &answer["affected_rows"]),
        (&json!([{"a": 3, "b": 3}]), &json!(1))
    );
    let read_only = json!({"db_path": path, "read_only": true, "query": "delete from t"});
    assert_eq!(sqlite(read_only).await.unwrap_err().kind, FailureKind::Auth);
}

#[tokio::test]
async fn several_statements_take_effect_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db").display().to_string();
    let run = async |query: &str| sqlite(json!({"db_path": path, "query": query})).await;
    run("create table t (a unique)").await.unwrap();
    run("insert into t values (1); insert into t values (1)").await.unwrap_err();
    assert_eq!(run("select count(*) as n from t").await.unwrap()["rows"][0]["n"], 0);
    let trigger = "create trigger k after insert on t begin insert into log values (new.a); end; \
                   create table log (a); insert into t values (5); select a from log";
    assert_eq!(run(trigger).await.unwrap()["rows"], json!([{"a": 5}]));
    let failure = run("begin; insert into t values (2)").await.unwrap_err();
    assert!(failure.message.contains("do not end"), "{failure}");
    run("begin; insert into t values (2); commit").await.unwrap();
    assert_eq!(run("select count(*) as n from t").await.unwrap()["rows"][0]["n"], 2);
}

#[tokio::test]
async fn errors_name_the_invalid_setting() {
    for (config, kind, message) in [
        (json!({}), FailureKind::Config, "a sqlite step needs its SQL under `query`"),
        (
            json!({"query": "selec 1"}),
            FailureKind::ClientError,
            "statement 1: the database says: near \"selec\": syntax error",
        ),
        (
            json!({"query": "select 1; select * from nowhere"}),
            FailureKind::ClientError,
            "statement 2: the database says: no such table: nowhere",
        ),
        (
            json!({"query": "select ?, ?", "params": [1]}),
            FailureKind::Config,
            "statement 1: it takes 2 parameters, and `params` has 1",
        ),
        (
            json!({"query": "select :a"}),
            FailureKind::Config,
            "statement 1: it asks for `:a`; give `params: {a: …}`",
        ),
        (
            json!({"query": "select ?", "params": {"a": 1}}),
            FailureKind::Config,
            "statement 1: it takes 1 parameters by position; give `params` as a list",
        ),
        (
            json!({"query": "select 1", "params": 5}),
            FailureKind::Config,
            "`params` must be a list or a map, not a number",
        ),
        (
            json!({"query": "select 1", "db_path": "/nowhere/at/all.db"}),
            FailureKind::Config,
            "/nowhere/at/all.db cannot be opened",
        ),
    ] {
        let failure = sqlite(config).await.unwrap_err();
        assert!(failure.message.starts_with(message), "{failure}");
        assert_eq!(failure.kind, kind, "{failure}");
    }
}

/// A query that takes practically for ever.
const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n) \
                       select count(*) from n";

#[tokio::test]
async fn timeout_and_cancel_stop_the_statement() {
    let failure = sqlite(json!({"query": ENDLESS, "timeout": "100ms"})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
    let step = call(json!({"query": ENDLESS}));
    let cancel = step.cancel.clone();
    let running = tokio::spawn(async move { registry().run("sqlite", step).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().unwrap_err().kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn a_statement_waits_for_a_locked_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db").display().to_string();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("create table t (a); begin immediate; insert into t values (1)").unwrap();
    let writing = {
        let config = json!({"db_path": path, "query": "insert into t values (2) returning a"});
        tokio::spawn(async move { sqlite(config).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!writing.is_finished());
    other.execute_batch("commit").unwrap();
    assert_eq!(writing.await.unwrap().unwrap()["rows"], json!([{"a": 2}]));
}

#[tokio::test]
async fn results_have_limits() {
    let limits = OutputLimits { sql_rows: 10, ..OutputLimits::default() };
    let tools = ToolRegistry::standard(Options { limits, ..Options::default() });
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n";
    let failure = tools.run("sqlite", call(json!({"query": endless}))).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutputLimit);
    assert!(failure.message.contains("`sql_rows`"), "{failure}");
}
