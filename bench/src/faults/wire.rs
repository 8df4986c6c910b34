//! What is done to a NATS server behind everybody's back, in its own plain protocol.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinHandle;

use crate::Failure;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often one announcement is published again.
const REPEATS: usize = 2;

/// How late the last repeat is.
const LATE: Duration = Duration::from_secs(3);

/// Late repeats that wait to be published.
const LATE_MAX: usize = 1024;

/// Announcements that are remembered as repeated.
const SEEN_MAX: usize = 100_000;

/// A connection to a server.
pub(crate) struct Wire {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// A message that came.
struct Came {
    subject: String,
    payload: Vec<u8>,
}

impl Wire {
    pub(crate) async fn connect(server: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(server).await?;
        let (reader, writer) = stream.into_split();
        let mut wire = Self { reader: BufReader::new(reader), writer };
        wire.write(b"CONNECT {\"verbose\":false,\"headers\":true}\r\n").await?;
        Ok(wire)
    }

    /// Asks the server for something, and gives its answer.
    pub(crate) async fn ask(&mut self, subject: &str, body: &Value) -> Result<Value, Failure> {
        let body = body.to_string();
        let text = format!(
            "SUB chaos.answer 1\r\nUNSUB 1 1\r\nPUB {subject} chaos.answer {}\r\n{body}\r\n",
            body.len()
        );
        self.write(text.as_bytes()).await?;
        let came = tokio::time::timeout(PATIENCE, self.next()).await??;
        let answer: Value = serde_json::from_slice(&came.payload)?;
        match answer.get("error") {
            Some(error) => Err(format!("{subject}: {error}").into()),
            None => Ok(answer),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.writer.write_all(bytes).await?)
    }

    async fn publish(&mut self, came: &Came) -> Result<(), Failure> {
        let head = format!("PUB {} {}\r\n", came.subject, came.payload.len());
        self.write(head.as_bytes()).await?;
        self.write(&came.payload).await?;
        self.write(b"\r\n").await
    }

    /// The next message. Whatever else a server says is answered or passed over.
    async fn next(&mut self) -> Result<Came, Failure> {
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let (headers, bytes) = match words.as_slice() {
                ["PING"] => {
                    self.write(b"PONG\r\n").await?;
                    continue;
                }
                ["MSG", .., bytes] => (0, bytes.parse()?),
                ["HMSG", .., headers, bytes] => (headers.parse()?, bytes.parse::<usize>()?),
                _ => continue,
            };
            let subject = words[1].to_owned();
            let mut payload = vec![0; bytes + 2];
            self.reader.read_exact(&mut payload).await?;
            payload.truncate(bytes);
            payload.drain(..headers);
            return Ok(Came { subject, payload });
        }
    }
}

/// Publishes every announcement again, at once and late, without the id by which a repeat is known.
pub(crate) async fn repeat(server: SocketAddr) -> Result<JoinHandle<()>, Failure> {
    let (mut tap, mut out) = (Wire::connect(server).await?, Wire::connect(server).await?);
    tap.write(b"SUB noetl.commands.> 1\r\n").await?;
    Ok(tokio::spawn(async move {
        let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
        let (late, mut due) = tokio::sync::mpsc::channel::<Came>(LATE_MAX);
        loop {
            tokio::select! {
                came = tap.next() => {
                    let Ok(came) = came else { return };
                    if seen.len() > SEEN_MAX {
                        seen.clear();
                    }
                    let times = seen.entry(came.payload.clone()).or_default();
                    *times += 1;
                    // What was published here comes by as well.
                    if *times > REPEATS {
                        continue;
                    }
                    if *times == 1 {
                        let (late, again) = (late.clone(), Came {
                            subject: came.subject.clone(),
                            payload: came.payload.clone(),
                        });
                        tokio::spawn(async move {
                            tokio::time::sleep(LATE).await;
                            // Whoever repeats may have ended.
                            let _ = late.send(again).await;
                        });
                    }
                    if out.publish(&came).await.is_err() {
                        return;
                    }
                }
                Some(again) = due.recv() => {
                    if out.publish(&again).await.is_err() {
                        return;
                    }
                }
            }
        }
    }))
}
