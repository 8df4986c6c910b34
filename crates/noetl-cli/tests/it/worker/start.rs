//! Settings of a worker, and its errors for invalid ones.

use super::Site;
use crate::noetl::Home;

#[test]
fn invalid_variables_are_reported_by_name() {
    for (name, value, sentence) in [
        (
            "NOETL_WORKER_SLOTS",
            "many",
            "NOETL_WORKER_SLOTS is a number from 1 to 10000, not 'many'",
        ),
        (
            "NOETL_WORKER_LISTEN",
            "here",
            "NOETL_WORKER_LISTEN is an address with a port, not 'here'",
        ),
        ("NOETL_WORKER_LABELS", "west", "NOETL_WORKER_LABELS: 'west' is no label"),
        (
            "NOETL_WORKER_GRACE_SECS",
            "-1",
            "NOETL_WORKER_GRACE_SECS is a number from 0 to 86400, not '-1'",
        ),
        (
            "NOETL_WORKER_RESULT_MAX_MB",
            "0",
            "NOETL_WORKER_RESULT_MAX_MB is a number from 1 to 512, not '0'",
        ),
    ] {
        let home = Home::new();
        let mut command = home.command(["worker", "--server", "http://127.0.0.1:9"]);
        let output = home.end_of(command.env(name, value));
        assert_eq!(output.code, Some(3), "{output:?}");
        assert!(output.stderr.starts_with(&format!("error: {sentence}\n")), "{output:?}");
    }
}

#[test]
fn unavailable_isolation_prevents_the_start() {
    let home = Home::with(&crate::noetl::one_step("{kind: noop}"));
    // Root must name the user that steps run as; other users must not.
    let user = if rustix::process::geteuid().is_root() { "65534:65534" } else { "" };
    let worker: &[&str] = &["worker", "--server", "http://127.0.0.1:9"];
    for words in [worker, &["run", "test.yaml"]] {
        let mut command = home.command(words);
        command.env("NOETL_STEP_USER", user).env("NOETL_STEP_CGROUP", "/nowhere");
        let output = home.end_of(&mut command);
        assert_eq!(output.code, Some(3), "{output:?}");
        let sentence = "error: /nowhere is no control group of version 2\n";
        assert!(output.stderr.starts_with(sentence), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_exits_with_the_reason_if_the_server_rejects_it() {
    let site = Site::new(&[]);
    let base = site.client().base().to_string();
    let output = site.home.noetl(["worker", "--server", &base, "--name", "local"]);
    let sentence = "error: 'local' is not a valid worker name: workers inside the control plane have \
                    such names\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(2), sentence));
}
