use std::sync::Arc;

use noetl_control::Options;
use noetl_model::Fact;
use noetl_store::ExecutionStatus;
use noetl_testkit::FrailStore;

use crate::plant::{Gate, Plant, count};

const HELD: &str = "  - {step: a, tool: {kind: shell, command: x}, next: {arcs: [{step: b}]}}\n  \
                    - {step: b, tool: {kind: noop}}\n";

#[tokio::test(start_paused = true)]
async fn a_command_that_ran_when_the_process_ended_runs_again() {
    let store = Arc::new(FrailStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 2, &gate).await;
    let id = plant.start(HELD).await;
    gate.begun(1).await;
    plant.close().await;

    let plant = Plant::open(&store, 2, &gate).await;
    assert_eq!(plant.control.resumed, 1);
    gate.begun(1).await;
    gate.open.add_permits(1);
    assert_eq!(plant.finished(id).await.status, ExecutionStatus::Completed);
    let log = plant.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandExpired { .. })), 1);
    // The gate answers with the attempt: only the second one's answer is in the log.
    let answered =
        |fact: &Fact| matches!(fact, Fact::CallDone { data, .. } if data.as_i64() == Some(2));
    assert_eq!(count(&log, answered), 1);
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_that_waited_for_a_slot_wait_again() {
    let store = Arc::new(FrailStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 1, &gate).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(plant.start(HELD).await);
    }
    gate.begun(1).await;
    plant.close().await;

    let plant = Plant::open(&store, 1, &gate).await;
    assert_eq!(plant.control.resumed, 3);
    gate.open.add_permits(3);
    for id in ids {
        assert_eq!(plant.finished(id).await.status, ExecutionStatus::Completed);
    }
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_told_not_to_resume_leaves_others_alone() {
    let store = Arc::new(FrailStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 1, &gate).await;
    let id = plant.start(HELD).await;
    gate.begun(1).await;
    plant.close().await;

    let options = Options { slots: 1, resume: false, ..Options::default() };
    let plant = Plant::with(&store, options, &gate).await;
    let other = plant.start("  - {step: a, tool: {kind: noop}}\n").await;
    assert_eq!(plant.finished(other).await.status, ExecutionStatus::Completed);
    let row = plant.control.executions.get(&plant.tenant, id).await.unwrap().unwrap();
    assert_eq!(row.status, ExecutionStatus::Running);
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_playbook_registered_again_does_not_change_what_runs() {
    let store = Arc::new(FrailStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 1, &gate).await;
    let id = plant.start(HELD).await;
    gate.begun(1).await;
    plant.register("  - {step: a, tool: {kind: noop}}\n").await;
    plant.close().await;

    let plant = Plant::open(&store, 1, &gate).await;
    gate.open.add_permits(1);
    assert_eq!(plant.finished(id).await.status, ExecutionStatus::Completed);
    let log = plant.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::StepExited { .. })), 2);
    plant.close().await;
}

#[tokio::test]
async fn a_document_of_a_kind_nobody_knows_is_not_registered() {
    let store = Arc::new(FrailStore::default());
    let plant = Plant::open(&store, 1, &Gate::new()).await;
    let register = |kind: &str, force| {
        let text = format!("kind: {kind}\nmetadata: {{name: x}}\nworkflow: []\n");
        plant.control.catalog.register(&plant.tenant, text, "playbook", force)
    };
    assert!(register("Playbok", false).await.is_err());
    assert!(register("Playbok", true).await.is_ok());
    assert!(register("Agent", false).await.is_ok());
    // Of the kinds it knows, it looks into those it can check.
    assert!(register("Subscription", false).await.is_err());
    plant.close().await;
}
