//! Access tokens requested over HTTP.

use std::time::Duration;

use noetl_egress::EgressPolicy;
use noetl_model::Value;
use reqwest::{Client, RequestBuilder, Url};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::source::{SourceError, chain};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Time before its expiration at which a token is no longer used.
const MARGIN: Duration = Duration::from_secs(60);

/// Maximum number of redirects. Token endpoints normally send none.
const REDIRECTS_MAX: usize = 3;

/// Builds an HTTP client that obeys this egress policy.
pub(crate) fn client(egress: &EgressPolicy) -> Result<Client, SourceError> {
    // Fails only if another part of the program has installed a provider, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().connect_timeout(Duration::from_secs(5));
    let client = egress.around(client.redirect(egress.redirects(REDIRECTS_MAX))).build();
    client.map_err(|error| SourceError::Settings(chain("no client can be made", &error)))
}

/// Checks that a setting is a valid URL the egress policy allows.
pub(crate) fn check(
    setting: &str,
    address: &str,
    egress: &EgressPolicy,
) -> Result<(), SourceError> {
    let wrong = |message: String| SourceError::Settings(format!("`{setting}`: {message}"));
    let address = address.parse::<Url>().map_err(|error| wrong(error.to_string()))?;
    egress.check(&address).map_err(|error| wrong(error.to_string()))
}

/// A token cached until shortly before it expires.
#[derive(Default)]
pub(crate) struct CachedToken(Mutex<Option<(String, Instant)>>);

impl CachedToken {
    /// Returns the cached token, or requests a new one.
    pub(crate) async fn get(
        &self,
        request: impl FnOnce() -> Result<RequestBuilder, SourceError>,
    ) -> Result<String, SourceError> {
        // Locked during the request, so that concurrent callers share one token.
        let mut cached = self.0.lock().await;
        if let Some((token, until)) = &*cached
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let (token, lasts) = ask(request()?).await?;
        *cached = Some((token.clone(), Instant::now() + lasts.saturating_sub(MARGIN)));
        Ok(token)
    }

    pub(crate) async fn forget(&self) {
        *self.0.lock().await = None;
    }
}

/// Sends a token request. Returns the token and its lifetime.
async fn ask(request: RequestBuilder) -> Result<(String, Duration), SourceError> {
    let away = |error: reqwest::Error| {
        SourceError::Away(chain("failed to get a token", &error.without_url()))
    };
    let answer = request.timeout(TIMEOUT).send().await.map_err(away)?;
    let status = answer.status();
    let body: Value = answer.json().await.unwrap_or_default();
    if !status.is_success() {
        let reason = body.get("error_description").or_else(|| body.get("error"));
        let reason = reason.and_then(Value::as_str).unwrap_or("no reason given");
        let message = format!("failed to get a token: {status}: {reason}");
        return Err(match status.is_client_error() {
            true => SourceError::Settings(message),
            false => SourceError::Away(message),
        });
    }
    let Some(token) = body.get("access_token").and_then(Value::as_str) else {
        return Err(SourceError::Away(
            "the response of the token endpoint has no token".to_owned(),
        ));
    };
    let lasts = body.get("expires_in").and_then(Value::as_u64).unwrap_or(0);
    Ok((token.to_owned(), Duration::from_secs(lasts)))
}
