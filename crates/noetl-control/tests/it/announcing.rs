//! Announcements on a store and a bus in memory: every way in which either fails at the wrong moment.

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{Consumer, EventStream, MemoryStream, StoredMessage};
use noetl_control::{ControlPlane, Options};
use noetl_journal::StartRequest;
use noetl_model::{CommandId, ExecutionId, Value};
use noetl_publishing::{AnnouncerHandle, AnnouncerOptions};
use noetl_store::{CommandStore, PublishingStore, SystemClock};
use noetl_test_app::FaultyStore;

use crate::plane::{Gate, TestPlane, chain};
use crate::publishing::until;

const POOL: &str = "worker-pool";

fn announce(
    store: &Arc<FaultyStore>,
    bus: &Arc<MemoryStream>,
    control: &ControlPlane,
) -> AnnouncerHandle {
    let options = AnnouncerOptions::new("http://here:8082/");
    let databases: Vec<Arc<dyn PublishingStore>> = vec![store.clone()];
    AnnouncerHandle::start(&options, databases, bus.clone(), &control.journal)
}

async fn plane(store: &Arc<FaultyStore>) -> TestPlane {
    TestPlane::open(store, 0, &Gate::new()).await
}

fn commands(messages: &[StoredMessage]) -> Vec<i64> {
    let id = |message: &StoredMessage| {
        let payload: Value = serde_json::from_slice(&message.payload).unwrap();
        payload["event_id"].as_i64().unwrap()
    };
    messages.iter().map(id).collect()
}

async fn announced(bus: &MemoryStream, count: usize) -> Vec<StoredMessage> {
    // Longer than the longest pause between two announcements and a look; the clock is not a real one.
    let comes = async {
        while bus.kept().len() < count {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(900), comes).await;
    assert!(waited.is_ok(), "the announcements never came: {}", bus.kept().len());
    bus.kept()
}

/// The one command of an execution that waits.
async fn waiting(store: &FaultyStore, execution: ExecutionId) -> CommandId {
    let open = store.open_commands(CommandId::new(i64::MIN), 1000).await.unwrap();
    open.iter().find(|row| row.execution == execution).expect("it waits").id
}

/// Acks an announcement, as a worker does before it claims.
fn take(bus: &MemoryStream) {
    while let Some((place, _)) = bus.give(POOL) {
        bus.answer(POOL, place, true);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_command_is_announced_once() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    let id = plane.start(&chain(1)).await;
    let messages = announced(&bus, 1).await;
    let command = waiting(&store, id).await;
    assert_eq!(messages[0].subject, format!("noetl.commands.shared.{id}"));
    assert_eq!(messages[0].id, format!("{id}:s0:{command}#1"));
    let payload: Value = serde_json::from_slice(&messages[0].payload).unwrap();
    assert_eq!(payload["server_url"], "http://here:8082");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(bus.kept().len(), 1, "who reads has not dealt with it, so nobody repeats it");
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_of_the_local_worker_are_not_announced() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = TestPlane::open(&store, 4, &Gate::new()).await;
    let announcing = announce(&store, &bus, &plane.control);
    let id = plane.start(&chain(5)).await;
    plane.finished(id).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(commands(&bus.kept()), [0_i64; 0]);
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn announcements_of_claimed_commands_are_removed_from_the_stream() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    let mut claimed = Vec::new();
    for _ in 0..5 {
        claimed.push(plane.start(&chain(1)).await);
    }
    announced(&bus, 5).await;
    // A worker claims all but one of them over HTTP.
    let left = claimed.pop().expect("an execution");
    for id in claimed {
        let command = waiting(&store, id).await;
        plane.control.remote.reports.claim(&None, command, "w").await.expect("a command");
    }
    let settles = async {
        let of_left = waiting(&store, left).await.get();
        while commands(&bus.kept()) != [of_left] {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(900), settles).await.expect("one announcement");
    let command = waiting(&store, left).await;
    plane.control.remote.reports.claim(&None, command, "w").await.expect("a command");
    let settles = async {
        while !bus.kept().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(900), settles).await.expect("no announcement");
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn pools_that_share_a_subject_retain_their_announcements() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    let catalog = Some(plane.register(&chain(1)).await);
    for pool in ["big gpu", "big gpu", "big gpu", "big_gpu"] {
        let pool = Some(pool.to_owned());
        let request = StartRequest { catalog, pool, ..StartRequest::default() };
        plane.control.journal.executions.start(&plane.tenant, request).await.expect("an execution");
    }
    let first = announced(&bus, 4).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(commands(&bus.kept()), commands(&first), "no announcement was removed");
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn announcements_without_a_claim_are_repeated_with_backoff() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    let id = plane.start(&chain(1)).await;
    announced(&bus, 1).await;
    let command = waiting(&store, id).await;
    for number in 2..=5 {
        take(&bus);
        let messages = announced(&bus, number).await;
        assert_eq!(messages[number - 1].id, format!("{id}:s0:{command}#{number}"));
    }
    take(&bus);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bus.kept().len(), 5, "the next is not due yet");
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_recreated_by_another_process_gets_announcements_immediately() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    plane.start(&chain(1)).await;
    for number in 1..=5 {
        announced(&bus, number).await;
        take(&bus);
    }
    // The next announcement is minutes away. A published worker recreates the stream first, with a
    // filter that matches nothing.
    bus.delete();
    let options = AnnouncerOptions::new("http://here:8082/");
    let deaf = |mut reader: Consumer| {
        "noetl.commands".clone_into(&mut reader.filter);
        reader
    };
    let mut settings = options.stream();
    settings.consumers = settings.consumers.into_iter().take(1).map(deaf).collect();
    assert_eq!(settings.consumers[0].name, POOL);
    bus.ensure(&settings).await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(bus.kept().len(), 1);
    assert!(bus.give(POOL).is_some(), "who reads hears it");
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn unannounced_commands_are_announced_later() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let gone = plane(&store).await;
    let mut ids = vec![gone.start(&chain(1)).await, gone.start(&chain(1)).await];
    gone.close().await;
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    let messages = announced(&bus, 2).await;
    let mut announced_ids: Vec<i64> = commands(&messages);
    announced_ids.sort_unstable();
    let mut expected = Vec::new();
    for id in ids.drain(..) {
        expected.push(waiting(&store, id).await.get());
    }
    expected.sort_unstable();
    assert_eq!(announced_ids, expected);
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn announcements_stay_pending_while_the_bus_is_unavailable() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    bus.set_connected(false);
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    for _ in 0..20 {
        plane.start(&chain(1)).await;
    }
    assert!(bus.kept().is_empty());
    bus.set_connected(true);
    announced(&bus, 20).await;
    // The bus disconnects after three acks; it deduplicates the messages it stored.
    bus.leave_after(3);
    for _ in 0..20 {
        plane.start(&chain(1)).await;
    }
    until("the loss", async || !noetl_bus::EventStream::is_connected(&*bus)).await;
    bus.set_connected(true);
    let messages = announced(&bus, 40).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bus.kept().len(), messages.len(), "nothing is announced twice");
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_stream_is_recreated_with_pending_announcements() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    for _ in 0..5 {
        plane.start(&chain(1)).await;
    }
    announced(&bus, 5).await;
    bus.delete();
    let messages = announced(&bus, 5).await;
    assert_eq!(messages.len(), 5);
    // The same with one that comes just then.
    bus.delete();
    plane.start(&chain(1)).await;
    announced(&bus, 6).await;
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_named_pool_gets_its_own_consumer() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    let catalog = Some(plane.register(&chain(1)).await);
    let request =
        StartRequest { catalog, pool: Some("gpu.2 big".to_owned()), ..StartRequest::default() };
    plane.control.journal.executions.start(&plane.tenant, request).await.unwrap();
    let messages = announced(&bus, 1).await;
    assert!(
        messages[0].subject.starts_with("noetl.commands.gpu_2_big."),
        "{}",
        messages[0].subject
    );
    assert!(bus.give("worker-pool-gpu_2_big").is_some());
    assert!(bus.give(POOL).is_none());
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_unsupported_by_published_workers_are_not_announced_and_why_explains_it() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let plane = plane(&store).await;
    let announcing = announce(&store, &bus, &plane.control);
    let id = plane.start("  - {step: s, tool: {kind: sqlite, query: select 1}}\n").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(bus.kept().is_empty());
    let why = plane.control.journal.executions.why(&plane.tenant, id).await.unwrap().unwrap();
    let moves = &why.waits[0].would_move_it;
    assert!(moves.contains("no tool of kind 'sqlite'"), "{moves}");
    announcing.close().await;
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_announcer_rarely_reads_the_store() {
    let store = Arc::new(FaultyStore::default());
    let bus = Arc::new(MemoryStream::new());
    let control = ControlPlane::open(
        Options { slots: 0, ..Options::default() },
        store.clone(),
        Arc::new(SystemClock),
    );
    let plane = TestPlane::with_tools(control.await.unwrap(), noetl_tools::ToolRegistry::default());
    let announcing = announce(&store, &bus, &plane.control);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = store.command_scans();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let asked = store.command_scans() - before;
    assert!(asked <= 10, "{asked} questions about commands in 100 s");
    announcing.close().await;
    plane.close().await;
}
