//! Shutdown while steps and requests are in flight.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::dev_process::DevProcess;
use crate::noetl::{Home, one_step, playbook, until};

/// Processes whose command line holds `marker`.
fn processes_with(marker: &str) -> Vec<String> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        // A process may end while it is looked at.
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(marker) {
            pids.push(format!("{} {line}", entry.file_name().display()));
        }
    }
    pids
}

/// Interrupts a run whose step started child processes, and returns its output. The marker
/// identifies these processes.
async fn interrupted(signal: Signal, marker: &str, tool: impl FnOnce(&str) -> String) -> String {
    let home = Home::new();
    let gate = home.gate();
    home.write("test.yaml", one_step(&tool(&gate.knock())));
    let run = home.start(["run", "test.yaml", "--db", "log.db"]);
    gate.wait();
    until("the step's programs", async || !processes_with(marker).is_empty()).await;
    run.send(signal);
    let output = run.end(&home);
    until("the end of the step's programs", async || processes_with(marker).is_empty()).await;
    home.write("good.yaml", one_step("{kind: noop, result: well}"));
    assert_eq!(home.noetl(["run", "good.yaml", "--db", "log.db"]).stdout, "well\n");
    output.transcript()
}

/// A shell step that leaves a program in the background and waits for another.
fn shell(marker: &str) -> impl FnOnce(&str) -> String {
    move |knock| format!("{{kind: shell, command: \"sleep {marker} & {knock}; sleep {marker}\"}}")
}

/// A Python step that waits for a program.
fn python(marker: &str) -> impl FnOnce(&str) -> String {
    move |knock| {
        format!("{{kind: python, code: \"os.system(\\\"{knock}; sleep {marker}\\\")\"}}")
            .replace("\\\"", "\\u0022")
    }
}

#[tokio::test]
async fn ctrl_c_ends_a_shell_step_and_its_child_processes() {
    let marker = "31536000.101";
    assert_snapshot!(interrupted(Signal::INT, marker, shell(marker)).await, @r"
    exit: 130
    --- stdout
    --- stderr
    tests/test cancelled in [time]: interrupted
    ");
}

#[tokio::test]
async fn ctrl_c_ends_a_python_step_and_its_child_processes() {
    let marker = "31536000.102";
    assert_snapshot!(interrupted(Signal::INT, marker, python(marker)).await, @r"
    exit: 130
    --- stdout
    --- stderr
    tests/test cancelled in [time]: interrupted
    ");
}

#[tokio::test]
async fn sigterm_to_a_run_ends_its_steps() {
    let marker = "31536000.103";
    assert_snapshot!(interrupted(Signal::TERM, marker, shell(marker)).await, @r"
    exit: 130
    --- stdout
    --- stderr
    tests/test cancelled in [time]: interrupted
    ");
}

#[tokio::test]
async fn a_step_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let marker = "31536000.104";
    let deaf = |knock: &str| {
        format!(
            "{{kind: shell, command: \"trap '' TERM; {knock}; while :; do sleep {marker}; done\"}}"
        )
    };
    assert_snapshot!(interrupted(Signal::INT, marker, deaf).await, @r"
    exit: 130
    --- stdout
    --- stderr
    tests/test cancelled in [time]: interrupted
    ");
}

#[tokio::test]
async fn a_run_is_cancelled_while_branches_wait_at_a_join() {
    let marker = "31536000.105";
    let home = Home::new();
    let gate = home.gate();
    let knock = gate.knock();
    home.write(
        "test.yaml",
        playbook(
            "{}",
            &format!(
                "  - step: start
    next: {{spec: {{mode: inclusive}}, arcs: [{{step: quick}}, {{step: slow}}, {{step: slower}}]}}
  - {{step: quick, tool: {{kind: noop}}, next: {{arcs: [{{step: end}}]}}}}
  - {{step: slow, tool: {{kind: shell, command: \"sleep {marker}\"}}, next: {{arcs: [{{step: end}}]}}}}
  - {{step: slower, tool: {{kind: shell, command: \"{knock}; sleep {marker}\"}}, next: {{arcs: [{{step: end}}]}}}}
  - {{step: end, tool: {{kind: noop, result: reached}}}}
"
            ),
        ),
    );
    let run = home.start(["run", "test.yaml"]);
    gate.wait();
    until("both branches", async || processes_with(marker).len() >= 2).await;
    run.send(Signal::INT);
    let output = run.end(&home);
    assert_eq!((output.code, output.stdout.as_str()), (Some(130), ""), "{output:?}");
    until("the end of both branches", async || processes_with(marker).is_empty()).await;
}

#[test]
fn an_unfinished_request_does_not_block_shutdown() {
    let home = Home::new();
    let data = home.path().join("data");
    let process = DevProcess::start(&data);
    let port = process.client.base().port().unwrap();
    let mut half = TcpStream::connect(("127.0.0.1", port)).unwrap();
    half.write_all(
        b"POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Content-Length: 100\r\n\r\n{",
    )
    .unwrap();
    let since = Instant::now();
    let (code, output) = process.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{output}");
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    assert_eq!(std::fs::read_to_string(data.join("noetl.db.lock")).unwrap(), "");
}
