//! The loop of one connection.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::stream::{SplitStream, StreamExt as _};
use noetl_access::Caller;
use noetl_api::completions::ContentStored;
use noetl_api::connection::{HeartbeatOutcome, LargeCommand, ProtocolError, ServerMessage};
use noetl_remote::{LeasedRow, WorkerSession};
use noetl_results::ContentError;
use noetl_store::Digest;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::completing::Completed;
use crate::errors::{End, not_text};
use crate::host::ConnectionHost;
use crate::incoming::{Beat, Incoming, decode};
use crate::outbox::{Frame, ITEMS_MAX, Outbox};
use crate::socket::Sender;
use crate::{beats, completing, handshake};

/// Time within which `hello` has to arrive.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// Maximum number of completions that are being recorded. The server reads no further frames until
/// some are committed.
const IN_FLIGHT_MAX: usize = 1000;

/// Maximum size of those completions in bytes.
const IN_FLIGHT_BYTES: usize = 8 << 20;

/// Heartbeats that wait for the earlier ones.
const BEATS_MAX: usize = 8;

/// Time that a stopping server gives completions in flight.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Time that a worker has to read the end of its connection and to close it.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Serves a connection until it ends. The worker's leases stay. `ended` is cancelled when the caller's
/// credential is no longer valid.
pub async fn serve(
    host: ConnectionHost,
    caller: Caller,
    ended: CancellationToken,
    socket: WebSocket,
) {
    let (sink, mut frames) = socket.split();
    let mut sender = Sender::start(sink);
    let end = {
        let revoked = async {
            ended.cancelled().await;
            End::policy("token_expired", "the token is no longer valid")
        };
        tokio::select! {
            end = run(&host, &caller, &mut frames, &mut sender) => end,
            end = revoked => end,
        }
    };
    let (error, reason, code) = match end {
        End::Closed => (None, String::new(), close_code::NORMAL),
        End::Stopping => (None, "the server stops".to_owned(), close_code::AWAY),
        End::Error(error, code) => {
            info!(caller = &*caller.name, code = error.code, "worker connection ended");
            let reason = error.code.clone();
            let error = serde_json::to_string(&ServerMessage::Error(error));
            (error.ok().map(|text| Message::Text(text.into())), reason, code)
        }
    };
    sender.close(error, CloseFrame { code, reason: reason.into() }).await;
    // A connection closed with unread data is reset, and the worker might lose the error.
    let unread = async { while let Some(Ok(_)) = frames.next().await {} };
    let _ = tokio::time::timeout(CLOSED_WITHIN, unread).await;
}

/// Welcomes the worker, and then receives and sends until the connection ends.
async fn run(
    host: &ConnectionHost,
    caller: &Caller,
    frames: &mut SplitStream<WebSocket>,
    sender: &mut Sender,
) -> End {
    let now = host.now();
    let mut first = tokio::select! {
        frame = tokio::time::timeout(HELLO_WITHIN, first_frame(frames)) => match frame {
            Ok(Ok(text)) => match decode(&text, now, host.conversions.completion) {
                Ok(messages) => messages.into_iter(),
                Err(error) => return End::invalid(in_frame(error, 1)),
            },
            Ok(Err(end)) => return end,
            Err(_) => return End::policy("hello_expected", "no hello arrived within 10 s"),
        },
        () = host.stopping.cancelled() => return End::Stopping,
    };
    let Some(Incoming::Hello(hello)) = first.next() else {
        let error = ProtocolError::new("hello_expected", "the first message is hello");
        return End::invalid(in_frame(error, 1));
    };
    let (session, welcome) = match handshake::open(host, caller, *hello).await {
        Ok(opened) => opened,
        Err(end) => return end,
    };
    debug!(worker = session.name(), session = session.id(), "worker connected");
    let welcome = sender.text(welcome);
    if sender.room().send(welcome).await.is_err() {
        return End::Closed;
    }
    sender.set_silence(session.silence());
    let session = Arc::new(session);
    let (beats, waiting) = mpsc::channel(BEATS_MAX);
    let (beat_outcomes, beaten) = mpsc::channel(BEATS_MAX);
    tokio::spawn(Box::pin(beats::run(
        host.clone(),
        caller.clone(),
        session.clone(),
        waiting,
        beat_outcomes,
    )));
    // One frame may exceed the limit of completions.
    let (outcomes, completed) = mpsc::channel(2 * IN_FLIGHT_MAX);
    let line = ConnectionLoop {
        host,
        caller,
        session,
        sender,
        outbox: Outbox::default(),
        beats,
        beaten,
        outcomes,
        completed,
        in_flight: (0, 0),
        received: 1,
        sent: 1,
    };
    match line.run(frames, first.collect()).await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

/// Returns the text of the first frame.
async fn first_frame(frames: &mut SplitStream<WebSocket>) -> Result<String, End> {
    loop {
        match frames.next().await {
            Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
            Some(Ok(Message::Binary(_))) => return Err(End::invalid(in_frame(not_text(), 1))),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) | None => return Err(End::Closed),
            Some(Err(error)) => return Err(End::unreadable(error)),
        }
    }
}

struct ConnectionLoop<'a> {
    host: &'a ConnectionHost,
    caller: &'a Caller,
    session: Arc<WorkerSession>,
    sender: &'a mut Sender,
    outbox: Outbox,
    beats: mpsc::Sender<Beat>,
    beaten: mpsc::Receiver<HeartbeatOutcome>,
    outcomes: mpsc::Sender<Completed>,
    completed: mpsc::Receiver<Completed>,
    /// Completions that are being recorded: their number and bytes.
    in_flight: (usize, usize),
    received: u64,
    /// Number of frames sent, which numbers the next one.
    sent: u64,
}

impl ConnectionLoop<'_> {
    async fn run(
        mut self,
        frames: &mut SplitStream<WebSocket>,
        first: Vec<Incoming>,
    ) -> Result<std::convert::Infallible, End> {
        self.handle(first).await?;
        let mut changes = self.session.changes();
        let mut stops = self.session.stop_signal();
        changes.mark_changed();
        stops.mark_changed();
        let mut ticks = tokio::time::interval(self.session.heartbeat());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let room = self.sender.room();
        let stopping = self.host.stopping.clone();
        let mut deadline: Option<Instant> = None;
        loop {
            let may_send =
                self.sender.has_ping() || !self.outbox.is_empty() && self.sender.is_open();
            let may_read = self.may_read();
            let until = deadline;
            let drained = pin!(async move {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => pending().await,
                }
            });
            tokio::select! {
                room = room.reserve(), if may_send => {
                    let Ok(room) = room else { return Err(End::Closed) };
                    if let Some(ping) = self.sender.take_ping() {
                        room.send(ping);
                        continue;
                    }
                    self.take_commands().await?;
                    if let Some(Frame { text, commands }) = self.outbox.frame() {
                        self.sent += 1;
                        self.session.sent(&commands, self.sent);
                        room.send(self.sender.text(text));
                    }
                }
                frame = frames.next(), if may_read => self.receive(frame).await?,
                Some(completed) = self.completed.recv() => self.completed(&completed),
                Some(outcome) = self.beaten.recv() => {
                    self.outbox.heartbeat(&outcome);
                    self.cancel();
                }
                _ = changes.changed() => self.take_commands().await?,
                _ = stops.changed() => self.cancel(),
                _ = ticks.tick() => {
                    if let Some(end) = self.sender.overdue() {
                        return Err(end);
                    }
                    self.sender.ping();
                }
                () = stopping.cancelled(), if deadline.is_none() => {
                    self.session.drain();
                    self.outbox.drain("the server stops");
                    deadline = Some(Instant::now() + DRAIN_MAX);
                }
                () = drained => return Err(End::Stopping),
            }
            if deadline.is_some() && self.in_flight.0 == 0 && self.outbox.is_empty() {
                return Err(End::Stopping);
            }
        }
    }

    /// Returns `true` if the results of another frame fit into memory.
    fn may_read(&self) -> bool {
        let (count, bytes) = self.in_flight;
        count < IN_FLIGHT_MAX
            && bytes < IN_FLIGHT_BYTES
            && self.beats.capacity() > 0
            && !self.outbox.is_full()
    }

    /// Adds everything that is ready to the outbox, so that it shares the next frame.
    fn collect(&mut self) {
        while let Ok(completed) = self.completed.try_recv() {
            self.completed(&completed);
        }
        while let Ok(outcome) = self.beaten.try_recv() {
            self.outbox.heartbeat(&outcome);
        }
    }

    /// Adds the commands that have to stop.
    fn cancel(&mut self) {
        self.outbox.cancel(self.session.take_cancelled());
    }

    fn completed(&mut self, completed: &Completed) {
        let Completed { outcome, next, bytes } = completed;
        self.in_flight = (self.in_flight.0 - 1, self.in_flight.1 - bytes);
        self.outbox.completion(outcome);
        if let Some(next) = next {
            self.session.release(*next);
        }
    }

    /// Adds the commands that the session has claimed.
    async fn take_commands(&mut self) -> Result<(), End> {
        if self.session.is_superseded() {
            let message = "the worker has connected again";
            return Err(End::policy("superseded", message));
        }
        // Acks of the completions that led to these commands share their frame.
        self.collect();
        for leased in self.session.take_commands() {
            let text = serde_json::to_string(&(self.host.conversions.command)(&leased))
                .expect("commands have text keys");
            if text.len() < ITEMS_MAX {
                self.outbox.command(leased.row.id, text);
                continue;
            }
            match Box::pin(self.upload(&leased, text)).await {
                Ok(large) => self.outbox.large_command(leased.row.id, &large),
                // The lease expires, and the command is reissued.
                Err(error) => {
                    warn!(command.id = %leased.row.id, %error, "failed to store large command");
                }
            }
        }
        self.cancel();
        Ok(())
    }

    /// Stores a command that doesn't fit into a frame as a blob.
    async fn upload(&self, leased: &LeasedRow, text: String) -> Result<LargeCommand, ContentError> {
        let digest = Digest::of_bytes(text.as_bytes()).to_string();
        let mut upload = self.host.content.begin(&digest).await?;
        upload.add(text.as_bytes()).await?;
        let (digest, bytes) = upload.finish().await?;
        Ok(LargeCommand {
            execution_id: leased.row.execution.into(),
            event_id: leased.row.id.into(),
            content: ContentStored { digest: digest.to_string(), bytes },
        })
    }

    async fn receive(&mut self, frame: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        let text = match frame {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Pong(payload))) => {
                self.sender.pong(&payload);
                return Ok(());
            }
            Some(Ok(Message::Ping(_))) => {
                self.sender.received();
                return Ok(());
            }
            Some(Ok(Message::Binary(_))) => {
                return Err(End::invalid(in_frame(not_text(), self.received + 1)));
            }
            Some(Ok(Message::Close(_))) | None => return Err(End::Closed),
            Some(Err(error)) => return Err(End::unreadable(error)),
        };
        self.sender.received();
        self.received += 1;
        let decoded = decode(text.as_str(), self.host.now(), self.host.conversions.completion);
        let messages = decoded.map_err(|error| End::invalid(in_frame(error, self.received)))?;
        self.handle(messages).await
    }

    async fn handle(&mut self, messages: Vec<Incoming>) -> Result<(), End> {
        let is_second = |message: &Incoming| matches!(message, Incoming::Hello(_));
        if messages.iter().any(is_second) {
            let error = ProtocolError::new("unexpected_message", "hello is sent once");
            return Err(End::invalid(in_frame(error, self.received)));
        }
        for message in messages {
            match message {
                Incoming::Hello(_) => {}
                Incoming::Completion(completion) => {
                    self.in_flight.0 += 1;
                    self.in_flight.1 += completion.bytes;
                    let (host, caller) = (self.host.clone(), self.caller.clone());
                    let outcomes = self.outcomes.clone();
                    completing::start(host, caller, &self.session, *completion, outcomes);
                }
                Incoming::Beat(beat) => self.beat(beat).await?,
                Incoming::Drain => self.session.drain(),
                Incoming::Error(error) => {
                    let worker = self.session.name();
                    warn!(worker, code = error.code, error = error.message, "worker sent an error");
                    return Err(End::Closed);
                }
            }
        }
        Ok(())
    }

    /// Queues a heartbeat. While the queue is full, outcomes of earlier ones are received.
    async fn beat(&mut self, beat: Beat) -> Result<(), End> {
        loop {
            tokio::select! {
                room = self.beats.reserve() => {
                    room.map_err(|_| End::Closed)?.send(beat);
                    return Ok(());
                }
                Some(outcome) = self.beaten.recv() => self.outbox.heartbeat(&outcome),
            }
        }
    }
}

/// Adds the number of the frame to the location of an error.
fn in_frame(error: ProtocolError, frame: u64) -> ProtocolError {
    let location = match &error.location {
        Some(inner) => format!("frame {frame}, {inner}"),
        None => format!("frame {frame}"),
    };
    error.with_location(location)
}
