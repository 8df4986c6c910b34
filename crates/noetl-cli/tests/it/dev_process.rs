//! A real `noetl dev`, to be called, told to stop, or killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use noetl_api::Client;

/// A running `noetl dev` on a port of its own.
pub(crate) struct DevProcess {
    child: Child,
    pub(crate) client: Client,
}

impl DevProcess {
    /// Starts one on this data directory and waits until it listens.
    pub(crate) fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_noetl"))
            .args(["dev", "--port", "0", "--slots", "8", "--data"])
            .arg(data)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let base = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("noetl dev ended before it listened:\n{said}")
            };
            if let Some(base) = line.strip_prefix("noetl listens on ") {
                break base.to_owned();
            }
            said.push_str(&line);
            said.push('\n');
        };
        // The rest is read so that the pipe never fills.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, client: Client::new(&base).unwrap() }
    }

    /// Ends it as a power cut would, as far as this process is concerned.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for DevProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
