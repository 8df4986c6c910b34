//! Runs the program in its own directory and captures its output.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Timeout of every operation. Reached only if one hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program's path.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_noetl");

/// Directory of the examples.
pub(crate) const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// The first lines of a playbook, up to its steps.
const HEAD: &str =
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: test, path: tests/test}\n";

/// A playbook with this `workload` and these steps.
pub(crate) fn playbook(workload: &str, steps: &str) -> String {
    format!("{HEAD}workload: {workload}\nworkflow:\n{steps}")
}

/// A playbook of one step that runs this tool.
pub(crate) fn one_step(tool: &str) -> String {
    playbook("{}", &format!("  - step: start\n    tool: {tool}\n"))
}

/// A directory to run the program in.
pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A home that holds one playbook, `test.yaml`.
    pub(crate) fn with(playbook: &str) -> Self {
        let home = Self::new();
        home.write("test.yaml", playbook);
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The program with these arguments, and nothing of the caller's environment but what programs
    /// need to be found.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self.other(PROGRAM);
        // Tests of other matters show no token, and read no file of the user.
        command.args(arguments).env("NOETL_AUTH", "open").env("NOETL_CONFIG", "/dev/null");
        command
    }

    /// Another program in the same surroundings.
    pub(crate) fn other(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
    }

    /// Runs the program to its end.
    pub(crate) fn noetl<const N: usize>(&self, arguments: [&str; N]) -> CommandOutput {
        self.end_of(&mut self.command(arguments))
    }

    /// Runs the program to its end with this on its stdin.
    pub(crate) fn noetl_reading<const N: usize>(
        &self,
        arguments: [&str; N],
        stdin: &str,
    ) -> CommandOutput {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        self.captured(child.wait_with_output().unwrap())
    }

    /// Runs a command to its end.
    pub(crate) fn end_of(&self, command: &mut Command) -> CommandOutput {
        self.captured(command.output().unwrap())
    }

    /// Starts the program and does not wait.
    pub(crate) fn start<const N: usize>(&self, arguments: [&str; N]) -> Running {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running { child: Some(child) }
    }

    /// A pipe that a step can write a line to, so that a test knows how far it is.
    pub(crate) fn gate(&self) -> Gate {
        let path = self.path().join("gate");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Gate { path }
    }

    pub(crate) fn captured(&self, output: Output) -> CommandOutput {
        let home = self.path().to_str().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(home, "[home]");
        CommandOutput {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: without_times(&text(output.stderr)),
        }
    }
}

/// Exit code and output of a program.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// None when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    /// With `[time]` for how long things took.
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// Formats the exit code and all output for a snapshot.
    pub(crate) fn transcript(&self) -> String {
        let code = self.code.map_or("a signal".to_owned(), |code| code.to_string());
        format!("exit: {code}\n--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }

    /// The one document on stdout.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A program that was started and not waited for; killed when it is dropped.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    /// Wraps a process that was started by other means.
    pub(crate) fn of(child: Child) -> Self {
        Self { child: Some(child) }
    }

    /// Returns the stdout of the running process.
    pub(crate) fn stdout(&mut self) -> ChildStdout {
        self.child.as_mut().and_then(|child| child.stdout.take()).unwrap()
    }

    pub(crate) fn send(&self, signal: Signal) {
        send(self.child.as_ref().unwrap(), signal);
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Waits for the end and returns the output.
    pub(crate) fn end(mut self, home: &Home) -> CommandOutput {
        home.captured(self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn send(child: &Child, signal: Signal) {
    let id = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(id, signal).unwrap();
}

/// A named pipe: a step writes a line to it, a test waits for the line.
pub(crate) struct Gate {
    pub(crate) path: PathBuf,
}

impl Gate {
    /// A shell command that tells the gate.
    pub(crate) fn knock(&self) -> String {
        format!("echo here > '{}'", self.path.display())
    }

    /// Waits for a line.
    pub(crate) fn wait(&self) {
        let path = self.path.clone();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(fs::File::open(path).unwrap()).read_line(&mut line);
            let _ = sender.send(read.map(|_| line));
        });
        let line = receiver.recv_timeout(PATIENCE).expect("a step that gets as far as the gate");
        assert_eq!(line.unwrap(), "here\n");
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !condition().await {
        assert!(since.elapsed() < PATIENCE, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The text with every duration replaced, as in `done  start  [time]`.
fn without_times(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut words: Vec<&str> = Vec::new();
        for word in line.split(' ') {
            let unit = word.trim_end_matches(':');
            let is_time = ["µs", "ms", "s"].contains(&unit)
                && words.last().is_some_and(|number| number.parse::<f64>().is_ok());
            if is_time {
                words.pop();
                words.push(if word.ends_with(':') { "[time]:" } else { "[time]" });
            } else {
                words.push(word);
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}
