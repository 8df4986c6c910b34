//! Encodes messages into frames and decodes frames.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{FRAME_MAX, FRAME_MESSAGES_MAX, ProtocolError, ServerMessage, WorkerMessage};

/// A message that is decoded by the value of `type`.
pub trait WireMessage: Sized {
    /// Decodes the message of type `kind` from its JSON object. Returns `None` if the other side
    /// sends no such message.
    fn decode(kind: &str, text: &str) -> Option<Result<Self, serde_json::Error>>;
}

impl WireMessage for WorkerMessage {
    fn decode(kind: &str, text: &str) -> Option<Result<Self, serde_json::Error>> {
        Some(match kind {
            "hello" => serde_json::from_str(text).map(Self::Hello),
            "completions" => serde_json::from_str(text).map(Self::Completions),
            "heartbeat" => serde_json::from_str(text).map(Self::Heartbeat),
            "drain" => serde_json::from_str(text).map(Self::Drain),
            "error" => serde_json::from_str(text).map(Self::Error),
            _ => return None,
        })
    }
}

impl WireMessage for ServerMessage {
    fn decode(kind: &str, text: &str) -> Option<Result<Self, serde_json::Error>> {
        Some(match kind {
            "welcome" => serde_json::from_str(text).map(Self::Welcome),
            "commands" => serde_json::from_str(text).map(Self::Commands),
            "acks" => serde_json::from_str(text).map(Self::Acks),
            "cancel" => serde_json::from_str(text).map(Self::Cancel),
            "drain" => serde_json::from_str(text).map(Self::Drain),
            "error" => serde_json::from_str(text).map(Self::Error),
            _ => return None,
        })
    }
}

#[derive(Deserialize)]
struct Tagged<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

/// Decodes a frame into its messages.
///
/// # Errors
///
/// Returns an error that names the message and the position in it. No message of such a frame is
/// returned.
pub fn decode_frame<M: WireMessage>(text: &str) -> Result<Vec<M>, ProtocolError> {
    let malformed = |error: serde_json::Error| {
        ProtocolError::new("malformed_json", format!("frame is not JSON: {error}"))
    };
    if text.len() > FRAME_MAX {
        return Err(ProtocolError::too_large(text.len()));
    }
    let objects: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(malformed)?
    } else {
        vec![serde_json::from_str(text).map_err(malformed)?]
    };
    if objects.len() > FRAME_MESSAGES_MAX {
        let message =
            format!("a frame has at most {FRAME_MESSAGES_MAX} messages, not {}", objects.len());
        return Err(ProtocolError::new("too_many_messages", message));
    }
    let decoded = objects.into_iter().enumerate().map(|(index, object)| {
        decode(object.get()).map_err(|error| error.with_location(format!("message {}", index + 1)))
    });
    decoded.collect()
}

fn decode<M: WireMessage>(text: &str) -> Result<M, ProtocolError> {
    let invalid = |message: String| ProtocolError::new("invalid_message", message);
    if !text.starts_with('{') {
        return Err(invalid("a message is a JSON object".to_owned()));
    }
    let Tagged { kind } = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    match M::decode(&kind, text) {
        Some(Ok(message)) => Ok(message),
        Some(Err(error)) => Err(invalid(format!("{kind}: {error}"))),
        None => {
            let kind: String = kind.chars().take(50).collect();
            let message = format!("there is no message of type '{kind}'");
            Err(ProtocolError::new("unknown_message", message))
        }
    }
}

/// Collects messages into frames of at most [`FRAME_MAX`] bytes.
#[derive(Debug, Default)]
pub struct Frames {
    whole: Vec<String>,
    open: Vec<String>,
    bytes: usize,
}

impl Frames {
    /// Adds a message. Returns its size in bytes; a message above [`FRAME_MAX`] is added as a
    /// frame that the other side rejects.
    pub fn add(&mut self, message: &impl Serialize) -> usize {
        let text = serde_json::to_string(message).expect("messages have text keys only");
        let size = text.len();
        // Two brackets and a comma.
        if self.bytes + size + 3 > FRAME_MAX || self.open.len() >= FRAME_MESSAGES_MAX {
            self.close();
        }
        self.bytes += size + 1;
        self.open.push(text);
        size
    }

    /// Returns the frames in order.
    pub fn finish(mut self) -> Vec<String> {
        self.close();
        self.whole
    }

    fn close(&mut self) {
        self.bytes = 0;
        let mut messages = std::mem::take(&mut self.open);
        match messages.len() {
            0 => {}
            1 => self.whole.append(&mut messages),
            _ => self.whole.push(format!("[{}]", messages.join(","))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Acks, Cancel, CompletionOutcome, Drain};
    use super::*;
    use crate::Id;

    fn error(text: &str) -> ProtocolError {
        decode_frame::<WorkerMessage>(text).expect_err("an invalid frame")
    }

    #[test]
    fn a_frame_has_one_message_or_several() {
        let one = decode_frame::<WorkerMessage>(r#" {"type":"drain"}"#).expect("a frame");
        assert!(matches!(one[..], [WorkerMessage::Drain(_)]));
        let several = r#"[{"type":"heartbeat","id":7},{"id":8,"type":"heartbeat"}]"#;
        let several = decode_frame::<WorkerMessage>(several).expect("a frame");
        assert!(matches!(&several[..], [WorkerMessage::Heartbeat(first), _] if first.id == 7));
        assert!(decode_frame::<WorkerMessage>("[]").expect("a frame").is_empty());
    }

    #[test]
    fn an_invalid_frame_is_rejected_with_the_position_of_the_error() {
        let found = error(r#"[{"type":"drain"},{"type":"heartbeat","id":-1}]"#);
        assert_eq!(
            (&*found.code, found.location.as_deref()),
            ("invalid_message", Some("message 2"))
        );
        assert!(found.message.contains("column"), "{found:?}");
        for (text, code) in [
            ("", "malformed_json"),
            ("{", "malformed_json"),
            ("[1]", "invalid_message"),
            ("[[]]", "invalid_message"),
            ("{}", "invalid_message"),
            (r#"{"type":1}"#, "invalid_message"),
            (r#"{"type":"welcome"}"#, "unknown_message"),
            (r#"{"type":"drain","type":"drain"}"#, "invalid_message"),
            (r#"{"type":"hello","protocol":1}"#, "invalid_message"),
        ] {
            assert_eq!(error(text).code, code, "{text}");
        }
        let nested = "[".repeat(100_000) + &"]".repeat(100_000);
        let text = format!(r#"{{"type":"hello","kinds":{nested}}}"#);
        assert_eq!(error(&text).code, "invalid_message");
        assert_eq!(error(&" ".repeat(FRAME_MAX + 1)).code, "frame_too_large");
        let many = vec![r#"{"type":"drain"}"#; FRAME_MESSAGES_MAX + 1].join(",");
        assert_eq!(error(&format!("[{many}]")).code, "too_many_messages");
    }

    #[test]
    fn messages_share_frames_up_to_the_limit() {
        let mut frames = Frames::default();
        frames.add(&ServerMessage::Drain(Drain::default()));
        assert_eq!(frames.finish(), [r#"{"type":"drain"}"#]);
        let mut frames = Frames::default();
        let ack = CompletionOutcome {
            id: "x".repeat(300_000),
            event_id: Id::number(1),
            status: super::super::AckStatus::Accepted,
            error: None,
        };
        for _ in 0..4 {
            let acks = Acks { completions: vec![ack.clone()], ..Acks::default() };
            frames.add(&ServerMessage::Acks(acks));
        }
        frames.add(&ServerMessage::Cancel(Cancel::default()));
        let frames = frames.finish();
        assert_eq!(frames.len(), 2);
        assert!(frames.iter().all(|frame| frame.len() <= FRAME_MAX));
        let read =
            frames.iter().flat_map(|frame| decode_frame::<ServerMessage>(frame).expect("ok"));
        assert_eq!(read.count(), 5);
    }
}
