//! C49–C54: what dies, what comes twice, what comes late.

use noetl_api::execute::{ExecuteRequest, StartDedup};
use noetl_model::{ExecutionId, Fact, Map};
use noetl_store::{ExecutionStatus, ReadBound};
use noetl_test_app::TestApp;
use noetl_views::ReplayRequest;
use serde_json::json;

use super::manual::ManualWorker;
use super::plane::{TestPlane, document, run};
use crate::dev_process::DevProcess;
use crate::noetl::{Home, playbook, until};

#[tokio::test]
async fn c49_a_command_of_a_killed_worker_is_reissued_and_completes_once() {
    let home = Home::new();
    let (gate, been) = (home.gate(), home.path().join("been"));
    let command =
        format!("if mkdir {been}; then {}; sleep 600; fi", gate.knock(), been = been.display());
    let steps = format!(
        "  - {{step: start, tool: {{kind: shell, command: \"{command}\"}}, next: {{arcs: [{{step: end}}]}}}}\n  \
           - {{step: end, tool: {{kind: noop}}}}\n"
    );
    let data = home.path().join("data");
    let first = DevProcess::start(&data);
    let id = first.execute(&playbook("{}", &steps)).await;
    gate.wait();
    first.kill();
    let second = DevProcess::start(&data);
    assert_eq!(second.ended(id).await, "COMPLETED");
    let counts = ["command.expired", "step.enter", "step.exit", "playbook.completed"];
    assert_eq!(count(&second, id, counts).await, [1, 2, 2, 1]);
}

#[tokio::test]
async fn c50_an_execution_continues_after_its_server_was_killed() {
    let home = Home::new();
    let steps = "  - {step: start, tool: {kind: noop}, next: {arcs: [{step: pause}]}}\n  \
                 - {step: pause, tool: {kind: wait, seconds: 2}, next: {arcs: [{step: end}]}}\n  \
                 - {step: end, tool: {kind: noop}}\n";
    let data = home.path().join("data");
    let first = DevProcess::start(&data);
    let id = first.execute(&playbook("{}", steps)).await;
    until("the pause", async || count(&first, id, ["command.parked"]).await == [1]).await;
    first.kill();
    let second = DevProcess::start(&data);
    assert_eq!(second.ended(id).await, "COMPLETED");
    let counts = ["command.issued", "step.enter", "step.exit", "playbook.completed"];
    assert_eq!(count(&second, id, counts).await, [3, 3, 3, 1]);
}

/// Counts the events of each of these types in an execution.
async fn count<const N: usize>(
    process: &DevProcess,
    id: ExecutionId,
    types: [&str; N],
) -> [usize; N] {
    let log = process.client.log(id, 0, 1000).await.unwrap().events;
    types.map(|wanted| {
        log.iter().filter(|event| event.event_type.as_deref() == Some(wanted)).count()
    })
}

const TWO_STEPS: &str = "  - {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}\n  \
                         - {step: b, tool: {kind: noop, result: '{{ a.n }}'}}\n";

#[tokio::test]
async fn c51_a_second_completion_changes_nothing() {
    let manual = ManualWorker::start(TWO_STEPS).await;
    let a = manual.open().await[0];
    manual.claim(a).await;
    manual.complete(a, json!({"n": 1})).await;
    let decided = manual.decided().await;
    manual.complete(a, json!({"n": 2})).await;
    manual.say("command.failed", a, json!({"error": "too late"})).await;
    assert_eq!(manual.decided().await, decided);
    let b = manual.open().await[0];
    manual.claim(b).await;
    manual.complete(b, json!(1)).await;
    let ended = manual.plane.ended(manual.id).await.expect_completed();
    let issued = ended.log.iter().find_map(|event| match &event.fact {
        Fact::CommandIssued(issued) if &*issued.step == "b" => {
            Some(issued.config["result"].clone())
        }
        _ => None,
    });
    assert_eq!((ended.entered().as_str(), issued), ("a b", Some(json!(1))));
    manual.plane.close().await;
}

#[tokio::test]
async fn c52_a_start_report_after_the_completion_changes_nothing() {
    let manual = ManualWorker::start(TWO_STEPS).await;
    let a = manual.open().await[0];
    manual.claim(a).await;
    manual.complete(a, json!({"n": 1})).await;
    let decided = manual.decided().await;
    manual.say("command.started", a, json!({})).await;
    manual.say("command.claimed", a, json!({})).await;
    assert_eq!(manual.decided().await, decided);
    let row = manual.plane.control.journal.executions.get(&manual.plane.tenant, manual.id).await;
    assert_eq!(row.unwrap().unwrap().status, ExecutionStatus::Running);
    let b = manual.open().await[0];
    manual.claim(b).await;
    manual.complete(b, json!(1)).await;
    assert_eq!(manual.plane.ended(manual.id).await.expect_completed().entered(), "a b");
    manual.plane.close().await;
}

#[tokio::test]
async fn c53_a_log_folds_to_the_same_state_each_time() {
    let plane = TestPlane::open().await;
    let id = plane
        .start("
  - {step: a, tool: {kind: noop, result: {n: 1}}, set: {ctx.n: '{{ output.n }}'},
     next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}}
  - {step: b, loop: {in: [1, 2], iterator: it, spec: {mode: parallel}}, tool: {kind: noop}, next: {arcs: [{step: j}]}}
  - {step: c, tool: {kind: shell, command: exit 1}, next: {arcs: [{step: j, on: error}]}}
  - {step: j, tool: {kind: noop}}
")
        .await;
    plane.ended(id).await.expect_completed();
    let request = ReplayRequest {
        execution: id,
        tenant: plane.tenant.clone(),
        organization: noetl_views::ORGANIZATION.to_owned(),
        until: ReadBound::default(),
        projection: Default::default(),
        limit: None,
        resolve_payloads: false,
    };
    let first = plane.control.views.replay.state(&request).await.unwrap().state;
    let second = plane.control.views.replay.state(&request).await.unwrap().state;
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    plane.close().await;
}

#[tokio::test]
async fn c54_the_same_key_starts_one_execution() {
    let app = TestApp::start(0).await;
    let text = document("t", "  - {step: a, tool: {kind: noop}}\n");
    app.client
        .register(&noetl_api::catalog::RegisterRequest::playbook(&text), false)
        .await
        .unwrap();
    let with = |key: &str| ExecuteRequest {
        dedup: Some(StartDedup { key: key.to_owned(), window_secs: 60 }),
        ..ExecuteRequest::path("t", Map::new())
    };
    let first = app.client.execute(&with("order-7")).await.unwrap().execution_id;
    let again = app.client.execute(&with("order-7")).await.unwrap().execution_id;
    let other = app.client.execute(&with("order-8")).await.unwrap().execution_id;
    assert_eq!(first, again);
    assert_ne!(first, other);
    app.close().await;
}

#[tokio::test]
async fn c53_repeated_runs_record_the_same_events() {
    let steps = "  - {step: a, tool: {kind: noop, result: {n: 3}}, next: {arcs: [{step: b, when: 'output.n > 2'}]}}\n  \
                 - {step: b, loop: {in: '{{ a.n }}', iterator: it}, tool: {kind: noop, result: '{{ it }}'}}\n";
    let shape = |ended: super::plane::FinishedRun| -> Vec<String> {
        ended.log.iter().map(|event| kind_of(&event.fact)).collect()
    };
    let (first, second) =
        (shape(run(steps).await.expect_completed()), shape(run(steps).await.expect_completed()));
    assert_eq!(first, second);
}

/// A fact without what differs from run to run.
fn kind_of(fact: &Fact) -> String {
    match fact {
        Fact::CallDone { step, data, .. } => format!("call.done {step} {data}"),
        Fact::StepEntered { step, run, .. } => format!("step.enter {step} {run}"),
        Fact::StepExited { step, next, .. } => format!("step.exit {step} {next:?}"),
        other => format!("{:?}", std::mem::discriminant(other)),
    }
}
