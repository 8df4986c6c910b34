//! Spans to a collector, by OTLP over HTTP (`http/protobuf`).
//!
//! Offering a span puts it into a bounded queue and never waits; what there is no room for is
//! counted. One task sends what is queued in batches. A collector that is down, slow or talks
//! rubbish costs spans and nothing else.

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

use crate::send::Sender;

/// Where spans go, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address that takes traces, in full: `http://localhost:4318/v1/traces`.
    pub endpoint: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// How long the collector may take for one request.
    pub timeout: Duration,
    /// What is known of this process, such as `service.name`.
    pub resource: Vec<(String, String)>,
    /// How many spans wait at most.
    pub queue: usize,
    /// How many spans one request carries at most.
    pub batch: usize,
    /// How long a span waits for others before it is sent.
    pub delay: Duration,
}

impl Settings {
    /// The usual settings for an address.
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

/// Settings that cannot be used. The value of a header is never shown: it may be a token.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The address is none.
    #[error("'{0}' is no http or https address")]
    Endpoint(String),
    /// A header is none.
    #[error("the header '{0}' cannot be sent")]
    Header(String),
    /// The HTTP client could not be set up.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) exported: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64, spans: usize) {
        counter.fetch_add(u64::try_from(spans).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Takes spans for a collector.
pub struct Otlp {
    queue: mpsc::Sender<Span>,
    counts: Arc<Counts>,
}

impl SpanSink for Otlp {
    fn offer(&self, span: Span) {
        match self.queue.try_send(span) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {
                Counts::add(&self.counts.dropped, 1);
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

/// The task that sends. Close it, so that what waits is sent.
pub struct Exporter {
    closing: CancellationToken,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Sends what waits, once, within a few seconds.
    pub async fn close(self) {
        self.closing.cancel();
        // One that panicked has nothing left to send.
        let _ = self.task.await;
    }
}

/// Takes spans from here on. The collector is asked nothing before there is one.
pub fn open(settings: Settings) -> Result<(Arc<Otlp>, Exporter), SettingsError> {
    let wrong = || SettingsError::Endpoint(settings.endpoint.clone());
    let url = Url::parse(&settings.endpoint).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong());
    }
    // Another part of the program may have chosen one before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .timeout(settings.timeout)
        .default_headers(headers(&settings.headers)?)
        .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .build()
        .map_err(SettingsError::Client)?;
    let (queue, waiting) = mpsc::channel(settings.queue.max(1));
    let counts = Arc::new(Counts::default());
    let closing = CancellationToken::new();
    let sender = Sender {
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
    Ok((Arc::new(Otlp { queue, counts }), Exporter { closing, task }))
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
