//! Publishing of messages, and requests with replies.

use std::str::FromStr;

use async_nats::jetstream::context::{GetStreamByNameErrorKind, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::{
    Client, HeaderMap, HeaderName, HeaderValue, Request, RequestErrorKind, jetstream,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use noetl_model::{Failure, FailureKind, Map, Value};
use serde_json::json;

use crate::ToolCall;
use crate::config::{self, plain, type_name, wrong};

/// Keys that may contain the payload. The first one that is present applies.
const PAYLOAD_KEYS: [&str; 5] = ["data", "payload", "message", "value", "body"];

/// Publishes a message, and waits until the stream has acknowledged it or the server has received
/// it.
pub(super) async fn publish(client: &Client, call: &ToolCall) -> Result<Value, Failure> {
    let subject = subject(call)?;
    let payload = payload(call)?;
    let headers = headers(&call.config)?;
    let size = payload.len();
    let context = jetstream::new(client.clone());
    let stream = match wants_stream(&call.config)? {
        Some(false) => None,
        wanted => match context.stream_by_subject(subject).await {
            Ok(stream) => Some(stream),
            Err(error) => match error.kind() {
                GetStreamByNameErrorKind::InvalidSubject => return Err(not_a_subject(subject)),
                // A server without JetStream doesn't respond to stream lookups.
                _ if wanted.is_none() => None,
                _ => {
                    let message = format!("no stream listens to '{subject}': {}", cause(&error));
                    return Err(Failure::new(FailureKind::NotFound, message));
                }
            },
        },
    };
    if stream.is_some() {
        let message = PublishMessage::build().payload(payload).headers(headers);
        let ack = async { context.send_publish(subject.to_owned(), message).await?.await };
        let ack = ack.await.map_err(|error| {
            let kind = match error.kind() {
                PublishErrorKind::StreamNotFound => FailureKind::NotFound,
                PublishErrorKind::TimedOut => FailureKind::Timeout,
                PublishErrorKind::BrokenPipe | PublishErrorKind::MaxAckPending => {
                    FailureKind::Connection
                }
                PublishErrorKind::Other => FailureKind::ServerError,
                _ => FailureKind::ClientError,
            };
            Failure::new(kind, format!("the stream did not take the message: {}", cause(&error)))
        })?;
        return Ok(json!({
            "status": "published", "subject": subject, "bytes": size, "acknowledged": true,
            "stream": ack.stream, "sequence": ack.sequence, "duplicate": ack.duplicate,
        }));
    }
    let sent = client.publish_with_headers(subject.to_owned(), headers, payload).await;
    sent.map_err(|error| {
        let kind = match error.kind() {
            async_nats::PublishErrorKind::Send => FailureKind::Connection,
            _ => FailureKind::ClientError,
        };
        Failure::new(kind, format!("the message could not be published: {}", cause(&error)))
    })?;
    confirm(client).await?;
    Ok(json!({
        "status": "published", "subject": subject, "bytes": size, "acknowledged": false,
    }))
}

/// Waits until the server has received all messages sent before.
///
/// Plain messages are never acknowledged. But the server itself replies to a request on a subject
/// without subscribers, after it has processed earlier messages of the same connection.
async fn confirm(client: &Client) -> Result<(), Failure> {
    match client.request(client.new_inbox(), Bytes::new()).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(()),
        Err(error) => {
            let message = format!("the server did not confirm the message: {}", cause(&error));
            Err(Failure::new(FailureKind::Connection, message))
        }
    }
}

/// Sends a request and returns the reply.
pub(super) async fn request(
    client: &Client,
    call: &ToolCall,
    payload_max: usize,
) -> Result<Value, Failure> {
    let subject = subject(call)?;
    let request = Request::new().payload(payload(call)?).headers(headers(&call.config)?);
    let reply = client.send_request(subject.to_owned(), request).await.map_err(|error| {
        let kind = match error.kind() {
            RequestErrorKind::NoResponders => FailureKind::NotFound,
            RequestErrorKind::TimedOut => FailureKind::Timeout,
            RequestErrorKind::Other => FailureKind::Connection,
            _ => FailureKind::ClientError,
        };
        Failure::new(kind, format!("'{subject}' did not answer: {}", cause(&error)))
    })?;
    check_size(reply.payload.len(), payload_max)?;
    let mut answer = json!({"subject": subject, "headers": header_map(reply.headers.as_ref())});
    put_payload(&mut answer, "data", &reply.payload);
    Ok(answer)
}

fn subject(call: &ToolCall) -> Result<&str, Failure> {
    let subject = config::text(&call.config, "subject")?;
    let subject = subject.ok_or_else(|| wrong("a nats message needs a `subject`"))?;
    let is_usable = !subject.is_empty()
        && subject.split('.').all(|part| {
            !part.is_empty() && part != "*" && part != ">" && !part.contains(char::is_whitespace)
        });
    is_usable.then_some(subject).ok_or_else(|| not_a_subject(subject))
}

fn not_a_subject(subject: &str) -> Failure {
    wrong(format!(
        "`subject` '{subject}' cannot be published to; write words separated by dots, without \
         blanks or wildcards"
    ))
}

fn wants_stream(config: &Map) -> Result<Option<bool>, Failure> {
    match config.get("jetstream") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(wanted)) => Ok(Some(*wanted)),
        Some(other) => {
            Err(wrong(format!("`jetstream` must be true or false, not {}", type_name(other))))
        }
    }
}

/// Returns the payload of a call: text unchanged, base64 decoded if `encoding` says so, and other
/// values as JSON.
pub(super) fn payload(call: &ToolCall) -> Result<Bytes, Failure> {
    let configured = config::first(&call.config, &PAYLOAD_KEYS);
    let Some((key, value)) = configured.or_else(|| config::first(&call.input, &PAYLOAD_KEYS))
    else {
        return Ok(match call.input.is_empty() {
            true => Bytes::new(),
            false => Bytes::from(Value::Object(call.input.clone()).to_string()),
        });
    };
    match config::text(&call.config, "encoding")? {
        None | Some("text" | "json") => Ok(Bytes::from(plain(value))),
        Some("base64") => {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            let decoded = decoded.ok_or_else(|| wrong(format!("`{key}` is not base64")))?;
            Ok(Bytes::from(decoded))
        }
        Some(other) => Err(wrong(format!("`encoding` must be 'text' or 'base64', not '{other}'"))),
    }
}

fn headers(config: &Map) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let configured = config::map(config, "headers")?.into_iter().flatten();
    let id = config.get("msg_id").map(|id| ("Nats-Msg-Id", id));
    for (name, value) in configured.map(|(name, value)| (name.as_str(), value)).chain(id) {
        if value.is_null() {
            continue;
        }
        // The message omits the value, which may be a token.
        let header = HeaderName::from_str(name)
            .map_err(|_| wrong(format!("`headers`: '{name}' is not a header name")))?;
        let value = HeaderValue::from_str(&plain(value)).map_err(|_| {
            wrong(format!("`headers.{name}` holds characters that a header cannot carry"))
        })?;
        headers.append(header, value);
    }
    Ok(headers)
}

fn header_map(headers: Option<&HeaderMap>) -> Value {
    let mut map = Map::new();
    for (name, values) in headers.into_iter().flat_map(HeaderMap::iter) {
        let texts: Vec<_> = values.iter().map(HeaderValue::as_str).collect();
        map.insert(name.to_string(), texts.join(", ").into());
    }
    Value::Object(map)
}

/// Sets `key` to a payload: maps and lists decoded, other text unchanged, and bytes as base64.
///
/// A bare number stays text, because its intended type is unknown.
pub(super) fn put_payload(answer: &mut Value, key: &str, payload: &[u8]) {
    let first = payload.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'{' | b'['))
        && let Ok(value) = serde_json::from_slice::<Value>(payload)
    {
        answer[key] = value;
        return;
    }
    match std::str::from_utf8(payload) {
        Ok(text) => answer[key] = text.into(),
        Err(_) => {
            answer[key] = STANDARD.encode(payload).into();
            answer["encoding"] = "base64".into();
        }
    }
}

pub(super) fn check_size(size: usize, max: usize) -> Result<(), Failure> {
    match size > max {
        true => Err(Failure::new(
            FailureKind::OutputLimit,
            format!("the answer has more than {max} bytes (limit `nats_payload`)"),
        )),
        false => Ok(()),
    }
}

/// Returns the innermost source of an error, which is the specific one.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
