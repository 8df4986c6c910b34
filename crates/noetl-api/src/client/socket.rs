//! WebSocket of a worker, over the HTTP and TLS stack of the other requests.

use std::sync::OnceLock;
use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::StatusCode;
use reqwest::Upgraded;
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{Access, ApiCall, Client, ClientError, builder, refused};
use crate::connection::FRAME_MAX;

/// Timeout of the upgrade, from the first byte to the response.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(15);

/// Initial size of the buffers, in bytes.
const BUFFER: usize = 16 << 10;

/// HTTP client for WebSockets, created on first use: it reads the certificates of the system, and
/// only workers need it.
#[derive(Debug)]
pub(super) struct SocketClient {
    access: Access,
    http: OnceLock<reqwest::Client>,
}

impl SocketClient {
    pub(super) fn new(access: &Access) -> Self {
        Self { access: access.clone(), http: OnceLock::new() }
    }
}

/// Sending half of a WebSocket.
#[derive(Debug)]
pub struct SocketSender(SplitSink<WebSocketStream<Upgraded>, Message>);

/// Receiving half of a WebSocket. Responds to pings while it is read.
#[derive(Debug)]
pub struct SocketReceiver(SplitStream<WebSocketStream<Upgraded>>);

/// Event that a worker receives on its WebSocket.
#[derive(Debug)]
pub enum SocketEvent {
    /// A text frame with JSON messages.
    Frame(Utf8Bytes),
    /// Any other sign of life of the server.
    Alive,
}

impl Client {
    /// Opens the connection of a worker, `GET /api/worker/connect`. Returns `None` if the server,
    /// or a proxy in front of it, doesn't support the connection.
    pub async fn connect_worker(
        &self,
    ) -> Result<Option<(SocketSender, SocketReceiver)>, ClientError> {
        let http = match self.sockets.http.get() {
            Some(http) => http.clone(),
            None => {
                // An HTTP/2 connection has no such upgrade.
                let built = builder(&self.base, &self.sockets.access)?.http1_only().build();
                let built = built.map_err(ClientError::transport)?;
                self.sockets.http.get_or_init(|| built).clone()
            }
        };
        let key = generate_key();
        let call: ApiCall<()> = ApiCall::get(["api", "worker", "connect"]);
        let request = call.request(&http, &self.base)?;
        let request = request
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        let opened = async {
            let response = request.send().await.map_err(ClientError::transport)?;
            let status = response.status();
            if status != StatusCode::SWITCHING_PROTOCOLS {
                let body = response.bytes().await.map_err(ClientError::transport)?;
                return match is_unsupported(status) {
                    true => Ok(None),
                    false => Err(refused(status, &body)),
                };
            }
            let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
            if accepted
                .is_none_or(|accepted| accepted != derive_accept_key(key.as_bytes()).as_str())
            {
                return Ok(None);
            }
            response.upgrade().await.map(Some).map_err(ClientError::transport)
        };
        let opened = tokio::time::timeout(UPGRADE_TIMEOUT, opened).await;
        let Some(upgraded) = opened.map_err(|late| ClientError::Transport(late.into()))?? else {
            return Ok(None);
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(FRAME_MAX))
            .max_frame_size(Some(FRAME_MAX));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        let (sender, receiver) = socket.split();
        Ok(Some((SocketSender(sender), SocketReceiver(receiver))))
    }
}

/// Returns `true` if the route doesn't exist, or the upgrade did not reach the server. The other
/// error statuses concern the caller or pass.
fn is_unsupported(status: StatusCode) -> bool {
    let concerns_caller = matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    );
    !concerns_caller && !status.is_server_error() || status == StatusCode::NOT_IMPLEMENTED
}

impl SocketSender {
    /// Sends a text frame and waits until it is written.
    pub async fn send(&mut self, text: String) -> Result<(), ClientError> {
        self.0.send(Message::Text(text.into())).await.map_err(lost)
    }

    /// Starts the closing handshake, and doesn't wait for its end.
    pub async fn close(&mut self) -> Result<(), ClientError> {
        self.0.send(Message::Close(None)).await.map_err(lost)
    }
}

impl SocketReceiver {
    /// Waits for the next event. Returns `None` when the connection is closed.
    ///
    /// Cancellation safe: dropping the future loses no frame.
    pub async fn next(&mut self) -> Option<Result<SocketEvent, ClientError>> {
        Some(match self.0.next().await? {
            Ok(Message::Text(text)) => Ok(SocketEvent::Frame(text)),
            Ok(Message::Close(_)) => return None,
            Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {
                Ok(SocketEvent::Alive)
            }
            Err(error) => Err(lost(error)),
        })
    }
}

fn lost(error: tokio_tungstenite::tungstenite::Error) -> ClientError {
    ClientError::Transport(error.into())
}
