//! Tool `http`: sends an HTTP request.
//!
//! A 2xx response, or a redirect with `follow_redirects: false`, is the step's result
//! `{status_code, headers, data, body}`, with the decoded body under both names. Other responses
//! are failures: the kind tells policies how to react, and the details contain the same fields as a
//! result. Credentials are resolved into headers or parameters before the tool runs. Cancellation
//! and timeout drop the request, which closes its connection.

mod redirect;
mod request;
mod response;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use noetl_egress::{EgressDenied, EgressPolicy};
use noetl_model::{Failure, FailureKind, Value};
use reqwest::Client;
use reqwest::redirect::Policy;

use crate::{Options, Tool, ToolCall};

/// Default timeout of a request: far beyond the response time of a healthy endpoint, and well below
/// the time for which a dead one should occupy a worker's slot.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Connect timeout. Three lost SYN packets take 7 seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Http {
    options: Arc<Options>,
    /// Created on first use, because loading the certificate store is slow and may fail.
    client: Arc<OnceLock<Client>>,
}

impl Http {
    pub fn new(options: Arc<Options>) -> Self {
        Self { options, client: Arc::default() }
    }

    fn client(&self) -> Result<&Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = client(&self.options.egress).map_err(|error| {
            Failure::new(
                FailureKind::ToolMissing,
                format!("the HTTP client could not be set up: {}", root_cause(&error)),
            )
        })?;
        Ok(self.client.get_or_init(|| made))
    }

    async fn exchange(&self, call: &ToolCall) -> Result<Value, Failure> {
        let client = self.client()?;
        let follows = request::follows_redirects(&call.config)?;
        let request = request::build(call)?;
        let want = response::BodyFormat::read(&call.config)?;
        let target = request.url().host_str().unwrap_or_default().to_owned();
        self.options.egress.check(request.url()).map_err(|error| denied(&error))?;
        let response = match follows {
            true => redirect::send(client, &self.options.egress, request).await?,
            false => {
                client.execute(request).await.map_err(|error| not_answered(&error, &target))?
            }
        };
        response::read(response, want, self.options.limits.http_response).await.map_err(|error| {
            match error {
                response::ReadError::Refused(failure) => failure,
                response::ReadError::Broken(error) => not_answered(&error, &target),
            }
        })
    }
}

#[async_trait]
impl Tool for Http {
    fn kind(&self) -> &'static str {
        "http"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        call.run_within(TIMEOUT_DEFAULT, self.exchange(&call)).await
    }
}

/// Returns a client that follows no redirects: [`redirect`] follows them, with fewer headers.
fn client(egress: &EgressPolicy) -> reqwest::Result<Client> {
    // Fails only if another part of the program installed a provider before, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::none());
    egress.around(client).build()
}

/// Creates the failure of a request without a complete response.
///
/// The message names only the host, because paths and queries may contain tokens.
fn not_answered(error: &reqwest::Error, host: &str) -> Failure {
    if let Some(error) = noetl_egress::refusal(error) {
        return denied(error);
    }
    let cause = root_cause(error);
    if error.is_builder() {
        return Failure::new(
            FailureKind::Config,
            format!("the request could not be built: {cause}"),
        );
    }
    let what = if error.is_connect() { "could not be reached" } else { "did not answer" };
    Failure::new(FailureKind::Connection, format!("{host} {what}: {cause}"))
}

/// Creates the failure of a request that the egress policy denies.
fn denied(error: &EgressDenied) -> Failure {
    let message = format!("{error}; its operator says what may be reached (NOETL_HTTP_FENCE)");
    Failure::new(FailureKind::Config, message)
}

/// Returns the innermost source of an error, which is the specific one ("Connection refused").
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
