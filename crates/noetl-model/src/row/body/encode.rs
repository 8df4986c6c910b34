//! Encoding of rows as appends.

use std::fmt::Write;

use super::{
    AppendHead, AppendRow, BODY_MAX, DATA_START, RESULT_CONTEXT, RESULT_START, usual_status,
};
use crate::Origin;
use crate::row::{EventRow, types};

/// Estimated size of an element without its texts, in bytes.
const ELEMENT: usize = 128;

impl AppendRow {
    /// Encodes consecutive rows of one log, as several appends if they exceed [`BODY_MAX`].
    pub fn encode(rows: &[EventRow]) -> Vec<Self> {
        let mut appends = Vec::with_capacity(1);
        let (mut first, mut size) = (0, 0);
        for (index, row) in rows.iter().enumerate() {
            let bytes = ELEMENT + text_bytes(row);
            if index > first && size + bytes > BODY_MAX {
                appends.extend(encode(&rows[first..index]));
                (first, size) = (index, 0);
            }
            size += bytes;
        }
        appends.extend(encode(&rows[first..]));
        appends
    }
}

/// Returns the size of the texts of a row, in bytes.
fn text_bytes(row: &EventRow) -> usize {
    let texts = [&row.context, &row.result, &row.meta, &row.error, &row.more];
    texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum()
}

fn encode(rows: &[EventRow]) -> Option<AppendRow> {
    let (first, last) = (rows.first()?, rows.last()?);
    let head = AppendHead {
        execution: last.execution_id,
        first_seq: first.seq,
        last_seq: last.seq,
        last_event: last.event_id,
        created_at: last.created_at,
    };
    let mut body = Writer { text: String::with_capacity(rows.len() * ELEMENT), columns: 0 };
    for (index, row) in rows.iter().enumerate() {
        body.text.push(if index == 0 { '[' } else { ',' });
        body.element(row, &head);
    }
    body.text.push(']');
    Some(AppendRow { head, body: body.text })
}

/// Writes elements as compact JSON.
struct Writer {
    text: String,
    /// Index at which the object of the current element starts.
    columns: usize,
}

impl Writer {
    fn element(&mut self, row: &EventRow, head: &AppendHead) {
        self.text.push('[');
        self.string_or_null(row.event_type.as_deref());
        self.text.push(',');
        self.string_or_null(row.node_name.as_deref());
        let start = self.text.len();
        self.text.push(',');
        self.relative(head.last_event.get(), row.event_id.get());
        self.text.push(',');
        match row.command_id {
            Some(command) => self.relative(head.last_event.get(), command.get()),
            None => self.text.push_str("null"),
        }
        self.text.push(',');
        self.columns = self.text.len();
        self.columns(row, head);
        if self.text.len() > self.columns {
            self.text.push('}');
        } else {
            // Nothing follows, so null and zero are omitted as well.
            self.text.truncate(self.columns - 1);
            if row.command_id.is_none() {
                self.text.truncate(self.text.len() - ",null".len());
                if row.event_id == head.last_event {
                    self.text.truncate(start);
                }
            }
        }
        self.text.push(']');
    }

    /// Writes the object of the other columns without its end, or nothing if all of them are empty.
    fn columns(&mut self, row: &EventRow, head: &AppendHead) {
        let status = row.status.as_deref();
        if row.origin != Origin::Decided {
            self.key("o");
            self.string(row.origin.as_str());
        }
        if row.created_at != head.created_at {
            self.key("a");
            self.relative(head.created_at.as_micros(), row.created_at.as_micros());
        }
        let event_type = row.event_type.as_deref().unwrap_or_default();
        let usual = usual_status(event_type).filter(|_| row.origin == Origin::Decided);
        if let Some(status) = status
            && usual != Some(status)
        {
            self.key("s");
            self.string(status);
        }
        self.optional("k", row.node_type.as_deref());
        if let Some(parent) = row.parent_execution_id {
            self.key("p");
            self.number(parent.get());
        }
        self.optional("w", row.worker_id.as_deref());
        self.json("x", row.context.as_deref());
        match row.result.as_deref().map(|result| short_result(row, result)) {
            Some(ShortResult::Data(data)) => self.json("d", Some(data)),
            Some(ShortResult::Context(context)) => self.json("c", Some(context)),
            Some(ShortResult::Whole(result)) => self.json("r", Some(result)),
            None => {}
        }
        self.json("m", row.meta.as_deref());
        self.optional("e", row.error.as_deref());
        if let Some(duration) = row.duration {
            self.key("t");
            self.text.push_str(&serde_json::Value::from(duration).to_string());
        }
        if let Some(key) = row.idempotency_key {
            self.key("i");
            self.number(key);
        }
        self.json("y", row.more.as_deref());
    }

    /// Starts the object or separates two values of it, and writes a key.
    fn key(&mut self, key: &str) {
        self.text.push_str(if self.text.len() == self.columns { "{\"" } else { ",\"" });
        self.text.push_str(key);
        self.text.push_str("\":");
    }

    fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.key(key);
            self.string(text);
        }
    }

    fn json(&mut self, key: &str, json: Option<&str>) {
        if let Some(json) = json {
            self.key(key);
            self.text.push_str(json);
        }
    }

    fn string_or_null(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.text.push_str("null"),
        }
    }

    fn string(&mut self, text: &str) {
        let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        if text.bytes().all(is_plain) {
            self.text.push('"');
            self.text.push_str(text);
            self.text.push('"');
        } else {
            self.text.push_str(&serde_json::Value::from(text).to_string());
        }
    }

    /// Writes `last - value`, or the value as a text if the difference overflows.
    fn relative(&mut self, last: i64, value: i64) {
        match last.checked_sub(value) {
            Some(difference) => self.number(difference),
            None => self.string(&value.to_string()),
        }
    }

    fn number(&mut self, number: i64) {
        write!(self.text, "{number}").expect("a String accepts every write");
    }
}

/// A result without what its status and event type imply.
enum ShortResult<'a> {
    Whole(&'a str),
    /// `data` in `{"status": …, "context": {"data": …}}`.
    Data(&'a str),
    /// `context` in `{"status": …, "context": …}`.
    Context(&'a str),
}

/// Shortens a result that this program encoded. A result sent by a caller can have more fields, so
/// it is stored as it is.
fn short_result<'a>(row: &EventRow, result: &'a str) -> ShortResult<'a> {
    let context = || {
        let status = row.status.as_deref().filter(|_| row.origin == Origin::Decided)?;
        let rest = result.strip_prefix(RESULT_START)?.strip_prefix(status)?;
        rest.strip_prefix(RESULT_CONTEXT)?.strip_suffix('}')
    };
    let Some(context) = context() else { return ShortResult::Whole(result) };
    let has_data =
        matches!(row.event_type.as_deref(), Some(types::CALL_DONE | types::PLAYBOOK_COMPLETED));
    match context.strip_prefix(DATA_START).and_then(|data| data.strip_suffix('}')) {
        Some(data) if has_data => ShortResult::Data(data),
        _ => ShortResult::Context(context),
    }
}
