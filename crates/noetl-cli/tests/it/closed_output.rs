//! Readers that go away, and outputs that take nothing.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;

use crate::noetl::{Home, one_step, send};

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// Returns the write end of a pipe without a reader.
fn unread() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

#[test]
fn a_closed_output_pipe_is_not_a_failure() {
    let home = Home::with(&one_step("{kind: noop, result: {n: 1}}"));
    for arguments in [
        vec!["run", "test.yaml"],
        vec!["run", "test.yaml", "--output", "json"],
        vec!["check", "test.yaml", "--output", "json"],
        vec!["completions", "bash"],
        vec!["--help"],
    ] {
        for silent in [false, true] {
            let mut command = home.command(&arguments);
            command.stdout(unread()).stderr(if silent { unread() } else { Stdio::piped() });
            let output = command.spawn().unwrap().wait_with_output().unwrap();
            let command_output = home.captured(output);
            assert_eq!(command_output.code, Some(0), "{arguments:?}: {command_output:?}");
            assert!(
                !command_output.stderr.contains("panicked"),
                "{arguments:?}: {command_output:?}"
            );
        }
    }
}

#[test]
fn an_unwritable_result_is_a_failure() {
    let home = Home::with(&one_step("{kind: noop, result: {n: 1}}"));
    for arguments in [
        vec!["run", "test.yaml", "--output", "json"],
        vec!["check", "test.yaml", "--output", "json"],
        vec!["completions", "bash"],
    ] {
        let mut command = home.command(&arguments);
        let child = command.stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let output = home.captured(child.wait_with_output().unwrap());
        assert_eq!(output.code, Some(3), "{arguments:?}: {output:?}");
        let last = output.stderr.lines().last();
        let expected = "error: could not write to stdout: No space left on device (os error 28)";
        assert_eq!(last, Some(expected), "{arguments:?}");
    }
}

#[test]
fn a_control_plane_with_a_closed_stderr_stops_cleanly() {
    let home = Home::new();
    let mut command = home.command(["dev", "--port", "0", "--data", "data"]);
    let mut child = command.env("RUST_LOG", "trace").stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("noetl listens on ")));
    drop(lines);
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_to_string(home.path().join("data/noetl.db.lock")).unwrap(), "");
}
