//! Sends frames and pings, and detects a worker that no longer reads.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::SinkExt as _;
use futures::stream::SplitSink;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::errors::End;

/// Bytes sent without a confirmation after which the server pings.
const PING_AFTER: usize = 256 << 10;

/// Bytes sent without a confirmation after which the server sends no more. Small enough for the
/// buffers of the connection, so that a slow worker still gets the error.
const WINDOW: usize = 1 << 20;

/// Time that the last frames of a connection have to be sent.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// Sending half of a connection. A pong confirms everything that was sent before its ping.
pub(crate) struct Sender {
    messages: mpsc::Sender<Message>,
    writer: JoinHandle<()>,
    sent: usize,
    confirmed: usize,
    /// Ping without a pong.
    ping: Option<Ping>,
    pings: u64,
    /// Time of the last sign of life.
    alive: Instant,
    silence: Duration,
}

struct Ping {
    number: u64,
    /// Time at which it was due.
    at: Instant,
    /// Bytes sent before it; `None` until it is sent.
    sent: Option<usize>,
}

impl Sender {
    pub(crate) fn start(sink: SplitSink<WebSocket, Message>) -> Self {
        let (messages, waiting) = mpsc::channel(1);
        let writer = tokio::spawn(write(sink, waiting));
        Self {
            messages,
            writer,
            sent: 0,
            confirmed: 0,
            ping: None,
            pings: 0,
            alive: Instant::now(),
            silence: Duration::MAX,
        }
    }

    /// Sets the time without a pong after which the connection ends.
    pub(crate) fn set_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// Returns `true` if a frame may be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.sent - self.confirmed < WINDOW
    }

    /// Returns a sender to wait for room with.
    pub(crate) fn room(&self) -> mpsc::Sender<Message> {
        self.messages.clone()
    }

    /// Counts a frame, and returns its message.
    pub(crate) fn text(&mut self, text: String) -> Message {
        self.sent += text.len();
        if self.sent - self.confirmed >= PING_AFTER {
            self.ping();
        }
        Message::Text(text.into())
    }

    /// Makes a ping due, unless an earlier one has no pong.
    pub(crate) fn ping(&mut self) {
        if self.ping.is_none() {
            self.pings += 1;
            self.ping = Some(Ping { number: self.pings, at: Instant::now(), sent: None });
        }
    }

    /// Returns `true` if a ping is due and not sent.
    pub(crate) fn has_ping(&self) -> bool {
        self.ping.as_ref().is_some_and(|ping| ping.sent.is_none())
    }

    /// Returns the ping that is due, to be sent now.
    pub(crate) fn take_ping(&mut self) -> Option<Message> {
        let ping = self.ping.as_mut().filter(|ping| ping.sent.is_none())?;
        ping.sent = Some(self.sent);
        Some(Message::Ping(ping.number.to_be_bytes().to_vec().into()))
    }

    /// Records a pong, which confirms what was sent before its ping.
    pub(crate) fn pong(&mut self, payload: &[u8]) {
        self.alive = Instant::now();
        if let Some(ping) = self.ping.take_if(|ping| payload == ping.number.to_be_bytes()) {
            self.confirmed = ping.sent.unwrap_or(self.confirmed);
        }
    }

    /// Records a frame of the worker.
    pub(crate) fn received(&mut self) {
        self.alive = Instant::now();
    }

    /// Returns the end of the connection if the last ping had no pong for too long.
    pub(crate) fn overdue(&self) -> Option<End> {
        let ping = self.ping.as_ref().filter(|ping| ping.at.elapsed() >= self.silence)?;
        let seconds = self.silence.as_secs();
        Some(if self.alive > ping.at {
            let message = format!("worker sent no pong for {seconds} s; it reads too slowly");
            End::policy("slow_reader", message)
        } else {
            let message = format!("worker sent neither a frame nor a pong for {seconds} s");
            End::policy("silent", message)
        })
    }

    /// Sends the last messages, within a limit. Stops writing in any case.
    pub(crate) async fn close(self, last: Option<Message>, close: CloseFrame) {
        let Self { messages, mut writer, .. } = self;
        let sent = async {
            for message in last.into_iter().chain([Message::Close(Some(close))]) {
                if messages.send(message).await.is_err() {
                    return;
                }
            }
            drop(messages);
            let _ = (&mut writer).await;
        };
        if tokio::time::timeout(CLOSING_MAX, sent).await.is_err() {
            writer.abort();
        }
    }
}

/// Writes messages until the connection is lost or closed.
async fn write(mut sink: SplitSink<WebSocket, Message>, mut messages: mpsc::Receiver<Message>) {
    while let Some(message) = messages.recv().await {
        let is_last = matches!(message, Message::Close(_));
        if sink.send(message).await.is_err() || is_last {
            return;
        }
    }
}
