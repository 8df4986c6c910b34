//! NATS is unavailable, killed, wiped, or duplicates messages: every step completes once.

use std::time::Duration;

use noetl_bus::{CommandBus as _, EventStream, StreamMessage};
use noetl_model::{ExecutionId, Map};
use noetl_test_app::TestApp;
use noetl_test_app::published_worker::PublishedWorker;
use noetl_test_services::nats::TestNats;

use crate::published_worker::fixture::{
    Supervised, app, bus, counted, early_app, ended, execute, options, playbook, ready, register,
    until,
};

const STREAM: &str = "noetl_commands";

/// Steps of one execution.
const STEPS: usize = 5;

/// Executions in flight.
const TIMES: usize = 8;

fn chain() -> String {
    let steps = (0..STEPS).map(|step| {
        let next = match step + 1 < STEPS {
            true => format!(", next: {{arcs: [{{step: s{}}}]}}", step + 1),
            false => String::new(),
        };
        format!("  - {{step: s{step}, tool: {{kind: noop}}{next}}}\n")
    });
    playbook("{}", &steps.collect::<String>())
}

async fn begin(app: &TestApp) -> Vec<ExecutionId> {
    register(app, &chain()).await;
    let mut ids = Vec::new();
    for _ in 0..TIMES {
        ids.push(execute(app, "tests/test", Map::new()).await);
    }
    ids
}

/// Waits until every execution completed, and checks that each step has one result.
async fn all_end(app: &TestApp, ids: &[ExecutionId]) {
    for &id in ids {
        // A restart of a worker reissues its commands.
        let is_over = async || {
            app.control.remote.leasing.expire_overdue().await.unwrap();
            app.client.status(id).await.unwrap().status != "RUNNING"
        };
        until("the end of an execution", is_over).await;
        assert_eq!(ended(app, id).await.0, "COMPLETED", "{id}");
        let log = counted(app, id).await;
        for kind in ["call.done", "step.exit"] {
            assert_eq!(log.get(kind), Some(&STEPS), "{id} {kind}: {log:?}");
        }
        assert_eq!(log.get("playbook.completed"), Some(&1), "{id}");
    }
}

/// Waits until some steps have run, but not all.
async fn until_some_steps_ran(app: &TestApp, ids: &[ExecutionId]) {
    until("some steps", async || {
        let mut done = 0;
        for &id in ids {
            done += counted(app, id).await.get("call.done").copied().unwrap_or(0);
        }
        done >= STEPS
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_deleted_during_a_run_is_rebuilt_from_the_database() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let _worker = Supervised::start(options(&app, &nats, "w1"));
    let ids = begin(&app).await;
    for _ in 0..2 {
        until_some_steps_ran(&app, &ids).await;
        nats.delete_stream(STREAM).await;
        ready(&nats).await;
    }
    all_end(&app, &ids).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_finish_after_nats_is_killed_and_restarted() {
    let mut nats = TestNats::start();
    let app = app(&nats).await;
    let _worker = Supervised::start(options(&app, &nats, "w1"));
    let mut ids = begin(&app).await;
    until_some_steps_ran(&app, &ids).await;
    nats.kill();
    // Executions start without NATS.
    ids.extend(begin(&app).await);
    nats.restart();
    all_end(&app, &ids).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_announcements_are_published_once_nats_starts() {
    let mut nats = TestNats::stopped();
    let app = early_app(&nats).await;
    let ids = begin(&app).await;
    nats.restart();
    ready(&nats).await;
    let _worker = Supervised::start(options(&app, &nats, "w1"));
    all_end(&app, &ids).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_and_late_announcements_change_nothing() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let ids = begin(&app).await;
    until("the announcements", async || nats.messages(STREAM).await.len() >= TIMES).await;
    let announced = nats.messages(STREAM).await;
    let again = async |mark: &str| {
        let bus = bus(&nats);
        bus.connected().await;
        let copies = announced.iter().map(|message| StreamMessage {
            subject: message.subject.clone(),
            id: format!("{} {mark}", message.id),
            payload: message.payload.clone(),
        });
        let copies: Vec<StreamMessage> = copies.collect();
        assert!(bus.publish(copies).await.iter().all(Result::is_ok));
    };
    // The server removes announcements of commands that are claimed already, so some copies may never
    // reach a worker; the others are claimed, which succeeds only for the holder.
    let watching = bus(&nats);
    watching.connected().await;
    let is_drained = async || {
        let state = watching.state(STREAM).await;
        let state = state.expect("an answer").expect("the stream");
        state.consumers.iter().all(|consumer| consumer.backlog() == 0)
    };
    again("twice").await;
    let first = PublishedWorker::start(options(&app, &nats, "w1"));
    let second = PublishedWorker::start(options(&app, &nats, "w2"));
    all_end(&app, &ids).await;
    until("every copy to be read or removed", is_drained).await;
    // Long after all executions finished.
    let claims = || [first.stats.claims(), second.stats.claims()];
    let before = claims().map(|claims| claims.len());
    again("late").await;
    until("every late copy to be read or removed", is_drained).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    for (claims, before) in claims().iter().zip(before) {
        let late = &claims[before..];
        assert!(late.iter().all(|status| *status == 409), "no late claim succeeds: {late:?}");
    }
    all_end(&app, &ids).await;
    first.kill().await;
    second.kill().await;
    app.close().await;
}
