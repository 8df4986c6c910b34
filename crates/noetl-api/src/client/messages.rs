//! Incremental parser for server-sent events.

/// Maximum size of a message, in bytes. An event of an execution is far smaller.
const MESSAGE_MAX: usize = 64 << 20;

/// A parsed server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SseMessage {
    /// Value of `event`. Empty for the default type, `message`.
    pub(super) event: String,
    /// Values of `data`, joined by line feeds.
    pub(super) data: String,
    /// Value of `id`, sent as `Last-Event-ID` on reconnect.
    pub(super) id: Option<String>,
}

/// A message exceeds [`MESSAGE_MAX`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of the stream is longer than {} MiB", MESSAGE_MAX >> 20)]
pub(super) struct TooLong;

/// Parser state for server-sent events.
#[derive(Debug, Default)]
pub(super) struct Messages {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return. A line feed after it belongs to the same line
    /// end.
    after_return: bool,
    next: SseMessage,
    has_data: bool,
    /// Reconnect delay in milliseconds, if the stream set one.
    pub(super) retry_ms: Option<u64>,
}

impl Messages {
    /// Parses bytes and returns the messages that they complete. Input may be split anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseMessage>, TooLong> {
        let mut whole = Vec::new();
        for &byte in bytes {
            let is_second = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => whole.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            if self.line.len() + self.next.data.len() > MESSAGE_MAX {
                return Err(TooLong);
            }
        }
        Ok(whole)
    }

    /// Discards the incomplete message of a lost connection. Keeps the reconnect delay.
    pub(super) fn begin_again(&mut self) {
        *self = Self { retry_ms: self.retry_ms, ..Self::default() };
    }

    fn end_line(&mut self) -> Option<SseMessage> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let message = std::mem::take(&mut self.next);
            return std::mem::take(&mut self.has_data).then_some(message);
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.next.data.push('\n');
                }
                self.next.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.next.event),
            "id" => self.next.id = Some(value.to_owned()),
            "retry" => self.retry_ms = value.parse().ok().or(self.retry_ms),
            // Ignores comments and unknown fields.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(event: &str, data: &str, id: Option<&str>) -> SseMessage {
        SseMessage { event: event.into(), data: data.into(), id: id.map(str::to_owned) }
    }

    #[test]
    fn messages_are_the_same_however_their_bytes_are_cut() {
        let text = ": hello\n\nid: 1\nretry: 2000\ndata: {\"a\": \"é\"}\n\nevent: end\r\ndata: x\r\n\
                    data:  y\r\n\r\nid: 9\rdata\r\rdata: never ended";
        let expected = [
            message("", "{\"a\": \"é\"}", Some("1")),
            message("end", "x\n y", None),
            message("", "", Some("9")),
        ];
        for size in 1..text.len() {
            let mut messages = Messages::default();
            let cut = text.as_bytes().chunks(size);
            let read: Vec<SseMessage> =
                cut.flat_map(|bytes| messages.push(bytes).expect("short")).collect();
            assert_eq!(read, expected, "{size}");
            assert_eq!(messages.retry_ms, Some(2000));
        }
    }

    #[test]
    fn a_message_without_an_end_is_not_kept_for_ever() {
        let mut messages = Messages::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..100).take_while(|_| messages.push(&piece).is_ok()).count();
        assert_eq!(taken, 64);
    }
}
