use bytes::Bytes;
use noetl_model::{Timestamp, Value};
use serde_json::json;

use super::*;
use crate::check_subscription;
use crate::subscription::payload::BODY_DEPTH_MAX;
use crate::subscription::{PushRequest, PushedMessage};

const ID: SubscriptionId = SubscriptionId::new(7);
const REPLAY: Duration = Duration::from_secs(300);
const BEARER: &str = "{type: bearer, secret: s}";
const HMAC: &str = "{type: hmac_sha256, header: X-Sig, secret: s}";
const TIMED: &str =
    "{type: hmac_sha256, header: X-Sig, secret: s, timestamp_header: X-Time, tolerance_secs: 60}";
const DEDUP: &str = "  dedup: {enabled: true, window_secs: 60}\n";

fn compiled(source: &str, more: &str) -> Subscription {
    let dispatch = match more.contains("dispatch:") {
        true => "",
        false => "  dispatch: {playbook: p/usual}\n",
    };
    let text = format!(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: a, path: s/a}}\nspec:\n\
         {source}{dispatch}{more}"
    );
    let checked = check_subscription(&text);
    checked.subscription.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// Returns a pull subscription with further keys of its `spec`.
pub(in crate::subscription) fn subscription(more: &str) -> Subscription {
    compiled("  source: nats\n  mode: pull\n  stream: a\n", more)
}

fn pushed(source: &str, verify: &str, more: &str) -> Subscription {
    let ingress = format!("{{gateway_path: /in/a, verify: {verify}}}");
    compiled(&format!("  source: {source}\n  mode: push\n  ingress: {ingress}\n"), more)
}

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => panic!("a map"),
    }
}

fn pairs(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn message(body: &[u8]) -> Message {
    Message {
        id: "m1".to_owned(),
        body: Bytes::copy_from_slice(body),
        headers: pairs(&[("X-A", "1"), ("x-a", "2")]),
        attributes: map(json!({"region": "eu", "source": "theirs"})),
        metadata: map(json!({"subject": "orders.new"})),
        ack_id: Some("$JS.ACK.1".to_owned()),
    }
}

fn fetched(
    subscription: &Subscription,
    message: &Message,
) -> Result<MessageStart, MessageRejection> {
    start_for_message(subscription, MessageContext { subscription: ID, push: None }, message)
}

fn payload(more: &str, body: &[u8]) -> Value {
    let start = fetched(&subscription(more), &message(body));
    Value::Object(start.expect("a start").payload)
}

fn request(headers: &[(&str, &str)], body: &[u8]) -> PushRequest {
    PushRequest {
        listener: "a".to_owned(),
        headers: pairs(headers),
        body: Bytes::copy_from_slice(body),
        signature: None,
        received_at: Timestamp::from_millis(0),
        replay_window: REPLAY,
    }
}

fn received(
    subscription: &Subscription,
    request: PushRequest,
) -> Result<MessageStart, MessageRejection> {
    let PushedMessage { message, context } = request.into_message(subscription)?;
    let context = MessageContext { subscription: ID, push: Some(&context) };
    start_for_message(subscription, context, &message)
}

#[test]
fn a_payload_has_the_message_its_origin_and_the_fields_of_its_body() {
    let body = br#"{"order": 7, "message": "theirs", "subscription": 1}"#;
    assert_eq!(
        payload("", body),
        json!({
            "message": {
                "id": "m1",
                "data": {"order": 7, "message": "theirs", "subscription": 1},
                "headers": {"x-a": "2"},
                "attributes": {"region": "eu", "source": "theirs"},
                "metadata": {"subject": "orders.new"},
                "ack_id": "$JS.ACK.1",
            },
            "subscription": "s/a",
            "source": "nats",
            "order": 7,
        })
    );
}

#[test]
fn a_body_other_than_an_object_is_under_body() {
    for (body, data) in [
        (&b"[1,2]"[..], json!([1, 2])),
        (b"7", json!(7)),
        (b"not json", json!("not json")),
        (b"", json!("")),
        (b"null", Value::Null),
    ] {
        let payload = payload("", body);
        assert_eq!(payload.get("body"), Some(&data));
        assert_eq!(payload["message"]["data"], data);
    }
    let binary = payload("", &[0xff, 0xfe]);
    assert_eq!(binary["body"], "//4=");
    assert_eq!(binary["message"]["metadata"]["encoding"], "base64");
}

#[test]
fn the_document_selects_the_part_at_the_top_level() {
    let text = "  dispatch: {playbook: p/a, payload_from: message.body}\n";
    let workload = payload(text, br#"{"order":7}"#);
    assert_eq!((&workload["body"], workload.get("order")), (&json!(r#"{"order":7}"#), None));
    let attributes = "  dispatch: {playbook: p/a, payload_from: message.attributes}\n";
    let workload = payload(attributes, br#"{"order":7}"#);
    assert_eq!((&workload["region"], &workload["source"]), (&json!("eu"), &json!("nats")));
    assert_eq!(workload.get("order"), None);
}

#[test]
fn credentials_of_headers_stay_out_of_the_payload() {
    let headers =
        [("Authorization", "a"), ("COOKIE", "b"), ("x-session-token", "c"), ("X-Sig", "d")];
    let names = ["authorization", "cookie", "x-session-token", "x-sig"];
    let fetched = Message {
        headers: pairs(&headers),
        attributes: map(json!({"Authorization": "a", "cookies": 1})),
        ..message(b"{}")
    };
    for more in ["", "  headers: {normalize: false}\n"] {
        let start = super::start_for_message(
            &subscription(more),
            MessageContext { subscription: ID, push: None },
            &fetched,
        );
        let payload = Value::Object(start.expect("a start").payload);
        let shown = payload["message"]["headers"].as_object().expect("headers");
        let shown: Vec<String> = shown.keys().map(|name| name.to_lowercase()).collect();
        assert_eq!(shown, ["x-sig"], "it is no signature here");
        assert_eq!(payload["message"]["attributes"], json!({"cookies": 1}));
    }
    // An attribute with such a name is data if no header has it.
    let row = Message { headers: Vec::new(), attributes: map(json!({"cookie": 1})), ..fetched };
    let start = self::fetched(&subscription(""), &row).expect("a start");
    assert_eq!(start.payload["message"]["attributes"], json!({"cookie": 1}));
    let start = received(&pushed("webhook", HMAC, ""), request(&headers, b"{}"));
    let payload = Value::Object(start.expect("a start").payload);
    for name in names {
        assert_eq!(payload["message"]["headers"].get(name), None, "{name}");
        assert_eq!(payload["message"]["attributes"].get(name), None, "{name}");
    }
}

#[test]
fn passthrough_none_leaves_the_headers_out() {
    let none = payload("  headers: {passthrough: none}\n", b"{}");
    assert_eq!(none["message"]["headers"], json!({}));
    assert_eq!(none["message"]["attributes"]["region"], "eu");
    let data = payload("  headers: {passthrough: data}\n", br#"{"data": 1}"#);
    assert_eq!((&data["data"], &data["message"]["headers"]["x-a"]), (&json!(1), &json!("2")));
    let cased = payload("  headers: {normalize: false}\n", b"{}");
    assert_eq!(cased["message"]["headers"], json!({"X-A": "1", "x-a": "2"}));
}

#[test]
fn a_message_that_no_store_can_contain_is_rejected_with_a_reason() {
    let rejected = |subscription: &Subscription, message: &Message| {
        let rejection = fetched(subscription, message).expect_err("a rejection");
        (rejection.code(), rejection.to_string())
    };
    let code = |more: &str, body: &[u8]| rejected(&subscription(more), &message(body)).0;
    assert_eq!(code("", br#"{"a":"\u0000"}"#), "nul_character");
    assert_eq!(code("", br#"{"\u0000":1}"#), "nul_character");
    let nul = "\0".to_owned();
    let attributes = map(json!({ "a": nul }));
    for (message, part) in [
        (Message { id: nul.clone(), ..message(b"{}") }, "message ID"),
        (Message { headers: vec![("a".to_owned(), nul.clone())], ..message(b"{}") }, "headers"),
        (Message { attributes: attributes.clone(), ..message(b"{}") }, "attributes"),
        (Message { metadata: attributes, ..message(b"{}") }, "metadata"),
        (Message { ack_id: Some(nul), ..message(b"{}") }, "delivery ID"),
    ] {
        let (code, reason) = rejected(&subscription(""), &message);
        assert_eq!(code, "nul_character");
        assert_eq!(reason, format!("the {part} must not hold NUL characters"));
    }
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(code("", deep(BODY_DEPTH_MAX + 1).as_bytes()), "too_deep");
    assert!(fetched(&subscription(""), &message(deep(BODY_DEPTH_MAX).as_bytes())).is_ok());
}

#[test]
fn bodies_are_limited_by_the_document() {
    let is_accepted = |subscription: &Subscription, bytes: usize| {
        fetched(subscription, &message(&vec![b'1'; bytes])).map(|start| start.bytes)
    };
    let small = subscription("  limits: {max_message_bytes: 10}\n");
    assert_eq!(is_accepted(&small, 10), Ok(10));
    let rejection = is_accepted(&small, 11).expect_err("a rejection");
    assert_eq!(rejection.code(), "too_large");
    assert_eq!(rejection.to_string(), "the message has 11 bytes; at most 10 are dispatched");
    let most = |more: &str| subscription(more).message_bytes_max();
    assert_eq!(most(""), 4 << 20);
    assert_eq!(most("  limits: {max_message_bytes: 99999999}\n"), 16 << 20);
    let most = |bytes: &str, more: &str| {
        let verify = format!("{BEARER}, max_bytes: {bytes}");
        pushed("webhook", &verify, more).message_bytes_max()
    };
    assert_eq!(pushed("webhook", BEARER, "").message_bytes_max(), 4 << 20);
    assert_eq!(most("50000000", ""), 50_000_000, "the default gives way");
    assert_eq!(most("9", "  limits: {max_message_bytes: 10}\n"), 9);
    assert_eq!(most("50000000", "  limits: {max_message_bytes: 10}\n"), 10);
    // An envelope takes space besides the message, unless the listener limits the request.
    let limits = "  limits: {max_message_bytes: 300000}\n";
    let most = |source: &str, more: &str| {
        pushed(source, &format!("{BEARER}{more}"), limits).request_bytes_max()
    };
    assert_eq!(most("webhook", ""), 300_000);
    assert_eq!(most("pubsub", ""), 400_000 + (256 << 10));
    assert_eq!(most("pubsub", ", max_bytes: 310000"), 310_000);
}

#[test]
fn a_duplicate_is_recognized_by_the_message_id_or_a_directive() {
    let directive = "  headers: {directives: [{header: x-a, controls: idempotency_key}]}\n";
    let deduplicated = subscription(&format!("{DEDUP}{directive}"));
    let start = fetched(&deduplicated, &message(b"{}")).expect("a start");
    let key = |key: &str| MessageDedup {
        key: key.to_owned(),
        window: Duration::from_secs(60),
        is_signature: false,
    };
    assert_eq!(start.dedup, Some(key("2")));
    assert_eq!(start.payload["idempotency_key"], "2");
    let bare = Message { headers: Vec::new(), ..message(b"{}") };
    let workload = |message: &Message| fetched(&deduplicated, message).expect("a start").dedup;
    assert_eq!(workload(&bare), Some(key("m1")));
    let long = Message { id: "i".repeat(5000), ..bare };
    let hashed = workload(&long).expect("a key").key;
    assert!(hashed.starts_with("sha256:") && hashed.len() == 71, "{hashed}");
    for off in ["", "  dedup: {window_secs: 60}\n", "  dedup: {enabled: false}\n"] {
        assert_eq!(fetched(&subscription(off), &message(b"{}")).expect("a start").dedup, None);
    }
    let ages = subscription("  dedup: {enabled: true, window_secs: 99999999}\n");
    let dedup = fetched(&ages, &message(b"{}")).expect("a start").dedup;
    assert_eq!(dedup.map(|dedup| dedup.window), Some(DEDUP_WINDOW_MAX));
}

#[test]
fn a_signature_is_accepted_once_unless_the_document_permits_repeats() {
    let signature = |seconds| Some(("signature:mac".to_owned(), seconds));
    let key = |seconds| Some(("id".to_owned(), seconds));
    let off = "  dedup: {enabled: false}\n";
    let within = |seconds| format!("  dedup: {{enabled: true, window_secs: {seconds}}}\n");
    let unsigned = "  headers: {unsigned: true}\n";
    for (verify, more, expected) in [
        (HMAC, String::new(), signature(300)),
        (HMAC, unsigned.to_owned(), signature(300)),
        (HMAC, off.to_owned(), None),
        (HMAC, within(7), signature(7)),
        (HMAC, format!("{}{unsigned}", within(7)), key(7)),
        (TIMED, String::new(), signature(121)),
        (TIMED, off.to_owned(), signature(121)),
        (TIMED, within(7), signature(121)),
        (TIMED, within(500), signature(500)),
        (BEARER, String::new(), None),
        (BEARER, within(7), key(7)),
    ] {
        let subscription = pushed("webhook", verify, &more);
        let signature = (verify != BEARER).then(|| "mac".to_owned());
        let request = PushRequest { signature, ..request(&[("webhook-id", "id")], b"{}") };
        let workload = received(&subscription, request.clone()).expect("a start").dedup;
        let workload = workload.inspect(|workload| {
            assert_eq!(workload.is_signature, workload.key == "signature:mac");
        });
        let workload = workload.map(|workload| (workload.key, workload.window.as_secs()));
        assert_eq!(workload, expected, "{verify} {more}");
        let never = PushRequest { replay_window: Duration::ZERO, ..request };
        let never = received(&subscription, never).expect("a start").dedup;
        let is_untimed = verify == HMAC && !more.contains("dedup");
        assert_eq!(never.is_none(), expected.is_none() || is_untimed, "the setting is off");
    }
}

#[test]
fn unsigned_headers_apply_no_directive_unless_allowed() {
    let directive = "  headers: {directives: [{header: x-key, controls: idempotency_key}]}\n";
    let trusting = directive.replace("{directives", "{unsigned: true, directives");
    let headers = [("x-key", "k"), ("webhook-id", " m1 ")];
    let chosen = |verify: &str, more: &str| {
        let start = received(&pushed("webhook", verify, more), request(&headers, b"{}"));
        let start = start.expect("a start");
        (start.directives.idempotency_key.is_some(), start.message == "m1")
    };
    assert_eq!(chosen(HMAC, directive), (false, false));
    assert_eq!(chosen(HMAC, &trusting), (true, true));
    assert_eq!(chosen(BEARER, directive), (true, true));
    let unnamed = received(&pushed("webhook", BEARER, ""), request(&[("webhook-id", " ")], b"{}"));
    assert!(unnamed.expect("a start").message.starts_with("sha256:"));
}

#[test]
fn a_pushed_body_declared_as_json_must_be_json() {
    let rejection = |headers: &[(&str, &str)], body: &[u8]| {
        let document = "  headers: {directives: [{header: x-type, controls: content_type}]}\n";
        let start = received(&pushed("webhook", BEARER, document), request(headers, body));
        start.err().map(|rejection| rejection.code())
    };
    let json = ("content-type", "application/problem+JSON; charset=utf-8");
    assert_eq!(rejection(&[json], b"{"), Some("malformed_json"));
    assert_eq!(rejection(&[json], b""), None, "without a body there is nothing to read");
    assert_eq!(rejection(&[("content-type", "text/plain")], b"{"), None);
    assert_eq!(rejection(&[json, ("x-type", "text/plain")], b"{"), None);
    assert_eq!(rejection(&[("x-type", "application/json")], b"{"), Some("malformed_json"));
    // A fetched message has no sender that could read the rejection.
    let typed = Message { headers: pairs(&[json]), ..message(b"{") };
    assert_eq!(fetched(&subscription(""), &typed).expect("a start").payload["body"], "{");
}

#[test]
fn the_envelope_of_a_push_service_is_unwrapped() {
    let subscription = pushed("pubsub", BEARER, DEDUP);
    let body = json!({
        "message": {
            "data": "e25vIGpzb24=", "messageId": "77", "attributes": {"kind": "new"},
            "publishTime": "2026-01-01T00:00:00Z", "orderingKey": "o",
        },
        "subscription": "projects/p/subscriptions/s",
    });
    let headers = [("content-type", "application/json")];
    let start = received(&subscription, request(&headers, body.to_string().as_bytes()));
    let start = start.expect("the type of the envelope is not that of the message");
    let message = &start.payload["message"];
    assert_eq!((&message["id"], &message["data"]), (&json!("77"), &json!("{no json")));
    assert_eq!(message["attributes"], json!({"kind": "new"}));
    assert_eq!(
        message["metadata"],
        json!({
            "listener": "a", "received_at": "1970-01-01T00:00:00Z",
            "content_type": "application/json", "publish_time": "2026-01-01T00:00:00Z",
            "ordering_key": "o", "subscription": "projects/p/subscriptions/s",
        })
    );
    assert_eq!(start.dedup.map(|dedup| dedup.key).as_deref(), Some("77"));
    let typed = "  headers: {directives: [{header: x-type, controls: content_type}]}\n";
    let headers = [("x-type", "application/json")];
    let typed = pushed("pubsub", BEARER, typed);
    let start = received(&typed, request(&headers, body.to_string().as_bytes()));
    let start = start.expect("a push service would only resend the message");
    assert_eq!(start.payload["message"]["data"], json!("{no json"));
    let code = |headers: &[(&str, &str)], body: &str| {
        let start = received(&subscription, request(headers, body.as_bytes()));
        start.map(|start| start.message).map_err(|rejection| rejection.code())
    };
    let plain = [("x-goog-pubsub-message-id", "78")];
    assert_eq!(code(&plain, "{}").as_deref(), Ok("78"));
    for (broken, expected) in [
        ("{}", "not_a_push_message"),
        (r#"{"message":{"data":"e30="}}"#, "not_a_push_message"),
        (r#"{"message":{"data":"%","messageId":"1"}}"#, "not_a_push_message"),
        ("no", "malformed_json"),
    ] {
        assert_eq!(code(&[], broken), Err(expected), "{broken}");
    }
}

#[test]
fn applied_directives_are_in_the_payload_and_the_record() {
    let document = "  headers: {directives: [\
        {header: X-Prio, controls: priority, map: {high: fast}}, \
        {header: x-type, controls: content_type}, {header: x-hint, controls: schema_hint}]}\n";
    let headers = pairs(&[("x-prio", "high"), ("x-type", "text/plain"), ("x-hint", "v2")]);
    let start = fetched(&subscription(document), &Message { headers, ..message(b"{}") });
    let start = start.expect("a start");
    let payload = &start.payload;
    assert_eq!(start.pool.as_deref(), Some("fast"));
    assert_eq!(payload["content_type"], "text/plain");
    assert_eq!(
        payload["message"]["metadata"],
        json!({
            "subject": "orders.new", "content_type": "text/plain", "schema_hint": "v2",
            "directives": {"priority": "fast", "content_type": "text/plain", "schema_hint": "v2"},
        })
    );
    assert_eq!(
        start.directives.record("m1", None),
        json!({
            "message_id": "m1",
            "applied": [
                {"header": "x-prio", "controls": "priority", "value": "high"},
                {"header": "x-type", "controls": "content_type", "value": "text/plain"},
                {"header": "x-hint", "controls": "schema_hint", "value": "v2"},
            ],
            "route_override": {"playbook": null, "pool": "fast"},
            "trace": null,
        })
    );
}

#[test]
fn a_trace_continues_with_the_allowed_baggage() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [
        ("Traceparent", parent),
        ("tracestate", "a=1"),
        ("baggage", "user=ada;p=1, secret=x,tier = gold"),
    ];
    let trace = |more: &str, headers: &[(&str, &str)]| {
        let message = Message { headers: pairs(headers), ..message(b"{}") };
        fetched(&subscription(more), &message).expect("a start").trace
    };
    let document = "  headers: {trace: {propagate: w3c, baggage_allowlist: [user, tier]}}\n";
    let workload = trace(document, &headers).expect("a trace");
    assert_eq!(
        json!(workload),
        json!({"traceparent": parent, "tracestate": "a=1", "baggage": "user=ada;p=1,tier = gold"})
    );
    assert_eq!(trace("  headers: {trace: {propagate: none}}\n", &headers), None);
    for wrong in ["", "00-abc-def-01", &parent.replace('0', "x")] {
        assert_eq!(trace(document, &[("traceparent", wrong)]), None, "{wrong}");
    }
    let bare = trace("", &headers).expect("a trace");
    assert_eq!(bare.baggage, None, "nothing is allowed");
}
