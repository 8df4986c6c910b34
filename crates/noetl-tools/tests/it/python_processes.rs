//! Every way a Python step's process, or the template's, can end.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use noetl_model::FailureKind;
use noetl_tools::{Options, ToolRegistry};
use serde_json::json;

use crate::harness::{CapturedLog, assert_gone, call, detail, registry};

/// Never ends, nor does its child, and says both pids.
const ENDLESS: &str = "\
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(['sleep', '1000'])
print('child', child.pid)
print('step', os.getpid())
print('template', os.getppid())
while True: time.sleep(1000)
";

#[tokio::test]
async fn a_timeout_kills_the_step_and_its_children() {
    let tools = registry();
    let captured = CapturedLog::default();
    let mut step = call(json!({"code": ENDLESS}));
    step.timeout = Some(Duration::from_millis(1500));
    step.logs = captured.sink();
    let failure = tools.run("python", step).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.message, "step 'load' took longer than its limit of 1.5s");
    assert!(detail(&failure, "stdout").as_str().unwrap().starts_with("child"));
    assert_gone(&captured.line("child").await).await;
    assert_gone(&captured.line("step").await).await;
    assert_eq!(tools.run("python", call(json!({"code": "result = 1"}))).await, Ok(json!(1)));
}

#[tokio::test]
async fn a_cancel_or_a_drop_kills_the_step_and_its_children() {
    for cancelled in [true, false] {
        let tools = registry();
        let captured = CapturedLog::default();
        let mut step = call(json!({"code": ENDLESS}));
        step.logs = captured.sink();
        let cancel = step.cancel.clone();
        let running = tokio::spawn({
            let tools = tools.clone();
            async move { tools.run("python", step).await }
        });
        let pids = (captured.line("child").await, captured.line("step").await);
        if cancelled {
            cancel.cancel();
            let failure = running.await.unwrap().unwrap_err();
            assert_eq!(failure.kind, FailureKind::Cancelled);
        } else {
            running.abort();
        }
        assert_gone(&pids.0).await;
        assert_gone(&pids.1).await;
    }
}

#[tokio::test]
async fn a_step_that_dies_without_a_result_is_reported_at_once() {
    let tools = registry();
    for (code, message, exit_code) in [
        ("os._exit(3)", "the step's process ended with exit code 3 before it gave a result", 3),
        ("os._exit(0)", "the step's process ended with exit code 0 before it gave a result", 0),
        (
            "import ctypes\nctypes.string_at(0)",
            "the step's process was killed by signal 11 (SIGSEGV) before it gave a result",
            139,
        ),
        (
            "os.kill(os.getpid(), 9)",
            "the step's process was killed by signal 9 (SIGKILL, often for lack of memory) before \
             it gave a result",
            137,
        ),
    ] {
        let failure = tools.run("python", call(json!({"code": code}))).await.unwrap_err();
        assert_eq!((failure.kind.as_str(), failure.message.as_str()), ("exit_code", message));
        assert_eq!(detail(&failure, "exit_code"), exit_code);
    }
}

#[tokio::test]
async fn background_processes_of_a_step_are_killed_at_its_end() {
    let code = "import subprocess\nresult = subprocess.Popen(['sleep', '1000']).pid";
    let answer = registry().run("python", call(json!({"code": code}))).await.unwrap();
    assert_gone(&answer.to_string()).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_delay_the_step() {
    let code = "\
import subprocess
result = subprocess.Popen(['sleep', '1000'], start_new_session=True).pid
";
    let tools = registry();
    let answer = tools.run("python", call(json!({"code": code})));
    let answer = tokio::time::timeout(Duration::from_secs(20), answer).await;
    let pid = answer.unwrap().unwrap();
    let kill = call(json!({"command": format!("kill {pid}")}));
    assert!(tools.run("shell", kill).await.is_ok());
}

#[tokio::test]
async fn a_lost_zygote_fails_its_steps_retryably_and_is_replaced() {
    let tools = registry();
    let captured = CapturedLog::default();
    let mut step = call(json!({"code": ENDLESS}));
    step.logs = captured.sink();
    let running = tokio::spawn({
        let tools = tools.clone();
        async move { tools.run("python", step).await }
    });
    let template = captured.line("template").await;
    let kill = call(json!({"code": "os.kill(os.getppid(), 9)\ntime.sleep(1000)"}));
    let failure = tools.run("python", kill).await.unwrap_err();
    assert!(failure.retryable);
    let failure = running.await.unwrap().unwrap_err();
    assert!(failure.retryable);
    assert!(failure.message.contains("template"), "{}", failure.message);
    assert_gone(&template).await;
    assert_gone(&captured.line("step").await).await;
    assert_gone(&captured.line("child").await).await;
    assert_eq!(tools.run("python", call(json!({"code": "result = 1"}))).await, Ok(json!(1)));
}

#[tokio::test]
async fn the_zygote_ignores_termination_signals() {
    let tools = registry();
    let code = "for s in (1, 2, 15): os.kill(os.getppid(), s)\nresult = os.getppid()";
    let first = tools.run("python", call(json!({"code": code}))).await.unwrap();
    let second = tools.run("python", call(json!({"code": code}))).await.unwrap();
    assert_eq!(first, second);
}

#[tokio::test]
async fn dropping_the_tools_ends_the_zygote_and_removes_its_files() {
    let base = std::env::temp_dir().join(format!("noetl-tools-drop-{}", std::process::id()));
    let tools = ToolRegistry::standard(Options { work_dir: base.clone(), ..Options::default() });
    let code = "open('x', 'w').close()\nresult = os.getppid()";
    let template = tools.run("python", call(json!({"code": code}))).await.unwrap();
    assert_eq!(std::fs::read_dir(&base).unwrap().count(), 1);
    drop(tools);
    assert_gone(&template.to_string()).await;
    for _ in 0..500 {
        if std::fs::read_dir(&base).unwrap().count() == 0 {
            return std::fs::remove_dir(&base).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("files are left in {}", base.display());
}

/// Runs as the worker process of the next test, until it is killed.
#[tokio::test]
async fn a_worker_to_be_killed() {
    let Some(pid_file) = std::env::var_os("NOETL_TOOLS_TEST_PIDS").map(PathBuf::from) else {
        return;
    };
    let note = format!(
        "open({pid_file:?}, 'w').write(f'{{child.pid}} {{os.getpid()}} {{os.getppid()}} .')"
    );
    let code = ENDLESS.replace("while True:", &format!("{note}\nwhile True:"));
    let _ = registry().run("python", call(json!({"code": code}))).await;
}

#[tokio::test]
async fn a_killed_worker_leaves_no_process_behind() {
    let dir = std::env::temp_dir().join(format!("noetl-tools-killed-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let pid_file = dir.join("pids");
    let mut worker = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "python_processes::a_worker_to_be_killed"])
        .env("NOETL_TOOLS_TEST_PIDS", &pid_file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pids = loop {
        match std::fs::read_to_string(&pid_file) {
            Ok(text) if text.ends_with('.') => break text,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    worker.kill().await.unwrap();
    for pid in pids.trim_end_matches('.').split_whitespace() {
        assert_gone(pid).await;
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
