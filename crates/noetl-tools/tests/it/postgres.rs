use std::time::Duration;

use noetl_model::{Failure, FailureKind, Value};
use noetl_test_services::postgres::{TestDatabase, TestServer};
use noetl_tools::{Options, OutputLimits, ToolRegistry};
use serde_json::json;

use crate::harness::{call, detail, map, registry};

/// A database of its own, and tools that remember their connections.
struct Fixture {
    database: TestDatabase,
    tools: ToolRegistry,
}

impl Fixture {
    fn new() -> Self {
        Self { database: TestDatabase::new(), tools: registry() }
    }

    async fn run(&self, mut config: Value) -> Result<Value, Failure> {
        config["connection"] = self.database.url().into();
        self.tools.run("postgres", call(config)).await
    }

    async fn query(&self, text: &str) -> Result<Value, Failure> {
        self.run(json!({"query": text})).await
    }

    /// Returns the only value of the only row.
    async fn value(&self, expression: &str) -> Value {
        let answer = self.query(&format!("select {expression} as v")).await;
        answer.unwrap_or_else(|failure| panic!("{expression}: {failure}"))["rows"][0]["v"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_returned_in_their_json_form() {
    let fixture = Fixture::new();
    fixture
        .query(
            "create type mood as enum ('ok', 'bad'); create type pair as (a int, b text[]); \
                create domain small as int check (value < 10)",
        )
        .await
        .unwrap();
    for (expression, expected) in [
        ("1::int2", json!(1)),
        ("-2::int4", json!(-2)),
        ("9007199254740993::int8", json!(9_007_199_254_740_993_i64)),
        ("1.5::float4", json!(1.5)),
        ("0.1::float4", json!(0.1)),
        ("0.1::float8", json!(0.1)),
        ("'NaN'::float8", json!("NaN")),
        ("12.50::numeric(8,2)", json!(12.5)),
        ("-0.0001::numeric", json!(-0.0001)),
        ("123456789012345678901234567890::numeric", json!("123456789012345678901234567890")),
        ("0.12345678901234567890123::numeric", json!("0.12345678901234567890123")),
        ("10000::numeric", json!(10_000)),
        ("100000000.00010000::numeric", json!(100_000_000.000_1)),
        ("true", json!(true)),
        ("null::int", json!(null)),
        ("'grün'", json!("grün")),
        ("'00501'", json!("00501")),
        ("'ab'::char(4)", json!("ab  ")),
        ("'x'::\"char\"", json!("x")),
        ("'{\"b\": [1, null], \"a\": \"x\"}'::json", json!({"b": [1, null], "a": "x"})),
        ("'{\"b\": 1.5}'::jsonb", json!({"b": 1.5})),
        (
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
            json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ),
        ("'\\x00ff'::bytea", json!("AP8=")),
        ("'2024-02-29'::date", json!("2024-02-29")),
        ("'0044-03-15 BC'::date", json!("-0043-03-15")),
        ("'infinity'::timestamptz", json!("infinity")),
        ("'2024-01-02 03:04:05.6'::timestamp", json!("2024-01-02T03:04:05.600000")),
        ("'2024-01-02 03:04:05+02'::timestamptz", json!("2024-01-02T01:04:05+00:00")),
        ("'03:04:05'::time", json!("03:04:05")),
        ("'03:04:05-03:30'::timetz", json!("03:04:05-03:30")),
        ("'1 year 2 days 3.5 seconds'::interval", json!("P1Y2DT3.5S")),
        ("array[1, null, 3]", json!([1, null, 3])),
        ("array[[1, 2], [3, 4]]", json!([[1, 2], [3, 4]])),
        ("'{}'::text[]", json!([])),
        ("'10.0.0.1'::inet", json!("10.0.0.1")),
        ("'10.0.0.0/8'::cidr", json!("10.0.0.0/8")),
        ("'::1/64'::inet", json!("::1/64")),
        ("'08:00:2b:01:02:03'::macaddr", json!("08:00:2b:01:02:03")),
        ("B'10110'", json!("10110")),
        ("int4range(1, 5)", json!("[1,5)")),
        ("'empty'::int4range", json!("empty")),
        ("'{[1,3), [5,7)}'::int4multirange", json!("{[1,3),[5,7)}")),
        ("'bad'::mood", json!("bad")),
        ("array['ok', 'bad']::mood[]", json!(["ok", "bad"])),
        ("row(1, array['x'])::pair", json!({"a": 1, "b": ["x"]})),
        ("7::small", json!(7)),
        ("'12.34'::money", json!("12.34")),
        ("'16/B374D848'::pg_lsn", json!("16/B374D848")),
        ("'pg_class'::regclass::oid", json!(1259)),
    ] {
        assert_eq!(fixture.value(expression).await, expected, "{expression}");
    }
    let failure = fixture.query("select to_tsvector('a') as words").await.unwrap_err();
    assert_eq!(failure.message, "column 'words' is of type tsvector; cast it to text: words::text");
    // And the connection is as good as before.
    assert_eq!(fixture.value("1").await, json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_decides_which_statements_return_rows() {
    let fixture = Fixture::new();
    let answer = fixture
        .query(
            "create table t (id serial primary key, name text); \
                insert into t (name) values ('a'), ('b;c') returning id, name; \
                update t set name = upper(name); -- nothing; here",
        )
        .await
        .unwrap();
    let rows = json!({
        "columns": ["id", "name"],
        "rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "b;c"}],
        "row_count": 2,
        "affected_rows": 2,
    });
    let mut expected = rows.clone();
    expected["command_0"] = json!({"affected_rows": 0});
    expected["command_1"] = rows;
    expected["command_2"] = json!({"affected_rows": 2});
    assert_eq!(answer, expected);

    let answer = fixture.query("select id from t where false").await.unwrap();
    assert_eq!(answer["rows"], json!([]));
    assert_eq!(answer["columns"], json!(["id"]));
    assert_eq!((&answer["row_count"], &answer["affected_rows"]), (&json!(0), &json!(0)));

    let answer = fixture.query("delete from t").await.unwrap();
    assert_eq!(answer, json!({"affected_rows": 2, "command_0": {"affected_rows": 2}}));

    let answer = fixture.query("select 1 as a, 2 as a").await.unwrap();
    assert_eq!(answer["rows"], json!([{"a": 1, "a_2": 2}]));
    let claimed = "with c as (insert into t (name) values ('x') returning id) \
                   update t set name = 'y' from c where t.id = c.id returning t.id";
    assert_eq!(fixture.query(claimed).await.unwrap()["row_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_values_and_never_text() {
    let fixture = Fixture::new();
    fixture
        .query("create table t (a int, b text, c jsonb, d date, e int[], f bytea)")
        .await
        .unwrap();
    let hostile = "'); drop table t; --";
    let config = json!({
        "query": "insert into t values (:a, :b, :c, :d, :e, :f) returning *, ':a' as lit, a::text as s",
        "params": {
            "a": "5", "b": hostile, "c": {"k": [1]}, "d": "2024-01-02", "e": [1, null],
            "f": "AP8=", "unused": 1,
        },
    });
    let answer = fixture.run(config).await.unwrap();
    assert_eq!(
        answer["rows"][0],
        json!({
            "a": 5, "b": hostile, "c": {"k": [1]}, "d": "2024-01-02", "e": [1, null],
            "f": "AP8=", "lit": ":a", "s": "5",
        })
    );
    let listed = json!({
        "commands": [
            {"query": "select $1::int + $2::int as v", "params": [1, 2]},
            "select 3 as v",
        ],
    });
    let answer = fixture.run(listed).await.unwrap();
    assert_eq!(answer["command_0"]["rows"], json!([{"v": 3}]));
    assert_eq!(answer["rows"], json!([{"v": 3}]));

    // Names also come from the step's input, where they fit.
    let mut step = call(json!({
        "connection": fixture.database.url(), "query": "select :who as v, (array[1,2,3])[1:2] as w",
    }));
    step.input = map(json!({"who": "Ada"}));
    let answer = fixture.tools.run("postgres", step).await.unwrap();
    assert_eq!(answer["rows"], json!([{"v": "Ada", "w": [1, 2]}]));

    for (config, message) in [
        (
            json!({"query": "select :nobody", "params": {"a": 1}}),
            "the statement asks for `:nobody`, which `params` does not have",
        ),
        (
            json!({"query": "select $1::int, $2::int", "params": [1]}),
            "statement 1: it takes 2 parameters, and there are 1; give one for each of $1, $2, …",
        ),
        (
            json!({"query": "select $1::int"}),
            "statement 1: it takes 1 parameters, and there are 0; give them as a list under `params`",
        ),
    ] {
        let failure = fixture.run(config).await.unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Config, message));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_statements_take_effect_together() {
    let fixture = Fixture::new();
    fixture.query("create table t (a int primary key)").await.unwrap();
    let failure =
        fixture.query("insert into t values (1); insert into t values (1)").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::DbConstraint);
    assert!(!failure.retryable);
    assert!(
        failure.message.starts_with("statement 2: the database says: duplicate key"),
        "{failure}"
    );
    assert_eq!(detail(&failure, "pg")["code"], "23505");
    assert_eq!(detail(&failure, "pg")["sqlstate"], "23505");
    assert_eq!(detail(&failure, "pg")["constraint"], "t_pkey");
    assert_eq!(fixture.database.psql("select count(*) from t"), "0");

    let config = json!({
        "query": "insert into t values (1); insert into t values (1)", "autocommit": true,
    });
    fixture.run(config).await.unwrap_err();
    assert_eq!(fixture.database.psql("select count(*) from t"), "1");

    let own = "begin; insert into t values (2); rollback; insert into t values (3)";
    fixture.query(own).await.unwrap();
    assert_eq!(fixture.database.psql("select string_agg(a::text, ',') from t"), "1,3");

    let failure = fixture.query("begin; insert into t values (9)").await.unwrap_err();
    assert!(failure.message.contains("begin a transaction that they do not end"), "{failure}");
    let failure = fixture.query("select 1; vacuum t").await.unwrap_err();
    assert!(failure.message.contains("`autocommit: true`"), "{failure}");
    let failure = fixture.query("copy t from stdin").await.unwrap_err();
    assert!(failure.message.contains("use `transfer`"), "{failure}");
    for empty in ["", " -- nothing\n;;"] {
        let failure = fixture.query(empty).await.unwrap_err();
        assert_eq!(failure.message, "`query` holds no statement");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_share_connections_but_no_session_state() {
    let fixture = Fixture::new();
    let first = fixture.value("pg_backend_pid()").await;
    let left = "create temporary table scrap (a int); set search_path = nowhere; \
                select pg_advisory_lock(7)";
    fixture.query(left).await.unwrap();
    // A session is reset after the response, so a second connection may be opened once.
    let mut pids = std::collections::HashSet::new();
    for _ in 0..50 {
        pids.insert(fixture.value("pg_backend_pid()").await.to_string());
    }
    assert!(pids.len() < 10, "{} connections for fifty calls", pids.len());
    assert!(!first.is_null());
    assert_eq!(fixture.value("current_setting('search_path')").await, json!("\"$user\", public"));
    fixture.query("select * from scrap").await.unwrap_err();
    assert_eq!(
        fixture.database.psql("select count(*) from pg_locks where locktype = 'advisory'"),
        "0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_connection_is_replaced() {
    let fixture = Fixture::new();
    for _ in 0..5 {
        fixture.value("1").await;
        fixture.database.psql(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where datname = current_database() and pid <> pg_backend_pid()",
        );
        assert_eq!(fixture.value("2").await, json!(2));
    }
}

/// Waits until the server says so.
async fn until(fixture: &Fixture, condition: &str, expected: &str) {
    for _ in 0..500 {
        if fixture.database.psql(condition) == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never {expected}: {condition}");
}

const SLEEPING: &str = "select count(*) from pg_stat_activity where datname = current_database() \
                        and state = 'active' and query like '%pg_sleep(600)%' \
                        and pid <> pg_backend_pid()";

#[tokio::test(flavor = "multi_thread")]
async fn timeout_and_cancel_stop_the_statement_on_the_server() {
    let fixture = Fixture::new();
    let config = json!({"query": "select pg_sleep(600)", "timeout": "200ms"});
    let failure = fixture.run(config).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(failure.retryable);
    assert_eq!(fixture.database.psql(SLEEPING), "0");

    let step = call(json!({
        "connection": fixture.database.url(), "query": "select pg_sleep(600)",
    }));
    let cancel = step.cancel.clone();
    let tools = fixture.tools.clone();
    let running = tokio::spawn(async move { tools.run("postgres", step).await });
    until(&fixture, SLEEPING, "1").await;
    cancel.cancel();
    let failure = running.await.unwrap().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert_eq!(fixture.database.psql(SLEEPING), "0");

    // A cancelled call.
    let step = call(json!({
        "connection": fixture.database.url(), "query": "select pg_sleep(600)",
    }));
    let tools = fixture.tools.clone();
    let running = tokio::spawn(async move { tools.run("postgres", step).await });
    until(&fixture, SLEEPING, "1").await;
    running.abort();
    until(&fixture, SLEEPING, "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_have_limits() {
    let limits = OutputLimits { sql_rows: 10, sql_result: 10_000, ..OutputLimits::default() };
    let tools = ToolRegistry::standard(Options { limits, ..Options::default() });
    let database = TestDatabase::new();
    let run = async |query: &str| {
        tools.run("postgres", call(json!({"connection": database.url(), "query": query}))).await
    };
    assert_eq!(run("select generate_series(1, 10)").await.unwrap()["row_count"], 10);
    let failure = run("select generate_series(1, 100000000)").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutputLimit);
    assert!(failure.message.contains("`sql_rows`"), "{failure}");
    let failure = run("select repeat('x', 20000)").await.unwrap_err();
    assert!(failure.message.contains("`sql_result`"), "{failure}");
    assert_eq!(run("select 1 as a").await.unwrap()["row_count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_have_their_kinds() {
    let fixture = Fixture::new();
    let kind = async |config: Value| fixture.run(config).await.unwrap_err().kind;
    assert_eq!(kind(json!({"query": "selec 1"})).await, FailureKind::ClientError);
    assert_eq!(kind(json!({"query": "select 1/0"})).await, FailureKind::ClientError);
    let query = "do $$ begin raise exception 'x' using errcode = '40001'; end $$";
    let failure = fixture.query(query).await.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::DbDeadlock, true));
    let config = json!({"query": "select 1", "database": "nowhere_to_be_found"});
    assert_eq!(kind(config).await, FailureKind::NotFound);

    let absent = json!({"host": "127.0.0.1", "port": 1, "user": "u", "query": "select 1"});
    let failure = registry().run("postgres", call(absent)).await.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Connection, true));
    assert!(failure.message.starts_with("127.0.0.1:1 could not be reached"), "{}", failure.message);

    let secret = json!({"connection": "postgres://u:hunter2@127.0.0.1:1/d", "query": "select 1"});
    let failure = registry().run("postgres", call(secret)).await.unwrap_err();
    assert!(!format!("{failure:?}").contains("hunter2"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_is_a_lost_connection() {
    let server = TestServer::start(&[]);
    let tools = registry();
    let config = json!({"connection": server.url(), "query": "select pg_sleep(600)"});
    let running = {
        let tools = tools.clone();
        tokio::spawn(async move { tools.run("postgres", call(config)).await })
    };
    for _ in 0..500 {
        if server.psql("select count(*) from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()") == "1" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop("immediate");
    let failure = running.await.unwrap().unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Connection, true));
}
