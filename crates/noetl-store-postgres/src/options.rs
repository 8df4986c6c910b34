//! Connection options of the store.

use std::str::FromStr;
use std::time::Duration;

use noetl_store::OutboxOptions;
use sqlx::postgres::PgConnectOptions;

use crate::OpenError;

/// Options to open a Postgres store.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) connect: PgConnectOptions,
    /// Connection options for `listen`, which bypass a transaction-pooling proxy.
    pub(crate) direct: Option<PgConnectOptions>,
    /// Whether a transaction-pooling proxy is in between.
    pub(crate) is_pooled: bool,
    pub(crate) connections: u32,
    pub(crate) acquire_timeout: Duration,
    pub(crate) lane: u16,
    pub(crate) migrate: bool,
    pub(crate) outbox: OutboxOptions,
}

impl Options {
    /// Default maximum number of connections.
    pub const CONNECTIONS: u32 = 10;

    /// Default number of cached prepared statements per connection.
    pub const STATEMENTS: usize = 100;

    /// Parses a URL of the form `postgres://user:password@host:port/database`.
    pub fn new(url: &str) -> Result<Self, OpenError> {
        Ok(Self {
            connect: parse(url)?.statement_cache_capacity(Self::STATEMENTS),
            direct: None,
            is_pooled: false,
            connections: Self::CONNECTIONS,
            acquire_timeout: Duration::from_secs(30),
            // Any lane works: processes that share a lane only wait a little longer for each other.
            lane: u16::try_from(std::process::id() % u32::from(crate::writer::LANES)).unwrap_or(0),
            migrate: true,
            outbox: OutboxOptions::default(),
        })
    }

    /// Sets the maximum number of connections, at least 3: the writer uses one, and a caller that
    /// has locked an execution needs a second one for reads.
    #[must_use]
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(3);
        self
    }

    /// Sets the time limit of a call that waits for a connection.
    #[must_use]
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// Sets the number of cached prepared statements per connection. 0 is for a transaction-pooling
    /// proxy.
    #[must_use]
    pub fn statement_cache(mut self, capacity: usize) -> Self {
        self.connect = self.connect.statement_cache_capacity(capacity);
        self.is_pooled = capacity == 0;
        self
    }

    /// Sets another URL of the same database for `listen`, which a transaction-pooling proxy can't
    /// serve.
    pub fn direct_url(mut self, url: &str) -> Result<Self, OpenError> {
        self.direct = Some(parse(url)?);
        Ok(self)
    }

    /// Sets the commit lane of this process, from any number. Positions follow the commit order
    /// within a lane.
    #[must_use]
    pub fn lane(mut self, number: u16) -> Self {
        self.lane = number % crate::writer::LANES;
        self
    }

    /// Sets whether opening the store migrates the schema. Otherwise an outdated schema is an
    /// error.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Sets whether events are written to the outbox, and the lease duration of a claim.
    #[must_use]
    pub fn outbox(mut self, outbox: OutboxOptions) -> Self {
        self.outbox = outbox;
        self
    }

    /// Returns the host, port, and database for messages, without the password.
    pub(crate) fn location(&self) -> String {
        let database = self.connect.get_database().unwrap_or("");
        format!("{}:{}/{database}", self.connect.get_host(), self.connect.get_port())
    }
}

fn parse(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|error| OpenError::Url(error.into()))?;
    // The driver requests UTC in the startup packet, which also works behind a proxy. A proxy may
    // reject other settings, and numbers are exact without them.
    Ok(options.application_name("noetl").extra_float_digits(None))
}
