//! A typed client of the control plane.
//!
//! [`calls`] has one function per call; [`Client::ask`] makes it. What is asked most often has a
//! method of its own. [`Follow`] reads a stream and goes on by itself when the connection is lost.

mod call;
pub mod calls;
mod follow;
mod messages;
pub mod work;

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use noetl_model::{CommandId, ExecutionId};
use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Identity, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;

pub use call::{Answer, Call};
pub use follow::{Follow, Heard};

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

/// How long a request may take. A worker's report may be held for 20 s while the journal is busy.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes per second of the slowest line that large bodies are sent over.
const SLOWEST: u64 = 128 << 10;
/// How long a stream may be silent. The control plane says something every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// How long a connection may take. A control plane that is there answers far sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a body that is not an error body is kept in an error.
const TEXT_MAX: usize = 500;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is not one.
    #[error("'{0}' is not an address of a control plane")]
    Address(String),
    /// A token, a certificate or a key cannot be used.
    #[error("{0}")]
    Access(&'static str),
    /// The control plane could not be reached, or went away.
    #[error("no answer from the control plane")]
    Transport(#[source] Box<dyn Error + Send + Sync>),
    /// The control plane refuses.
    #[error("{}", .body.error)]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        body: Box<ErrorBody>,
    },
    /// The answer has another shape than expected.
    #[error("the answer is not one of a control plane")]
    Shape(#[source] Box<dyn Error + Send + Sync>),
}

impl ClientError {
    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Address(_) | Self::Access(_) | Self::Transport(_) | Self::Shape(_) => None,
        }
    }

    /// Whether the same call may succeed a little later without anybody doing anything.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Transport(_) => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500..),
            Self::Address(_) | Self::Access(_) | Self::Shape(_) => false,
        }
    }

    fn transport(error: reqwest::Error) -> Self {
        // The address is known to whoever asked, and may hold a password.
        Self::Transport(error.without_url().into())
    }
}

/// What opens a control plane. Printing it shows nothing of what is secret.
#[derive(Clone, Default)]
pub struct Access {
    /// Sent as `Authorization: Bearer`.
    pub token: Option<String>,
    /// Certificates of authorities to trust besides those of the system, as PEM.
    pub authorities: Option<Vec<u8>>,
    /// The client's own certificate and its key, one after the other, as PEM.
    pub identity: Option<Vec<u8>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

/// Talks to one control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
    /// For streams, which have no end to wait for.
    streams: reqwest::Client,
}

impl Client {
    /// A client of the control plane at this address, as `http://127.0.0.1:8082`. A control plane
    /// on this machine is asked directly, whatever proxy the environment names.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        Self::with(base, &Access::default())
    }

    /// The same with what opens it.
    pub fn with(base: &str, access: &Access) -> Result<Self, ClientError> {
        let address = || ClientError::Address(base.to_owned());
        let base = Url::parse(base.trim().trim_end_matches('/')).map_err(|_| address())?;
        let is_http = matches!(base.scheme(), "http" | "https");
        if !is_http || base.host_str().is_none() {
            return Err(address());
        }
        // Another part of the program may have chosen one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = builder(&base, access)?.timeout(REQUEST_TIMEOUT).build();
        let streams = builder(&base, access)?.read_timeout(SILENCE).build();
        Ok(Self {
            base,
            http: http.map_err(ClientError::transport)?,
            streams: streams.map_err(ClientError::transport)?,
        })
    }

    /// The address it talks to.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The address it talks to, as it may be shown: without a name and a password in it.
    pub fn address(&self) -> String {
        let mut shown = self.base.clone();
        // Only addresses that have no host refuse this.
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.as_str().trim_end_matches('/').to_owned()
    }

    /// Makes a call.
    pub async fn ask<T: DeserializeOwned>(&self, call: Call<T>) -> Result<Answer<T>, ClientError> {
        let (status, date, body) = self.fetch(&call).await?;
        Answer::read(decoded(status, &body)?, date)
    }

    /// Makes a call that sends or brings much, which may take as long as a slow line needs for it.
    pub async fn carry<T: DeserializeOwned>(&self, call: Call<T>) -> Result<T, ClientError> {
        let body = self.bring(&call, 0).await?;
        decode(&body)
    }

    /// The bytes of an answer, of which so many are expected.
    pub async fn bring<T>(&self, call: &Call<T>, expected: u64) -> Result<Vec<u8>, ClientError> {
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

    /// Reads a stream from its beginning, or from after a place in it.
    pub fn follow(&self, call: Call<()>, after: u64) -> Follow {
        Follow::new(self.clone(), call, after)
    }

    /// Registers a document; one with errors too when `force` is given.
    pub async fn register(
        &self,
        request: &RegisterRequest,
        force: bool,
    ) -> Result<RegisterReply, ClientError> {
        self.value(calls::register(request, force)).await
    }

    /// Starts an execution.
    pub async fn execute(&self, request: &ExecuteRequest) -> Result<ExecuteReply, ClientError> {
        self.value(calls::execute(request)).await
    }

    /// One execution with the newest part of its log.
    pub async fn execution(&self, id: ExecutionId) -> Result<ExecutionDetail, ClientError> {
        self.value(calls::execution(id)).await
    }

    /// How one execution stands.
    pub async fn status(&self, id: ExecutionId) -> Result<StatusReply, ClientError> {
        self.value(calls::status(id)).await
    }

    /// A stretch of one execution's log after a place in it, oldest first.
    pub async fn log(
        &self,
        id: ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<EventsReply, ClientError> {
        self.value(calls::events(id, after, Some(limit))).await
    }

    /// Stops an execution.
    pub async fn cancel(
        &self,
        id: ExecutionId,
        reason: Option<String>,
    ) -> Result<CancelReply, ClientError> {
        let request = CancelRequest { reason, ..CancelRequest::default() };
        self.value(calls::cancel(id, &request)).await
    }

    /// Steps that wait for a person, oldest first, up to so many.
    pub async fn approvals(&self, limit: usize) -> Result<ApprovalList, ClientError> {
        self.value(calls::approvals(limit)).await
    }

    /// Gives a step the answer it waits for.
    pub async fn answer(
        &self,
        id: ExecutionId,
        command: CommandId,
        request: &AnswerRequest,
    ) -> Result<AnswerReply, ClientError> {
        self.value(calls::answer(id, command, request)).await
    }

    /// Says something about an execution, as a worker does.
    pub async fn report(&self, event: &EventRequest) -> Result<EventReply, ClientError> {
        self.value(calls::report(event)).await
    }

    /// One command.
    pub async fn command(&self, id: CommandId) -> Result<Command, ClientError> {
        self.value(calls::command(id)).await
    }

    /// Takes a command for a worker.
    pub async fn claim(&self, id: CommandId, worker_id: &str) -> Result<ClaimReply, ClientError> {
        self.value(calls::claim(id, worker_id)).await
    }

    /// Whether the control plane is well. One that says it is not is an answer, not an error.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.value(calls::health()).await
    }

    async fn value<T: DeserializeOwned>(&self, call: Call<T>) -> Result<T, ClientError> {
        let (status, _, body) = self.fetch(&call).await?;
        decoded(status, &body)
    }

    /// The body of an answer; anything else is an error.
    async fn fetch<T>(
        &self,
        call: &Call<T>,
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

/// Returns the address of a server whose URL names it by a loopback IP address. A host name is none,
/// `localhost` included: a resolver decides what it stands for.
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

/// An answer's meaning. What comes under the status of a refusal and has no meaning is one.
fn decoded<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, ClientError> {
    decode(body).map_err(|error| if status.is_success() { error } else { refused(status, body) })
}

/// A refusal whose body has another shape, as a proxy's, still says something.
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
    fn what_cannot_open_anything_is_named() {
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
