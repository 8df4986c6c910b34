//! Frames and requests that no worker should send.

use futures::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{PATH, Peer, app, completion, with_hello};
use crate::api::{get, started};

const FRAME_MAX: usize = 1 << 20;

/// Returns a heartbeat of this size.
fn sized(bytes: usize) -> Message {
    let text = json!({"type": "heartbeat", "id": 7, "unknown": ""}).to_string();
    let padding = "x".repeat(bytes - text.len());
    Message::text(json!({"type": "heartbeat", "id": 7, "unknown": padding}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_has_at_most_one_mebibyte() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    peer.socket.send(sized(FRAME_MAX)).await.expect("a frame that is sent");
    assert_eq!(peer.next("acks").await["heartbeats"], json!([{"id": 7}]));
    for bytes in [FRAME_MAX + 1, 2 * FRAME_MAX] {
        let (mut peer, _) = Peer::connect(&app, json!({})).await;
        peer.socket.send(sized(bytes)).await.expect("a frame that is sent");
        let (error, code) = peer.error().await;
        assert_eq!((&error["code"], code), (&json!("frame_too_large"), 1009), "{bytes}");
    }
    // The server reads no more of a larger one, so the connection may be reset before the error.
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let _ = peer.socket.send(sized(16 * FRAME_MAX)).await;
    while peer.read().await {}
    assert!(peer.inbox.iter().all(|message| message["type"] == "error"), "{:?}", peer.inbox);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_frame_closes_the_connection_with_the_location_and_changes_nothing() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    started(&app).await;
    let command = peer.commands(1).await.remove(0);
    let valid = completion(&command, json!({"data": 1}));
    let nested = "[".repeat(50_000) + &"]".repeat(50_000);
    let with = |other: Value| json!([valid, other]).to_string();
    let frames: Vec<(Message, &str, u16, &str)> = vec![
        (Message::binary(valid.to_string().into_bytes()), "frame_not_text", 1003, "frame 2"),
        (Message::text("{"), "malformed_json", 1007, "frame 2"),
        (Message::text("7"), "invalid_message", 1007, "frame 2, message 1"),
        (Message::text(with(json!({}))), "invalid_message", 1007, "frame 2, message 2"),
        (
            Message::text(with(json!({"type": "welcome"}))),
            "unknown_message",
            1008,
            "frame 2, message 2",
        ),
        (
            Message::text(with(json!({"type": "completions", "completions": [{"id": "x"}]}))),
            "invalid_message",
            1007,
            "frame 2, message 2, completions[0]",
        ),
        (
            Message::text(with(json!({"type": "heartbeat", "commands": ["x"]}))),
            "invalid_message",
            1007,
            "frame 2, message 2",
        ),
        (
            Message::text(with(json!({"type": "heartbeat", "logs": [
                {"execution_id": 1, "event_id": 1, "lines": [{"stream": "x", "text": ""}]},
            ]}))),
            "invalid_message",
            1007,
            "frame 2, message 2, logs[0]",
        ),
        (Message::text(with(with_hello(json!({})))), "unexpected_message", 1008, "frame 2"),
        (
            Message::text(format!(r#"[{valid},{{"type":"heartbeat","logs":{nested}}}]"#)),
            "invalid_message",
            1007,
            "frame 2, message 2",
        ),
        (
            Message::text(format!("[{}]", vec![r#"{"type":"drain"}"#; 1001].join(","))),
            "too_many_messages",
            1008,
            "frame 2",
        ),
    ];
    for (frame, code, close, location) in frames {
        let hello = json!({"holds": [command["event_id"]]});
        let (mut peer, welcome) = Peer::connect(&app, hello).await;
        assert_eq!(welcome["keep"], json!([command["event_id"]]), "no completion was recorded");
        peer.socket.send(frame).await.expect("a frame that is sent");
        let (error, closed) = peer.error().await;
        assert_eq!((&error["code"], closed), (&json!(code), close), "{error}");
        assert_eq!(error["location"], location, "{error}");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_completion_is_rejected_and_the_connection_stays() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    started(&app).await;
    let command = peer.commands(1).await.remove(0);
    let (id, event) = (&command["execution_id"], &command["event_id"]);
    let nested = "[".repeat(200) + &"]".repeat(200);
    let item = format!(r#"{{"id":"a","execution_id":{id},"event_id":{event},"data":{nested}}}"#);
    let frame = format!(r#"{{"type":"completions","completions":[{item}]}}"#);
    peer.socket.send(Message::text(frame)).await.expect("a frame that is sent");
    let ack = peer.next("acks").await["completions"][0].clone();
    assert_eq!(ack["status"], "rejected");
    assert!(ack["error"].as_str().expect("a reason").contains("recursion"), "{ack}");
    let missing = json!({"content": {"digest": "0".repeat(64), "bytes": 3}});
    assert_eq!(peer.report(&command, missing).await["status"], "rejected");
    assert_eq!(peer.complete(&command).await["status"], "accepted");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_hello_is_refused_with_a_reason() {
    let app = app().await;
    for (hello, code, close) in [
        (json!({"protocol": 2}), "unsupported_protocol", 1008),
        (json!({"protocol": "1"}), "invalid_message", 1007),
        (json!({"worker_id": ""}), "invalid_worker", 1008),
        (json!({"worker_id": "local"}), "invalid_worker", 1008),
        (json!({"worker_id": "a\u{0}"}), "invalid_message", 1007),
        (json!({"public_key": ""}), "invalid_key", 1008),
        (json!({"slots": 0}), "invalid_amount", 1008),
        (json!({"slots": 10_001}), "invalid_amount", 1008),
        (json!({"slots": -1}), "invalid_message", 1007),
        (json!({"lease_seconds": 9}), "invalid_amount", 1008),
        (json!({"lease_seconds": 301}), "invalid_amount", 1008),
        (json!({"pools": ["a\u{0}"]}), "invalid_name", 1008),
        (json!({"kinds": [{}]}), "invalid_message", 1007),
        (json!({"holds": vec![1; 10_001]}), "invalid_amount", 1008),
    ] {
        let mut peer = Peer::open(&app, None).await;
        peer.send(&with_hello(hello.clone())).await;
        let (error, closed) = peer.error().await;
        assert_eq!((&error["code"], closed), (&json!(code), close), "{hello}: {error}");
    }
    let mut peer = Peer::open(&app, None).await;
    peer.send(&json!({"type": "drain"})).await;
    let (error, closed) = peer.error().await;
    assert_eq!((&error["code"], closed), (&json!("hello_expected"), 1008));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_an_upgrade_or_from_a_foreign_page_is_refused() {
    let app = app().await;
    let (status, body) = get(&app, PATH).answer().await;
    assert_eq!((status, &body["code"]), (426, &json!("upgrade_required")));
    let upgrade = get(&app, PATH)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("origin", "https://evil.example");
    let (status, body) = upgrade.answer().await;
    assert_eq!((status, &body["code"]), (403, &json!("origin_not_allowed")));
    app.close().await;
}
