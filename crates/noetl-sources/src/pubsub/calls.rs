//! Requests to the Pub/Sub REST API.

use std::time::Duration;

use noetl_egress::EgressPolicy;
use noetl_model::{Map, Value};
use reqwest::{Client, Method, StatusCode, Url};
use serde_json::json;

use super::token::TokenProvider;
use crate::source::{SourceError, chain, text};
use crate::token;

const ENDPOINT: &str = "https://pubsub.googleapis.com";

/// Timeout of requests other than pulls.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout of a pull. The service ends an idle pull before that.
const PULL_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct PubsubClient {
    client: Client,
    tokens: TokenProvider,
    url: String,
}

impl PubsubClient {
    pub(super) fn new(
        settings: &Map,
        subscription: String,
        egress: EgressPolicy,
    ) -> Result<Self, SourceError> {
        let address = text(settings, "endpoint")?.or(text(settings, "url")?);
        let endpoint = match address {
            Some(address) if address.contains("://") => address.trim_end_matches('/').to_owned(),
            // `PUBSUB_EMULATOR_HOST` has this form.
            Some(address) => format!("http://{address}"),
            None => ENDPOINT.to_owned(),
        };
        let asked = endpoint.parse::<Url>();
        let asked = asked.map_err(|error| SourceError::Settings(format!("`endpoint`: {error}")))?;
        egress.check(&asked).map_err(|error| SourceError::Settings(error.to_string()))?;
        let tokens = TokenProvider::read(settings, &egress, address.is_some())?;
        let client = token::client(&egress)?;
        Ok(Self { client, tokens, url: format!("{endpoint}/v1/{subscription}") })
    }

    /// Checks that the subscription exists, if the account has permission to look it up.
    pub(super) async fn look(&self) -> Result<(), SourceError> {
        match self.call(Method::GET, "", None, TIMEOUT).await {
            // An account may have permission to pull but not to look up.
            Err(CallError { status: Some(StatusCode::FORBIDDEN), .. }) | Ok(_) => Ok(()),
            Err(refused) => Err(refused.into()),
        }
    }

    pub(super) async fn pull(&self, count: usize) -> Result<Vec<Value>, SourceError> {
        let body = json!({"maxMessages": count});
        let mut answer = self.call(Method::POST, ":pull", Some(body), PULL_TIMEOUT).await?;
        match answer.remove("receivedMessages") {
            Some(Value::Array(received)) => Ok(received),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) async fn acknowledge(&self, ack_ids: &[&str]) -> Result<(), SourceError> {
        let body = json!({"ackIds": ack_ids});
        self.call(Method::POST, ":acknowledge", Some(body), TIMEOUT).await?;
        Ok(())
    }

    /// Sets the ack deadline of deliveries to this many seconds from now. Zero redelivers them at
    /// once.
    pub(super) async fn hold(&self, ack_ids: &[&str], secs: u64) -> Result<(), SourceError> {
        let body = json!({"ackIds": ack_ids, "ackDeadlineSeconds": secs});
        self.call(Method::POST, ":modifyAckDeadline", Some(body), TIMEOUT).await?;
        Ok(())
    }

    async fn call(
        &self,
        method: Method,
        verb: &str,
        body: Option<Value>,
        timeout: Duration,
    ) -> Result<Map, CallError> {
        let mut request =
            self.client.request(method, format!("{}{verb}", self.url)).timeout(timeout);
        if let Some(body) = &body {
            request = request.json(body);
        }
        if let Some(token) = self.tokens.get().await.map_err(CallError::from_source)? {
            request = request.bearer_auth(token);
        }
        let away = |error: reqwest::Error| {
            CallError::from_source(SourceError::Away(chain(
                "Pub/Sub is not reached",
                &error.without_url(),
            )))
        };
        let answer = request.send().await.map_err(away)?;
        let status = answer.status();
        if status.is_success() {
            return answer.json().await.map_err(away);
        }
        if status == StatusCode::UNAUTHORIZED {
            // The token may have been revoked before it expired.
            self.tokens.forget().await;
        }
        let body = answer.json::<Value>().await.unwrap_or_default();
        let reason =
            body.pointer("/error/message").and_then(Value::as_str).unwrap_or("no reason given");
        let message = format!("Pub/Sub answers {status}: {reason}");
        let error = match status {
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                SourceError::Settings(message)
            }
            _ => SourceError::Away(message),
        };
        Err(CallError { status: Some(status), error })
    }
}

/// Error of a request, with the HTTP status if there was a response.
struct CallError {
    status: Option<StatusCode>,
    error: SourceError,
}

impl CallError {
    fn from_source(error: SourceError) -> Self {
        Self { status: None, error }
    }
}

impl From<CallError> for SourceError {
    fn from(refused: CallError) -> Self {
        refused.error
    }
}
