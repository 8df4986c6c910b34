//! Connection settings of a source: the keys of `spec` that its runtime reads.
//!
//! Keys of published runtimes are stored as written, so that none of their documents is rejected
//! here. Sources that only this implementation has declare the type of each key and the required
//! keys.

use serde_json::{Map, Value};

use super::fields;
use crate::decode::context::Context;
use crate::decode::cursor::Cursor;
use crate::decode::value;
use crate::subscription::{Mode, Source};

/// Keys that published runtimes read. They differ by source, so none is required.
const PUBLISHED: &[&str] = &[
    "url",
    "user",
    "password",
    "token",
    "stream",
    "consumer",
    "subscription",
    "endpoint",
    "topic",
    "group",
    "brokers",
];

/// Type of a key's value.
#[derive(Debug, Clone, Copy)]
enum Holds {
    Text,
    /// A text, or a list of texts.
    Texts,
    Flag,
    Number(u64, u64),
    Word(&'static [&'static str]),
}

use Holds::{Flag, Number, Text, Texts, Word};

const HOUR_MS: u64 = 3_600_000;
const DAY_SECS: u64 = 86_400;

/// Start positions for a consumer without a stored position.
const FROM: &[&str] = &["first", "new"];

const POSTGRES: &[(&str, Holds)] = &[
    ("url", Text),
    ("host", Text),
    ("port", Number(1, 65_535)),
    ("user", Text),
    ("password", Text),
    ("database", Text),
    ("sslmode", Word(&["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])),
    ("sslrootcert", Text),
    ("channel", Text),
    ("table", Text),
    ("key", Text),
    ("order_by", Text),
    ("where", Text),
    ("body", Text),
    ("headers_from", Text),
    ("ack", Word(&["delete", "update", "advance"])),
    ("done", Text),
    ("claim", Text),
    ("claim_secs", Number(1, DAY_SECS)),
    ("poll_ms", Number(10, HOUR_MS)),
    ("consumer", Text),
    ("position_table", Text),
];

const REDIS: &[(&str, Holds)] = &[
    ("url", Text),
    ("user", Text),
    ("password", Text),
    ("stream", Text),
    ("group", Text),
    ("consumer", Text),
    ("body", Text),
    ("from", Word(FROM)),
    ("claim_secs", Number(1, DAY_SECS)),
];

const MQTT: &[(&str, Holds)] = &[
    ("url", Text),
    ("user", Text),
    ("password", Text),
    ("topic", Texts),
    ("client_id", Text),
    ("qos", Number(0, 2)),
    ("version", Number(4, 5)),
    ("session_secs", Number(1, u32::MAX as u64)),
];

const KAFKA: &[(&str, Holds)] = &[
    ("from", Word(FROM)),
    ("tls", Flag),
    ("ca", Text),
    ("certificate", Text),
    ("private_key", Text),
    ("mechanism", Word(&["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])),
    ("token_url", Text),
    ("client_id", Text),
    ("client_secret", Text),
    ("scope", Text),
    ("audience", Text),
];

const PUBSUB: &[(&str, Holds)] = &[("project", Text), ("ack_deadline_secs", Number(10, 600))];

fn own(source: Source) -> &'static [(&'static str, Holds)] {
    match source {
        Source::Nats | Source::Webhook => &[],
        Source::Pubsub => PUBSUB,
        Source::Kafka => KAFKA,
        Source::Postgres => POSTGRES,
        Source::Redis => REDIS,
        Source::Mqtt => MQTT,
    }
}

fn published(source: Source) -> &'static [&'static str] {
    match source {
        Source::Nats | Source::Pubsub | Source::Kafka | Source::Webhook => PUBLISHED,
        Source::Postgres | Source::Redis | Source::Mqtt => &[],
    }
}

/// Returns the keys that a source reads, or those of published runtimes if the source is unknown.
pub(super) fn keys(source: Option<Source>) -> Vec<&'static str> {
    let Some(source) = source else { return PUBLISHED.to_vec() };
    let own = own(source).iter().map(|(name, _)| *name);
    published(source).iter().copied().chain(own).collect()
}

/// Decodes the connection settings of the source.
pub(super) fn decode(
    cx: &mut Context<'_>,
    spec: &Cursor<'_>,
    source: Option<Source>,
    mode: Option<Mode>,
) -> Map<String, Value> {
    let mut connection = Map::new();
    let published = source.map_or(PUBLISHED, published);
    for name in published {
        if let Some(value) = spec.get(name) {
            connection.insert((*name).to_owned(), value::literal(cx, &value));
        }
    }
    let Some(source) = source else { return connection };
    for (name, holds) in own(source) {
        if let Some(value) = read(cx, spec, name, *holds) {
            connection.insert((*name).to_owned(), value);
        }
    }
    if published.is_empty() && mode == Some(Mode::Push) {
        let name = source.as_str();
        let message = format!("a source of kind {name} cannot push");
        if let Some(at) = spec.get("mode") {
            cx.error("E081", &at, message, "write 'mode: pull'");
        }
    }
    match source {
        Source::Nats | Source::Pubsub | Source::Kafka | Source::Webhook => {}
        Source::Postgres => postgres(cx, spec),
        Source::Redis => {
            needs_address(cx, spec, "redis", &["url"], "redis://host:6379");
            needs(cx, spec, "a redis source", "stream", "add 'stream: name-of-the-stream'");
        }
        Source::Mqtt => {
            needs_address(cx, spec, "mqtt", &["url"], "mqtt://host:1883");
            needs(cx, spec, "an mqtt source", "topic", "add 'topic: orders/#', or a list of such");
        }
    }
    connection
}

fn read(cx: &mut Context<'_>, spec: &Cursor<'_>, name: &str, holds: Holds) -> Option<Value> {
    match holds {
        Text => fields::text(cx, spec, name).map(Value::from),
        Flag => fields::flag(cx, spec, name).map(Value::from),
        Number(least, most) => {
            fields::integer_within(cx, spec, name, least..=most).map(Value::from)
        }
        Word(words) => fields::word(cx, spec, name, words).map(Value::from),
        Texts => {
            let value = spec.get(name)?;
            if !value.is_list() {
                return fields::text(cx, spec, name).map(Value::from);
            }
            if value.items().next().is_none() {
                cx.error("E081", &value, format!("'{name}' lists nothing"), "write at least one");
            }
            Some(Value::from(fields::texts(cx, spec, name)))
        }
    }
}

/// Reports a missing server address. The document or its credential must contain it.
fn needs_address(cx: &mut Context<'_>, spec: &Cursor<'_>, source: &str, keys: &[&str], like: &str) {
    if spec.get("auth").is_none() && keys.iter().all(|key| spec.get(key).is_none()) {
        let message = format!("the {source} source has no '{}'", keys[0]);
        let help = format!("add 'url: {like}', or 'auth:' with the name of a credential");
        cx.error("E080", spec, message, help);
    }
}

fn needs(cx: &mut Context<'_>, spec: &Cursor<'_>, what: &str, key: &str, help: &str) {
    if spec.get(key).is_none() {
        cx.error("E080", spec, format!("{what} needs '{key}'"), help);
    }
}

fn postgres(cx: &mut Context<'_>, spec: &Cursor<'_>) {
    needs_address(cx, spec, "postgres", &["url", "host"], "postgres://user@host/database");
    if spec.get("table").is_none() {
        if spec.get("channel").is_none() {
            let help = "add 'table:' whose rows are messages, or 'channel:' to be notified on";
            cx.error("E080", spec, "a postgres source needs 'table' or 'channel'", help);
        }
        let of_tables = [
            "key",
            "order_by",
            "where",
            "body",
            "headers_from",
            "ack",
            "done",
            "claim",
            "claim_secs",
            "poll_ms",
            "consumer",
            "position_table",
        ];
        idle(cx, spec, &of_tables, "without 'table'");
        return;
    }
    let help = "add 'ack: delete', 'ack: update' with 'done', or 'ack: advance'";
    needs(cx, spec, "a table of messages", "ack", help);
    let ack = spec.get("ack").and_then(|ack| ack.text());
    match ack {
        Some("update") => {
            let help = "name the column that says so: 'done: handled_at'";
            needs(cx, spec, "'ack: update'", "done", help);
        }
        Some("advance") => {
            if let Some(claim) = spec.get("claim") {
                let message = "rows cannot be claimed and a position be kept of them";
                cx.error("E081", &claim, message, "remove 'claim', or write 'ack: delete'");
            }
            if let Some(order) = spec.get("order_by") {
                let message = "a position is one of the key, so rows come in its order";
                cx.error("E081", &order, message, "remove 'order_by', and name it as 'key'");
            }
        }
        _ => {}
    }
    if ack.is_some_and(|ack| ack != "update") {
        idle(cx, spec, &["done"], "without 'ack: update'");
    }
    if ack.is_some_and(|ack| ack != "advance") {
        idle(cx, spec, &["consumer", "position_table"], "without 'ack: advance'");
    }
    if spec.get("claim").is_none() {
        idle(cx, spec, &["claim_secs"], "without 'claim'");
    }
}

fn idle(cx: &mut Context<'_>, spec: &Cursor<'_>, keys: &[&str], when: &str) {
    for key in keys {
        if let Some(at) = spec.key(key) {
            let message = format!("'{key}' has no effect {when}");
            cx.warning_at("W114", at, message, "remove it, or add what it is for");
        }
    }
}
