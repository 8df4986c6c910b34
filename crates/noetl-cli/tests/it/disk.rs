//! A disk without room.

use std::process::Command;

use crate::noetl::{Home, PROGRAM, one_step, playbook};

/// Writes about ten megabytes to the log, some at a time.
fn filling() -> String {
    playbook(
        "{}",
        "  - step: start
    tool: {kind: noop, result: \"{{ 'x' * 20000 }}\"}
    set: {ctx.n: '{{ (ctx.n | default(0)) + 1 }}'}
    next: {spec: {mode: exclusive}, arcs: [{step: start, when: '{{ ctx.n < 500 }}'}, {step: end}]}
  - {step: end, tool: {kind: noop}}
",
    )
}

/// Runs the filling playbook as `run` does, with little room, and then a good one with enough.
fn check(mut shell: Command, home: &Home, scene: &str) {
    home.write("good.yaml", one_step("{kind: noop, result: well}"));
    let script = format!(
        "mkdir small
run() {{ '{PROGRAM}' run test.yaml --db small/log.db; echo \"exit $?\"; }}
{scene}
'{PROGRAM}' run good.yaml --db small/log.db"
    );
    let output = home.end_of(shell.args(["sh", "-c", &script]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "exit 3\nwell\n"), "{output:?}");
    let errors: Vec<&str> =
        output.stderr.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors.len(), 1, "{output:?}");
    assert!(
        errors[0].starts_with("error: the database has no room left to write to"),
        "{output:?}"
    );
    assert!(output.stderr.contains("help: free disk space"), "{output:?}");
}

/// A limit on the size of files does where no disk can be mounted.
const LIMITED: &str = "(ulimit -f 4000; run)";

#[test]
fn a_full_disk_is_reported_and_committed_work_is_retained() {
    let home = Home::with(&filling());
    // A mount of its own that goes with the process.
    let own_mounts = || {
        let mut command = home.other("unshare");
        command.args(["--map-root-user", "--mount", "--"]);
        command
    };
    if own_mounts().arg("true").output().is_ok_and(|output| output.status.success()) {
        let scene = "mount -t tmpfs -o size=4m none small && run
mount -o remount,size=40m small";
        check(own_mounts(), &home, scene);
    } else {
        let needs = "allow unprivileged user namespaces, or run the tests as root";
        noetl_test_services::unsupported("mount namespaces", needs);
        check(home.other("env"), &home, LIMITED);
    }
}

#[test]
fn a_file_size_limit_is_reported_like_a_full_disk() {
    let home = Home::with(&filling());
    check(home.other("env"), &home, LIMITED);
}
