//! Workers and servers that die, sleep and go.

use std::fs;

use noetl_api::calls;
use noetl_test_services::postgres::TestDatabase;
use rustix::process::Signal;

use super::{SHORT, Site, WorkerProcess, claims, count, log};
use crate::dev_process::DevProcess;
use crate::noetl::{one_step, until};
use crate::replicas::{ended_whole, fan, start, until_claimed};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_suspended_past_its_lease_changes_nothing() {
    let site = Site::new(&SHORT);
    let sleeper = site.worker("sleeper");
    let id = site.server.execute(&site.waiting()).await;
    site.begun(1).await;
    sleeper.send(Signal::STOP);
    let second = site.worker("second");
    site.begun(2).await;
    site.go();
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    sleeper.send(Signal::CONT);
    let gave_up = || {
        sleeper.number("noetl_worker_commands_lost_total")
            + sleeper.number("noetl_worker_reports_late_total")
    };
    until("the sleeper to hear of it", async || gave_up() > 0).await;
    until("it to hold nothing", async || sleeper.number("noetl_worker_commands_running") == 0)
        .await;
    assert_eq!(sleeper.number("noetl_worker_commands_done_total"), 0);
    assert_eq!(second.number("noetl_worker_commands_done_total"), 1);
    let log = log(site.client(), id).await;
    // Its last call for commands was still open, so it may have been given them once more.
    let claims = claims(&log);
    let (last, others) = claims.split_last().unwrap();
    assert!(*last == "second" && others.iter().all(|it| *it == "sleeper"), "{claims:?}");
    assert_eq!(count(&log, "command.expired"), others.len());
    assert_eq!((count(&log, "step.exit"), count(&log, "playbook.completed")), (1, 1));
    assert_eq!(site.client().status(id).await.unwrap().status, "COMPLETED");
    // It takes part again. The other one has gone in peace: killed, it could take the command with it.
    second.send(Signal::TERM);
    assert_eq!(second.end().0, Some(0));
    let id = site.server.execute(&one_step("{kind: shell, command: 'true'}")).await;
    assert_eq!(site.server.ended(id).await, "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_during_a_server_outage_are_reported_afterwards() {
    let Site { home, server } = Site::new(&[]);
    let worker = WorkerProcess::start(&server.client, "w", &[]);
    let site = Site { home, server };
    let id = site.server.execute(&site.waiting()).await;
    site.begun(1).await;
    let port = site.client().base().port().unwrap().to_string();
    let Site { home, server } = site;
    server.kill();
    until("the worker to notice", async || worker.ask("/health").contains(r#""server":"away""#))
        .await;
    assert!(worker.ask("/health").starts_with("HTTP/1.1 200"), "it is well all the same");
    home.write("go", "");
    until("the report to be tried in vain", async || {
        worker.number("noetl_worker_calls_unanswered_total") > 3
    })
    .await;
    let server = DevProcess::start_alone(&home.path().join("data"), &port, &[]);
    assert_eq!(server.ended(id).await, "COMPLETED");
    let log = log(&server.client, id).await;
    assert_eq!((claims(&log), count(&log, "command.expired")), (vec!["w"], 0));
    let site = Site { home, server };
    assert_eq!(site.runs(), 1);
    // The worker runs later commands.
    let id = site.server.execute(&one_step("{kind: shell, command: 'true'}")).await;
    assert_eq!(site.server.ended(id).await, "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_cancelled_execution_is_stopped_in_the_worker() {
    let site = Site::new(&SHORT);
    let worker = site.worker("w");
    let home = site.home.path().display();
    // Numbers of processes mean others in a sandbox; the time it sleeps is seen from here.
    let mark = format!("{}007", std::process::id());
    let tool = format!("{{kind: shell, command: 'echo 1 > {home}/begun; sleep {mark}; true'}}");
    let id = site.server.execute(&one_step(&tool)).await;
    let runs = || {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let mut lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
    };
    until("the step to begin", async || runs()).await;
    site.client().cancel(id, None).await.unwrap();
    until("its program to end", async || !runs()).await;
    until("the worker to hold nothing", async || {
        worker.number("noetl_worker_commands_running") == 0
    })
    .await;
    assert_eq!(site.client().status(id).await.unwrap().status, "CANCELLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_finishes_its_commands_and_exits() {
    let site = Site::new(&[]);
    let worker = site.worker("w");
    let id = site.server.execute(&site.waiting()).await;
    site.begun(1).await;
    worker.send(Signal::TERM);
    // It takes no more.
    let next = start(site.client(), &site.waiting(), 1).await[0];
    site.go();
    let (code, output) = worker.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.ends_with("stopping: waiting for running steps; the rest is released\n"),
        "{output}"
    );
    assert_eq!(site.client().status(id).await.unwrap().status, "COMPLETED");
    assert_eq!(site.client().status(next).await.unwrap().status, "RUNNING");
    assert_eq!(site.runs(), 1);
    let left = site.client().ask(calls::workers(None, None)).await.unwrap().value;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_exceed_the_stop_timeout_are_released() {
    let site = Site::new(&SHORT);
    let hasty = WorkerProcess::start(site.client(), "hasty", &["--grace", "0"]);
    let id = site.server.execute(&site.waiting()).await;
    site.begun(1).await;
    hasty.send(Signal::TERM);
    let (code, output) = hasty.end();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.ends_with("steps that took too long to end were given back\n"), "{output}");
    let _patient = site.worker("patient");
    site.begun(2).await;
    site.go();
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    assert_eq!(claims(&log(site.client(), id).await), ["hasty", "patient"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_on_postgres_finish_commands_of_a_dead_worker() {
    let database = TestDatabase::new();
    let server = DevProcess::start_on(&database.url(), 0, &SHORT);
    let one = WorkerProcess::start(&server.client, "one", &[]);
    let _other = WorkerProcess::start(&server.client, "other", &[]);
    let started = start(&server.client, &fan(10), 4).await;
    until_claimed(&server.client, &started, 2).await;
    one.kill();
    for id in started {
        let log = ended_whole(&server.client, id, 12).await;
        assert!(claims(&log).iter().all(|worker| ["one", "other"].contains(worker)));
    }
}
