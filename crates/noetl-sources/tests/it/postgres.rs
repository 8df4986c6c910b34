//! Tests of the Postgres sources.

use std::time::Duration;

use noetl_sources::SourceError;
use noetl_test_services::postgres::{TestDatabase, TestServer};
use tokio_postgres::{Client, NoTls};

use crate::suite::{SourceServer, fetched, open, suite};

const WAIT: Duration = Duration::from_millis(200);

const OUTBOX: &str = "create table outbox (id bigint generated always as identity primary key, body bytea, \
                      headers jsonb, done_at timestamptz, is_done boolean, held timestamptz, n int)";

enum At {
    Shared(TestDatabase),
    Alone(TestServer),
}

impl At {
    fn new(alone: bool) -> Self {
        match alone {
            true => Self::Alone(TestServer::start(&["fsync=off"])),
            false => Self::Shared(TestDatabase::new()),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Shared(database) => database.url(),
            Self::Alone(server) => server.url().to_owned(),
        }
    }

    async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn with_outbox(alone: bool) -> Self {
        let at = Self::new(alone);
        at.client().await.batch_execute(OUTBOX).await.unwrap();
        at
    }

    async fn insert(&self, bodies: &[&[u8]]) {
        let client = self.client().await;
        for body in bodies {
            client.execute("insert into outbox (body) values ($1)", &[body]).await.unwrap();
        }
    }

    fn stop(&self) {
        if let Self::Alone(server) = self {
            server.stop("immediate");
        }
    }

    fn start(&mut self) {
        if let Self::Alone(server) = self {
            server.restart();
        }
    }
}

/// A server with the table `outbox` with these further keys.
macro_rules! source_server {
    ($name:ident, $positions:literal, $keys:literal) => {
        struct $name(At);

        impl SourceServer for $name {
            const SOURCE: &'static str = "postgres";
            const POSITIONS: bool = $positions;

            async fn new(alone: bool) -> Option<Self> {
                Some(Self(At::with_outbox(alone).await))
            }

            fn keys(&self) -> String {
                let url = self.0.url();
                format!(
                    "  url: {url}\n  table: public.outbox\n  body: body\n  poll_ms: 50\n{}",
                    $keys
                )
            }

            async fn send(&self, bodies: &[&[u8]]) {
                self.0.insert(bodies).await;
            }

            fn stop(&mut self) {
                self.0.stop();
            }

            fn start(&mut self) {
                self.0.start();
            }
        }
    };
}

source_server!(Deleted, false, "  ack: delete\n");
source_server!(Claimed, false, "  ack: update\n  done: done_at\n  claim: held\n  claim_secs: 1\n");
source_server!(Advanced, true, "  ack: advance\n  consumer: c\n");

suite!(rows_deleted, Deleted);
suite!(rows_claimed, Claimed);
suite!(rows_passed, Advanced);

struct Notified(At);

impl SourceServer for Notified {
    const SOURCE: &'static str = "postgres";
    const IS_DURABLE: bool = false;
    const BYTES_MAX: usize = 0;

    async fn new(alone: bool) -> Option<Self> {
        Some(Self(At::new(alone)))
    }

    fn keys(&self) -> String {
        format!("  url: {}\n  channel: New Orders\n", self.0.url())
    }

    async fn send(&self, bodies: &[&[u8]]) {
        let client = self.0.client().await;
        for body in bodies {
            let body = std::str::from_utf8(body).unwrap();
            client.execute("select pg_notify('New Orders', $1)", &[&body]).await.unwrap();
        }
    }

    fn stop(&mut self) {
        self.0.stop();
    }

    fn start(&mut self) {
        self.0.start();
    }
}

suite!(notifications, Notified);

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_becomes_visible_late_is_not_skipped() {
    let at = At::with_outbox(false).await;
    let keys = format!(
        "  url: {}\n  table: outbox\n  body: body\n  ack: advance\n  poll_ms: 20\n",
        at.url()
    );
    let source = open("postgres", &keys).await.unwrap();
    let mut slow = at.client().await;
    let late = slow.transaction().await.unwrap();
    late.execute("insert into outbox (body) values ('early key, late commit')", &[]).await.unwrap();
    at.insert(&[b"later key"]).await;
    for _ in 0..5 {
        assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0, "the first may still come");
    }
    late.commit().await.unwrap();
    let deliveries = fetched(&source, 2).await;
    let keys: Vec<&str> = deliveries.iter().map(|delivery| delivery.message.id.as_str()).collect();
    assert_eq!(keys, ["outbox:1", "outbox:2"]);
    // A row of an aborted transaction blocks later rows only until the abort.
    let given_up = slow.transaction().await.unwrap();
    given_up.execute("insert into outbox (body) values ('never')", &[]).await.unwrap();
    at.insert(&[b"third"]).await;
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0);
    given_up.rollback().await.unwrap();
    let third = fetched(&source, 1).await;
    // Answered for out of order, a position waits for the gap.
    third[0].handle.ack().await.unwrap();
    deliveries[1].handle.ack().await.unwrap();
    let client = at.client().await;
    let query = "select count(*) from noetl_subscription_position";
    assert_eq!(client.query_one(query, &[]).await.unwrap().get::<_, i64>(0), 0);
    assert_eq!(source.backlog().await, Ok(Some(3)));
    deliveries[0].handle.ack().await.unwrap();
    let query = "select name, position from noetl_subscription_position";
    let row = client.query_one(query, &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("noetl_sub_a", "4"));
    assert_eq!(source.backlog().await, Ok(Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_and_claimed_rows_are_skipped() {
    let at = At::with_outbox(false).await;
    let keys = format!(
        "  url: {}\n  table: outbox\n  ack: delete\n  claim: held\n  claim_secs: 60\n  poll_ms: 20\n",
        at.url()
    );
    let (one, other) =
        (open("postgres", &keys).await.unwrap(), open("postgres", &keys).await.unwrap());
    at.insert(&[b"1", b"2", b"3"]).await;
    let mut locker = at.client().await;
    let locked = locker.transaction().await.unwrap();
    locked.execute("select 1 from outbox where id = 1 for update", &[]).await.unwrap();
    let mine = fetched(&one, 2).await;
    assert_eq!(other.fetch(10, WAIT).await.unwrap().len(), 0);
    locked.commit().await.unwrap();
    let theirs = fetched(&other, 1).await;
    assert_eq!(theirs[0].message.id, "outbox:1");
    assert_eq!(one.backlog().await, Ok(Some(3)), "what is handed out still waits");
    mine[0].handle.nack(Duration::ZERO).await.unwrap();
    assert_eq!(fetched(&other, 1).await[0].message.id, mine[0].message.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_becomes_a_message_with_its_other_columns_and_headers() {
    let at = At::with_outbox(false).await;
    let client = at.client().await;
    let insert = "insert into outbox (body, headers, n) values ('[1]', '{\"x-a\": \"1\", \"n\": 2}', 7), (null, null, 8)";
    client.batch_execute(insert).await.unwrap();
    let base = format!(
        "  url: {}\n  table: outbox\n  ack: update\n  done: is_done\n  poll_ms: 20\n",
        at.url()
    );
    let source = open("postgres", &format!("{base}  body: body\n  headers_from: headers\n")).await;
    let source = source.unwrap();
    let deliveries = fetched(&source, 2).await;
    let message = &deliveries[0].message;
    assert_eq!((&message.body[..], message.id.as_str()), (&b"[1]"[..], "outbox:1"));
    assert_eq!((&message.attributes["n"], &message.attributes["id"]), (&7.into(), &1.into()));
    assert_eq!(message.attributes.get("body"), None);
    assert_eq!(message.headers, [("n".into(), "2".into()), ("x-a".into(), "1".into())]);
    assert!(deliveries[1].message.body.is_empty());
    deliveries[0].handle.ack().await.unwrap();
    let done = "select string_agg(id::text, ',') from outbox where is_done";
    assert_eq!(client.query_one(done, &[]).await.unwrap().get::<_, &str>(0), "1");
    drop((deliveries, source));
    // Without a column for it the row itself is the body; a condition narrows what is read.
    let narrowed = format!("{base}  order_by: n\n  where: n > 7 -- and nothing else\n");
    let source = open("postgres", &narrowed).await.unwrap();
    let deliveries = fetched(&source, 1).await;
    let row: serde_json::Value = serde_json::from_slice(&deliveries[0].message.body).unwrap();
    assert_eq!((&row["n"], &row["id"]), (&8.into(), &2.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_triggers_a_poll() {
    let at = At::with_outbox(false).await;
    let keys = format!(
        "  url: {}\n  table: outbox\n  ack: delete\n  channel: c\n  poll_ms: 3600000\n",
        at.url()
    );
    let source = open("postgres", &keys).await.unwrap();
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0);
    at.insert(&[b"1"]).await;
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0, "not before its time");
    at.client().await.batch_execute("notify c").await.unwrap();
    fetched(&source, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_opening_postgres_name_the_cause() {
    let at = At::with_outbox(false).await;
    let url = at.url();
    at.client().await.batch_execute("create table loose (id int, a text)").await.unwrap();
    let of = |keys: &str| format!("  url: {url}\n{keys}");
    for (keys, part, is_final) in [
        (of("  table: none\n  ack: delete\n"), "there is no table 'none'", false),
        (of("  table: a.b.c\n  ack: delete\n"), "schema.table", true),
        (of("  table: loose\n  ack: delete\n"), "unique and not null", true),
        (of("  table: outbox\n  ack: delete\n  key: nope\n"), "it has: id, body", true),
        (of("  table: outbox\n  ack: update\n  done: n\n"), "timestamptz or boolean", true),
        (of("  table: outbox\n  ack: delete\n  claim: n\n"), "timestamptz", true),
        (of("  table: outbox\n  ack: delete\n  where: n ~ 3 (\n"), "syntax error", true),
        (of("  table: outbox\n  ack: delete\n  headers_from: body\n"), "jsonb", true),
        ("  url: postgres://noetl@127.0.0.1:1/x\n  channel: c\n".to_owned(), "", false),
        ("  url: nonsense://\n  channel: c\n".to_owned(), "`connection`", true),
    ] {
        let error = open("postgres", &keys).await.err().unwrap();
        assert_eq!(matches!(error, SourceError::Settings(_)), is_final, "{keys}: {error}");
        assert!(error.to_string().contains(part), "{keys}: {error}");
    }
}
