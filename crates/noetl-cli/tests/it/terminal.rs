//! Output on a terminal, through a pseudo-terminal.

use crate::noetl::{Home, PROGRAM, one_step};

/// Runs its arguments in a pseudo-terminal and copies all that comes out of it. Python's module
/// does it in a few lines, and Python is needed by these tests anyway.
const IN_TERMINAL: &str = "\
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

fn in_terminal(environment: &[(&str, &str)], playbook: &str) -> String {
    let home = Home::with(playbook);
    let mut command = home.other("python3");
    command.args(["-c", IN_TERMINAL, PROGRAM, "run", "test.yaml"]).env("TERM", "xterm");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown:?}");
    shown
}

const CURSOR_UP: &str = "\u{1b}[1A";
const CLEAR_LINE: &str = "\u{1b}[2K";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const GREEN: &str = "\u{1b}[32m";

fn slow() -> String {
    one_step("{kind: shell, command: sleep 0.4}")
}

#[test]
fn a_terminal_shows_progress_and_is_restored() {
    let shown = in_terminal(&[], &slow());
    let ended = shown.find("done").unwrap();
    let running = shown.find("start").unwrap();
    assert!(running < ended, "nothing was shown while it ran: {shown:?}");
    assert!(shown.contains(GREEN), "{shown:?}");
    assert!(!shown.contains(HIDE_CURSOR) || shown.contains("\u{1b}[?25h"), "{shown:?}");
    // The animation is cleared: the last lines are plain, with colors only.
    let last = shown.rsplit(CLEAR_LINE).next().unwrap();
    assert!(!last.contains(CURSOR_UP), "{shown:?}");
    assert!(last.contains("completed"), "{shown:?}");
    assert!(shown.ends_with('\n'), "{shown:?}");
}

#[test]
fn a_terminal_without_color_support_gets_no_colors() {
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let shown = in_terminal(&[environment], &slow());
        let is_colour = |part: &str| {
            part.split_once('m')
                .is_some_and(|(codes, _)| codes.chars().all(|c| c.is_ascii_digit() || c == ';'))
        };
        assert!(!shown.split("\u{1b}[").skip(1).any(is_colour), "{environment:?}: {shown:?}");
        assert!(shown.contains("completed"), "{shown:?}");
    }
}

#[test]
fn a_pipe_gets_no_colors() {
    let home = Home::with(&slow());
    let mut command = home.command(["run", "test.yaml"]);
    let output = home.end_of(command.env("TERM", "xterm").env("CLICOLOR_FORCE", "1"));
    assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
    assert!(!output.stdout.contains('\u{1b}'), "{output:?}");
}
