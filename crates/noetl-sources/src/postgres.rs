//! Source for a Postgres database: rows of a table, or notifications of a channel.
//!
//! With `table`, rows are messages, acked in the way `ack` selects, and none is lost. With only
//! `channel`, notifications are messages, and those sent while the source is not connected are
//! lost, as usual for Postgres. With both, rows are messages, and a notification triggers a poll.

mod advance;
mod channel;
mod columns;
mod rows;
mod table;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Map};
use noetl_playbook::subscription::Subscription;
use noetl_tools::{NotifyHandling, connect_postgres};
use tokio_postgres::Client;

use self::advance::AdvanceSource;
use self::channel::ChannelSource;
use self::table::TableSource;
use crate::source::{Source, SourceError, SourceFactory, chain, number, text};

/// Time the server has to respond. Scanning a large table without an index takes a while.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Default poll interval in milliseconds, without notifications.
const POLL_DEFAULT_MS: u64 = 1000;

/// Opens sources of kind `postgres`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Postgres;

#[async_trait]
impl SourceFactory for Postgres {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    async fn open(
        &self,
        subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError> {
        let mut settings = settings.clone();
        if let Some(url) = settings.remove("url") {
            settings.insert("connection".to_owned(), url);
        }
        let settings = &settings;
        let channel = text(settings, "channel")?;
        let Some(table) = text(settings, "table")? else {
            let missing = "a postgres source needs `table` or `channel`";
            let channel = channel.ok_or_else(|| SourceError::Settings(missing.to_owned()))?;
            return Ok(Arc::new(ChannelSource::open(settings, channel).await?));
        };
        let poll = number(settings, "poll_ms")?.unwrap_or(POLL_DEFAULT_MS);
        let wanted = TableQuery {
            settings,
            table,
            channel,
            poll: Duration::from_millis(poll),
            path: &subscription.path,
        };
        match text(settings, "ack")? {
            Some("advance") => Ok(Arc::new(AdvanceSource::open(wanted).await?)),
            Some(ack @ ("delete" | "update")) => {
                Ok(Arc::new(TableSource::open(wanted, ack == "update").await?))
            }
            _ => Err(SourceError::Settings(
                "a table of messages needs `ack`: delete, update or advance".to_owned(),
            )),
        }
    }
}

/// Settings of a table source.
#[derive(Clone, Copy)]
struct TableQuery<'a> {
    settings: &'a Map,
    table: &'a str,
    channel: Option<&'a str>,
    poll: Duration,
    path: &'a str,
}

async fn connect(settings: &Map, notices: NotifyHandling) -> Result<Client, SourceError> {
    connect_postgres(settings, notices).await.map_err(|failure: Failure| match failure.kind {
        FailureKind::Config => SourceError::Settings(failure.message),
        _ => SourceError::Away(failure.message),
    })
}

/// Waits for a response, at most [`TIMEOUT`].
async fn asked<T>(
    what: &str,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, SourceError> {
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error| wrong(what, &error)),
        Err(_) => Err(SourceError::Away(format!("{what}: the database does not answer"))),
    }
}

/// Classifies an error as one that needs a configuration change or one that may resolve itself.
fn wrong(what: &str, error: &tokio_postgres::Error) -> SourceError {
    let Some(refused) = error.as_db_error() else { return SourceError::Away(chain(what, error)) };
    let message = format!("{what}: the database says: {}", refused.message());
    let code = refused.code().code();
    // A missing table may be created later. Errors in a statement or invalid values persist.
    match code.starts_with("42") && code != "42P01" || code.starts_with("22") {
        true => SourceError::Settings(message),
        false => SourceError::Away(message),
    }
}

/// Quotes an identifier for use in a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
