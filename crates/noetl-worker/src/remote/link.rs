//! State shared by all parts of a worker: its identity and its connection to the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use noetl_api::{ApiCall, Client, ClientError};
use noetl_model::ExponentialBackoff;
use noetl_work::{Redaction, WorkerKey};
use serde::de::DeserializeOwned;
use tracing::{info, warn};

use super::metrics::{WorkerEvent, WorkerMetrics};
use super::placeholders::GivenPlaceholders;

/// Lease duration until a response states it.
const LEASE: Duration = Duration::from_secs(45);

/// Delay after the first failed request.
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(100);

/// Backoff after failed requests.
pub(crate) const RETRY: ExponentialBackoff =
    ExponentialBackoff::new(RETRY_FIRST, Duration::from_secs(5));

/// Identity of a worker and the client of its server.
pub(crate) struct ServerLink {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) key: WorkerKey,
    /// Every secret this process has received, by tenant.
    pub(crate) redaction: Redaction,
    /// Placeholders this process has received, to replace secrets with.
    pub(crate) placeholders: GivenPlaceholders,
    pub(crate) counters: std::sync::Arc<WorkerMetrics>,
    lease_ms: AtomicU64,
}

impl ServerLink {
    pub(crate) fn new(
        client: Client,
        name: String,
        counters: std::sync::Arc<WorkerMetrics>,
    ) -> Self {
        let lease_ms = AtomicU64::new(millis(LEASE));
        let (key, redaction) = (WorkerKey::generate(), Redaction::default());
        let placeholders = GivenPlaceholders::default();
        Self { client, name, key, redaction, placeholders, counters, lease_ms }
    }

    /// Sends a request and records whether the server is available.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        call: ApiCall<T>,
    ) -> Result<T, ClientError> {
        let answer = self.client.ask(call).await.map(|answer| answer.value);
        self.note(&answer);
        answer
    }

    /// Records whether the server is available, and logs changes.
    pub(crate) fn note<T>(&self, answer: &Result<T, ClientError>) {
        let is_away = answer.as_ref().is_err_and(ClientError::is_passing);
        if is_away {
            self.counters.count(WorkerEvent::Unanswered);
        }
        if !self.counters.set_server_unavailable(is_away) {
            return;
        }
        match answer {
            Err(error) => warn!(error = chain(error), "server unavailable, retrying"),
            Ok(_) => info!("server available"),
        }
    }

    /// Returns the duration after which a lease that is not renewed expires.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.load(Ordering::Relaxed))
    }

    /// Sets the lease duration from a response, at least 1 second.
    pub(crate) fn set_lease(&self, seconds: u64) {
        let lease = Duration::from_secs(seconds.max(1));
        self.lease_ms.store(millis(lease), Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats an error with its chain of sources on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
