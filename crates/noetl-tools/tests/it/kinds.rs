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
async fn a_missing_kind_is_named() {
    let failure = run("pyhton", json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ToolMissing);
    assert_eq!(failure.message, "this worker has no tool of kind 'pyhton'");
}

#[cfg(not(feature = "duckdb"))]
#[tokio::test]
async fn a_program_without_duckdb_explains_how_to_get_one() {
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
        assert!(failure.message.contains("--features duckdb-bundled"), "{failure}");
    }
}
