//! Connections that are half open, too slow, or no longer allowed.

use noetl_model::{CommandId, CommandState};
use noetl_secrets::{Role, TokenRequest};
use noetl_server::{Auth, Options};
use noetl_store::CommandStore as _;
use noetl_test_app::TestApp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::{PATH, Peer, address, app, with_hello};
use crate::api::{post, started};

/// Returns a masked text frame of up to 65,535 bytes.
fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let length = u16::try_from(text.len()).expect("a short message").to_be_bytes();
    // The mask is zero, so the text stays as it is.
    [&[0x81, 0xfe, length[0], length[1], 0, 0, 0, 0], text.as_bytes()].concat()
}

/// Upgrades a connection by hand, so that nothing answers the server's pings.
async fn upgraded(app: &TestApp) -> TcpStream {
    let mut stream = TcpStream::connect(address(app)).await.expect("a connection");
    let head = format!(
        "GET {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("a head that is sent");
    stream.write_all(&frame(&with_hello(json!({"lease_seconds": 10})))).await.expect("a hello");
    stream
}

/// Reads until the server closes the connection, and returns everything as text.
async fn rest(mut stream: impl tokio::io::AsyncRead + Unpin) -> String {
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count) = stream.read(&mut piece).await
        && count > 0
    {
        read.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// Returns the state of a command and its worker.
async fn state(app: &TestApp, command: &Value) -> (CommandState, Option<String>) {
    let id = CommandId::new(command["event_id"].as_i64().expect("an id"));
    let row = app.store.command(id).await.expect("a store").expect("a command");
    (row.state, row.worker.map(|worker| worker.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_is_closed_and_its_leases_stay() {
    let app = app().await;
    let stream = upgraded(&app).await;
    started(&app).await;
    let text = rest(stream).await;
    assert!(text.contains(r#""type":"commands""#), "{text}");
    assert!(text.contains(r#""type":"error","code":"silent""#), "{text}");
    let open = app.store.open_commands(CommandId::new(0), 10).await.expect("a store");
    assert_eq!(open[0].worker.as_deref(), Some("w"));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_read_is_closed_with_an_error() {
    let app = app().await;
    let (reader, writer) = upgraded(&app).await.into_split();
    let beating = async |mut writer: OwnedWriteHalf| {
        let beat = frame(&json!({"type": "heartbeat", "id": 1, "commands": []}));
        // Its frames arrive, and it never answers a ping.
        while writer.write_all(&beat).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let beating = tokio::spawn(beating(writer));
    let text = rest(reader).await;
    assert!(text.contains(r#""type":"error","code":"slow_reader""#), "{text}");
    beating.abort();
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_leaves_its_leases() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    started(&app).await;
    let command = peer.commands(1).await.remove(0);
    drop(peer);
    let (mut other, _) = Peer::connect(&app, json!({"worker_id": "other"})).await;
    other.beat(&[]).await;
    assert!(!other.has_commands());
    assert_eq!(state(&app, &command).await, (CommandState::Claimed, Some("w".to_owned())));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_closes_the_connection_and_its_leases_stay() {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let tokens = &app.control.secrets.tokens;
    let tenant = noetl_model::Tenant::new("acme");
    let made = async |role: Role| {
        let request = TokenRequest { name: role.to_string(), role, lasts: None, pool: None };
        tokens.create(&tenant, request).await.expect("a token")
    };
    let admin = format!("Bearer {}", made(Role::Admin).await.1);
    let (row, token) = made(Role::Worker).await;
    let (mut peer, _) = Peer::connect_as(&app, Some(&format!("Bearer {token}")), json!({})).await;
    let document = json!({ "content": super::FAN }).to_string();
    for (path, body) in
        [("/api/catalog/register", document.as_str()), ("/api/execute", r#"{"path":"tests/fan"}"#)]
    {
        let sent = post(&app, path, body).header("authorization", &admin).answer().await;
        assert_eq!(sent.0, 200, "{sent:?}");
    }
    let command = peer.commands(1).await.remove(0);
    assert!(tokens.revoke(&tenant, &row.kept.id).await.expect("a store"));
    let (error, code) = peer.error().await;
    assert_eq!((&error["code"], code), (&json!("token_expired"), 1008));
    assert_eq!(state(&app, &command).await, (CommandState::Claimed, Some("w".to_owned())));
    app.close().await;
}
