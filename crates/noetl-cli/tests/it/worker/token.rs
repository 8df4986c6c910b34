//! The token of a worker, out of reach of its steps.

use std::fs;

use super::{Site, WorkerProcess};
use crate::noetl::PROGRAM;

/// Environment and arguments of a process, as other processes see them.
fn seen(pid: u32) -> String {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let bytes = [read("environ"), read("cmdline")].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_worker_removes_its_token_from_its_environment_and_arguments() {
    let site = Site::new(&[]);
    let secrets = [
        ("NOETL_TOKEN", "secret-of-the-worker"),
        ("NOETL_INTERNAL_API_TOKEN", "secret-of-system-pools"),
        ("NOETL_ENCRYPTION_KEY", "secret-of-servers"),
    ];
    let cases: [(&str, &[&str]); 2] =
        [("variable", &[]), ("flag", &["--token", "secret-in-a-flag"])];
    for (name, flags) in cases {
        let mut command = std::process::Command::new(PROGRAM);
        command.args(["worker", "--server", site.server.client.base().as_str(), "--name", name]);
        command.args(["--listen", "127.0.0.1:0"]).args(flags).envs(secrets);
        let worker = WorkerProcess::start_as(command);
        let seen = seen(worker.child.id());
        assert!(!seen.contains("secret-"), "{name}: {seen}");
    }
}

#[test]
fn a_worker_reads_its_token_from_a_file_and_reports_an_unreadable_file() {
    let site = Site::new(&[]);
    let file = site.home.write("token", "noetl_a_b\n");
    let file = file.to_str().expect("a path of text");
    let worker = WorkerProcess::start(&site.server.client, "w", &["--token-file", file]);
    assert!(worker.ask("/health").contains("200"));
    for (content, output) in
        [(Some(" \n"), "there is no token in it"), (None, "could not read the token")]
    {
        let path = match content {
            Some(content) => site.home.write("empty", content),
            None => site.home.path().join("none"),
        };
        let path = path.to_str().expect("a path of text").to_owned();
        let server = site.server.client.base().as_str();
        let ended = site.home.noetl(["worker", "--server", server, "--token-file", &path]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(output), "{ended:?}");
    }
}
