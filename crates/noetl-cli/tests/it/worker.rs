//! `noetl worker`: steps of a server that run in processes of their own.

mod bus;
mod connection;
mod faults;
mod large;
mod reported_faults;
mod runs;
mod start;
mod token;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use noetl_api::Client;
use noetl_api::events::EventView;
use noetl_model::ExecutionId;
use rustix::process::Signal;

use crate::dev_process::DevProcess;
use crate::noetl::{Home, PROGRAM, one_step, send, until};

/// Short lease for tests that wait for its expiration.
const SHORT: [(&str, &str); 1] = [("NOETL_WORKER_LEASE_SECS", "5")];

/// A running `noetl worker`.
struct WorkerProcess {
    child: Child,
    /// Address of the health endpoint.
    health: String,
    /// Output on stderr.
    output: Option<JoinHandle<String>>,
}

impl WorkerProcess {
    /// Starts one for a server and waits until it has registered.
    fn start(server: &Client, name: &str, more: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["worker", "--server", server.base().as_str(), "--name", name]);
        command.args(["--slots", "4", "--listen", "127.0.0.1:0"]).args(more);
        Self::start_as(command)
    }

    /// Starts a command that is a worker and waits until it has registered.
    fn start_as(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut output = String::new();
        let health = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("noetl worker ended before it worked:\n{output}")
            };
            output.push_str(&line);
            output.push('\n');
            if let Some(url) = line.trim().strip_prefix("health    http://") {
                break url.trim_end_matches("/health").to_owned();
            }
        };
        // The rest is read so that the pipe never fills.
        let output = std::thread::spawn(move || {
            lines.map_while(Result::ok).fold(output, |output, line| output + &line + "\n")
        });
        Self { child, health, output: Some(output) }
    }

    fn send(&self, signal: Signal) {
        send(&self.child, signal);
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end. Returns the exit code and the output on stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.output.take().unwrap().join().unwrap())
    }

    /// Returns the response of the worker's own listener for a path.
    fn ask(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.health).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: worker\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Returns the value of a metric.
    fn number(&self, name: &str) -> u64 {
        let text = self.ask("/metrics");
        let value = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server without a worker of its own, and a place for what steps leave.
struct Site {
    home: Home,
    server: DevProcess,
}

impl Site {
    fn new(settings: &[(&str, &str)]) -> Self {
        let home = Home::new();
        let server = DevProcess::start_alone(&home.path().join("data"), "0", settings);
        Self { home, server }
    }

    fn client(&self) -> &Client {
        &self.server.client
    }

    fn worker(&self, name: &str) -> WorkerProcess {
        WorkerProcess::start(self.client(), name, &[])
    }

    /// A playbook of one step that notes each of its runs and then waits until it may go on.
    fn waiting(&self) -> String {
        let home = self.home.path().display();
        one_step(&format!(
            "{{kind: shell, command: 'echo run >> {home}/runs; \
             while [ ! -e {home}/go ]; do sleep 0.05; done; echo done'}}"
        ))
    }

    /// Waits until that step has begun so often.
    async fn begun(&self, times: usize) {
        until(&format!("{times} runs"), async || self.runs() >= times).await;
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.home.path().join("runs")).unwrap_or_default().lines().count()
    }

    /// Lets that step go on.
    fn go(&self) {
        self.home.write("go", "");
    }
}

async fn log(client: &Client, id: ExecutionId) -> Vec<EventView> {
    client.log(id, 0, 100_000).await.unwrap().events
}

/// Counts the events of a type.
fn count(log: &[EventView], event_type: &str) -> usize {
    log.iter().filter(|event| event.event_type.as_deref() == Some(event_type)).count()
}

/// Returns the workers of all claims, in order.
fn claims(log: &[EventView]) -> Vec<&str> {
    let claimed = |event: &&EventView| event.event_type.as_deref() == Some("command.claimed");
    log.iter().filter(claimed).filter_map(|event| event.worker_id.as_deref()).collect()
}

/// The data of what a step answered.
fn answer(log: &[EventView], step: &str) -> serde_json::Value {
    let is_it = |event: &&EventView| {
        event.event_type.as_deref() == Some("call.done") && event.node_name.as_deref() == Some(step)
    };
    let call_done = log.iter().find(is_it).unwrap_or_else(|| panic!("no answer of {step}"));
    let result = call_done.result.as_ref().unwrap();
    let result: serde_json::Value = serde_json::from_str(result.get()).unwrap();
    result["context"]["data"].clone()
}
