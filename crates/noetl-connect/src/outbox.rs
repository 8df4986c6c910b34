//! Messages to send, collected into frames.
//!
//! While a frame is being written, further messages accumulate and share the next frame. The worker's
//! slots bound the commands, and its completions and heartbeats bound the acks.

use std::collections::VecDeque;

use noetl_api::Id;
use noetl_api::connection::{CompletionOutcome, FRAME_MAX, HeartbeatOutcome, LargeCommand};
use noetl_model::CommandId;
use serde::Serialize;

/// Bytes of a frame for the brackets and types of its messages.
const MARGIN: usize = 512;

/// Number of acks from which on the server reads no further frames.
const ACKS_MAX: usize = 2000;

/// Maximum size of a message's items in one frame, in bytes.
pub(crate) const ITEMS_MAX: usize = FRAME_MAX - MARGIN;

type Items = VecDeque<String>;

#[derive(Default)]
pub(crate) struct Outbox {
    completions: Items,
    heartbeats: Items,
    commands: VecDeque<(CommandId, String)>,
    large: VecDeque<(CommandId, String)>,
    cancel: Items,
    drain: Option<&'static str>,
}

/// A frame with the commands in it.
pub(crate) struct Frame {
    pub(crate) text: String,
    pub(crate) commands: Vec<CommandId>,
}

impl Outbox {
    pub(crate) fn completion(&mut self, outcome: &CompletionOutcome) {
        self.completions.push_back(json(outcome));
    }

    pub(crate) fn heartbeat(&mut self, outcome: &HeartbeatOutcome) {
        self.heartbeats.push_back(json(outcome));
    }

    /// Adds a command as JSON text of at most [`ITEMS_MAX`] bytes.
    pub(crate) fn command(&mut self, command: CommandId, text: String) {
        self.commands.push_back((command, text));
    }

    pub(crate) fn large_command(&mut self, command: CommandId, large: &LargeCommand) {
        self.large.push_back((command, json(large)));
    }

    pub(crate) fn cancel(&mut self, commands: Vec<CommandId>) {
        self.cancel.extend(commands.into_iter().map(|command| json(&Id::from(command))));
    }

    pub(crate) fn drain(&mut self, reason: &'static str) {
        self.drain = Some(reason);
    }

    /// Returns `true` if the worker reads acks too slowly for further frames.
    pub(crate) fn is_full(&self) -> bool {
        self.completions.len() + self.heartbeats.len() >= ACKS_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self { completions, heartbeats, commands, large, cancel, drain } = self;
        completions.is_empty()
            && heartbeats.is_empty()
            && commands.is_empty()
            && large.is_empty()
            && cancel.is_empty()
            && drain.is_none()
    }

    /// Returns the next frame, with as much as fits.
    pub(crate) fn frame(&mut self) -> Option<Frame> {
        let mut room = ITEMS_MAX;
        let mut messages = Vec::new();
        let completions = taken(&mut self.completions, &mut room);
        let heartbeats = taken(&mut self.heartbeats, &mut room);
        if !completions.is_empty() || !heartbeats.is_empty() {
            let fields = [("completions", completions), ("heartbeats", heartbeats)];
            messages.push(message("acks", fields));
        }
        let (mut named, mut texts) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (waiting, texts) in [&mut self.commands, &mut self.large].into_iter().zip(&mut texts) {
            while let Some((command, text)) = waiting.pop_front_if(|(_, text)| text.len() < room) {
                room -= text.len() + 1;
                named.push(command);
                texts.push(text);
            }
        }
        if !named.is_empty() {
            let [commands, large] = texts;
            messages.push(message("commands", [("commands", commands), ("large", large)]));
        }
        let cancel = taken(&mut self.cancel, &mut room);
        if !cancel.is_empty() {
            messages.push(message("cancel", [("commands", cancel)]));
        }
        if let Some(reason) = self.drain.take() {
            messages.push(format!(r#"{{"type":"drain","reason":"{reason}"}}"#));
        }
        let text = match messages.len() {
            0 => return None,
            1 => messages.pop()?,
            _ => format!("[{}]", messages.join(",")),
        };
        Some(Frame { text, commands: named })
    }
}

/// Removes the items that fit into `room`.
fn taken(items: &mut Items, room: &mut usize) -> Vec<String> {
    let mut taken = Vec::new();
    while let Some(item) = items.pop_front_if(|item| item.len() < *room) {
        *room -= item.len() + 1;
        taken.push(item);
    }
    taken
}

/// Writes a message with those of its lists that are not empty.
fn message<const N: usize>(kind: &str, lists: [(&str, Vec<String>); N]) -> String {
    let mut text = format!(r#"{{"type":"{kind}""#);
    for (name, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
        text.push_str(&format!(r#","{name}":[{}]"#, items.join(",")));
    }
    text.push('}');
    text
}

fn json(item: &impl Serialize) -> String {
    serde_json::to_string(item).expect("messages have text keys only")
}

#[cfg(test)]
mod tests {
    use noetl_api::connection::{AckStatus, ServerMessage, decode_frame};

    use super::*;

    #[test]
    fn what_is_ready_shares_a_frame_up_to_its_limit() {
        let mut outbox = Outbox::default();
        assert!(outbox.frame().is_none() && outbox.is_empty());
        for number in 0..3 {
            let text = format!(r#""{}""#, "x".repeat(600_000));
            outbox.command(CommandId::new(number), text);
        }
        outbox.completion(&CompletionOutcome {
            id: "a".to_owned(),
            event_id: Id::number(9),
            status: AckStatus::Accepted,
            error: None,
        });
        outbox.cancel(vec![CommandId::new(7)]);
        outbox.drain("the server stops");
        let first = outbox.frame().expect("a frame");
        assert_eq!(first.commands, [CommandId::new(0)]);
        let messages = decode_frame::<ServerMessage>(&first.text).expect("a valid frame");
        assert!(matches!(
            &messages[..],
            [
                ServerMessage::Acks(_),
                ServerMessage::Commands(_),
                ServerMessage::Cancel(_),
                ServerMessage::Drain(_)
            ]
        ));
        assert_eq!(outbox.frame().expect("a frame").commands, [CommandId::new(1)]);
        assert_eq!(outbox.frame().expect("a frame").commands, [CommandId::new(2)]);
        assert!(outbox.frame().is_none() && outbox.is_empty());
    }
}
