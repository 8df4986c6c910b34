//! Encoding of the events that one append adds to a log, as one row.
//!
//! The body is a JSON array with one element per event. An element is an array as well:
//!
//! ```json
//! ["step.enter", "load", 2, null, {"m": {"generation": 1}}]
//! ```
//!
//! | index | value |
//! |---|---|
//! | 0 | event type, or null |
//! | 1 | node name, or null |
//! | 2 | ID of the append's last event minus the ID of this event |
//! | 3 | ID of the append's last event minus the command ID, or null |
//! | 4 | the other columns by the keys of [`Columns`] |
//!
//! A difference that a 64-bit integer can't hold is replaced by the ID itself, as a text; the same holds
//! for the time difference `a`. Values at the end that are null, zero, or empty are omitted. JSON columns are embedded as they
//! are, so a decoded row has the same bytes. Stores show one row per event in the view `event`, which
//! unpacks bodies in SQL: a change of this format needs new views and stays readable here.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{EventRow, RowError, types};
use crate::{CommandId, EventId, ExecutionId, Origin, Seq, Timestamp};

/// Maximum size of a body with several events, in bytes. Larger appends are split into several rows.
pub const BODY_MAX: usize = 1 << 20;

/// Estimated size of an element without its texts, in bytes.
const ELEMENT: usize = 128;

/// Columns of an append beside its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendHead {
    pub execution: ExecutionId,
    /// Sequence number of the first event in the body.
    pub first_seq: Seq,
    /// Sequence number of the last event in the body.
    pub last_seq: Seq,
    /// ID of the event at `last_seq`.
    pub last_event: EventId,
    /// Time of the event at `last_seq`.
    pub created_at: Timestamp,
}

/// Consecutive events of one log, encoded as one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRow {
    pub head: AppendHead,
    pub body: String,
}

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
        use fmt::Write;
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

const RESULT_START: &str = "{\"status\":\"";
const RESULT_CONTEXT: &str = "\",\"context\":";
const DATA_START: &str = "{\"data\":";

/// Decodes the rows of an append.
///
/// # Errors
///
/// Returns [`RowError::Body`] if the body has another format or another number of events than its
/// columns say.
pub fn decode(head: &AppendHead, body: &str) -> Result<Vec<EventRow>, RowError> {
    let elements: Vec<Element<'_>> = serde_json::from_str(body).map_err(|source| {
        RowError::Body { execution: head.execution, seq: head.first_seq, source }
    })?;
    let expected = head.last_seq.0.checked_sub(head.first_seq.0).and_then(|n| n.checked_add(1));
    if u64::try_from(elements.len()).ok() != expected {
        return Err(RowError::Count {
            execution: head.execution,
            seq: head.first_seq,
            found: elements.len(),
        });
    }
    let mut rows: Vec<EventRow> = Vec::with_capacity(elements.len());
    let mut seq = head.first_seq;
    for element in elements {
        let row = element.row(head, seq, rows.last());
        rows.push(row);
        seq = seq.next();
    }
    Ok(rows)
}

/// One event of a body.
struct Element<'a> {
    event_type: Option<Text<'a>>,
    node: Option<Text<'a>>,
    id: Relative,
    command: Option<Relative>,
    columns: Columns<'a>,
}

/// A number relative to that of the append's last event.
enum Relative {
    Before(i64),
    /// The number itself.
    Absolute(i64),
}

impl Relative {
    const LAST: Self = Self::Before(0);

    fn number(&self, last: i64) -> i64 {
        match self {
            Self::Before(difference) => last.wrapping_sub(*difference),
            Self::Absolute(number) => *number,
        }
    }
}

impl<'de> Deserialize<'de> for Relative {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Relative;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number, or a text with a number")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Relative::Before(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                i64::try_from(number).map(Relative::Before).map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(Relative::Absolute).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// Columns that only some events have, by one-letter keys.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Columns<'a> {
    /// Origin, if it is not `decided`.
    #[serde(rename = "o", deserialize_with = "origin")]
    origin: Option<Origin>,
    /// Time of the append minus time of the event, in microseconds.
    #[serde(rename = "a")]
    age: Option<Relative>,
    /// Status, unless the type implies it.
    #[serde(rename = "s", borrow)]
    status: Option<Text<'a>>,
    #[serde(rename = "k", borrow)]
    node_type: Option<Text<'a>>,
    #[serde(rename = "p")]
    parent: Option<i64>,
    #[serde(rename = "w", borrow)]
    worker: Option<Text<'a>>,
    #[serde(rename = "x", borrow, deserialize_with = "raw")]
    context: Option<&'a RawValue>,
    #[serde(rename = "r", borrow, deserialize_with = "raw")]
    result: Option<&'a RawValue>,
    /// `data` of a result that has only this and the status.
    #[serde(rename = "d", borrow, deserialize_with = "raw")]
    data: Option<&'a RawValue>,
    /// `context` of a result that has only this and the status.
    #[serde(rename = "c", borrow, deserialize_with = "raw")]
    result_context: Option<&'a RawValue>,
    #[serde(rename = "m", borrow, deserialize_with = "raw")]
    meta: Option<&'a RawValue>,
    #[serde(rename = "e")]
    error: Option<String>,
    #[serde(rename = "t")]
    duration: Option<f64>,
    #[serde(rename = "i")]
    key: Option<i64>,
    #[serde(rename = "y", borrow, deserialize_with = "raw")]
    more: Option<&'a RawValue>,
}

/// Reads a JSON value that may be null, which differs from a missing one.
fn raw<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn origin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Origin>, D::Error> {
    let text = Text::deserialize(deserializer)?.0;
    match Origin::from_text(&text) {
        Some(origin) => Ok(Some(origin)),
        None => Err(D::Error::custom(format_args!("unknown origin `{text}`"))),
    }
}

impl Element<'_> {
    fn row(self, head: &AppendHead, seq: Seq, previous: Option<&EventRow>) -> EventRow {
        let Columns {
            origin,
            age,
            status,
            node_type,
            parent,
            worker,
            context,
            result,
            data,
            result_context,
            meta,
            error,
            duration,
            key,
            more,
        } = self.columns;
        let origin = origin.unwrap_or(Origin::Decided);
        let event_type = self.event_type.map(|text| known_type(text.0));
        let usual = event_type.as_deref().filter(|_| origin == Origin::Decided);
        let status = match status {
            Some(status) => Some(Cow::Owned(status.0.into_owned())),
            None => usual.and_then(usual_status).map(Cow::Borrowed),
        };
        let short = |context: &str, end: &str| {
            let status = status.as_deref().unwrap_or_default();
            [RESULT_START, status, RESULT_CONTEXT, context, end].concat()
        };
        let result = match (result, data, result_context) {
            (Some(result), _, _) => Some(result.get().to_owned()),
            (None, Some(data), _) => Some(short(&[DATA_START, data.get()].concat(), "}}")),
            (None, None, Some(context)) => Some(short(context.get(), "}")),
            (None, None, None) => None,
        };
        let last = head.last_event.get();
        let at = age.unwrap_or(Relative::LAST).number(head.created_at.as_micros());
        EventRow {
            execution_id: head.execution,
            event_id: EventId::new(self.id.number(last)),
            seq,
            created_at: Timestamp::from_micros(at),
            origin,
            event_type,
            node_name: self.node.map(|node| shared(&node.0, previous)),
            node_type: node_type.map(|text| Arc::from(&*text.0)),
            status,
            command_id: self.command.map(|command| CommandId::new(command.number(last))),
            parent_execution_id: parent.map(ExecutionId::new),
            worker_id: worker.map(|text| Arc::from(&*text.0)),
            context: context.map(|json| json.get().to_owned()),
            result,
            meta: meta.map(|json| json.get().to_owned()),
            error,
            duration,
            idempotency_key: key,
            more: more.map(|json| json.get().to_owned()),
        }
    }
}

/// Returns the name, shared with the previous row if that has the same one.
fn shared(name: &str, previous: Option<&EventRow>) -> Arc<str> {
    match previous.and_then(|row| row.node_name.as_ref()) {
        Some(previous) if **previous == *name => previous.clone(),
        _ => Arc::from(name),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Element<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;

        impl<'de> Visitor<'de> for Elements {
            type Value = Element<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an event as an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
                let element = Element {
                    event_type: values.next_element()?.flatten(),
                    node: values.next_element()?.flatten(),
                    id: values.next_element()?.unwrap_or(Relative::LAST),
                    command: values.next_element()?.flatten(),
                    columns: values.next_element()?.unwrap_or_default(),
                };
                while values.next_element::<IgnoredAny>()?.is_some() {}
                Ok(element)
            }
        }

        deserializer.deserialize_seq(Elements)
    }
}

/// A text that borrows from the body unless it has escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = Text<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Texts)
    }
}

/// Returns the type without a copy, if the engine decides events of this type.
fn known_type(event_type: Cow<'_, str>) -> Cow<'static, str> {
    match DECIDED.iter().find(|(known, _)| *known == event_type) {
        Some((known, _)) => Cow::Borrowed(*known),
        None => Cow::Owned(event_type.into_owned()),
    }
}

/// Returns the status that most decided events of a type have. Elements omit it.
fn usual_status(event_type: &str) -> Option<&'static str> {
    DECIDED.iter().find(|(known, _)| *known == event_type).map(|(_, status)| *status)
}

/// Types of decided events with their usual status. Stored bodies depend on this table and views
/// repeat it: add entries only together with new views, and don't change any.
pub const DECIDED: [(&str, &str); 20] = [
    (types::STEP_ENTER, "ENTERED"),
    (types::COMMAND_ISSUED, "PENDING"),
    (types::COMMAND_CLAIMED, "RUNNING"),
    (types::CALL_DONE, "COMPLETED"),
    (types::COMMAND_COMPLETED, "COMPLETED"),
    (types::STEP_EXIT, "COMPLETED"),
    (types::CTX_UPDATED, "CONTEXT"),
    (types::PLAYBOOK_STARTED, "STARTED"),
    (types::PLAYBOOK_COMPLETED, "COMPLETED"),
    (types::PLAYBOOK_FAILED, "FAILED"),
    (types::PLAYBOOK_CANCELLED, "CANCELLED"),
    (types::COMMAND_STARTED, "STARTED"),
    (types::COMMAND_PARKED, "WAITING"),
    (types::COMMAND_FAILED, "FAILED"),
    (types::COMMAND_EXPIRED, "EXPIRED"),
    (types::COMMAND_CANCELLED, "CANCELLED"),
    (types::CALL_ERROR, "FAILED"),
    (types::TOKENS_DROPPED, "DROPPED"),
    (types::STEP_DENIED, "DENIED"),
    (types::STEP_HELD, "WAITING"),
];

#[cfg(test)]
mod tests;
