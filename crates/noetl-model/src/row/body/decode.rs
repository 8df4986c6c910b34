//! Decoding of appends to rows.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{AppendHead, DATA_START, DECIDED, RESULT_CONTEXT, RESULT_START, usual_status};
use crate::row::{EventRow, RowError};
use crate::{CommandId, EventId, ExecutionId, Origin, Seq, Timestamp};

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
    let expected = head.last_seq.0.saturating_sub(head.first_seq.0).saturating_add(1);
    if u64::try_from(elements.len()).ok() != Some(expected) {
        return Err(RowError::Count {
            execution: head.execution,
            seq: head.first_seq,
            expected,
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

/// An event of a body.
struct Element<'a> {
    event_type: Option<BodyText<'a>>,
    node: Option<BodyText<'a>>,
    id: Relative,
    command: Option<Relative>,
    columns: Columns<'a>,
}

/// A number relative to that of the append's last event.
enum Relative {
    Before(i64),
    /// A number whose difference from that one overflows.
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
        struct NumberVisitor;

        impl Visitor<'_> for NumberVisitor {
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

        deserializer.deserialize_any(NumberVisitor)
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
    status: Option<BodyText<'a>>,
    #[serde(rename = "k", borrow)]
    node_type: Option<BodyText<'a>>,
    #[serde(rename = "p")]
    parent: Option<i64>,
    #[serde(rename = "w", borrow)]
    worker: Option<BodyText<'a>>,
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
    let text = BodyText::deserialize(deserializer)?.0;
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
        struct ElementVisitor;

        impl<'de> Visitor<'de> for ElementVisitor {
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

        deserializer.deserialize_seq(ElementVisitor)
    }
}

/// A text that borrows from the body unless it has escapes.
struct BodyText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for BodyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = BodyText<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(BodyText(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(BodyText(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

/// Returns the type without a copy, if the engine decides events of this type.
fn known_type(event_type: Cow<'_, str>) -> Cow<'static, str> {
    match DECIDED.iter().find(|(known, _)| *known == event_type) {
        Some((known, _)) => Cow::Borrowed(*known),
        None => Cow::Owned(event_type.into_owned()),
    }
}
