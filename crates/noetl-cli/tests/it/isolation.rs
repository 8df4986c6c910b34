//! The program as hostile steps see it: its own files, its environment, and as process 1.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use noetl_test_services::{isolation_level, missing, unsupported};

use crate::noetl::{Home, PROGRAM, one_step, playbook};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this machine lets the tests make a namespace of processes.
fn has_pid_namespaces() -> bool {
    let tried = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    match tried {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            unsupported("namespaces of processes", String::from_utf8_lossy(&output.stderr).trim());
            false
        }
        Err(_) => {
            missing("unshare", "apt-get install util-linux");
            false
        }
    }
}

#[test]
fn a_step_reads_neither_the_environment_nor_the_memory_of_the_program() {
    if !is_root() {
        return unsupported("a user for the program", "run the tests as root");
    }
    let step =
        "{kind: shell, command: 'cat /proc/$PPID/environ /proc/$PPID/maps 2>/dev/null; env; true'}";
    let home = Home::with(&one_step(step));
    for path in [home.path().to_owned(), home.path().join("test.yaml")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for level in ["0", "auto"] {
        let mut command = home.other("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", PROGRAM]);
        command.args(["run", "test.yaml", "--output", "json"]);
        command
            .env("NOETL_STEP_ISOLATION", level)
            .env("NOETL_WORKER_TOKEN", "canary-of-the-worker");
        let output = command.output().unwrap();
        let (command_output, complaint) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if complaint.contains("failed to execute") && complaint.contains("Permission denied") {
            return unsupported("the program for another user", complaint.trim());
        }
        assert!(output.status.success(), "{level}: {command_output}{complaint}");
        assert!(command_output.contains("PATH="), "{level}: {command_output}");
        assert!(!command_output.contains("canary-of-the-worker"), "{level}: {command_output}");
        assert!(
            !command_output.contains("[heap]") && !command_output.contains("[stack]"),
            "{level}: {command_output}"
        );
    }
}

#[test]
fn as_process_1_the_program_leaves_no_zombie() {
    if !has_pid_namespaces() {
        return;
    }
    // Each step leaves an orphan that ends at once; the last one counts zombies of all.
    let leave = "{kind: shell, command: '(setsid sh -c \"sleep 0.05 & exit\" &) ; sleep 0.2'}";
    let count = "{kind: shell, command: 'sleep 0.3; grep -l \"^State:.Z\" /proc/[0-9]*/status 2>/dev/null | grep -c . ; true'}";
    let steps = format!(
        "  - step: start\n    tool: {leave}\n    next: {{arcs: [{{step: again}}]}}\n  \
         - step: again\n    tool: {leave}\n    next: {{arcs: [{{step: end}}]}}\n  \
         - step: end\n    tool: {count}\n"
    );
    let home = Home::with(&playbook("{}", &steps));
    let mut command = home.other("unshare");
    command.args(["--pid", "--fork", "--mount-proc", PROGRAM, "run", "test.yaml"]);
    let output =
        command.args(["--output", "json"]).env("NOETL_STEP_ISOLATION", "0").output().unwrap();
    let command_output = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command_output}{}", String::from_utf8_lossy(&output.stderr));
    let command_output: serde_json::Value = serde_json::from_str(&command_output).unwrap();
    assert_eq!(command_output["result"]["stdout"], "0\n", "{command_output}");
}

#[test]
fn no_step_of_the_program_reads_its_key_or_writes_its_database() {
    let steps = [
        "{kind: python, script: {source: {type: file, path: own.db}}}",
        "{kind: sqlite, db_path: own.db, query: 'select count(*) from sqlite_master'}",
        "{kind: sqlite, query: \"attach 'own.db' as own; select * from own.sqlite_master\"}",
        "{kind: sqlite, db_path: link.db, query: 'select count(*) from sqlite_master'}",
    ];
    for step in steps {
        for level in ["0", "auto"] {
            let home = Home::with(&one_step(step));
            std::os::unix::fs::symlink("own.db", home.path().join("link.db")).unwrap();
            let mut command = home.command(["run", "test.yaml", "--db", "own.db"]);
            let output = command.env("NOETL_STEP_ISOLATION", level).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{step} at {level}");
        }
    }
}

#[test]
fn an_unavailable_isolation_level_prevents_the_start() {
    let home = Home::with(&one_step("{kind: noop}"));
    let mut command = home.command(["run", "test.yaml"]);
    let output = command.env("NOETL_STEP_ISOLATION", "3").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("level 3") && complaint.contains("--step-user"), "{complaint}");
    let mut command = home.command(["run", "test.yaml"]);
    let output = command.env("NOETL_STEP_ISOLATION", "4").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn doctor_reports_the_isolation_level_and_its_limits() {
    let home = Home::new();
    let output = home.command(["doctor", "--output", "json"]).output().unwrap();
    let command_output: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = command_output["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "steps").unwrap();
    // Tests that ask for the best level would pass at a lower one.
    let expected = format!("isolated at level {} ", isolation_level());
    assert!(check["message"].as_str().unwrap().contains(&expected), "{check}");
    assert!(check["hint"].as_str().unwrap().starts_with("not stopped: "), "{check}");
}
