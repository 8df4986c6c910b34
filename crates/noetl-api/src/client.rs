//! A typed client of the control plane.

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use noetl_model::{CommandId, ExecutionId};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::catalog::{RegisterReply, RegisterRequest};
use crate::commands::{ClaimReply, ClaimRequest, Command};
use crate::error::ErrorBody;
use crate::events::{EventReply, EventRequest, EventsReply};
use crate::execute::{ExecuteReply, ExecuteRequest};
use crate::executions::{CancelReply, CancelRequest, ExecutionDetail, StatusReply};
use crate::health::Health;

/// How long a request may take. A worker's report may be held for 20 s while the journal is busy.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
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
            Self::Address(_) | Self::Transport(_) | Self::Shape(_) => None,
        }
    }
}

/// Talks to one control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
}

impl Client {
    /// A client of the control plane at this address, as `http://127.0.0.1:8082`. A control plane
    /// on this machine is asked directly, whatever proxy the environment names.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        let address = || ClientError::Address(base.to_owned());
        let base = Url::parse(base.trim_end_matches('/')).map_err(|_| address())?;
        if base.cannot_be_a_base() || base.host_str().is_none() {
            return Err(address());
        }
        // Another part of the program may have chosen one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")));
        if is_local(&base) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| ClientError::Transport(error.into()))?;
        Ok(Self { base, http })
    }

    /// The address it talks to.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Registers a document; one with errors too when `force` is given.
    pub async fn register(
        &self,
        request: &RegisterRequest,
        force: bool,
    ) -> Result<RegisterReply, ClientError> {
        let path = if force { "api/catalog/register?force=true" } else { "api/catalog/register" };
        self.post(path, request).await
    }

    /// Starts an execution.
    pub async fn execute(&self, request: &ExecuteRequest) -> Result<ExecuteReply, ClientError> {
        self.post("api/execute", request).await
    }

    /// One execution with the newest part of its log.
    pub async fn execution(&self, id: ExecutionId) -> Result<ExecutionDetail, ClientError> {
        self.get(format!("api/executions/{id}")).await
    }

    /// How one execution stands.
    pub async fn status(&self, id: ExecutionId) -> Result<StatusReply, ClientError> {
        self.get(format!("api/executions/{id}/status")).await
    }

    /// A stretch of one execution's log after a place in it, oldest first.
    pub async fn log(
        &self,
        id: ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<EventsReply, ClientError> {
        self.get(format!("api/executions/{id}/events?after={after}&limit={limit}")).await
    }

    /// Stops an execution.
    pub async fn cancel(
        &self,
        id: ExecutionId,
        reason: Option<String>,
    ) -> Result<CancelReply, ClientError> {
        self.post(
            format!("api/executions/{id}/cancel"),
            &CancelRequest { reason, ..CancelRequest::default() },
        )
        .await
    }

    /// Says something about an execution, as a worker does.
    pub async fn report(&self, event: &EventRequest) -> Result<EventReply, ClientError> {
        self.post("api/events", event).await
    }

    /// One command.
    pub async fn command(&self, id: CommandId) -> Result<Command, ClientError> {
        self.get(format!("api/commands/{id}")).await
    }

    /// Takes a command for a worker.
    pub async fn claim(&self, id: CommandId, worker_id: &str) -> Result<ClaimReply, ClientError> {
        let request = ClaimRequest { worker_id: worker_id.to_owned() };
        self.post(format!("api/commands/{id}/claim"), &request).await
    }

    /// Whether the control plane is well. One that says it is not is an answer, not an error.
    pub async fn health(&self) -> Result<Health, ClientError> {
        let (status, body) = self.send(self.request(Method::GET, "api/health")?).await?;
        match status {
            StatusCode::SERVICE_UNAVAILABLE => decode(&body).map_err(|_| refused(status, &body)),
            _ => answer(status, &body),
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: impl Display) -> Result<T, ClientError> {
        let (status, body) = self.send(self.request(Method::GET, path)?).await?;
        answer(status, &body)
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: impl Display,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::POST, path)?.json(body);
        let (status, body) = self.send(request).await?;
        answer(status, &body)
    }

    fn request(&self, method: Method, path: impl Display) -> Result<RequestBuilder, ClientError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = format!("{base}/{path}");
        let url = Url::parse(&url).map_err(|_| ClientError::Address(url))?;
        Ok(self.http.request(method, url))
    }

    async fn send(&self, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let transport = |error: reqwest::Error| ClientError::Transport(error.into());
        let response = request.send().await.map_err(transport)?;
        let status = response.status();
        let body = response.bytes().await.map_err(transport)?;
        Ok((status, body.to_vec()))
    }
}

fn is_local(base: &Url) -> bool {
    matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn answer<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, ClientError> {
    if status.is_success() { decode(body) } else { Err(refused(status, body)) }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Shape(error.into()))
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
        for base in ["", "localhost:8082", "not an address", "mailto:someone"] {
            assert!(matches!(Client::new(base), Err(ClientError::Address(_))), "{base}");
        }
    }

    #[test]
    fn paths_are_added_to_a_base_with_a_path_of_its_own() {
        let client = Client::new("http://127.0.0.1:8082/noetl/").expect("an address");
        let request = client.request(Method::GET, "api/health").expect("an address");
        let url = request.build().expect("a request").url().to_string();
        assert_eq!(url, "http://127.0.0.1:8082/noetl/api/health");
    }

    #[test]
    fn a_refusal_that_is_not_json_keeps_its_text() {
        let error = refused(StatusCode::BAD_GATEWAY, b"<h1>Bad gateway</h1>");
        assert_eq!(error.status(), Some(502));
        assert_eq!(error.to_string(), "<h1>Bad gateway</h1>");
    }
}
