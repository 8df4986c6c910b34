use std::time::Duration;

use noetl_model::FailureKind;
use noetl_tools::{Environment, Options, ToolRegistry};
use serde_json::json;

use crate::harness::{CapturedLog, assert_gone, call, detail, map, registry, run};

#[tokio::test]
async fn a_command_returns_its_streams() {
    let answer = run("shell", json!({"command": "echo out; echo err >&2"})).await;
    assert_eq!(answer, Ok(json!({"exit_code": 0, "stdout": "out\n", "stderr": "err\n"})));
    let answer = run("shell", json!({"command": ""})).await;
    assert_eq!(answer, Ok(json!({"exit_code": 0, "stdout": "", "stderr": ""})));
}

#[tokio::test]
async fn commands_run_in_order_until_one_fails() {
    let answer = run("shell", json!({"cmds": ["x=1", "echo $x", "echo 'grün'"]})).await.unwrap();
    assert_eq!(answer["stdout"], "1\ngrün\n");
    let failure = run("shell", json!({"cmds": ["echo a", "false", "echo b"]})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ExitCode);
    assert_eq!(detail(&failure, "stdout"), "a\n");
}

#[tokio::test]
async fn a_failed_command_returns_its_code_and_last_output() {
    let command = "echo hm; echo one >&2; echo two >&2; exit 3";
    let failure = run("shell", json!({"command": command})).await.unwrap_err();
    assert_eq!(failure.message, "the command ended with exit code 3: two");
    assert_eq!(
        failure.details,
        Some(Box::new(json!({"exit_code": 3, "stdout": "hm\n", "stderr": "one\ntwo\n"})))
    );
    let failure = run("shell", json!({"command": "kill -SEGV $$"})).await.unwrap_err();
    assert_eq!(failure.message, "the command was killed by signal 11 (SIGSEGV)");
    assert_eq!(detail(&failure, "exit_code"), 139);
}

#[tokio::test]
async fn a_command_sees_its_settings_and_input_but_not_the_workers_environment() {
    let environment = Environment {
        set: [("EXTRA".to_owned(), "1".to_owned())].into(),
        ..Environment::default()
    };
    let tools = ToolRegistry::standard(Options { environment, ..Options::default() });
    let mut step = call(json!({
        "command": "echo \"$A $NOETL_INPUT $NOETL_STEP $EXTRA [$CARGO_MANIFEST_DIR]\"; pwd; cat",
        "env": {"A": 5, "B": null},
        "cwd": "/",
    }));
    step.input = map(json!({"PATH": "/nowhere", "n": [1]}));
    let answer = tools.run("shell", step).await.unwrap();
    assert_eq!(answer["stdout"], "5 {\"PATH\":\"/nowhere\",\"n\":[1]} load 1 []\n/\n");
}

#[tokio::test]
async fn the_directory_of_a_command_is_new_and_removed_afterwards() {
    let answer = run("shell", json!({"command": "touch x; mkdir y; pwd; ls -A"})).await.unwrap();
    let lines: Vec<_> = answer["stdout"].as_str().unwrap().lines().collect();
    assert_eq!(lines[1..], ["x", "y"]);
    for _ in 0..500 {
        if !std::path::Path::new(lines[0]).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} is still there", lines[0]);
}

#[tokio::test]
async fn output_that_is_not_utf8_is_shown_with_replacement_characters() {
    let answer = run("shell", json!({"command": "printf 'a\\377b'"})).await.unwrap();
    assert_eq!(answer["stdout"], "a\u{fffd}b");
}

#[tokio::test]
async fn endless_output_ends_the_step_at_once() {
    for (command, stream) in [("yes", "stdout"), ("head -c 2000000000 /dev/zero >&2", "stderr")] {
        let failure = run("shell", json!({"command": command})).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::OutputLimit);
        assert_eq!(
            failure.message,
            format!(
                "the command was killed because its {stream} passed 1048576 bytes; redirect large \
                 output to a file"
            )
        );
    }
    let command = "head -c 1048576 /dev/zero | tr '\\0' x";
    let answer = run("shell", json!({"command": command})).await.unwrap();
    assert_eq!(answer["stdout"].as_str().unwrap().len(), 1_048_576);
}

/// A shell that ignores the polite signal, with a child that does too, and says both pids.
const STUBBORN: &str =
    "trap '' TERM; sleep 1000 & echo \"child $!\"; echo \"shell $$\"; wait; wait";

#[tokio::test]
async fn a_timeout_kills_the_whole_group() {
    let captured = CapturedLog::default();
    let mut step = call(json!({"command": STUBBORN, "timeout": 0.7}));
    step.logs = captured.sink();
    let failure = registry().run("shell", step).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.message, "step 'load' took longer than its limit of 700ms");
    assert!(failure.retryable);
    assert_gone(&captured.line("child").await).await;
    assert_gone(&captured.line("shell").await).await;
}

#[tokio::test]
async fn a_cancel_kills_the_whole_group() {
    let captured = CapturedLog::default();
    let mut step = call(json!({"command": STUBBORN}));
    step.logs = captured.sink();
    let cancel = step.cancel.clone();
    let running = tokio::spawn(async move { registry().run("shell", step).await });
    let pids = (captured.line("child").await, captured.line("shell").await);
    cancel.cancel();
    let failure = running.await.unwrap().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert_gone(&pids.0).await;
    assert_gone(&pids.1).await;
}

#[tokio::test]
async fn a_program_can_clean_up_on_sigterm() {
    let captured = CapturedLog::default();
    let command = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let mut step = call(json!({"command": command}));
    step.logs = captured.sink();
    let cancel = step.cancel.clone();
    let running = tokio::spawn(async move { registry().run("shell", step).await });
    captured.line("ready").await;
    cancel.cancel();
    let failure = running.await.unwrap().unwrap_err();
    assert_eq!(detail(&failure, "stdout"), "ready\ncleaned\n");
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_running() {
    let captured = CapturedLog::default();
    let mut step = call(json!({"command": STUBBORN}));
    step.logs = captured.sink();
    let running = tokio::spawn(async move { registry().run("shell", step).await });
    let pids = (captured.line("child").await, captured.line("shell").await);
    running.abort();
    assert_gone(&pids.0).await;
    assert_gone(&pids.1).await;
}

#[tokio::test]
async fn background_processes_of_a_shell_step_are_killed_at_its_end() {
    let answer = run("shell", json!({"command": "sleep 1000 & echo $!"})).await.unwrap();
    assert_gone(answer["stdout"].as_str().unwrap().trim()).await;
}

#[tokio::test]
async fn errors_name_the_invalid_setting() {
    for (config, message) in [
        (json!({}), "a shell step needs `command` (a text) or `cmds` (a list)"),
        (json!({"command": 1}), "`command` must be a text or a list, not a number"),
        (json!({"cmds": [1]}), "`cmds` must list texts, not a number"),
        (json!({"command": "a\0"}), "`command` holds a NUL character"),
        (json!({"command": "", "env": []}), "`env` must be a map, not a list"),
        (json!({"command": "", "cwd": "/nowhere"}), "`cwd` '/nowhere' is not a directory"),
    ] {
        let failure = run("shell", config).await.unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Config, message));
    }
    let mut step = call(json!({"command": "true"}));
    step.input = map(json!({"big": "x".repeat(300_000)}));
    let failure = registry().run("shell", step).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config);
}
