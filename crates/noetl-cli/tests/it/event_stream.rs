//! The event stream of real servers on a real NATS, with everything killed that can be.

use std::collections::{BTreeMap, HashSet};

use noetl_model::{ExecutionId, Value};
use noetl_test_services::nats::{StreamMessage, TestNats};
use noetl_test_services::postgres::TestDatabase;
use rustix::process::{Pid, Signal, kill_process};

use crate::dev_process::DevProcess;
use crate::noetl::{Home, playbook, until};
use crate::replicas::start;

const STREAM: &str = "noetl_events";

/// Three steps of nothing in a row: 6 events each, and two of the execution.
fn chain() -> String {
    let steps = "  - {step: start, tool: {kind: noop}, next: {arcs: [{step: middle}]}}\n  \
                 - {step: middle, tool: {kind: noop}, next: {arcs: [{step: end}]}}\n  \
                 - {step: end, tool: {kind: noop}}\n";
    playbook("{}", steps)
}

fn streaming(nats: &TestNats) -> Vec<(&'static str, String)> {
    vec![
        ("NOETL_NATS_URL", nats.url().to_owned()),
        ("NOETL_EVENT_STREAM_ENABLED", "true".to_owned()),
        ("NOETL_EVENT_STREAM_POLL_MS", "20".to_owned()),
        ("NOETL_EVENT_STREAM_LEASE_SECS", "2".to_owned()),
    ]
}

fn borrowed<'a>(settings: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    settings.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

async fn nats_is(server: &DevProcess, state: &str) {
    until("the state of the bus", async || server.client.health().await.unwrap().nats == state)
        .await;
}

/// Runs so many executions to their end, and returns their logs.
async fn run(server: &DevProcess, times: usize) -> BTreeMap<ExecutionId, Vec<i64>> {
    let mut logs = BTreeMap::new();
    for id in start(&server.client, &chain(), times).await {
        assert_eq!(server.ended(id).await, "COMPLETED");
        logs.insert(id, log(server, id).await);
    }
    logs
}

async fn log(server: &DevProcess, id: ExecutionId) -> Vec<i64> {
    let events = server.client.log(id, 0, 10_000).await.unwrap().events;
    events.iter().map(|event| event.event_id.get()).collect()
}

fn of(message: &StreamMessage) -> (ExecutionId, i64) {
    let body: Value = serde_json::from_slice(&message.payload).unwrap();
    let number = |name: &str| body[name].as_i64().unwrap();
    (ExecutionId::new(number("execution_id")), number("event_id"))
}

/// Waits until the stream has every event of these logs, and checks that it has each once and those
/// of a log in its order.
async fn reconcile(nats: &TestNats, logs: &BTreeMap<ExecutionId, Vec<i64>>) {
    let expected: usize = logs.values().map(Vec::len).sum();
    let has_all = async || {
        let messages = nats.messages(STREAM).await;
        let known = messages.iter().map(of).filter(|(execution, _)| logs.contains_key(execution));
        known.collect::<HashSet<_>>().len() >= expected
    };
    until("every event in the stream", has_all).await;
    let mut published: BTreeMap<ExecutionId, Vec<i64>> = BTreeMap::new();
    for message in nats.messages(STREAM).await {
        let (execution, event) = of(&message);
        if logs.contains_key(&execution) {
            published.entry(execution).or_default().push(event);
        }
    }
    assert_eq!(&published, logs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nats_server_that_starts_late_is_killed_and_loses_its_stream_gets_every_event() {
    let home = Home::new();
    let mut nats = TestNats::stopped();
    let settings = streaming(&nats);
    let server = DevProcess::start_with(home.path(), &borrowed(&settings));
    nats_is(&server, "disconnected").await;
    let mut logs = run(&server, 3).await;
    nats.restart();
    nats_is(&server, "connected").await;
    logs.extend(run(&server, 3).await);
    reconcile(&nats, &logs).await;

    // Killed and back, with what it had.
    nats.kill();
    nats_is(&server, "disconnected").await;
    logs.extend(run(&server, 3).await);
    nats.restart();
    logs.extend(run(&server, 3).await);
    reconcile(&nats, &logs).await;

    // Events of the deleted stream are lost; later events are published to the new stream.
    nats.delete_stream(STREAM).await;
    let later = run(&server, 3).await;
    reconcile(&nats, &later).await;
    server.stop(Signal::TERM);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_consumes_the_stream_shows_executions_of_another() {
    let (home, other) = (Home::new(), Home::new());
    let mut nats = TestNats::start();
    let settings = streaming(&nats);
    let writing = DevProcess::start_with(home.path(), &borrowed(&settings));
    let mut logs = run(&writing, 3).await;
    let url = nats.url().to_owned();
    let readers = [
        ("NOETL_NATS_URL", &*url),
        ("NOETL_MATERIALIZER_ENABLED", "true"),
        ("NOETL_PROJECTOR_ENABLED", "true"),
    ];
    let mut reading = DevProcess::start_with(other.path(), &readers);
    for round in 0..3 {
        for (id, expected) in &logs {
            let shows = async || match reading.client.log(*id, 0, 10_000).await {
                Ok(page) => page
                    .events
                    .iter()
                    .map(|event| event.event_id.get())
                    .eq(expected.iter().copied()),
                Err(_) => false,
            };
            until("the log of another server", shows).await;
            assert_eq!(reading.client.execution(*id).await.unwrap().summary.status, "COMPLETED");
        }
        match round {
            // What was read and not answered for is read again.
            0 => {
                reading.kill();
                logs.extend(run(&writing, 3).await);
                reading = DevProcess::start_with(other.path(), &readers);
            }
            1 => {
                nats.kill();
                logs.extend(run(&writing, 3).await);
                nats.restart();
            }
            _ => {}
        }
    }
    reading.stop(Signal::TERM);
    writing.stop(Signal::TERM);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeatedly_killed_server_publishes_every_event() {
    let home = Home::new();
    let nats = TestNats::start();
    let settings = streaming(&nats);
    let mut ids = Vec::new();
    for _ in 0..6 {
        let server = DevProcess::start_with(home.path(), &borrowed(&settings));
        ids.extend(start(&server.client, &chain(), 4).await);
        server.kill();
    }
    let server = DevProcess::start_with(home.path(), &borrowed(&settings));
    let mut logs = BTreeMap::new();
    for id in ids {
        assert_eq!(server.ended(id).await, "COMPLETED");
        logs.insert(id, log(&server, id).await);
    }
    reconcile(&nats, &logs).await;
    server.stop(Signal::TERM);
}

/// Returns the process that has the tailer lease of the database.
fn leader(database: &TestDatabase) -> Option<Pid> {
    let sql =
        "select holder from noetl.leader where name = 'event_stream_tailer' and until > now()";
    let holder = database.psql(sql);
    Pid::from_raw(holder.split('-').next()?.parse().ok()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_leader_is_replaced_and_changes_nothing_when_it_resumes() {
    let database = TestDatabase::new();
    let nats = TestNats::start();
    let settings = streaming(&nats);
    let one = DevProcess::start_on(&database.url(), 2, &borrowed(&settings));
    until("a leader", async || leader(&database).is_some()).await;
    let other = DevProcess::start_on(&database.url(), 2, &borrowed(&settings));
    let mut logs = run(&one, 3).await;
    let first = leader(&database).expect("a leader");
    kill_process(first, Signal::STOP).unwrap();
    until("another leader", async || leader(&database).is_some_and(|now| now != first)).await;
    // An event whose type is no subject, in another order than that of ids, and a large one.
    odd_rows(&database);
    logs.extend(run(&other, 3).await);
    reconcile(&nats, &logs).await;
    let before = cursors(&database);
    kill_process(first, Signal::CONT).unwrap();
    nats_is(&one, "connected").await;
    logs.extend(run(&other, 3).await);
    reconcile(&nats, &logs).await;
    let after = cursors(&database);
    assert!(before.iter().all(|(name, position)| after[name] >= *position), "{before:?} {after:?}");
    assert_ne!(before, after);
    let odd: Vec<StreamMessage> = nats
        .messages(STREAM)
        .await
        .into_iter()
        .filter(|message| of(message).0.get() == 5)
        .collect();
    let subjects: Vec<&str> = odd.iter().map(|message| &*message.subject).collect();
    assert_eq!(subjects, ["noetl.events._a_b_", "noetl.events.unknown"]);
    let large: Value = serde_json::from_slice(&odd[1].payload).unwrap();
    assert_eq!(large["result"]["reference"]["column"], "result");
    assert!(large["result"]["reference"]["bytes"].as_i64() > Some(5_000_000));
    one.stop(Signal::TERM);
    other.stop(Signal::TERM);
}

/// Returns the cursor of each commit lane.
fn cursors(database: &TestDatabase) -> BTreeMap<String, i64> {
    let sql = "select name, position from noetl.stream_cursor \
               where name ~ '^event_stream_tailer(:[0-9]+)?$'";
    let rows = database.psql(sql);
    let row = |line: &str| {
        let (name, position) = line.split_once('|').unwrap();
        (name.to_owned(), position.parse().unwrap())
    };
    rows.lines().map(row).collect()
}

/// Rows as another program might have put them there.
fn odd_rows(database: &TestDatabase) {
    database.psql(
        "with drawn as (update noetl.lane set position = position + 2 where lane = 7 \
         returning position) \
         insert into noetl.event_row (execution_id, event_id, event_type, result, lane, position, \
         origin) \
         select 5, 12, ' a b ', null::json, 7, position - 1, 'imported' from drawn union all \
         select 5, 11, null, json_build_object('status', 'ok', 'context', \
         json_build_object('text', repeat('x', 5000000))), 7, position, 'imported' from drawn",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_all_shards_are_published() {
    let home = Home::new();
    let nats = TestNats::start();
    let at = |name: &str| format!("sqlite://{}", home.path().join(name).display());
    let mut settings = streaming(&nats);
    settings.push(("NOETL_SHARDS", format!("{},{},{}", at("0.db"), at("1.db"), at("2.db"))));
    settings.push(("NOETL_CLUSTER_DSN", at("cluster.db")));
    let server = DevProcess::start_with(home.path(), &borrowed(&settings));
    let logs = run(&server, 12).await;
    reconcile(&nats, &logs).await;
    server.stop(Signal::TERM);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_relay_publishes_every_row_of_the_outbox_after_its_restart() {
    let database = TestDatabase::new();
    let nats = TestNats::start();
    let settings = [
        ("NOETL_NATS_URL", nats.url()),
        ("NOETL_OUTBOX_ENABLED", "on"),
        ("NOETL_OUTBOX_RELAY", "1"),
        ("NOETL_OUTBOX_LEASE_SECS", "1"),
    ];
    let mut ids = Vec::new();
    for _ in 0..4 {
        let server = DevProcess::start_on(&database.url(), 4, &settings);
        ids.extend(start(&server.client, &chain(), 4).await);
        server.kill();
    }
    let server = DevProcess::start_on(&database.url(), 4, &settings);
    let mut logs = BTreeMap::new();
    for id in ids {
        assert_eq!(server.ended(id).await, "COMPLETED");
        logs.insert(id, log(&server, id).await);
    }
    // Rows are retried after different delays, so the order is not compared.
    let expected: usize = logs.values().map(Vec::len).sum();
    until("every event in the stream", async || nats.messages(STREAM).await.len() >= expected)
        .await;
    let messages: Vec<(ExecutionId, i64)> = nats.messages(STREAM).await.iter().map(of).collect();
    let distinct: HashSet<_> = messages.iter().copied().collect();
    assert_eq!((messages.len(), distinct.len()), (expected, expected), "each once");
    for (id, log) in &logs {
        assert!(log.iter().all(|event| distinct.contains(&(*id, *event))), "{id}");
    }
    let left = "select count(*) from noetl.outbox where status <> 'PUBLISHED'";
    until("every row marked", async || database.psql(left) == "0").await;
    server.stop(Signal::TERM);
}

#[test]
fn invalid_settings_prevent_the_start_and_are_reported_by_name() {
    let home = Home::new();
    let on = ("NOETL_EVENT_STREAM_ENABLED", "true");
    let url = ("NOETL_NATS_URL", "nats://127.0.0.1:1");
    for (settings, expected) in [
        (vec![("NOETL_EVENT_STREAM_ENABLED", "maybe")], "NOETL_EVENT_STREAM_ENABLED is true or"),
        (vec![on], "NOETL_EVENT_STREAM_ENABLED is on, and there is no bus to publish to"),
        (vec![("NOETL_NATS_URL", "http://u:s3cr3t@h")], "NOETL_NATS_URL: entry 1"),
        (vec![url, on, ("NOETL_EVENT_STREAM_BATCH", "0")], "NOETL_EVENT_STREAM_BATCH is a number"),
        (vec![("NOETL_EVENT_STREAM_POLL_MS", "x")], "NOETL_EVENT_STREAM_POLL_MS is a number"),
        (
            vec![
                url,
                on,
                ("NOETL_EVENT_STREAM_RETENTION_SECS", "60"),
                ("NOETL_EVENT_STREAM_DEDUP_SECS", "61"),
            ],
            "NOETL_EVENT_STREAM_DEDUP_SECS is more than",
        ),
        (
            vec![url, ("NOETL_OUTBOX_RELAY", "yes")],
            "nothing to publish without NOETL_OUTBOX_ENABLED",
        ),
        (
            vec![url, on, ("NOETL_OUTBOX_ENABLED", "yes"), ("NOETL_OUTBOX_RELAY", "yes")],
            "NOETL_EVENT_STREAM_ENABLED and NOETL_OUTBOX_RELAY are both on",
        ),
        (vec![("NOETL_OUTBOX_ENABLED", "ja")], "NOETL_OUTBOX_ENABLED is true or false"),
        (vec![("NOETL_OUTBOX_LEASE_SECS", "0")], "NOETL_OUTBOX_LEASE_SECS is a number"),
    ] {
        let mut command = home.command(["dev", "--port", "0"]);
        let output = home.end_of(command.envs(settings.iter().copied()));
        assert_eq!(output.code, Some(3), "{settings:?}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{settings:?}: {}", output.stderr);
        assert!(!output.stderr.contains("s3cr3t"));
    }
}
