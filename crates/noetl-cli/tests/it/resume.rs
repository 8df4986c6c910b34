//! Recovery of executions of an earlier process.

use noetl_api::{Client, events::EventView};
use noetl_model::ExecutionId;
use rustix::process::Signal;

use crate::dev_process::DevProcess;
use crate::noetl::{Gate, Home, one_step};

/// A step that knocks and then takes as long as its test, but only the first time.
fn long_step(home: &Home, gate: &Gate) -> String {
    let knock = gate.knock();
    let been_here = home.path().join("been-here");
    let been_here = been_here.display();
    one_step(&format!(
        "{{kind: shell, command: \"if mkdir {been_here}; then {knock}; while [ -d {been_here} ]; do sleep 0.1; done; fi\"}}"
    ))
}

async fn log(client: &Client, id: ExecutionId) -> Vec<EventView> {
    client.log(id, 0, 1000).await.unwrap().events
}

async fn resumed_once(after: impl FnOnce(DevProcess)) {
    let home = Home::new();
    let gate = home.gate();
    let data = home.path().join("data");
    let first = DevProcess::start(&data);
    let id = first.execute(&long_step(&home, &gate)).await;
    gate.wait();
    after(first);

    let second = DevProcess::start(&data);
    let status = second.ended(id).await;
    let events = log(&second.client, id).await;
    let types: Vec<&str> = events.iter().filter_map(|event| event.event_type.as_deref()).collect();
    let count = |wanted: &str| types.iter().filter(|&&event_type| event_type == wanted).count();
    assert_eq!(status, "COMPLETED", "{types:?}");
    assert_eq!(count("command.expired"), 1, "{types:?}");
    assert_eq!(count("command.issued"), 2, "{types:?}");
    let (code, output) = second.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("resumed   1 command"), "{output}");
}

#[tokio::test]
async fn a_step_running_when_the_process_is_killed_is_reissued_once() {
    resumed_once(DevProcess::kill).await;
}

#[tokio::test]
async fn a_step_running_at_shutdown_is_reissued_once() {
    resumed_once(|process| {
        let (code, output) = process.stop(Signal::TERM);
        assert_eq!(code, Some(0), "{output}");
    })
    .await;
}

#[tokio::test]
async fn an_unreadable_execution_does_not_block_recovery_of_others() {
    let home = Home::new();
    let gate = home.gate();
    let data = home.path().join("data");
    let first = DevProcess::start(&data);
    let damaged = first.execute(&long_step(&home, &gate)).await;
    gate.wait();
    first.kill();
    damage(&home, damaged);

    let second = DevProcess::start(&data);
    let id = second.execute(&one_step("{kind: noop}")).await;
    assert_eq!(second.ended(id).await, "COMPLETED");
    let (code, output) = second.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("failed to recover execution, skipping"), "{output}");
    assert!(output.contains(&damaged.to_string()), "{output}");
}

/// Makes the beginning of an execution unreadable.
fn damage(home: &Home, execution: ExecutionId) {
    let script = "import sqlite3, sys
c = sqlite3.connect('data/noetl.db')
c.execute('update event_append set body = ? where execution_id = ? and first_seq = 1', ('[', int(sys.argv[1])))
c.commit()";
    let python = home.other("python3").args(["-c", script, &execution.to_string()]).status();
    assert!(python.unwrap().success());
}
