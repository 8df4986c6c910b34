//! Data on its way to the server: what was sent and has no ack, and frames with what is ready.

use std::collections::{BTreeMap, HashMap};

use noetl_api::connection::{
    AckStatus, Acks, CompletionOutcome, Completions, FRAME_MAX, Frames, WorkerMessage,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Outgoing, OutgoingCompletion};
use crate::remote::reporter::{ReportOutcome, ReportReply};

/// Bytes of a message besides its items.
const MARGIN: usize = 1024;

/// Maximum number of completions in one message.
const COMPLETIONS_MAX: usize = 256;

/// Heartbeat that carries step logs.
#[derive(Serialize)]
struct LogHeartbeat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: u64,
    received: u64,
    logs: [&'a RawValue; 1],
}

/// Completions and step logs without an ack.
#[derive(Default)]
pub(super) struct Unacked {
    /// Number of the last completion.
    last: u64,
    /// Completions in the order in which they were queued.
    completions: BTreeMap<u64, OutgoingCompletion>,
    numbers: HashMap<String, u64>,
    /// Completions to send, by number.
    ready: Vec<u64>,
    /// Completions that the server could not commit.
    refused: Vec<u64>,
    /// Number of the last heartbeat.
    beat: u64,
    logs: HashMap<u64, oneshot::Sender<bool>>,
    ready_logs: Vec<(u64, Box<RawValue>)>,
}

impl Unacked {
    pub(super) fn add(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Completion(completion) => {
                self.last += 1;
                self.numbers.insert(completion.id.clone(), self.last);
                self.completions.insert(self.last, *completion);
                self.ready.push(self.last);
            }
            Outgoing::Logs { batch, answer } => {
                let id = self.next_beat();
                self.logs.insert(id, answer);
                self.ready_logs.push((id, batch));
            }
        }
    }

    /// Returns the ID of the next heartbeat.
    pub(super) fn next_beat(&mut self) -> u64 {
        self.beat += 1;
        self.beat
    }

    /// Makes all completions ready for a new connection. Step logs in flight are sent over HTTP.
    pub(super) fn restart(&mut self) {
        self.completions.retain(|_, completion| !completion.answer.is_closed());
        self.numbers.retain(|_, number| self.completions.contains_key(number));
        self.ready = self.completions.keys().copied().collect();
        self.refused.clear();
        self.logs.clear();
        self.ready_logs.clear();
    }

    /// Drops everything, so that it is sent over HTTP.
    pub(super) fn abandon(&mut self) {
        let (last, beat) = (self.last, self.beat);
        *self = Self { last, beat, ..Self::default() };
    }

    /// Makes the completions ready that the server could not commit.
    pub(super) fn retry(&mut self) {
        self.ready.append(&mut self.refused);
    }

    /// Returns `true` if every completion has an ack.
    pub(super) fn is_empty(&self) -> bool {
        self.completions.is_empty()
    }

    /// Returns `true` if the server could not commit some completions.
    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Adds what is ready to frames.
    pub(super) fn write(&mut self, frames: &mut Frames, received: u64) {
        for (id, batch) in self.ready_logs.drain(..) {
            frames.add(&LogHeartbeat { kind: "heartbeat", id, received, logs: [&batch] });
        }
        let mut message = Completions { completions: Vec::new(), next: true };
        let mut bytes = 0;
        for number in std::mem::take(&mut self.ready) {
            let Some(completion) = self.completions.get(&number) else { continue };
            let size = completion.item.get().len() + 1;
            let is_full = bytes + size + MARGIN > FRAME_MAX
                || message.completions.len() >= COMPLETIONS_MAX
                || message.next != completion.takes_next;
            if is_full && !message.completions.is_empty() {
                let next = completion.takes_next;
                let whole =
                    std::mem::replace(&mut message, Completions { completions: Vec::new(), next });
                frames.add(&WorkerMessage::Completions(whole));
                bytes = 0;
            }
            message.next = completion.takes_next;
            message.completions.push(completion.item.clone());
            bytes += size;
        }
        if !message.completions.is_empty() {
            frames.add(&WorkerMessage::Completions(message));
        }
    }

    /// Passes acks to those who wait for them. Returns the outcomes of heartbeats that renewed
    /// leases.
    pub(super) fn acknowledge(
        &mut self,
        acks: Acks,
    ) -> Vec<noetl_api::connection::HeartbeatOutcome> {
        for CompletionOutcome { id, status, error, .. } in acks.completions {
            let Some(number) = self.numbers.get(&id).copied() else { continue };
            let reported = match status {
                AckStatus::Accepted => ReportOutcome::Accepted,
                AckStatus::Late => ReportOutcome::Late,
                AckStatus::Rejected => {
                    ReportOutcome::Refused(error.unwrap_or_else(|| "without a reason".to_owned()))
                }
                AckStatus::Retry => {
                    self.refused.push(number);
                    continue;
                }
            };
            self.numbers.remove(&id);
            if let Some(completion) = self.completions.remove(&number) {
                // The caller may have stopped waiting.
                let _ = completion.answer.send(ReportReply::from(reported));
            }
        }
        let mut beats = acks.heartbeats;
        beats.retain(|beat| match self.logs.remove(&beat.id) {
            Some(answer) => {
                let _ = answer.send(beat.error.is_none());
                false
            }
            None => true,
        });
        beats
    }
}
