//! Calls an HTTP endpoint.
//!
//! A 2xx answer, or a redirect that was asked not to be followed, is the step's result
//! `{status_code, headers, data, body}` with the decoded body under both of its names. Anything
//! else is a failure whose kind says what a policy can do about it, with the same answer in its
//! details. Credentials are headers or parameters by the time it runs. Cancel and timeout drop the
//! request, which closes its connection.

mod redirect;
mod request;
mod response;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use noetl_fence::{Fence, Fenced};
use noetl_model::{Failure, FailureKind, Value};
use reqwest::Client;
use reqwest::redirect::Policy;

use crate::{Call, Options, Tool};

/// How long a request may take when nobody says otherwise: far beyond a healthy endpoint's
/// answer, well below the time a worker's slot should be held by a dead one.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// How long a connection may take to open. Three lost SYN packets take seven seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The `http` tool.
#[derive(Debug, Clone)]
pub struct Http {
    options: Arc<Options>,
    /// Made at first use, because loading the certificate store takes a while and may fail.
    client: Arc<OnceLock<Client>>,
}

impl Http {
    /// An HTTP tool with these settings.
    pub fn new(options: Arc<Options>) -> Self {
        Self { options, client: Arc::default() }
    }

    fn client(&self) -> Result<&Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = client(&self.options.fence).map_err(|error| {
            Failure::new(
                FailureKind::ToolMissing,
                format!("the HTTP client could not be set up: {}", root_cause(&error)),
            )
        })?;
        Ok(self.client.get_or_init(|| made))
    }

    async fn exchange(&self, call: &Call) -> Result<Value, Failure> {
        let client = self.client()?;
        let follows = request::follows_redirects(&call.config)?;
        let request = request::build(call)?;
        let want = response::Want::read(&call.config)?;
        let target = request.url().host_str().unwrap_or_default().to_owned();
        self.options.fence.check(request.url()).map_err(|error| fenced(&error))?;
        let response = match follows {
            true => redirect::send(client, &self.options.fence, request).await?,
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

    async fn run(&self, call: Call) -> Result<Value, Failure> {
        call.within(TIMEOUT_DEFAULT, self.exchange(&call)).await
    }
}

/// Returns a client that follows no redirects: [`redirect`] does, with fewer headers.
fn client(fence: &Fence) -> reqwest::Result<Client> {
    // Fails only when another part of the program chose a provider before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::none());
    fence.around(client).build()
}

/// The failure of a request that got no whole answer.
///
/// The message names the host only: paths and queries may carry tokens.
fn not_answered(error: &reqwest::Error, host: &str) -> Failure {
    if let Some(error) = noetl_fence::refusal(error) {
        return fenced(error);
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

/// The failure of a request that may not be sent from here.
fn fenced(error: &Fenced) -> Failure {
    let message = format!("{error}; its operator says what may be reached (NOETL_HTTP_FENCE)");
    Failure::new(FailureKind::Config, message)
}

/// The innermost cause, which is the one that says what happened ("Connection refused").
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
