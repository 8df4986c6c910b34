//! Captures a program's output stream in bounded memory, and forwards lines while they arrive.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::{LogSink, Stream};

/// Bytes per read of a pipe: the default capacity of a Linux pipe, so one read empties it.
const READ_BYTES: usize = 64 * 1024;

/// The first and last half of a stream's output, and the number of bytes in between.
///
/// Lines are sent to the sink as they arrive until the first half is full. [`Capture::finish`]
/// sends the gap and the last half. The sink therefore receives at most `limit` bytes plus one
/// line.
#[derive(Debug)]
pub(crate) struct Capture {
    stream: Stream,
    sink: LogSink,
    limit: usize,
    head: Vec<u8>,
    /// The last half, preceded by up to as many surplus bytes. Removing the surplus in batches
    /// makes a gigabyte of output as cheap as copying it.
    tail: Vec<u8>,
    /// Total number of bytes read.
    total: u64,
    /// Number of bytes of `head` that were sent to the sink.
    sent: usize,
}

impl Capture {
    pub(crate) fn new(stream: Stream, limit: usize, sink: LogSink) -> Self {
        Self { stream, sink, limit, head: Vec::new(), tail: Vec::new(), total: 0, sent: 0 }
    }

    /// Reads to the end, and stores the first and last half of the limit.
    pub(crate) async fn read_all(&mut self, mut source: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            self.push(&buffer[..count]);
        }
    }

    /// Reads to the end. Stops with the stream as the error if the output exceeds the limit.
    pub(crate) async fn read_within(
        &mut self,
        mut source: impl AsyncRead + Unpin,
    ) -> Result<(), Stream> {
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            self.push(&buffer[..count]);
            if self.total > self.limit as u64 {
                return Err(self.stream);
            }
        }
        Ok(())
    }

    /// Sends the rest to the sink: the gap and the end.
    pub(crate) fn finish(&mut self) {
        if !self.sink.is_open() {
            return;
        }
        self.send_head(self.head.len());
        if self.total > self.head.len() as u64 {
            let rest = self.rest();
            self.sink.send(self.stream, &rest);
        }
    }

    /// Returns the captured output as text, with a marker for the gap.
    pub(crate) fn text(&self) -> String {
        if self.gap() == 0 {
            // Converted as one slice, because a character may span both parts.
            let whole = [self.head.as_slice(), self.tail()].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        text.push_str(&self.rest());
        text
    }

    /// Returns about the last `bytes` bytes of the captured output, as text.
    pub(crate) fn end(&self, bytes: usize) -> String {
        let text = self.text();
        let mut start = text.len().saturating_sub(bytes);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        text[start..].to_owned()
    }

    /// Returns the last line that is not blank, truncated to fit into a message.
    pub(crate) fn last_line(&self) -> Option<String> {
        const CHARS_MAX: usize = 300;
        let end = self.end(4096);
        let line = end.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(CHARS_MAX).collect())
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let half = self.limit / 2;
        let room = half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        let tail_max = self.limit - half;
        if self.tail.len() > 2 * tail_max {
            self.tail.drain(..self.tail.len() - tail_max);
        }
        if self.sink.is_open()
            && let Some(newline) = first.iter().rposition(|byte| *byte == b'\n')
        {
            self.send_head(self.head.len() - first.len() + newline + 1);
        }
    }

    fn send_head(&mut self, end: usize) {
        let text = String::from_utf8_lossy(&self.head[self.sent..end]);
        self.sink.send(self.stream, &text);
        self.sent = end;
    }

    fn tail(&self) -> &[u8] {
        let tail_max = self.limit - self.limit / 2;
        &self.tail[self.tail.len().saturating_sub(tail_max)..]
    }

    fn gap(&self) -> u64 {
        self.total - self.head.len() as u64 - self.tail().len() as u64
    }

    fn rest(&self) -> String {
        let tail = String::from_utf8_lossy(self.tail());
        match self.gap() {
            0 => tail.into_owned(),
            gap => format!("\n[... {gap} bytes left out ...]\n{tail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn check(limit: usize, chunks: &[&[u8]], expected: &str) {
        let heard = Arc::new(Mutex::new(String::new()));
        let sink = LogSink::new({
            let heard = Arc::clone(&heard);
            move |_, text| heard.lock().unwrap().push_str(text)
        });
        let mut capture = Capture::new(Stream::Stdout, limit, sink);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish();
        assert_eq!(capture.text(), expected);
        assert_eq!(*heard.lock().unwrap(), expected);
    }

    #[test]
    fn output_within_the_limit_is_stored_completely() {
        check(100, &[b"one\ntw", b"o\nthree"], "one\ntwo\nthree");
        check(8, &[b"12345678"], "12345678");
        check(8, &[], "");
    }

    #[test]
    fn the_middle_is_dropped_and_counted() {
        check(8, &[b"1234", b"xxxx", b"yy", b"5678"], "1234\n[... 6 bytes left out ...]\n5678");
        check(8, &[b"1234xxxxxxxxxxxx5678"], "1234\n[... 12 bytes left out ...]\n5678");
    }

    #[test]
    fn invalid_utf8_is_stored_as_replacement_characters() {
        check(100, &[b"a\xff\n"], "a\u{fffd}\n");
    }
}
