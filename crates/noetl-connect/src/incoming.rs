//! Decodes frames of a worker. A frame is decoded as a whole before any of it takes effect.

use noetl_api::completions::CompletionItem;
use noetl_api::connection::{
    Completions, Heartbeat, Hello, LogBatch, ProtocolError, ReportedCompletion, WorkerMessage,
    decode_frame,
};
use noetl_api::logs::LogLineItem;
use noetl_api::{Id, connection};
use noetl_model::{CommandId, ExecutionId, Timestamp};
use noetl_remote::Completion;
use noetl_store::{LogStream, NewLine};
use noetl_work::{LEASE_BATCH_MAX, STEP_LOG_LINES_MAX};
use serde::Deserialize;

/// Maximum length of the ID of a completion, in bytes.
const ID_MAX: usize = 200;

/// Maximum number of commands in a heartbeat.
const COMMANDS_MAX: usize = 10_000;

/// A decoded message of a worker. Completions are separate messages.
#[derive(Debug)]
pub(crate) enum Incoming {
    Hello(Box<Hello>),
    Completion(Box<IncomingCompletion>),
    Beat(Beat),
    Drain,
    /// The worker closes the connection because of this error.
    Error(ProtocolError),
}

#[derive(Debug)]
pub(crate) struct IncomingCompletion {
    pub(crate) id: String,
    pub(crate) command: Id,
    /// The completion, or the reason why it is invalid.
    pub(crate) completion: Result<Completion, String>,
    /// Whether the worker accepts the next command for the same slot.
    pub(crate) takes_next: bool,
    /// Size of the completion in the frame.
    pub(crate) bytes: usize,
}

/// A heartbeat with decoded commands and lines.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) id: u64,
    pub(crate) received: u64,
    /// Commands to renew; `None` if the heartbeat only carries step logs.
    pub(crate) commands: Option<Vec<CommandId>>,
    pub(crate) logs: Vec<CommandLines>,
}

/// Lines that one command printed.
#[derive(Debug)]
pub(crate) struct CommandLines {
    pub(crate) execution: ExecutionId,
    pub(crate) command: CommandId,
    pub(crate) lines: Vec<NewLine>,
}

/// Decodes a frame. `now` is the time of lines without one.
pub(crate) fn decode(
    text: &str,
    now: Timestamp,
    completion: fn(CompletionItem) -> Completion,
) -> Result<Vec<Incoming>, ProtocolError> {
    let mut decoded = Vec::new();
    for (index, message) in decode_frame(text)?.into_iter().enumerate() {
        let at = format!("message {}", index + 1);
        match message {
            WorkerMessage::Hello(hello) => {
                if has_nul(&[&hello.worker_id, &hello.public_key]) {
                    return Err(
                        invalid("hello: text must not hold NUL characters").with_location(at)
                    );
                }
                decoded.push(Incoming::Hello(hello));
            }
            WorkerMessage::Completions(Completions { completions, next }) => {
                if completions.len() > LEASE_BATCH_MAX {
                    let message = format!(
                        "completions: at most {LEASE_BATCH_MAX} at a time, not {}",
                        completions.len()
                    );
                    return Err(invalid(message).with_location(at));
                }
                for (item, raw) in completions.iter().enumerate() {
                    let one = one_completion(raw.get(), next, completion);
                    let one = one.map_err(|error| {
                        error.with_location(format!("{at}, completions[{item}]"))
                    })?;
                    decoded.push(Incoming::Completion(Box::new(one)));
                }
            }
            WorkerMessage::Heartbeat(heartbeat) => {
                let beat = beat(*heartbeat, now).map_err(|error| match error.location.clone() {
                    Some(inner) => error.with_location(format!("{at}, {inner}")),
                    None => error.with_location(at),
                })?;
                decoded.push(Incoming::Beat(beat));
            }
            WorkerMessage::Drain(connection::Drain { .. }) => decoded.push(Incoming::Drain),
            WorkerMessage::Error(error) => decoded.push(Incoming::Error(error)),
        }
    }
    Ok(decoded)
}

#[derive(Deserialize)]
struct Head {
    id: String,
    event_id: Id,
}

/// Decodes a completion. One that names its command and is otherwise invalid is rejected with an
/// ack, so that the worker reports a failure of the command.
fn one_completion(
    text: &str,
    takes_next: bool,
    completion: fn(CompletionItem) -> Completion,
) -> Result<IncomingCompletion, ProtocolError> {
    if !text.starts_with('{') {
        return Err(invalid("a completion is a JSON object"));
    }
    let head: Head = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    if head.id.is_empty() || head.id.len() > ID_MAX {
        return Err(invalid(format!("id must have 1 to {ID_MAX} bytes, not {}", head.id.len())));
    }
    let decoded = serde_json::from_str::<ReportedCompletion>(text);
    let completion = decoded.map_err(|error| error.to_string()).map(|reported| {
        let (_, item): (String, CompletionItem) = reported.into_item();
        completion(item)
    });
    let (id, command, bytes) = (head.id, head.event_id, text.len());
    Ok(IncomingCompletion { id, command, completion, takes_next, bytes })
}

fn beat(heartbeat: Heartbeat, now: Timestamp) -> Result<Beat, ProtocolError> {
    let Heartbeat { id, received, commands, logs } = heartbeat;
    if let Some(count) = commands.as_ref().map(Vec::len).filter(|count| *count > COMMANDS_MAX) {
        let message = format!("commands: at most {COMMANDS_MAX}, not {count}");
        return Err(invalid(message));
    }
    let commands = commands.map(|commands| commands.into_iter().map(Into::into).collect());
    let logs = logs.into_iter().enumerate().map(|(index, batch)| {
        command_lines(batch, now)
            .map_err(|message| invalid(message).with_location(format!("logs[{index}]")))
    });
    Ok(Beat { id, received, commands, logs: logs.collect::<Result<_, _>>()? })
}

fn command_lines(batch: LogBatch, now: Timestamp) -> Result<CommandLines, String> {
    let LogBatch { execution_id, event_id, lines } = batch;
    if lines.len() > STEP_LOG_LINES_MAX {
        return Err(format!("lines: at most {STEP_LOG_LINES_MAX} at a time, not {}", lines.len()));
    }
    let command: CommandId = event_id.into();
    let lines = lines.into_iter().map(|line| {
        let LogLineItem { at, stream, text } = line;
        let Some(stream) = LogStream::from_text(&stream) else {
            return Err(format!("stream must be stdout or stderr, not {stream}"));
        };
        // Not every store accepts NUL characters.
        let text = text.replace('\0', "\u{fffd}");
        Ok(NewLine { command, at: at.unwrap_or(now), stream, text })
    });
    let lines = lines.collect::<Result<_, _>>()?;
    Ok(CommandLines { execution: execution_id.into(), command, lines })
}

fn has_nul(texts: &[&str]) -> bool {
    texts.iter().any(|text| text.contains('\0'))
}

fn invalid(message: impl Into<String>) -> ProtocolError {
    ProtocolError::new("invalid_message", message)
}
