//! Typed HTTP client for the control plane.
//!
//! [`calls`] has one function per API call, and [`Client::ask`] sends it. Frequent calls have their
//! own methods on [`Client`]. [`EventFollower`] reads an event stream and reconnects after a lost
//! connection.

mod call;
pub mod calls;
mod follow;
mod messages;
mod socket;
pub mod work;

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{CommandId, ExecutionId};
use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Identity, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;

pub use call::{ApiCall, Response};
pub use follow::{EventFollower, StreamItem};
pub use socket::{SocketEvent, SocketReceiver, SocketSender};

use crate::approvals::ApprovalList;
use crate::catalog::{RegisterReply, RegisterRequest};
use crate::commands::{ClaimReply, Command};
use crate::error::ErrorBody;
use crate::events::{EventReply, EventRequest, EventsReply};
use crate::execute::{ExecuteReply, ExecuteRequest};
use crate::executions::{
    AnswerReply, AnswerRequest, CancelReply, CancelRequest, ExecutionDetail, StatusReply,
};
use crate::health::Health;

/// Timeout of a request. The server may delay the response to a worker's report for 20 s while the
/// journal queue is full.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Minimum throughput assumed for large bodies, in bytes per second. Extends the request timeout.
const SLOWEST: u64 = 128 << 10;
/// Read timeout of a stream. The control plane sends a heartbeat every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// Timeout for establishing a connection. A reachable control plane accepts one far sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length, in characters, of a response text that is copied into an error because it isn't
/// an error body.
const TEXT_MAX: usize = 500;

/// Errors returned by [`Client`].
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The base URL is not an HTTP or HTTPS URL with a host.
    #[error("'{0}' is not an address of a control plane")]
    Address(String),
    /// The token, certificate, or private key is malformed.
    #[error("{0}")]
    Access(&'static str),
    /// The request failed before a complete response arrived. Retrying may succeed.
    #[error("no answer from the control plane")]
    Transport(#[source] Box<dyn Error + Send + Sync>),
    /// The control plane responded with an error status.
    #[error("{}", .body.error)]
    Refused {
        /// HTTP status code of the response.
        status: u16,
        /// Error body of the response.
        body: Box<ErrorBody>,
    },
    /// The response body doesn't have the expected shape.
    #[error("the answer is not one of a control plane")]
    Shape(#[source] Box<dyn Error + Send + Sync>),
}

impl ClientError {
    /// Returns the HTTP status of an error response, or `None` for other errors.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Address(_) | Self::Access(_) | Self::Transport(_) | Self::Shape(_) => None,
        }
    }

    /// Returns `true` if a retry may succeed without any other change: the request failed in
    /// transport, or the status is 429 or at least 500.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Transport(_) => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500..),
            Self::Address(_) | Self::Access(_) | Self::Shape(_) => false,
        }
    }

    fn transport(error: reqwest::Error) -> Self {
        // The URL may contain a password, and the caller knows it anyway.
        Self::Transport(error.without_url().into())
    }
}

/// Credentials for a control plane. `Debug` output omits them.
#[derive(Clone, Default)]
pub struct Access {
    /// Access token, sent as `Authorization: Bearer`.
    pub token: Option<String>,
    /// PEM bundle of CA certificates to trust in addition to the system's.
    pub authorities: Option<Vec<u8>>,
    /// Client certificate followed by its private key, as PEM.
    pub identity: Option<Vec<u8>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

/// HTTP client for one control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
    /// Client for streams: has a read timeout instead of a total timeout.
    streams: reqwest::Client,
    /// Client for WebSockets, created when one is opened.
    sockets: Arc<socket::SocketClient>,
}

impl Client {
    /// Creates a client for the control plane at a base URL, such as `http://127.0.0.1:8082`. For
    /// `localhost`, `127.0.0.1`, and `[::1]`, ignores proxies set in the environment.
    ///
    /// # Errors
    ///
    /// Returns [`ClientError::Address`] if `base` is not an HTTP or HTTPS URL with a host.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        Self::with(base, &Access::default())
    }

    /// Like [`new`](Self::new), with credentials.
    ///
    /// # Errors
    ///
    /// Also returns [`ClientError::Access`] if a credential is malformed.
    pub fn with(base: &str, access: &Access) -> Result<Self, ClientError> {
        let address = || ClientError::Address(base.to_owned());
        let base = Url::parse(base.trim().trim_end_matches('/')).map_err(|_| address())?;
        let is_http = matches!(base.scheme(), "http" | "https");
        if !is_http || base.host_str().is_none() {
            return Err(address());
        }
        // Fails if the process has already installed a provider, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = builder(&base, access)?.timeout(REQUEST_TIMEOUT).build();
        let streams = builder(&base, access)?.read_timeout(SILENCE).build();
        Ok(Self {
            base,
            http: http.map_err(ClientError::transport)?,
            streams: streams.map_err(ClientError::transport)?,
            sockets: Arc::new(socket::SocketClient::new(access)),
        })
    }

    /// Returns the base URL. May contain a password; see [`address`](Self::address).
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Returns the base URL without user name and password, for display.
    pub fn address(&self) -> String {
        let mut shown = self.base.clone();
        // Fails only for URLs without a host, which `with` rejects.
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.as_str().trim_end_matches('/').to_owned()
    }

    /// Sends a call and returns the decoded response with its raw body and date.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        call: ApiCall<T>,
    ) -> Result<Response<T>, ClientError> {
        let (status, date, body) = self.fetch(&call).await?;
        Response::read(decoded(status, &body)?, date)
    }

    /// Sends a call with a large request body and decodes the response. Extends the timeout in
    /// proportion to the size of the request body.
    pub async fn carry<T: DeserializeOwned>(&self, call: ApiCall<T>) -> Result<T, ClientError> {
        let body = self.bring(&call, 0).await?;
        decode(&body)
    }

    /// Sends a call and returns the raw response body. Extends the timeout in proportion to the
    /// request body and to `expected`, the size of the response in bytes.
    pub async fn bring<T>(&self, call: &ApiCall<T>, expected: u64) -> Result<Vec<u8>, ClientError> {
        let sent = u64::try_from(call.size()).unwrap_or(u64::MAX);
        let seconds = sent.saturating_add(expected) / SLOWEST;
        let limit = REQUEST_TIMEOUT.saturating_add(Duration::from_secs(seconds));
        let request = call.request(&self.http, &self.base)?.timeout(limit);
        let (status, _, body) = send(request).await?;
        match status.is_success() {
            true => Ok(body),
            false => Err(refused(status, &body)),
        }
    }

    /// Reads a stream from the item after `after`; 0 reads from the beginning.
    pub fn follow(&self, call: ApiCall<()>, after: u64) -> EventFollower {
        EventFollower::new(self.clone(), call, after)
    }

    /// Registers a document. With `force`, registers it even if it has errors.
    pub async fn register(
        &self,
        request: &RegisterRequest,
        force: bool,
    ) -> Result<RegisterReply, ClientError> {
        self.value(calls::register(request, force)).await
    }

    /// Starts an execution of a playbook.
    pub async fn execute(&self, request: &ExecuteRequest) -> Result<ExecuteReply, ClientError> {
        self.value(calls::execute(request)).await
    }

    /// Returns an execution with its events, oldest first. The server limits a response to the
    /// newest 100,000 events.
    pub async fn execution(&self, id: ExecutionId) -> Result<ExecutionDetail, ClientError> {
        self.value(calls::execution(id)).await
    }

    /// Returns the status of an execution.
    pub async fn status(&self, id: ExecutionId) -> Result<StatusReply, ClientError> {
        self.value(calls::status(id)).await
    }

    /// Returns up to `limit` events of an execution with a sequence number above `after`, oldest
    /// first.
    pub async fn log(
        &self,
        id: ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<EventsReply, ClientError> {
        self.value(calls::events(id, after, Some(limit))).await
    }

    /// Cancels an execution. Child executions that it waits for are cancelled with it.
    pub async fn cancel(
        &self,
        id: ExecutionId,
        reason: Option<String>,
    ) -> Result<CancelReply, ClientError> {
        let request = CancelRequest { reason, ..CancelRequest::default() };
        self.value(calls::cancel(id, &request)).await
    }

    /// Returns up to `limit` pending approvals, oldest first.
    pub async fn approvals(&self, limit: usize) -> Result<ApprovalList, ClientError> {
        self.value(calls::approvals(limit)).await
    }

    /// Answers a parked command, such as an approval.
    pub async fn answer(
        &self,
        id: ExecutionId,
        command: CommandId,
        request: &AnswerRequest,
    ) -> Result<AnswerReply, ClientError> {
        self.value(calls::answer(id, command, request)).await
    }

    /// Reports an event of an execution, as workers do.
    pub async fn report(&self, event: &EventRequest) -> Result<EventReply, ClientError> {
        self.value(calls::report(event)).await
    }

    /// Returns a command by its ID.
    pub async fn command(&self, id: CommandId) -> Result<Command, ClientError> {
        self.value(calls::command(id)).await
    }

    /// Claims a command for a worker. Repeating a claim for the same worker is harmless.
    pub async fn claim(&self, id: CommandId, worker_id: &str) -> Result<ClaimReply, ClientError> {
        self.value(calls::claim(id, worker_id)).await
    }

    /// Returns the health of the control plane. An unhealthy control plane is a response, not an
    /// error.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.value(calls::health()).await
    }

    async fn value<T: DeserializeOwned>(&self, call: ApiCall<T>) -> Result<T, ClientError> {
        let (status, _, body) = self.fetch(&call).await?;
        decoded(status, &body)
    }

    /// Sends a call and returns status, date, and body of the response. Returns an error unless the
    /// status is a success or one that the call also accepts.
    async fn fetch<T>(
        &self,
        call: &ApiCall<T>,
    ) -> Result<(StatusCode, Option<String>, Vec<u8>), ClientError> {
        let (status, date, body) = send(call.request(&self.http, &self.base)?).await?;
        match status.is_success() || call.also_answers(status) {
            true => Ok((status, date, body)),
            false => Err(refused(status, &body)),
        }
    }
}

fn builder(base: &Url, access: &Access) -> Result<ClientBuilder, ClientError> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")));
    if is_local(base) {
        builder = builder.no_proxy();
    }
    if let Some(token) = &access.token {
        let unusable = ClientError::Access("the token holds characters that no header can");
        let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
        let Ok(mut value) = value else { return Err(unusable) };
        value.set_sensitive(true);
        builder = builder.default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
    }
    if let Some(pem) = &access.authorities {
        let none = || ClientError::Access("the file of authorities holds no certificate as PEM");
        let certificates = Certificate::from_pem_bundle(pem).map_err(|_| none())?;
        if certificates.is_empty() {
            return Err(none());
        }
        builder = builder.tls_certs_merge(certificates);
    }
    if let Some(pem) = &access.identity {
        let message = "the client's certificate and key are no certificate with its key as PEM";
        let identity = Identity::from_pem(pem).map_err(|_| ClientError::Access(message))?;
        builder = builder.identity(identity);
    }
    Ok(builder)
}

async fn send(
    request: RequestBuilder,
) -> Result<(StatusCode, Option<String>, Vec<u8>), ClientError> {
    let response = request.send().await.map_err(ClientError::transport)?;
    let status = response.status();
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
    let body = response.bytes().await.map_err(ClientError::transport)?;
    Ok((status, date, body.into()))
}

/// Returns the socket address of a URL whose host is a loopback IP address. Returns `None` for host
/// names, including `localhost`, because a resolver decides which address they have.
pub fn loopback_address(url: &str) -> Option<SocketAddr> {
    let url = Url::parse(url.trim()).ok()?;
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
    let ip: IpAddr = host.parse().ok()?;
    ip.is_loopback().then(|| url.port_or_known_default()).flatten().map(|port| (ip, port).into())
}

fn is_local(base: &Url) -> bool {
    matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Shape(error.into()))
}

/// Decodes a response body. If decoding fails and the status is an error status, returns the error
/// response instead of the decoding error.
fn decoded<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, ClientError> {
    decode(body).map_err(|error| if status.is_success() { error } else { refused(status, body) })
}

/// Builds the error for an error status. If the body isn't an [`ErrorBody`], such as a proxy's
/// page, uses the beginning of its text, or the status if the body is empty.
fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    let body = serde_json::from_slice(body).unwrap_or_else(|_| {
        let text: String = String::from_utf8_lossy(body).trim().chars().take(TEXT_MAX).collect();
        let said = if text.is_empty() { status.to_string() } else { text };
        ErrorBody::new(status.as_u16(), "unknown", said)
    });
    ClientError::Refused { status: status.as_u16(), body: Box::new(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_refused() {
        for base in ["", "localhost:8082", "not an address", "mailto:someone", "ftp://host"] {
            assert!(matches!(Client::new(base), Err(ClientError::Address(_))), "{base}");
        }
    }

    #[test]
    fn unusable_settings_are_named() {
        let with = |access: Access| Client::with("https://127.0.0.1:8082", &access).map(drop);
        let refused = |access| matches!(with(access), Err(ClientError::Access(_)));
        assert!(refused(Access { token: Some("a\nb".into()), ..Access::default() }));
        assert!(refused(Access { authorities: Some(b"text".to_vec()), ..Access::default() }));
        assert!(refused(Access { identity: Some(b"text".to_vec()), ..Access::default() }));
        assert!(with(Access { token: Some("noetl_a_b".into()), ..Access::default() }).is_ok());
    }

    #[test]
    fn nothing_of_a_token_is_printed() {
        let access = Access { token: Some("sesame".into()), ..Access::default() };
        let client = Client::with("http://127.0.0.1:8082", &access).expect("an address");
        assert!(!format!("{access:?} {client:?}").contains("sesame"));
    }

    #[test]
    fn a_refusal_that_is_not_json_keeps_its_text() {
        let error = refused(StatusCode::BAD_GATEWAY, b"<h1>Bad gateway</h1>");
        assert_eq!(error.status(), Some(502));
        assert_eq!(error.to_string(), "<h1>Bad gateway</h1>");
        assert!(error.is_passing());
        assert!(!refused(StatusCode::NOT_FOUND, b"{}").is_passing());
    }
}
