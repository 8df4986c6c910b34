//! A real `noetl dev`, to be called, told to stop, or killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use noetl_api::Client;
use noetl_api::catalog::RegisterRequest;
use noetl_api::execute::ExecuteRequest;
use noetl_model::ExecutionId;
use rustix::process::Signal;

use crate::shown::KEY;

/// A running `noetl dev` on a port of its own.
pub(crate) struct DevProcess {
    child: Child,
    pub(crate) client: Client,
    /// Output on stderr.
    output: Option<JoinHandle<String>>,
}

impl DevProcess {
    /// Starts one on this data directory and waits until it listens.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    /// Like `start`, with these variables in its environment.
    pub(crate) fn start_with(data: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noetl"));
        command.args(["dev", "--port", "0", "--slots", "8", "--data"]).arg(data);
        command.envs(variables.iter().copied());
        Self::start_as(command)
    }

    /// Starts `noetl server`, which runs no steps and acts on no subscriptions, on a database in this
    /// directory.
    pub(crate) fn start_server(data: &Path) -> Self {
        Self::start_server_at(data, "0")
    }

    /// Like `start_server`, on a port that an earlier process used.
    pub(crate) fn start_server_at(data: &Path, port: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noetl"));
        let url = format!("sqlite://{}", data.join("noetl.db").display());
        command.args(["server", "--port", port, "--database-url", &url]).current_dir(data);
        command.env("NOETL_ENCRYPTION_KEY", KEY);
        Self::start_as(command)
    }

    /// Starts one on this data directory and this port, where another was before.
    pub(crate) fn start_at(data: &Path, port: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noetl"));
        command.args(["dev", "--port", port, "--slots", "8", "--data"]).arg(data);
        Self::start_as(command)
    }

    /// Starts one without a worker on this data directory and this port, with these settings.
    pub(crate) fn start_alone(data: &Path, port: &str, settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noetl"));
        command.args(["dev", "--port", port, "--slots", "0", "--data"]).arg(data);
        command.envs(settings.iter().copied());
        Self::start_as(command)
    }

    /// Starts one of several on this Postgres database, with these further settings. The others
    /// miss it soon when it dies.
    pub(crate) fn start_on(url: &str, slots: usize, settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noetl"));
        command.args(["dev", "--port", "0", "--database-url", url, "--slots", &slots.to_string()]);
        command.env("NOETL_LEASE_SECS", "3").envs(settings.iter().copied());
        Self::start_as(command)
    }

    fn start_as(mut command: Command) -> Self {
        // Tests of other matters show no token.
        if !command.get_envs().any(|(name, _)| name == "NOETL_AUTH") {
            command.env("NOETL_AUTH", "open");
        }
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut output = String::new();
        let base = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("noetl dev ended before it listened:\n{output}")
            };
            output.push_str(&line);
            output.push('\n');
            if let Some(base) = line.strip_prefix("noetl listens on ") {
                break base.to_owned();
            }
        };
        // The rest is read so that the pipe never fills.
        let output = std::thread::spawn(move || {
            lines.map_while(Result::ok).fold(output, |output, line| output + &line + "\n")
        });
        Self { child, client: Client::new(&base).unwrap(), output: Some(output) }
    }

    /// Registers a playbook of the path `tests/test` and starts it.
    pub(crate) async fn execute(&self, playbook: &str) -> ExecutionId {
        self.client.register(&RegisterRequest::playbook(playbook), false).await.unwrap();
        let request = ExecuteRequest::path("tests/test", serde_json::Map::new());
        ExecutionId::new(self.client.execute(&request).await.unwrap().execution_id.get())
    }

    /// Waits until an execution has ended, and gives its status.
    pub(crate) async fn ended(&self, id: ExecutionId) -> String {
        crate::noetl::until("the execution to end", async || {
            self.client.status(id).await.unwrap().status != "RUNNING"
        })
        .await;
        self.client.status(id).await.unwrap().status
    }

    /// Returns the process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory it ever had, in MiB.
    pub(crate) fn memory_peak(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    /// Kills the process without any notice.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal and waits for the end. Returns the exit code and the output on stderr.
    pub(crate) fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        crate::noetl::send(&self.child, signal);
        let code = self.child.wait().unwrap().code();
        (code, self.output.take().unwrap().join().unwrap())
    }
}

impl Drop for DevProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
