//! Faults of processes that users of other engines reported, each under its own name: the run ends as
//! it does without the fault. Others are in the modules of this name in `noetl-control`,
//! `noetl-server` and `noetl-store-postgres`.

use noetl_test_services::nats::TestNats;

use super::{SHORT, Site, WorkerProcess, claims, count, log};
use crate::noetl::{playbook, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_reconnects_while_a_task_runs() {
    let mut nats = TestNats::start();
    let site = Site::new(&[("NOETL_NATS_URL", nats.url())]);
    let worker = WorkerProcess::start(site.client(), "w", &["--nats-url", nats.url()]);
    let hears = async |wanted: u64| {
        until("the bus to come or go", async || worker.number("noetl_worker_bus_up") == wanted)
            .await;
    };
    hears(1).await;
    let id = site.server.execute(&site.waiting()).await;
    site.begun(1).await;
    for _ in 0..2 {
        tokio::task::block_in_place(|| nats.kill());
        hears(0).await;
        tokio::task::block_in_place(|| nats.restart());
        hears(1).await;
    }
    assert_eq!(worker.number("noetl_worker_commands_running"), 1, "it runs on");
    site.go();
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    let log = log(site.client(), id).await;
    assert_eq!(claims(&log), ["w"], "it was taken once");
    assert_eq!((count(&log, "command.expired"), count(&log, "step.exit")), (0, 1));
    assert_eq!(site.runs(), 1);
}

/// A step whose process is killed as by a kernel without memory, the first time it runs.
fn killed_once(site: &Site, policy: &str) -> String {
    let home = site.home.path().display();
    let command = format!("echo run >> {home}/runs; if [ ! -e {home}/go ]; then kill -9 $$; fi");
    playbook(
        "{}",
        &format!("  - {{step: start, tool: {{kind: shell, command: '{command}'{policy}}}}}\n"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_killed_by_the_oom_killer_in_the_middle() {
    let site = Site::new(&SHORT);
    let _worker = site.worker("w");
    // Without a retry, the step fails with the cause and affects nothing else.
    let id = site.server.execute(&killed_once(&site, "")).await;
    assert_eq!(site.server.ended(id).await, "FAILED");
    let error = site.client().status(id).await.unwrap().error.unwrap_or_default();
    assert!(error.contains("signal") || error.contains("137"), "{error}");

    let retry = ", spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\", \
                 then: {do: retry, attempts: 100, delay: 0.2}}]}}";
    let id = site.server.execute(&killed_once(&site, retry)).await;
    site.begun(3).await;
    site.go();
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    let log = log(site.client(), id).await;
    assert_eq!((count(&log, "command.expired"), count(&log, "step.exit")), (0, 1));
    assert_eq!(claims(&log), ["w"], "the worker lived on, and so did its command");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_by_the_oom_killer_in_the_middle_of_a_step() {
    let site = Site::new(&SHORT);
    let first = site.worker("first");
    let id = site.server.execute(&site.waiting()).await;
    site.begun(1).await;
    first.kill();
    let _second = site.worker("second");
    site.begun(2).await;
    site.go();
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    let log = log(site.client(), id).await;
    assert_eq!(claims(&log), ["first", "second"]);
    assert_eq!((count(&log, "command.expired"), count(&log, "step.exit")), (1, 1));
}
