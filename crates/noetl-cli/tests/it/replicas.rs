//! Two processes on one Postgres database.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use noetl_api::Client;
use noetl_api::catalog::RegisterRequest;
use noetl_api::events::EventView;
use noetl_api::execute::ExecuteRequest;
use noetl_model::ExecutionId;
use noetl_test_app::migrated_database;
use noetl_test_services::postgres::TestServer;
use rustix::process::Signal;

use crate::dev_process::DevProcess;
use crate::noetl::{Home, one_step, playbook, until};

/// A step that leads to `width` others of a short shell command, which all lead to one.
pub(crate) fn fan(width: usize) -> String {
    let arcs: Vec<String> = (0..width).map(|n| format!("{{step: s{n}}}")).collect();
    let mut steps = format!(
        "  - {{step: start, next: {{spec: {{mode: inclusive}}, arcs: [{}]}}}}\n",
        arcs.join(", ")
    );
    for n in 0..width {
        steps.push_str(&format!(
            "  - {{step: s{n}, tool: {{kind: shell, command: 'sleep 0.1'}}, \
             next: {{arcs: [{{step: end}}]}}}}\n"
        ));
    }
    steps.push_str("  - {step: end, tool: {kind: noop}}\n");
    playbook("{}", &steps)
}

/// Registers a playbook and starts it so often.
pub(crate) async fn start(client: &Client, playbook: &str, times: usize) -> Vec<ExecutionId> {
    client.register(&RegisterRequest::playbook(playbook), false).await.unwrap();
    let mut started = Vec::new();
    for _ in 0..times {
        let request = ExecuteRequest::path("tests/test", serde_json::Map::new());
        let reply = client.execute(&request).await.unwrap();
        started.push(ExecutionId::new(reply.execution_id.get()));
    }
    started
}

/// Waits until an execution has ended well, and checks that its log has no gap, ends once, gives ids
/// in its order, and leaves each step once. Returns the log.
pub(crate) async fn ended_whole(client: &Client, id: ExecutionId, steps: usize) -> Vec<EventView> {
    until("the execution to end", async || client.status(id).await.unwrap().status != "RUNNING")
        .await;
    assert_eq!(client.status(id).await.unwrap().status, "COMPLETED");
    let log = client.log(id, 0, 100_000).await.unwrap().events;
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut ends, mut newest) = (0, 0);
    for (place, event) in (1..).zip(&log) {
        assert_eq!(event.seq, place, "a gap in {id}");
        assert!(event.event_id.get() > newest, "{id}: the id of {place} is below one before it");
        newest = event.event_id.get();
        match event.event_type.as_deref().unwrap_or_default() {
            "step.exit" => {
                *left.entry(event.node_name.as_deref().unwrap_or_default()).or_default() += 1;
            }
            "playbook.completed" => ends += 1,
            _ => {}
        }
    }
    assert_eq!((ends, left.len()), (1, steps), "{id}: {left:?}");
    assert!(left.values().all(|&times| times == 1), "{id}: {left:?}");
    log
}

/// Returns the workers that claimed commands.
pub(crate) fn workers(log: &[EventView]) -> BTreeSet<String> {
    let claims = log.iter().filter(|event| event.event_type.as_deref() == Some("command.claimed"));
    claims.filter_map(|event| event.worker_id.clone()).collect()
}

/// Waits until this many processes took commands of these executions.
pub(crate) async fn until_claimed(client: &Client, executions: &[ExecutionId], processes: usize) {
    until("processes to run steps", async || {
        let mut names = BTreeSet::new();
        for &id in executions {
            names.extend(workers(&client.log(id, 0, 100_000).await.unwrap().events));
        }
        names.len() >= processes
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_finishes_the_commands_of_a_killed_process() {
    let database = migrated_database();
    let one = DevProcess::start_on(&database.url(), 3, &[]);
    let other = DevProcess::start_on(&database.url(), 3, &[]);
    let started = start(&one.client, &fan(10), 6).await;
    until_claimed(&other.client, &started, 2).await;
    one.kill();
    let mut again = 0;
    for id in started {
        let log = ended_whole(&other.client, id, 12).await;
        let is_expiry = |event: &&EventView| event.event_type.as_deref() == Some("command.expired");
        again += log.iter().filter(is_expiry).count();
    }
    assert!(again > 0, "the kill hit no running command, so nothing was shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_get_retry_after_while_the_database_is_unavailable() {
    let mut server = TestServer::start(&["fsync=off"]);
    let settings = [("POSTGRES_ACQUIRE_TIMEOUT", "1")];
    let process = DevProcess::start_on(server.url(), 3, &settings);
    let started = start(&process.client, &fan(10), 1).await;
    server.stop("fast");
    let url = format!("{}api/execute", process.client.base());
    let asked = std::process::Command::new("curl")
        .args(["-s", "-i", "-H", "content-type: application/json"])
        .args(["-d", r#"{"path": "tests/test"}"#, &url])
        .output()
        .unwrap();
    let output = String::from_utf8(asked.stdout).unwrap().to_lowercase();
    assert!(output.starts_with("http/1.1 503") && output.contains("\r\nretry-after: "), "{output}");
    server.restart();
    ended_whole(&process.client, started[0], 12).await;
}

/// A lease longer than the test, so that other processes continue only released work.
const LONG_LEASE: [(&str, &str); 1] = [("NOETL_LEASE_SECS", "3600")];

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_a_stopping_process_are_released_at_once() {
    let database = migrated_database();
    let home = Home::new();
    let gate = home.gate();
    let marker = home.path().join("go-on");
    // Runs until the file is there, which is after its first process has ended.
    let step =
        format!("{}; until [ -e '{}' ]; do sleep 0.05; done", gate.knock(), marker.display());
    let one = DevProcess::start_on(&database.url(), 1, &LONG_LEASE);
    // The second step stays pending: there is one slot.
    let steps = format!(
        "  - {{step: start, next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b}}]}}}}\n  \
         - {{step: a, tool: {{kind: shell, command: \"{step}\"}}}}\n  \
         - {{step: b, tool: {{kind: noop}}}}\n"
    );
    let id = one.execute(&playbook("{}", &steps)).await;
    gate.wait();
    let other = DevProcess::start_on(&database.url(), 4, &LONG_LEASE);
    let (code, output) = one.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{output}");
    gate.wait();
    std::fs::write(&marker, "").unwrap();
    let log = ended_whole(&other.client, id, 3).await;
    let expired: Vec<_> =
        log.iter().filter(|event| event.event_type.as_deref() == Some("command.expired")).collect();
    assert_eq!(expired.len(), 1, "{expired:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_fires_the_timers_of_a_stopped_process() {
    let database = migrated_database();
    let other = DevProcess::start_on(&database.url(), 2, &LONG_LEASE);
    let one = DevProcess::start_on(&database.url(), 2, &LONG_LEASE);
    let steps = "  - {step: a, tool: {kind: wait, seconds: 3}, next: {arcs: [{step: b}]}}\n  \
                 - {step: b, tool: {kind: noop}}\n";
    let id = one.execute(&playbook("{}", steps)).await;
    let (code, output) = one.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{output}");
    ended_whole(&other.client, id, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_nonidempotent_steps_of_other_processes() {
    let database = migrated_database();
    let (home, theirs) = (Home::new(), Home::new());
    let (gate, marker) = (theirs.gate(), theirs.path().join("go-on"));
    // No worker of its own, so that the run is the one to take it.
    let server = DevProcess::start_on(&database.url(), 0, &LONG_LEASE);
    let step =
        format!("{}; until [ -e '{}' ]; do sleep 0.05; done", gate.knock(), marker.display());
    let tool = format!("{{kind: shell, command: \"{step}\", idempotent: false}}");
    let mine = home.path().join("mine");
    let began = home.gate();
    let own = format!(
        "{{kind: shell, command: \"{}; until [ -e '{}' ]; do sleep 0.05; done\"}}",
        began.knock(),
        mine.display()
    );
    home.write("test.yaml", one_step(&own).replace("tests/test", "tests/own"));
    let mut command = home.command(["run", "test.yaml", "--database-url", &database.url()]);
    command.env("NOETL_LEASE_SECS", "3600");
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    began.wait();
    let id = server.execute(&one_step(&tool)).await;
    gate.wait();
    std::fs::write(&mine, "").unwrap();
    let output = BufReader::new(run.stderr.take().unwrap()).lines().map_while(Result::ok);
    let waits = "waiting for 1 step of other executions that may not run twice";
    assert!({ output }.any(|line| line.starts_with(waits)), "the run did not wait");
    std::fs::write(&marker, "").unwrap();
    assert_eq!(server.ended(id).await, "COMPLETED");
    assert!(run.wait().unwrap().success());
}
