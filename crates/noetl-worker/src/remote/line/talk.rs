//! One connection, from `hello` to its end.

use std::time::Duration;

use noetl_api::connection::{
    Cancel, Commands, Drain, Frames, Heartbeat, LargeCommand, ServerMessage, Welcome,
    WorkerMessage, decode_frame,
};
use noetl_api::workers::LeasedCommand;
use noetl_api::{ClientError, Id, SocketEvent, SocketReceiver, SocketSender};
use noetl_model::event::BlobRef;
use tokio::time::{Instant, MissedTickBehavior};
use tracing::{debug, info, warn};

use super::outgoing::Unacked;
use super::task::{AttemptOutcome, LineTask};
use super::{LineState, Outgoing};
use crate::remote::content;
use crate::remote::link::RETRY;
use crate::remote::metrics::WorkerEvent;

/// Time within which the server has to welcome the worker.
const WELCOME_WITHIN: Duration = Duration::from_secs(15);

/// Media type of a command that doesn't fit into a frame.
const JSON: &str = "application/json";

/// Progress of a connection.
struct Talk<'a> {
    sender: SocketSender,
    unacked: &'a mut Unacked,
    /// Number of frames received.
    received: u64,
    /// Time of the last sign of life of the server.
    alive: Instant,
    silence: Duration,
    /// Whether the server was told that the worker drains.
    has_drained: bool,
}

impl LineTask {
    /// Talks to the server until the connection ends.
    pub(super) async fn talk(
        &mut self,
        mut sender: SocketSender,
        mut receiver: SocketReceiver,
        unacked: &mut Unacked,
    ) -> AttemptOutcome {
        let mut frames = Frames::default();
        frames.add(&WorkerMessage::Hello(Box::new(self.hello())));
        for frame in frames.finish() {
            if sender.send(frame).await.is_err() {
                return AttemptOutcome::Refused;
            }
        }
        let welcome = tokio::time::timeout(WELCOME_WITHIN, welcome(&mut receiver)).await;
        let (welcome, others) = match welcome {
            Ok(Ok(welcomed)) => welcomed,
            Ok(Err(reason)) => {
                warn!(reason, "server rejected worker connection, retrying");
                return AttemptOutcome::Refused;
            }
            Err(_) => return AttemptOutcome::Refused,
        };
        self.link.note::<()>(&Ok(()));
        self.link.set_lease(welcome.lease_seconds);
        self.stop_commands(welcome.cancel, welcome.drop);
        debug!(session = welcome.session, "connected to server");
        let heartbeat = Duration::from_secs(welcome.heartbeat_seconds.max(1));
        let silence = Duration::from_secs(welcome.silence_seconds.max(1));
        let talk = Talk {
            sender,
            unacked,
            received: 1,
            alive: Instant::now(),
            silence,
            has_drained: false,
        };
        self.ends.state.send_replace(LineState::Connected);
        self.link.counters.set_connected(true);
        let error = self.exchange(talk, receiver, heartbeat, others).await;
        self.link.note::<()>(&Err(error));
        AttemptOutcome::Lost
    }

    /// Sends and receives until the connection ends. Returns the reason.
    async fn exchange(
        &mut self,
        mut talk: Talk<'_>,
        mut receiver: SocketReceiver,
        heartbeat: Duration,
        others: Vec<ServerMessage>,
    ) -> ClientError {
        if let Err(error) = self.handle(&mut talk, others) {
            return error;
        }
        let mut beats = tokio::time::interval(heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut delays = RETRY.delays();
        let mut retry_at: Option<Instant> = None;
        let draining = self.draining.clone();
        loop {
            let mut frames = Frames::default();
            talk.unacked.write(&mut frames, talk.received);
            if draining.is_cancelled() && !talk.has_drained {
                talk.has_drained = true;
                frames.add(&WorkerMessage::Drain(Drain::default()));
            }
            if let Err(error) = talk.send(frames).await {
                return error;
            }
            let has_drained = talk.has_drained;
            match talk.unacked.has_refused() {
                true => {
                    retry_at.get_or_insert_with(|| Instant::now() + delays.next_delay());
                }
                false if talk.unacked.is_empty() => delays.reset(),
                false => {}
            }
            let retry = retry_at.unwrap_or(talk.alive);
            let handled = tokio::select! {
                event = receiver.next() => match event {
                    Some(Ok(event)) => self.receive(&mut talk, &event),
                    Some(Err(error)) => Err(error),
                    None => Err(lost("server closed the connection")),
                },
                Some(outgoing) = self.ends.outgoing.recv() => {
                    talk.unacked.add(outgoing);
                    self.add_ready(talk.unacked);
                    Ok(())
                }
                _ = beats.tick() => self.beat(&mut talk).await,
                () = tokio::time::sleep_until(retry), if retry_at.is_some() => {
                    retry_at = None;
                    talk.unacked.retry();
                    Ok(())
                }
                () = draining.cancelled(), if !has_drained => Ok(()),
            };
            if let Err(error) = handled {
                // The server closes the connection as well.
                let _ = talk.sender.close().await;
                return error;
            }
        }
    }

    /// Adds everything that is ready, so that it shares frames.
    fn add_ready(&mut self, unacked: &mut Unacked) {
        while let Ok(outgoing) = self.ends.outgoing.try_recv() {
            let outgoing: Outgoing = outgoing;
            unacked.add(outgoing);
        }
    }

    async fn beat(&self, talk: &mut Talk<'_>) -> Result<(), ClientError> {
        if talk.alive.elapsed() > talk.silence {
            return Err(lost("server sent nothing for too long"));
        }
        let commands = self.lender.leases.commands();
        self.link.counters.set_running(commands.len());
        let mut frames = Frames::default();
        frames.add(&WorkerMessage::Heartbeat(Box::new(Heartbeat {
            id: talk.unacked.next_beat(),
            received: talk.received,
            commands: Some(commands.into_iter().map(Id::from).collect()),
            logs: Vec::new(),
        })));
        talk.send(frames).await
    }

    fn receive(&self, talk: &mut Talk<'_>, event: &SocketEvent) -> Result<(), ClientError> {
        talk.alive = Instant::now();
        let SocketEvent::Frame(text) = event else { return Ok(()) };
        let messages = decode_frame(text.as_str()).map_err(|error| lost(&error.message))?;
        self.handle(talk, messages)?;
        // Counted once its commands are in the list of held ones.
        talk.received += 1;
        Ok(())
    }

    fn handle(&self, talk: &mut Talk<'_>, messages: Vec<ServerMessage>) -> Result<(), ClientError> {
        for message in messages {
            match message {
                ServerMessage::Welcome(_) => return Err(lost("server sent a second welcome")),
                ServerMessage::Commands(commands) => self.take_commands(commands),
                ServerMessage::Acks(acks) => {
                    for beat in talk.unacked.acknowledge(acks) {
                        if let Some(error) = beat.error {
                            warn!(error, "server rejected heartbeat, retrying");
                        }
                        self.stop_commands(Vec::new(), beat.lost);
                    }
                }
                ServerMessage::Cancel(Cancel { commands }) => {
                    self.stop_commands(commands, Vec::new());
                }
                ServerMessage::Drain(Drain { reason }) => {
                    info!(reason, "server closes the connection");
                }
                ServerMessage::Error(error) => {
                    warn!(
                        code = error.code,
                        location = error.location,
                        "server closed the connection"
                    );
                    return Err(lost(&error.message));
                }
            }
        }
        Ok(())
    }

    fn stop_commands(&self, cancelled: Vec<Id>, lost: Vec<Id>) {
        for command in cancelled {
            self.lender.leases.cancel(command.into());
        }
        for command in lost {
            if self.lender.leases.mark_lost(command.into()) {
                self.link.counters.count(WorkerEvent::Lost);
                info!(command.id = %command, "command reassigned to another worker");
            }
        }
    }

    fn take_commands(&self, commands: Commands) {
        for command in commands.commands {
            match serde_json::from_str::<LeasedCommand>(command.get()) {
                Ok(leased) => {
                    if let Some(lent) = self.lender.lend(leased)
                        && self.ends.commands.try_send(lent).is_err()
                    {
                        // The next heartbeat doesn't list the command, so it is reissued.
                        warn!("server pushed more commands than the worker has slots");
                    }
                }
                // The next heartbeat doesn't list the command, so it is reissued.
                Err(error) => warn!(%error, "failed to decode command"),
            }
        }
        for large in commands.large {
            self.fetch(large);
        }
    }

    /// Downloads a command that doesn't fit into a frame.
    fn fetch(&self, large: LargeCommand) {
        let Some((holding, cancel)) = self.lender.hold(large.event_id.into()) else { return };
        let (link, lender) = (self.link.clone(), self.lender.clone());
        let commands = self.ends.commands.clone();
        tokio::spawn(async move {
            let blob = BlobRef {
                digest: large.content.digest.into(),
                bytes: large.content.bytes,
                media_type: JSON.into(),
            };
            let mut delays = RETRY.delays();
            let bytes = loop {
                let downloaded = tokio::select! {
                    downloaded = content::download(&link, &blob) => downloaded,
                    () = holding.lost.cancelled() => return,
                };
                match downloaded {
                    Ok(bytes) => break bytes,
                    Err(error) if error.is_passing => {
                        tokio::time::sleep(delays.next_delay()).await;
                    }
                    // The next heartbeat doesn't list the command, so it is reissued.
                    Err(error) => {
                        warn!(error = error.message, "failed to download command");
                        return;
                    }
                }
            };
            match serde_json::from_slice::<LeasedCommand>(&bytes) {
                Ok(leased) => {
                    if let Some(lent) = lender.lend_held(leased, holding, cancel) {
                        // The worker may have stopped; the lease then expires.
                        let _ = commands.send(lent).await;
                    }
                }
                Err(error) => warn!(%error, "failed to decode command"),
            }
        });
    }
}

impl Talk<'_> {
    async fn send(&mut self, frames: Frames) -> Result<(), ClientError> {
        for frame in frames.finish() {
            let sent = tokio::time::timeout(self.silence, self.sender.send(frame)).await;
            sent.map_err(|_| lost("server reads too slowly"))??;
        }
        Ok(())
    }
}

/// Waits for the welcome. Returns it with the other messages of its frame.
async fn welcome(receiver: &mut SocketReceiver) -> Result<(Welcome, Vec<ServerMessage>), String> {
    loop {
        match receiver.next().await {
            Some(Ok(SocketEvent::Alive)) => {}
            Some(Ok(SocketEvent::Frame(text))) => {
                let messages = decode_frame(text.as_str()).map_err(|error| error.message)?;
                let mut messages = messages.into_iter();
                return match messages.next() {
                    Some(ServerMessage::Welcome(welcome)) => Ok((*welcome, messages.collect())),
                    Some(ServerMessage::Error(error)) => {
                        Err(format!("{}: {}", error.code, error.message))
                    }
                    _ => Err("the first message is no welcome".to_owned()),
                };
            }
            Some(Err(error)) => return Err(error.to_string()),
            None => return Err("the connection was closed".to_owned()),
        }
    }
}

fn lost(reason: &str) -> ClientError {
    ClientError::Transport(reason.into())
}
