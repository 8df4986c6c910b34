use noetl_model::FailureKind;
use serde_json::json;

use crate::harness::{registry, run};

#[test]
fn the_registry_lists_its_kinds() {
    assert_eq!(
        registry().kinds(),
        [
            "artifact", "duckdb", "http", "nats", "noop", "postgres", "python", "secrets", "shell",
            "sqlite", "transfer",
        ]
    );
}

#[tokio::test]
async fn a_kind_that_is_not_there_is_named() {
    let failure = run("pyhton", json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ToolMissing);
    assert_eq!(failure.message, "this worker has no tool of kind 'pyhton'");
}

#[cfg(not(feature = "duckdb"))]
#[tokio::test]
async fn a_program_without_duckdb_says_how_to_get_one() {
    let asked = [
        ("duckdb", json!({"query": "select 1"})),
        (
            "transfer",
            json!({
                "source": {"kind": "duckdb", "query": "select 1"},
                "target": {"kind": "sqlite", "db_path": "never.db", "table": "t"},
            }),
        ),
    ];
    for (kind, config) in asked {
        let failure = run(kind, config).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::ToolMissing);
        assert!(failure.message.contains("--features duckdb"), "{failure}");
    }
}

#[cfg(feature = "duckdb")]
#[tokio::test]
async fn duckdb_answers_in_the_same_shape() {
    let text = "create table t (a int, b decimal(8, 2)); insert into t values (1, 2.50), (2, null); \
                insert into t values (3, 1) returning a; \
                select a, b, [a] as c, {'x': a} as d, date '2024-02-29' as e from t order by a";
    let answer = run("duckdb", json!({"query": text})).await.unwrap();
    assert_eq!(answer["command_1"], json!({"affected_rows": 2}));
    assert_eq!(answer["command_2"]["rows"], json!([{"a": 3}]));
    assert_eq!(answer["columns"], json!(["a", "b", "c", "d", "e"]));
    assert_eq!(
        answer["rows"][0],
        json!({"a": 1, "b": 2.5, "c": [1], "d": {"x": 1}, "e": "2024-02-29"})
    );
    let named = json!({"query": "select :a::int + $b as v", "params": {"a": 1}});
    assert_eq!(run("duckdb", named).await.unwrap_err().kind, FailureKind::Config);
    let named = json!({"query": "select :a::int + 1 as v", "params": {"a": 1}});
    assert_eq!(run("duckdb", named).await.unwrap()["rows"], json!([{"v": 2}]));
    let endless = json!({
        "query": "select count(*) from range(1000000000000) a, range(1000000) b",
        "timeout": "200ms",
    });
    assert_eq!(run("duckdb", endless).await.unwrap_err().kind, FailureKind::Timeout);
}
