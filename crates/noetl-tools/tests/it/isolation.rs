//! Limits of isolated steps, on real processes. Without root the tests check the limits of a plain
//! user's worker; a kernel that lacks a feature for isolation records the skip.

use std::path::PathBuf;

use noetl_model::{FailureKind, Value};
use noetl_test_services::{missing, unsupported};
use noetl_tools::{Isolation, Level, Options, ToolRegistry, User};
use serde_json::json;

use crate::harness::{call, detail, host, isolated};

/// User and group `nobody` of Linux.
const NOBODY: User = User { uid: 65534, gid: 65534 };

/// Remedy for tests that only root can run.
const ROOT: &str = "run the tests as root";

/// Adds the user that root has to set for its steps.
fn asked(isolation: Isolation) -> Isolation {
    let is_root = rustix::process::geteuid().is_root();
    let level = if is_root { Level::User } else { Level::Namespaces };
    Isolation { level, user: isolation.user.or(is_root.then_some(NOBODY)), ..isolation }
}

/// Settings of tools that are isolated so, or `None` if the kernel lacks a feature for it.
async fn options(isolation: Isolation) -> Option<Options> {
    // A program below the home of root is for root alone.
    let python = PathBuf::from("/usr/bin/python3");
    let host = Some(host());
    isolated(Options { isolation: asked(isolation), python, host, ..Options::default() }).await
}

async fn run(options: &Options, kind: &str, config: Value) -> Result<Value, noetl_model::Failure> {
    let tools = ToolRegistry::standard(options.clone());
    tools.run(kind, call(config)).await
}

/// Returns the output of a shell step.
async fn printed(options: &Options, command: &str) -> String {
    let answer = run(options, "shell", json!({ "command": command })).await.unwrap();
    answer["stdout"].as_str().unwrap().trim().to_owned()
}

/// Returns the result of a Python step, or `None` without a Python that every user can run.
async fn answered(options: &Options, code: &str) -> Option<Value> {
    if !options.python.exists() {
        missing("/usr/bin/python3", "apt-get install python3");
        return None;
    }
    Some(run(options, "python", json!({ "code": code })).await.unwrap())
}

#[tokio::test]
async fn a_step_runs_as_another_user_in_its_own_directory() {
    if !rustix::process::geteuid().is_root() {
        return unsupported("another user for steps", ROOT);
    }
    let Some(options) = options(Isolation::default()).await else { return };
    let seen = printed(&options, "id -u; id -g; id -G; touch mine && stat -c %u . mine").await;
    assert_eq!(seen, "65534\n65534\n65534\n65534\n65534");
    let code = "import os\nopen('mine', 'w').close()\nresult = [os.getuid(), os.getgid(), os.getgroups(), os.stat('mine').st_uid]";
    if let Some(seen) = answered(&options, code).await {
        assert_eq!(seen, json!([65534, 65534, [], 65534]));
    }
    // Neither what the worker was started with nor what only root reads is theirs.
    let failure = run(&options, "shell", json!({"command": "cat /proc/$PPID/environ /etc/shadow"}));
    let failure = failure.await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ExitCode);
    assert_eq!(detail(&failure, "stdout"), "");
}

#[tokio::test]
async fn a_step_gains_no_privileges_by_running_another_program() {
    let Some(options) = options(Isolation { no_network: true, ..Isolation::default() }).await
    else {
        return;
    };
    let seen = printed(&options, "grep -E '^(NoNewPrivs|CapEff|CapBnd)' /proc/self/status").await;
    let words: Vec<&str> = seen.split_whitespace().collect();
    let none = "0000000000000000";
    assert_eq!(words, ["CapEff:", none, "CapBnd:", none, "NoNewPrivs:", "1"]);
}

#[tokio::test]
async fn a_step_without_a_network_has_no_connectivity() {
    let Some(options) = options(Isolation { no_network: true, ..Isolation::default() }).await
    else {
        return;
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = printed(&options, "tail -n +3 /proc/self/net/dev | cut -d: -f1 | tr -d ' '").await;
    assert_eq!(seen, "lo");
    let code = format!(
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 5)\n    result = 'reached'\n\
         except OSError as error:\n    result = 'not reached'\n"
    );
    if let Some(seen) = answered(&options, &code).await {
        assert_eq!(seen, "not reached");
    }
}

#[tokio::test]
async fn temporary_files_of_a_step_are_invisible_to_other_steps() {
    let Some(options) = options(Isolation { private_tmp: true, ..Isolation::default() }).await
    else {
        return;
    };
    let name = format!("noetl-isolation-{}", std::process::id());
    let outside = std::env::temp_dir().join(&name);
    std::fs::write(&outside, "of the machine").unwrap();
    let look = format!("ls -A /tmp | grep -c . ; cat /tmp/{name} 2>/dev/null || echo nothing");
    assert_eq!(printed(&options, &look).await, "1\nnothing");
    let write =
        format!("echo of the step >/tmp/{name} && cat /tmp/{name}; touch here && pwd | cut -c-11");
    assert_eq!(printed(&options, &write).await, "of the step\n/tmp/noetl-");
    assert_eq!(printed(&options, &look).await, "1\nnothing");
    let code = format!(
        "import os, tempfile\nresult = [os.path.exists('/tmp/{name}'), len(os.listdir('/tmp')), tempfile.gettempdir() == os.environ['HOME']]\nopen('here', 'w').close()"
    );
    if let Some(seen) = answered(&options, &code).await {
        assert_eq!(seen, json!([false, 1, true]));
    }
    // One worker: its warm hosts and interpreters see nothing of the step before.
    let tools = ToolRegistry::standard(options.clone());
    let leave = "import os\nseen = os.path.exists('/tmp/left')\nopen('/tmp/left', 'w').close()\nresult = seen";
    for _ in 0..2 {
        let config = json!({"command": "ls /tmp/left 2>/dev/null; touch /tmp/left"});
        assert_eq!(tools.run("shell", call(config)).await.unwrap()["stdout"], "");
        if options.python.exists() {
            let seen = tools.run("python", call(json!({ "code": leave }))).await.unwrap();
            assert_eq!(seen, false);
        }
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "of the machine");
    std::fs::remove_file(&outside).unwrap();
}

#[tokio::test]
async fn memory_and_cpu_time_of_a_step_are_limited() {
    let isolation =
        Isolation { memory_max: Some(256 << 20), cpu_seconds_max: Some(1), ..Isolation::default() };
    let Some(options) = options(isolation).await else { return };
    assert_eq!(printed(&options, "ulimit -v; ulimit -t").await, "262144\n1");
    let failure = run(&options, "shell", json!({"command": "while :; do :; done"})).await;
    assert_eq!(failure.unwrap_err().kind, FailureKind::ExitCode);
    let code = "try:\n    bytearray(1 << 30)\n    result = 'given'\nexcept MemoryError:\n    result = 'refused'";
    if let Some(seen) = answered(&options, code).await {
        assert_eq!(seen, "refused");
    }
}

#[tokio::test]
async fn a_step_cannot_exceed_the_process_limit_of_its_user() {
    // A number of its own: processes are counted by user.
    let user = User { uid: 61_234, gid: 61_234 };
    let is_root = rustix::process::geteuid().is_root();
    let user = is_root.then_some(user);
    let Some(options) =
        options(Isolation { user, processes_max: Some(8), ..Isolation::default() }).await
    else {
        return;
    };
    if !is_root {
        return unsupported("another user for steps", ROOT);
    }
    let command = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat /dev/zero >/dev/null & done; wait";
    let failure = run(&options, "shell", json!({ "command": command })).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ExitCode, "{}", failure.message);
    assert!(detail(&failure, "stderr").as_str().unwrap().contains("fork"), "{failure:?}");
}

#[tokio::test]
async fn a_step_runs_in_its_control_group() {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let Some(root) = roots.into_iter().find(|root| root.join("cgroup.procs").exists()) else {
        return unsupported("control groups of version 2", "mount cgroup2 on /sys/fs/cgroup");
    };
    let group = root.join(format!("noetl-test-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err() {
        return unsupported("a writable control group", ROOT);
    }
    let isolation = Isolation { cgroup: Some(group.clone()), ..Isolation::default() };
    let options = options(isolation).await;
    let name = group.file_name().unwrap().to_string_lossy().into_owned();
    if let Some(options) = &options {
        let seen = printed(options, "cat /proc/self/cgroup").await;
        assert!(seen.contains(&name), "{seen}");
    }
    // A process that was killed is in its group until the system is done with it.
    while std::fs::remove_dir(&group).is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_isolated_step_stops_on_timeout() {
    let isolation = Isolation { no_network: true, private_tmp: true, ..Isolation::default() };
    let Some(options) = options(isolation).await else { return };
    for (kind, config) in [
        ("shell", json!({"command": "sleep 600 & sleep 600", "timeout": 1})),
        ("python", json!({"code": "import time\ntime.sleep(600)", "timeout": 1})),
    ] {
        if kind == "python" && !options.python.exists() {
            missing("/usr/bin/python3", "apt-get install python3");
            continue;
        }
        let failure = run(&options, kind, config).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{kind}");
    }
}

#[tokio::test]
async fn unenforceable_limits_are_rejected_before_any_step() {
    let refused = async |isolation: Isolation| {
        let host = Some(host());
        let options = Options { isolation, host, ..Options::default() };
        options.prove_isolation().await.unwrap_err().message
    };
    let root = Isolation { user: Some(User { uid: 0, gid: 0 }), ..Isolation::default() };
    assert_eq!(refused(root).await, "steps cannot be isolated as root");
    let group = Isolation { cgroup: Some("/nowhere".into()), ..asked(Isolation::default()) };
    assert_eq!(refused(group).await, "/nowhere is no control group of version 2");
    let alone = match rustix::process::geteuid().is_root() {
        true => Isolation { no_network: true, ..Isolation::default() },
        false => Isolation { user: Some(NOBODY), ..Isolation::default() },
    };
    let message = refused(alone).await;
    assert!(message.contains("root"), "{message}");
}
