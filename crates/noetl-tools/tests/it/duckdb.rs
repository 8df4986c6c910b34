use std::time::Duration;

use noetl_model::{Failure, FailureKind, Value};
use serde_json::json;

use crate::harness::{call, registry, run};

async fn duckdb(config: Value) -> Result<Value, Failure> {
    run("duckdb", config).await
}

#[tokio::test]
async fn duckdb_results_have_the_same_shape_as_those_of_other_databases() {
    let text = "create table t (a int, b decimal(8, 2)); insert into t values (1, 2.50), (2, null); \
                insert into t values (3, 1) returning a; \
                select a, b, [a] as c, {'x': a} as d, date '2024-02-29' as e from t order by a";
    let answer = duckdb(json!({"query": text})).await.unwrap();
    assert_eq!(answer["command_1"], json!({"affected_rows": 2}));
    assert_eq!(answer["command_2"]["rows"], json!([{"a": 3}]));
    assert_eq!(answer["columns"], json!(["a", "b", "c", "d", "e"]));
    assert_eq!(
        answer["rows"][0],
        json!({"a": 1, "b": 2.5, "c": [1], "d": {"x": 1}, "e": "2024-02-29"})
    );
}

#[tokio::test]
async fn duckdb_returns_every_kind_of_value() {
    let text = "select true as a, 255::utinyint as b, -1::bigint as c, 1.5::float as d, 0.1::double as e, \
                170141183460469231731687303715884105727::hugeint as f, 'x' as g, '\\x00\\xff'::blob as h, \
                timestamp '2024-02-29 12:34:56.789' as i, time '12:34:56' as j, null as k, \
                map {'k': 1} as l, [[1], []] as m, uuid '4ac7a9e9-607c-4c8a-84f3-843f0191e3fd' as n, \
                12345678901234567890.12::decimal(38, 2) as o";
    let answer = duckdb(json!({"query": text})).await.unwrap();
    let expected = json!({
        "a": true, "b": 255, "c": -1, "d": 1.5, "e": 0.1,
        "f": "170141183460469231731687303715884105727", "g": "x", "h": "AP8=",
        "i": "2024-02-29T12:34:56.789000", "j": "12:34:56", "k": null,
        "l": {"k": 1}, "m": [[1], []], "n": "4ac7a9e9-607c-4c8a-84f3-843f0191e3fd",
        "o": "12345678901234567890.12",
    });
    assert_eq!(answer["rows"], json!([expected]));
}

#[tokio::test]
async fn duckdb_binds_parameters_as_values() {
    let list = json!({"query": "select ? as v, ?::int + 1 as w", "params": ["'; drop", 1]});
    assert_eq!(duckdb(list).await.unwrap()["rows"], json!([{"v": "'; drop", "w": 2}]));
    let named = json!({"query": "select :a::int + 1 as v", "params": {"a": 1}});
    assert_eq!(duckdb(named).await.unwrap()["rows"], json!([{"v": 2}]));
    for params in [json!({"a": 1}), json!([])] {
        let missing = json!({"query": "select ?::int as v", "params": params});
        assert_eq!(duckdb(missing).await.unwrap_err().kind, FailureKind::Config);
    }
}

#[tokio::test]
async fn duckdb_persists_a_file_and_rolls_back_failed_statements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.duckdb").display().to_string();
    let ask = |query: &str| duckdb(json!({"db_path": path, "query": query}));
    ask("create table t (a int primary key); insert into t values (1)").await.unwrap();

    let twice = ask("insert into t values (2); insert into t values (1)").await.unwrap_err();
    assert_eq!(twice.kind, FailureKind::DbConstraint, "{twice}");
    assert!(twice.message.starts_with("statement 2: "), "{twice}");
    let wrong = ask("select b from t").await.unwrap_err();
    assert_eq!(wrong.kind, FailureKind::ClientError, "{wrong}");
    let left = ask("select a from t").await.unwrap();
    assert_eq!(left["rows"], json!([{"a": 1}]));

    let read_only =
        json!({"db_path": path, "read_only": true, "query": "insert into t values (3)"});
    assert_eq!(duckdb(read_only).await.unwrap_err().kind, FailureKind::ClientError);
    let absent = json!({"db_path": directory.path().join("no/a.duckdb"), "query": "select 1"});
    assert_eq!(duckdb(absent).await.unwrap_err().kind, FailureKind::Config);
}

#[tokio::test]
async fn duckdb_and_sqlite_transfer_rows_to_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let side = |kind: &str, more: Value| {
        let mut side = json!({"kind": kind, "db_path": directory.path().join(kind)});
        side.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        side
    };
    let table = "create table t (a integer primary key, b blob)";
    for kind in ["duckdb", "sqlite"] {
        run(kind, side(kind, json!({"query": table}))).await.unwrap();
    }
    let rows = json!({"query": "select i as a, '\\x00'::blob as b from range(3000) r(i)"});
    let target = json!({"table": "t", "mode": "upsert", "key": "a"});
    for (from, to, query) in
        [("duckdb", "sqlite", rows), ("sqlite", "duckdb", json!({"query": "select a, b from t"}))]
    {
        let config = json!({"source": side(from, query), "target": side(to, target.clone())});
        assert_eq!(run("transfer", config).await.unwrap()["rows_transferred"], 3000);
    }
    let count = json!({"query": "select count(*) as n, min(b) as b from t"});
    let answer = run("duckdb", side("duckdb", count)).await.unwrap();
    assert_eq!(answer["rows"], json!([{"n": 3000, "b": "AA=="}]));
}

#[tokio::test]
async fn duckdb_stops_on_timeout_and_cancel() {
    let endless = "select count(*) from range(1000000000000) a, range(1000000) b";
    let late = duckdb(json!({"query": endless, "timeout": "200ms"})).await.unwrap_err();
    assert_eq!(late.kind, FailureKind::Timeout);

    let call = call(json!({"query": endless}));
    let cancel = call.cancel.clone();
    let tools = registry();
    let (ended, ()) = tokio::join!(tools.run("duckdb", call), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    assert_eq!(ended.unwrap_err().kind, FailureKind::Cancelled);
}
