//! The connection between a worker and a server.

use std::fs;

use super::{Site, WorkerProcess, claims, count, log};
use crate::dev_process::DevProcess;
use crate::noetl::{playbook, until};

/// A chain of two steps, three branches, and a step that waits for all of them. Each step notes that
/// it ran, and the branches wait until they may go on.
fn chain_and_fan(home: &str) -> String {
    let step = |name: &str, then: &str, next: &str| {
        format!(
            "  - {{step: {name}, tool: {{kind: shell, command: 'echo {name} >> {home}/runs; {then}'}}, \
             next: {{spec: {{mode: inclusive}}, arcs: [{next}]}}}}\n"
        )
    };
    let wait = format!("while [ ! -e {home}/go ]; do sleep 0.05; done");
    let mut steps = step("start", "true", "{step: second}");
    steps.push_str(&step("second", "true", "{step: a}, {step: b}, {step: c}"));
    for branch in ["a", "b", "c"] {
        steps.push_str(&step(branch, &wait, "{step: end}"));
    }
    steps.push_str(&format!(
        "  - {{step: end, tool: {{kind: shell, command: 'echo end >> {home}/runs'}}}}\n"
    ));
    playbook("{}", &steps)
}

fn is_connected(worker: &WorkerProcess) -> bool {
    worker.number("noetl_worker_connected") == 1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_loses_and_repeats_no_step() {
    let Site { home, server } = Site::new(&[]);
    let worker = WorkerProcess::start(&server.client, "w", &[]);
    until("a connection", async || is_connected(&worker)).await;
    let id = server.execute(&chain_and_fan(&home.path().display().to_string())).await;
    let runs = || fs::read_to_string(home.path().join("runs")).unwrap_or_default();
    until("the branches to run", async || runs().lines().count() == 5).await;
    let port = server.client.base().port().unwrap().to_string();
    server.kill();
    until("the worker to notice", async || !is_connected(&worker)).await;
    home.write("go", "");
    let server = DevProcess::start_alone(&home.path().join("data"), &port, &[]);
    assert_eq!(server.ended(id).await, "COMPLETED");
    assert!(is_connected(&worker));
    let runs = runs();
    let mut runs: Vec<&str> = runs.lines().collect();
    runs.sort_unstable();
    assert_eq!(runs, ["a", "b", "c", "end", "second", "start"]);
    let log = log(&server.client, id).await;
    assert_eq!((claims(&log), count(&log, "command.expired")), (vec!["w"; 6], 0));
    assert_eq!(worker.number("noetl_worker_commands_done_total"), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_connections_uses_long_polls() {
    let Site { home, server } = Site::new(&[]);
    let mut command = std::process::Command::new(crate::noetl::PROGRAM);
    command.args(["worker", "--server", server.client.base().as_str(), "--name", "w"]);
    command.args(["--listen", "127.0.0.1:0"]).env("NOETL_WORKER_TRANSPORT", "long_poll");
    let worker = WorkerProcess::start_as(command);
    home.write("go", "");
    let id = server.execute(&chain_and_fan(&home.path().display().to_string())).await;
    assert_eq!(server.ended(id).await, "COMPLETED");
    assert!(!is_connected(&worker));
    assert_eq!(worker.number("noetl_worker_commands_done_total"), 6);
}
