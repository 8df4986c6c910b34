use axum::Router;
use axum::routing::get;
use noetl_model::{Failure, FailureKind, Value};
use noetl_test_services::postgres::TestDatabase;
use noetl_tools::ToolRegistry;
use serde_json::json;

use crate::harness::{call, registry};

struct Fixture {
    database: TestDatabase,
    directory: tempfile::TempDir,
    tools: ToolRegistry,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { database: TestDatabase::new(), directory, tools: registry() }
    }

    fn path(&self) -> String {
        self.directory.path().join("a.db").display().to_string()
    }

    fn side(&self, kind: &str, mut settings: Value) -> Value {
        settings["kind"] = kind.into();
        match kind {
            "postgres" => settings["connection"] = self.database.url().into(),
            _ => settings["db_path"] = self.path().into(),
        }
        settings
    }

    async fn transfer(&self, source: Value, target: Value) -> Result<Value, Failure> {
        self.tools.run("transfer", call(json!({"source": source, "target": target}))).await
    }

    async fn sqlite(&self, query: &str) -> Value {
        let config = json!({"db_path": self.path(), "query": query});
        self.tools.run("sqlite", call(config)).await.unwrap()["rows"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_copied_from_postgres_to_sqlite_and_back() {
    let fixture = Fixture::new();
    fixture.database.psql(
        "create table a as select i as id, 'name ' || i as name, \
         case when i % 7 = 0 then null else i * 0.5 end as half, decode('00ff', 'hex') as raw, \
         jsonb_build_object('i', i) as doc from generate_series(1, 25000) i; \
         create table b (id int primary key, name text, half numeric, raw bytea, doc jsonb)",
    );
    fixture
        .sqlite("create table \"odd \"\"name\" (id integer, name text, half, raw blob, doc)")
        .await;
    let answer = fixture
        .transfer(
            fixture.side("postgres", json!({"query": "select * from a where id > :low order by id", "params": {"low": 0}})),
            fixture.side("sqlite", json!({"table": "odd \"name"})),
        )
        .await
        .unwrap();
    assert_eq!(
        answer,
        json!({
            "rows_transferred": 25000, "columns": ["id", "name", "half", "raw", "doc"],
            "source": "postgres", "target": "sqlite", "mode": "append",
        })
    );
    let counted = fixture.sqlite(
        "select count(*) as n, sum(id) as s, count(half) as h, min(hex(raw)) as r from \"odd \"\"name\"",
    );
    assert_eq!(counted.await, json!([{"n": 25000, "s": 312_512_500, "h": 21429, "r": "00FF"}]));

    let answer = fixture
        .transfer(
            fixture.side("sqlite", json!({"query": "select * from \"odd \"\"name\""})),
            fixture.side("postgres", json!({"table": "public.b"})),
        )
        .await
        .unwrap();
    assert_eq!(answer["rows_transferred"], 25000);
    let same = "select count(*) from a join b using (id, name, raw, doc) \
                where a.half is not distinct from b.half";
    assert_eq!(fixture.database.psql(same), "25000");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_target_is_written_atomically() {
    let fixture = Fixture::new();
    fixture.database.psql("create table t (id int primary key); insert into t values (1)");
    fixture.sqlite("create table t (id integer primary key); insert into t values (1)").await;
    for kind in ["postgres", "sqlite"] {
        // The source fails after some batches.
        let source = fixture.side(
            "postgres",
            json!({"query": "select 10 / (5000 - i) + 100 + i as id from generate_series(1, 6000) i"}),
        );
        for mode in ["append", "replace"] {
            let target = fixture.side(kind, json!({"table": "t", "mode": mode}));
            let failure = fixture.transfer(source.clone(), target).await.unwrap_err();
            assert!(
                failure.message.starts_with("`source`: the database says: division by zero"),
                "{failure}"
            );
        }
        // The target refuses after some batches.
        let source = fixture.side(
            "postgres",
            json!({"query": "select i % 5000 as id from generate_series(2, 8000) i"}),
        );
        let target = fixture.side(kind, json!({"table": "t", "mode": "replace"}));
        let failure = fixture.transfer(source, target).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::DbConstraint, "{failure}");
        assert!(failure.message.starts_with("`target`: "), "{failure}");
    }
    assert_eq!(fixture.database.psql("select string_agg(id::text, ',') from t"), "1");
    assert_eq!(fixture.sqlite("select id from t").await, json!([{"id": 1}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn write_modes_decide_what_happens_to_existing_rows() {
    let fixture = Fixture::new();
    let table = "create table t (id integer primary key, n text, kept text); \
                 insert into t values (1, 'old', 'k'), (9, 'stays', 'k')";
    fixture.database.psql(table);
    fixture.sqlite(table).await;
    let source =
        fixture.side("sqlite", json!({"query": "values (1, 'first'), (2, 'new'), (1, 'last')"}));
    let read = async |kind: &str| {
        match kind {
        "postgres" => fixture.database.psql("select string_agg(id || n || coalesce(kept, '-'), ',' order by id) from t"),
        _ => fixture.sqlite("select group_concat(id || n || coalesce(kept, '-'), ',') as v from (select * from t order by id)").await[0]["v"].as_str().unwrap().to_owned(),
    }
    };
    for kind in ["postgres", "sqlite"] {
        let target = json!({"table": "t", "mode": "upsert", "key": "id", "columns": ["id", "n"]});
        let answer = fixture.transfer(source.clone(), fixture.side(kind, target)).await.unwrap();
        assert_eq!((&answer["rows_transferred"], &answer["mode"]), (&json!(3), &json!("upsert")));
        assert_eq!(read(kind).await, "1lastk,2new-,9staysk", "{kind}");

        let target = json!({"table": "t", "mode": "replace", "columns": {"n": "column2"}});
        let answer = fixture.transfer(source.clone(), fixture.side(kind, target)).await;
        if kind == "sqlite" {
            answer.unwrap();
            assert_eq!(read(kind).await, "1first-,2new-,3last-");
        } else {
            assert_eq!(answer.unwrap_err().kind, FailureKind::DbConstraint);
        }
        let target =
            json!({"query": "update t set kept = :b where id = :a", "columns": ["a", "b"]});
        fixture.transfer(source.clone(), fixture.side(kind, target)).await.unwrap();
    }
    assert_eq!(read("sqlite").await, "1firstlast,2newnew,3last-");
    assert_eq!(read("postgres").await, "1lastlast,2newnew,9staysk");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_endpoint_is_a_source() {
    let fixture = Fixture::new();
    let rows = json!({"page": {"items": [{"id": 1, "tags": ["a"]}, {"id": 2, "extra": true}]}});
    let app = Router::new().route("/", get(move || async move { rows.to_string() }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    fixture.database.psql("create table t (id int, tags text[], extra bool)");
    let target = || fixture.side("postgres", json!({"table": "t"}));
    let source = json!({"kind": "http", "url": url, "data_path": "page.items"});
    let answer = fixture.transfer(source, target()).await.unwrap();
    assert_eq!(answer["columns"], json!(["id", "tags", "extra"]));
    assert_eq!(fixture.database.psql("select * from t order by id"), "1|{a}|\n2||t");
    let failure =
        fixture.transfer(json!({"kind": "http", "url": url}), target()).await.unwrap_err();
    assert_eq!(
        failure.message,
        "`source`: the answer must be a list of maps, not a map; `data_path` says where it is"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_stops_both_sides_and_rolls_back() {
    let fixture = Fixture::new();
    fixture.sqlite("create table t (i)").await;
    let source = fixture
        .side("postgres", json!({"query": "select i from generate_series(1, 1000000000) i"}));
    let target = fixture.side("sqlite", json!({"table": "t"}));
    let config = json!({"source": source, "target": target, "timeout": "500ms"});
    let failure = fixture.tools.run("transfer", call(config)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(fixture.sqlite("select count(*) as n from t").await, json!([{"n": 0}]));
    let active = "select count(*) from pg_stat_activity where datname = current_database() \
                  and state = 'active' and pid <> pg_backend_pid()";
    assert_eq!(fixture.database.psql(active), "0");
}

#[tokio::test]
async fn errors_name_the_invalid_setting() {
    let run =
        async |config: Value| registry().run("transfer", call(config)).await.unwrap_err().message;
    let source = json!({"kind": "sqlite", "query": "select 1 as a"});
    let target = json!({"kind": "sqlite", "db_path": "x.db", "table": "t"});
    for (config, message) in [
        (json!({}), "a transfer needs a `source`"),
        (json!({"source": source}), "a transfer needs a `target`"),
        (json!({"source": 5, "target": target}), "`source` must be a map, not a number"),
        (
            json!({"source": {}, "target": target}),
            "`source` needs a `kind`: postgres, sqlite, duckdb or http",
        ),
        (
            json!({"source": source, "target": {"kind": "sqlite"}}),
            "`target`: needs either a `table` or a `query`",
        ),
        (
            json!({"source": source, "target": {"kind": "sqlite", "table": "t"}}),
            "`target`: needs `db_path`: what is written in memory is gone with the step",
        ),
        (
            json!({"source": source, "target": {"kind": "oracle", "table": "t"}}),
            "`target`: `kind` must be postgres, sqlite or duckdb, not 'oracle'",
        ),
        (
            json!({"source": source, "target": {"kind": "sqlite", "table": "t", "mode": "upsert"}}),
            "`target`: `mode: upsert` needs `key`: the columns that make a row unique",
        ),
        (
            json!({"source": {"kind": "sqlite", "query": "select 1; select 2"}, "target": target}),
            "`source`: a source reads one statement, and there are several",
        ),
    ] {
        assert_eq!(run(config).await, message);
    }
}
