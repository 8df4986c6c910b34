//! Servers and workers as processes of their own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use noetl_api::Client;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A key for credentials, of which there are none: 32 zeros.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// A running process of the program, ended with this.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// A server without a worker, and a client of it.
    pub(crate) fn server(
        program: &Path,
        database: &str,
        nats: Option<&str>,
    ) -> Outcome<(Self, Client)> {
        let mut command = Command::new(program);
        command.args(["server", "--port", "0", "--database-url", database]);
        command.args(nats.map(|url| ["--nats-url", url]).into_iter().flatten());
        let (process, base) = Self::start(&mut command, "noetl listens on ")?;
        Ok((process, Client::new(&base)?))
    }

    /// A server with a worker on a database in this directory, as `noetl dev` starts it.
    pub(crate) fn dev(program: &Path, directory: &Path) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.args(["dev", "--port", "0", "--auth", "open", "--data"]).arg(directory);
        Ok(Self::start(&mut command, "noetl listens on ")?.0)
    }

    /// A worker of a server, which has registered.
    pub(crate) fn worker(
        program: &Path,
        server: &Client,
        slots: usize,
        nats: Option<&str>,
    ) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.args(["worker", "--server", server.base().as_str()]);
        command.args(["--slots", &slots.to_string()]);
        command.args(nats.map(|url| ["--nats-url", url]).into_iter().flatten());
        Ok(Self::start(&mut command, "noetl worker ")?.0)
    }

    /// Processor seconds it has used so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        crate::usage::cpu_seconds_of(&self.child.id().to_string())
    }

    /// Mebibytes of memory that it has now.
    pub(crate) fn resident_mib(&self) -> f64 {
        crate::usage::memory_mib(&self.child.id().to_string(), "VmRSS:")
    }

    /// Starts a process and waits for a line that begins so; returns what follows.
    fn start(command: &mut Command, sign: &str) -> Outcome<(Self, String)> {
        // The environment of whoever measures must not change what is measured.
        command
            .env_remove("NOETL_NATS_URL")
            .env("RUST_LOG", "warn")
            .env("NOETL_ENCRYPTION_KEY", KEY);
        command.stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            format!("{}: {error}; build noetl-cli first", command.get_program().display())
        })?;
        let mut process = Self { child };
        let said = process.child.stderr.take().ok_or("its words are not read")?;
        let mut lines = BufReader::new(said).lines();
        let mut heard = Vec::new();
        while let Some(line) = lines.next().transpose()? {
            if let Some(rest) = line.strip_prefix(sign) {
                let rest = rest.to_owned();
                // The rest is read so that the pipe never fills.
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
                return Ok((process, rest));
            }
            heard.push(line);
        }
        Err(format!("a process ended before it was ready: {}", heard.join("\n")).into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended by itself needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
