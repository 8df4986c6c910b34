//! Statements of operators.

use noetl_model::Value;
use noetl_store::{Database, Sql, SqlError};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;
use serde_json::json;

async fn open(database: &TestDatabase) -> PostgresStore {
    let options = Options::new(&database.url()).expect("a URL");
    PostgresStore::open(options).await.expect("a store")
}

async fn run(store: &PostgresStore, text: &str, parameters: Vec<Value>) -> Result<Value, SqlError> {
    let sql = Sql { text: text.to_owned(), parameters, schema: None };
    Ok(json!(store.run_sql(&sql).await?))
}

#[tokio::test]
async fn every_column_type_is_returned_as_json() {
    let database = TestDatabase::new();
    let store = open(&database).await;
    let text = "select 1::int2 a, 1.5::float4 b, 12.25::numeric c, \
                '2026-01-02 03:04:05'::timestamp d, '2026-01-02 03:04:05+00'::timestamptz e, \
                '00000000-0000-0000-0000-000000000001'::uuid f, array[1, 2] g, '{\"x\": 1}'::jsonb h, \
                null i, true j, 'text' k, 9007199254740993::int8 l;";
    let rows = run(&store, text, Vec::new()).await.expect("rows");
    assert_eq!(
        rows,
        json!([{
            "a": 1, "b": 1.5, "c": 12.25, "d": "2026-01-02T03:04:05",
            "e": "2026-01-02T03:04:05+00:00", "f": "00000000-0000-0000-0000-000000000001",
            "g": [1, 2], "h": {"x": 1}, "i": null, "j": true, "k": "text", "l": 9007199254740993_i64,
        }])
    );
}

#[tokio::test]
async fn statements_of_every_kind_run_with_their_parameters() {
    let database = TestDatabase::new();
    let store = open(&database).await;
    let made =
        run(&store, "create table public.t (id int8, name text, at jsonb)", Vec::new()).await;
    assert_eq!(made.expect("no rows"), json!([]));
    let insert = "insert into public.t values ($1, $2, $3::jsonb)";
    let given = vec![json!(7), json!("seven"), json!({"a": [1]})];
    assert_eq!(run(&store, insert, given).await.expect("no rows"), json!([]));
    let returning = "insert into public.t values ($1, $2) returning id, name";
    let told = run(&store, returning, vec![json!(8), Value::Null]).await.expect("rows");
    assert_eq!(told, json!([{"id": 8, "name": null}]));
    let with = "with gone as (delete from public.t where id = $1 returning *) select at from gone";
    let told = run(&store, with, vec![json!(7)]).await;
    assert!(told.is_ok(), "{told:?}");
    let left = run(&store, "select count(*) n from public.t", Vec::new()).await.expect("rows");
    assert_eq!(left, json!([{"n": 1}]));
    let shown = run(&store, "show server_encoding", Vec::new()).await.expect("rows");
    assert_eq!(shown, json!([{"server_encoding": "UTF8"}]));
}

#[tokio::test]
async fn invalid_schema_names_are_rejected() {
    let database = TestDatabase::new();
    let store = open(&database).await;
    let of = |schema: &str, text: &str| Sql {
        text: text.to_owned(),
        schema: Some(schema.to_owned()),
        ..Sql::default()
    };
    let found = store.run_sql(&of("noetl", "select count(*) n from runtime")).await;
    assert_eq!(json!(found.expect("rows")), json!([{"n": 0}]));
    let wrong = store.run_sql(&of("noetl; drop schema noetl", "select 1")).await;
    assert!(matches!(wrong, Err(SqlError::Schema(_))), "{wrong:?}");
    let wrong = run(&store, "select * from nowhere", Vec::new()).await;
    assert!(
        matches!(&wrong, Err(SqlError::Refused(text)) if text.contains("nowhere")),
        "{wrong:?}"
    );
    let large = run(&store, "select generate_series(1, 10001)", Vec::new()).await;
    assert!(matches!(large, Err(SqlError::TooLarge)), "{large:?}");
    let half = "insert into noetl.stream_cursor (name) values ('x'); select 1";
    assert!(run(&store, half, Vec::new()).await.is_err());
}

#[tokio::test]
async fn tables_and_connections_are_counted() {
    let database = TestDatabase::new();
    let store = open(&database).await;
    let tables = store.table_names().await.expect("names");
    for table in ["catalog", "command", "event", "resource", "runtime"] {
        assert!(tables.iter().any(|found| found == table), "{table}: {tables:?}");
    }
    assert!(tables.is_sorted());
    let found = store.connections().expect("a pool");
    assert!(found.idle <= found.open && found.open <= found.max, "{found:?}");
}
