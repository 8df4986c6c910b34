//! Exports spans to a collector with OTLP over HTTP (`http/protobuf`).
//!
//! Offering a span adds it to a bounded queue and never waits; a span that does not fit is dropped
//! and counted. One task sends queued spans in batches. A collector that is unavailable, slow, or
//! returns invalid responses costs spans and nothing else.

mod counters;
mod encode;
mod messages;
mod send;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use noetl_model::trace::{Span, SpanCounts, SpanSink};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Url, redirect};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::counters::SpanCounters;
use crate::send::SpanSender;

#[derive(Debug, Clone)]
pub struct ExporterSettings {
    /// Full URL of the traces endpoint, such as `http://localhost:4318/v1/traces`.
    pub endpoint: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// Timeout of one request. Default 10 s.
    pub timeout: Duration,
    /// Resource attributes of this process, such as `service.name`.
    pub resource: Vec<(String, String)>,
    /// Maximum number of queued spans. Default 2,048.
    pub queue: usize,
    /// Maximum number of spans in one request. Default 512.
    pub batch: usize,
    /// Maximum time a span waits for its batch to fill. Default 5 s.
    pub delay: Duration,
}

impl ExporterSettings {
    /// Creates the default settings for an endpoint.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            timeout: Duration::from_secs(10),
            resource: Vec::new(),
            queue: 2048,
            batch: 512,
            delay: Duration::from_secs(5),
        }
    }
}

/// Reason that settings are invalid. Never contains the value of a header, which may be a token.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The endpoint is not an HTTP or HTTPS URL.
    #[error("'{0}' must be an HTTP or HTTPS URL")]
    Endpoint(String),
    /// The header's name or value is invalid.
    #[error("the header '{0}' cannot be sent")]
    Header(String),
    /// The HTTP client could not be created.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// Sink that queues spans for a collector.
pub struct OtlpSink {
    queue: mpsc::Sender<Span>,
    counts: Arc<SpanCounters>,
}

impl SpanSink for OtlpSink {
    fn offer(&self, span: Span) {
        match self.queue.try_send(span) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {
                SpanCounters::add(&self.counts.dropped, 1);
            }
        }
    }

    fn counts(&self) -> SpanCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SpanCounts {
            exported: read(&self.counts.exported),
            dropped: read(&self.counts.dropped),
            failed: read(&self.counts.failed),
        }
    }
}

/// Handle of the export task. Close it to send the queued spans.
pub struct ExporterTask {
    closing: CancellationToken,
    task: JoinHandle<()>,
}

impl ExporterTask {
    /// Sends the queued spans, trying each batch once, within a few seconds.
    pub async fn close(self) {
        self.closing.cancel();
        // A task that panicked has nothing left to send.
        let _ = self.task.await;
    }
}

/// Starts an exporter. Makes no request until there is a span.
pub fn open(settings: ExporterSettings) -> Result<(Arc<OtlpSink>, ExporterTask), SettingsError> {
    let wrong = || SettingsError::Endpoint(settings.endpoint.clone());
    let url = Url::parse(&settings.endpoint).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong());
    }
    // Another part of the program may have installed a provider, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .timeout(settings.timeout)
        .default_headers(headers(&settings.headers)?)
        .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .build()
        .map_err(SettingsError::Client)?;
    let (queue, waiting) = mpsc::channel(settings.queue.max(1));
    let counts = Arc::new(SpanCounters::default());
    let closing = CancellationToken::new();
    let sender = SpanSender {
        http,
        url,
        resource: encode::resource(&settings.resource),
        batch: settings.batch.max(1),
        delay: settings.delay,
        counts: counts.clone(),
        closing: closing.clone(),
        is_away: false,
    };
    let task = tokio::spawn(sender.run(waiting));
    Ok((Arc::new(OtlpSink { queue, counts }), ExporterTask { closing, task }))
}

fn headers(named: &[(String, String)]) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    for (name, value) in named {
        let wrong = || SettingsError::Header(name.clone());
        let known = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}
