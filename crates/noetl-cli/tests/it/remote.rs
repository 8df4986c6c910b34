//! The verbs that ask a server, each against a real `noetl dev`.

mod contexts;
mod documents;
mod executions;
mod failures;
mod follow;
mod keeping;
mod published;
mod reseal;
mod schedules;
mod tls;
mod tokens;

use std::process::{Command, Stdio};

use crate::dev_process::DevProcess;
use crate::noetl::{CommandOutput, Home, Running};

/// A server, and a home whose program knows it by the environment.
pub(crate) struct Site {
    pub(crate) home: Home,
    pub(crate) dev: DevProcess,
    url: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// Starts a server with these settings.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let home = Home::new();
        let dev = DevProcess::start_with(&home.path().join("data"), settings);
        let url = dev.client.base().to_string();
        Self { home, dev, url }
    }

    /// The program, told which server there is.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        command.env("HOME", self.home.path()).env("NOETL_SERVER_URL", &self.url);
        command
    }

    /// Runs the program to its end, and masks values that vary between runs in its output.
    pub(crate) fn noetl(&self, arguments: &[&str]) -> CommandOutput {
        self.scrubbed(self.home.end_of(&mut self.command(arguments)))
    }

    /// Like `noetl`, without masking.
    pub(crate) fn raw(&self, arguments: &[&str]) -> CommandOutput {
        self.home.end_of(&mut self.command(arguments))
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running::of(child)
    }

    pub(crate) fn scrubbed(&self, output: CommandOutput) -> CommandOutput {
        let text = |text: &str| scrubbed(&text.replace(self.url.trim_end_matches('/'), "[server]"));
        CommandOutput {
            code: output.code,
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Registers a playbook as `tests/test`.
    pub(crate) fn register(&self, playbook: &str) {
        self.home.write("test.yaml", playbook);
        let output = self.raw(&["register", "playbook", "-f", "test.yaml"]);
        assert_eq!(output.code, Some(0), "{output:?}");
    }

    /// Starts `tests/test`, and gives the id of the execution.
    pub(crate) fn execute(&self) -> String {
        let output = self.raw(&["execute", "tests/test", "--json"]);
        output.json()["execution_id"].as_str().unwrap_or_else(|| panic!("{output:?}")).to_owned()
    }

    /// Runs `tests/test` to its end, and gives the id of the execution.
    pub(crate) fn finished(&self) -> String {
        let id = self.execute();
        self.raw(&["status", &id, "--follow"]);
        id
    }
}

/// The text without ids, times and how long things took.
pub(crate) fn scrubbed(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_begin = !out.ends_with(|c: char| c.is_ascii_alphanumeric());
        let span = rest.find(|c: char| !(c.is_ascii_digit() || "-:.TZ+".contains(c)));
        let span = span.unwrap_or(rest.len());
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let day = rest.as_bytes();
        if is_begin && digits >= 15 {
            out.push_str("[id]");
            rest = &rest[digits..];
        } else if is_begin && digits == 4 && span >= 10 && day[4] == b'-' && day[7] == b'-' {
            // The time of day may stand after a blank.
            let after = &rest[span..];
            let clock = after.strip_prefix(' ').filter(|_| span == 10).map_or(0, |after| {
                1 + after
                    .find(|c: char| !(c.is_ascii_digit() || ":.Z".contains(c)))
                    .unwrap_or(after.len())
            });
            out.push_str("[time]");
            rest = &rest[span + clock..];
        } else if is_begin && digits == 2 && span >= 8 && day[2] == b':' && day[5] == b':' {
            out.push_str("[clock]");
            rest = &rest[span..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

#[test]
fn varying_output_is_masked() {
    let text =
        "380499266977660928 2026-11-16 13:09:05Z 2026-11-16T13:09:05.123456Z 13:09:05.123 v 12-3";
    assert_eq!(scrubbed(text), "[id] [time] [time] [clock] v 12-3");
}
