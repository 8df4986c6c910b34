//! Messages of strangers, on their way to a start.

use std::time::Duration;

use noetl_model::{DEPTH_MAX, Map, SubscriptionId, Timestamp, Value, is_deeper_than};
use noetl_playbook::check_subscription;
use noetl_playbook::subscription::{
    DEDUP_WINDOW_MAX, Message, MessageContext, MessageRejection, MessageStart, PushRequest,
    PushedMessage, Subscription, start_for_message,
};

const HEAD: &str = "kind: Subscription\nmetadata: {name: a, path: sub/a}\nspec:\n";

/// Ways in which messages arrive.
const WAYS: [&str; 4] = [
    "  source: nats\n  mode: pull\n  stream: a\n",
    "  source: webhook\n  mode: push\n  ingress: {gateway_path: /in/a, verify: {type: bearer, secret: s}}\n",
    "  source: webhook\n  mode: push\n  ingress: {gateway_path: /in/a, verify: {type: hmac_sha256, header: X-Sig, secret: s}}\n",
    "  source: pubsub\n  mode: push\n  ingress: {gateway_path: /in/a, verify: {type: bearer, secret: s}}\n",
];

/// Keys of `spec` for inputs whose own make no document.
const USUAL: &str = "  dispatch: {playbook: p/a}\n  dedup: {enabled: true}\n  headers:\n    directives:\n    \
    - {header: x-route, controls: dispatch.playbook, allowed: [p/a, b], map: {b: p/b}}\n    \
    - {header: x-key, controls: idempotency_key}\n    - {header: x-type, controls: content_type}\n";

/// Reads further keys of a document's `spec`, behind a NUL headers, one `name: value` a line, and
/// behind another NUL the body.
///
/// Whatever a message holds, its start is one that every store takes, says where the message came from,
/// runs a playbook the document names, and shows no credential. A fetched message and a pushed one with
/// the same headers and body lead to the same fields.
pub fn message(data: &[u8]) {
    let (keys, rest) = crate::halves::halves(data);
    let (headers, body) = crate::halves::halves(rest);
    let headers: Vec<(String, String)> = headers.split(|byte| *byte == b'\n').map(header).collect();
    let mut plain: Vec<Option<Map>> = Vec::new();
    for way in WAYS {
        let subscription = compiled(way, keys);
        let started = start(&subscription, &headers, body);
        let again = start(&subscription, &headers, body);
        assert_eq!(started, again, "the same message leads to the same start");
        match &started {
            Ok(start) => check(&subscription, start),
            Err(rejection) => {
                assert!(!rejection.code().is_empty() && !rejection.to_string().contains('\0'));
            }
        }
        let is_json = matches!(started, Err(MessageRejection::NotJson(_)));
        let fields = started.ok().map(|start| fields(start.payload));
        if subscription.trusts_headers() && !way.contains("pubsub") && !is_json {
            plain.push(fields);
        }
    }
    assert!(plain.windows(2).all(|two| two[0] == two[1]), "both ways lead to the same fields");
}

fn header(line: &[u8]) -> (String, String) {
    let line = String::from_utf8_lossy(line);
    let (name, value) = line.split_once(':').unwrap_or((&line, ""));
    (name.to_owned(), value.to_owned())
}

fn compiled(way: &str, keys: &[u8]) -> Subscription {
    let keys = String::from_utf8_lossy(keys);
    let compile = |keys: &str| check_subscription(&format!("{HEAD}{way}{keys}")).subscription;
    // Keys may also change how messages arrive, which is not what is compared here.
    let own = compile(&keys).filter(|own| {
        let usual = compile(USUAL).expect("the usual keys make a document");
        (own.source, own.mode, &own.ingress) == (usual.source, usual.mode, &usual.ingress)
    });
    own.or_else(|| compile(USUAL)).expect("the usual keys make a document")
}

fn start(
    subscription: &Subscription,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<MessageStart, MessageRejection> {
    let (id, headers) = (SubscriptionId::new(7), headers.to_vec());
    if subscription.ingress.is_none() {
        let message = Message {
            id: "m1".to_owned(),
            body: body.to_vec().into(),
            // NATS repeats the headers as attributes, as listeners do.
            attributes: headers
                .iter()
                .map(|(name, value)| (name.to_lowercase(), Value::from(value.as_str())))
                .collect(),
            headers,
            metadata: Map::new(),
            ack_id: None,
        };
        let context = MessageContext { subscription: id, push: None };
        return start_for_message(subscription, context, &message);
    }
    let request = PushRequest {
        listener: "a".to_owned(),
        headers,
        body: body.to_vec().into(),
        signature: Some("mac".to_owned()),
        received_at: Timestamp::from_millis(0),
        replay_window: Duration::from_secs(300),
    };
    let PushedMessage { message, context } = request.into_message(subscription)?;
    let context = MessageContext { subscription: id, push: Some(&context) };
    start_for_message(subscription, context, &message)
}

fn check(subscription: &Subscription, start: &MessageStart) {
    let payload = Value::Object(start.payload.clone());
    assert!(!is_deeper_than(&payload, DEPTH_MAX), "a payload can be read back");
    assert!(!holds_nul(&payload), "every store takes it");
    assert_eq!(payload["subscription"], subscription.path, "a body replaces nothing");
    assert_eq!(payload["source"], subscription.source.as_str());
    assert_eq!(payload["message"]["id"], start.message);
    let mut named = subscription.headers.directives.iter().flat_map(|directive| {
        let mapped = directive.map.values().filter_map(Value::as_str).map(str::trim);
        directive.allowed.iter().map(String::as_str).chain(mapped)
    });
    let is_named = named.any(|named| named == start.playbook);
    assert!(is_named || start.playbook == subscription.dispatch.playbook, "{}", start.playbook);
    let headers = payload["message"]["headers"].as_object().expect("headers");
    for name in ["authorization", "cookie", "proxy-authorization", "x-session-token"] {
        let is_shown = headers.keys().any(|header| header.eq_ignore_ascii_case(name));
        assert!(!is_shown, "{name} is shown");
    }
    if let Some(dedup) = &start.dedup {
        assert!((1..=256).contains(&dedup.key.len()), "a key fits into an index");
        assert!(!dedup.key.contains(char::is_control) && dedup.window <= DEDUP_WINDOW_MAX);
    }
}

/// Returns the part of a payload that does not depend on how the message arrived.
fn fields(mut payload: Map) -> Map {
    payload.remove("source");
    if let Some(Value::Object(message)) = payload.get_mut("message") {
        for own in ["id", "metadata", "ack_id"] {
            message.remove(own);
        }
    }
    payload
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(map) => {
            map.iter().any(|(name, value)| name.contains('\0') || holds_nul(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
