//! Where the database is, and how it is talked to.

use std::str::FromStr;
use std::time::Duration;

use noetl_store::OutboxOptions;
use sqlx::postgres::PgConnectOptions;

use crate::OpenError;

/// How to open a Postgres store.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) connect: PgConnectOptions,
    /// Where `listen` connects: past a proxy that pools by transaction.
    pub(crate) direct: Option<PgConnectOptions>,
    /// Whether a proxy that pools by transaction is in between.
    pub(crate) is_pooled: bool,
    pub(crate) connections: u32,
    pub(crate) acquire_timeout: Duration,
    pub(crate) lane: u16,
    pub(crate) migrate: bool,
    pub(crate) outbox: OutboxOptions,
}

impl Options {
    /// Connections kept at most, when nothing else is said.
    pub const CONNECTIONS: u32 = 10;

    /// Prepared statements kept per connection, when nothing else is said.
    pub const STATEMENTS: usize = 100;

    /// A database by its URL, `postgres://user:password@host:port/database`.
    pub fn new(url: &str) -> Result<Self, OpenError> {
        Ok(Self {
            connect: parse(url)?.statement_cache_capacity(Self::STATEMENTS),
            direct: None,
            is_pooled: false,
            connections: Self::CONNECTIONS,
            acquire_timeout: Duration::from_secs(30),
            // Any will do: processes of one lane only wait for each other a little longer.
            lane: u16::try_from(std::process::id() % u32::from(crate::writer::LANES)).unwrap_or(0),
            migrate: true,
            outbox: OutboxOptions::default(),
        })
    }

    /// How many connections are kept at most: one is the writer's, and who holds an execution reads
    /// beside it.
    #[must_use]
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(3);
        self
    }

    /// How long a call waits for a connection.
    #[must_use]
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// How many prepared statements a connection keeps; 0 for a proxy that pools by transaction.
    #[must_use]
    pub fn statement_cache(mut self, capacity: usize) -> Self {
        self.connect = self.connect.statement_cache_capacity(capacity);
        self.is_pooled = capacity == 0;
        self
    }

    /// Another URL of the same database, for `listen`, which no proxy that pools by transaction can
    /// serve.
    pub fn direct_url(mut self, url: &str) -> Result<Self, OpenError> {
        self.direct = Some(parse(url)?);
        Ok(self)
    }

    /// Which lane this process appends in, by any number of its own. Positions are in commit order
    /// within a lane.
    #[must_use]
    pub fn lane(mut self, number: u16) -> Self {
        self.lane = number % crate::writer::LANES;
        self
    }

    /// Whether the schema is brought up to date when the store opens; otherwise an old schema is
    /// an error.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Whether events go to the outbox, and how long a claim of it lasts.
    #[must_use]
    pub fn outbox(mut self, outbox: OutboxOptions) -> Self {
        self.outbox = outbox;
        self
    }

    /// The database as messages name it: without the password.
    pub(crate) fn place(&self) -> String {
        let database = self.connect.get_database().unwrap_or("");
        format!("{}:{}/{database}", self.connect.get_host(), self.connect.get_port())
    }
}

fn parse(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|error| OpenError::Url(error.into()))?;
    // The driver asks for UTC in the start-up packet by itself, so that holds behind a proxy too.
    // What it asks beyond that a proxy may refuse, and numbers are exact without it.
    Ok(options.application_name("noetl").extra_float_digits(None))
}
