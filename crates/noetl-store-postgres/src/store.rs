//! The store: a writer, a reserved connection for background work, and a pool for callers.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use noetl_store::{OutboxOptions, StoreError};
use sqlx::postgres::{PgPool, PgPoolOptions, PgRow};
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, Row, Transaction};

use crate::append_mode::AppendMode;
use crate::arrays::AppenderConfig;
use crate::client::{PgClient, Plans, Statement};
use crate::listen::NotifyListener;
use crate::writer::{LANES, WriterHandle};
use crate::{OpenError, Options, migrate, partitions};

/// Number of connections outside the callers' pool: the writer's and the reserved one.
const OWN: u32 = 2;

/// A connection that was idle for longer is pinged before it is used. The limit exceeds the time
/// between two statements of an idle process, so that pings don't double its traffic. A read on a
/// closed connection is retried anyway.
const IDLE_MAX: Duration = Duration::from_secs(45);

/// A store in a Postgres database.
#[derive(Debug)]
pub struct PostgresStore {
    callers: PgClient,
    /// Pool of `callers`, with [`Plans::ByKey`].
    by_key: PgClient,
    /// Pool of `callers`, with [`Plans::InOrder`].
    in_order: PgClient,
    reserved: PgClient,
    writer: WriterHandle,
    outbox: OutboxOptions,
    how: AppendMode,
    ears: NotifyListener,
}

impl PostgresStore {
    /// Opens a store: connects, checks the server, and migrates the schema.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let location = options.location();
        let connected = options.connect.connect().await;
        let mut connection = connected.map_err(|error| OpenError::Connect {
            location: location.clone(),
            source: error.into(),
        })?;
        check_server(&mut connection, &location).await?;
        if options.migrate {
            migrate::migrate(&mut connection, &location).await?;
            partitions::make_ahead(&mut connection).await.map_err(|source| {
                OpenError::Database { location: location.clone(), source: source.into() }
            })?;
        } else {
            migrate::check(&mut connection, &location).await?;
        }
        let is_binary = migrate::is_binary(&mut connection).await.map_err(|source| {
            OpenError::Database { location: location.clone(), source: source.into() }
        })?;
        // The connection is no longer needed, so a failure to close doesn't matter.
        let _ = connection.close().await;
        let is_pooled = options.is_pooled;
        let callers = options.connections.saturating_sub(OWN).max(1);
        let callers = PgClient { pool: pool(&options, callers), is_pooled, plans: Plans::ByCost };
        let by_key = PgClient { pool: callers.pool.clone(), is_pooled, plans: Plans::ByKey };
        let in_order = PgClient { pool: callers.pool.clone(), is_pooled, plans: Plans::InOrder };
        let reserved = PgClient { pool: pool(&options, 1), is_pooled, plans: Plans::ByCost };
        let outbox = options.outbox;
        let name = format!("{}-{:x}", std::process::id(), entropy());
        // A transaction-pooling proxy would share a listening connection with other clients, whose
        // responses would then contain notifications for this process.
        let own = (!options.is_pooled).then(|| options.connect.clone());
        let ears = NotifyListener::open(options.direct.or(own), callers.pool.clone(), name);
        let speaker = AppenderConfig {
            lane: i16::try_from(options.lane % LANES).unwrap_or_default(),
            work_left: ears.work_left().into(),
            is_pooled: options.is_pooled,
        };
        let writer = WriterHandle::start(options.connect, speaker.clone(), outbox.is_on);
        let how = AppendMode { speaker, has_outbox: outbox.is_on, is_binary };
        Ok(Self { callers, by_key, in_order, reserved, writer, outbox, how, ears })
    }

    /// Closes all connections of the pools.
    pub async fn close(self) {
        self.callers.pool.close().await;
        self.reserved.pool.close().await;
    }

    pub(crate) fn writer(&self) -> &WriterHandle {
        &self.writer
    }

    pub(crate) fn how(&self) -> &AppendMode {
        &self.how
    }

    pub(crate) fn ears(&self) -> &NotifyListener {
        &self.ears
    }

    pub(crate) fn outbox(&self) -> OutboxOptions {
        self.outbox
    }

    /// Returns the pool for statements of callers.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.callers.pool
    }

    /// Returns the line for statements that must find their rows by index; see [`Plans::ByKey`].
    pub(crate) fn by_key(&self) -> &PgClient {
        &self.by_key
    }

    /// Returns the line for statements whose order determines the index; see [`Plans::InOrder`].
    pub(crate) fn in_order(&self) -> &PgClient {
        &self.in_order
    }

    /// Returns the reserved connection, which callers can't exhaust. Leases and timers use it, so
    /// that many concurrent callers neither let a lease expire nor delay a timer.
    pub(crate) fn reserved(&self) -> &PgClient {
        &self.reserved
    }

    /// Calls [`PgClient::begin`] on the callers' pool.
    pub(crate) async fn begin(
        &self,
        action: &'static str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.callers.begin(action).await
    }

    /// Calls [`PgClient::list`] on the callers' pool.
    pub(crate) async fn list<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.callers.list(action, make, decode).await
    }

    /// Calls [`PgClient::one`] on the callers' pool.
    pub(crate) async fn one<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Option<T>, StoreError> {
        self.callers.one(action, make, decode).await
    }

    /// Calls [`PgClient::change`] on the callers' pool.
    pub(crate) async fn change<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.callers.change(action, make, decode).await
    }

    /// Calls [`PgClient::touch`] on the callers' pool.
    pub(crate) async fn touch<'q>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
    ) -> Result<usize, StoreError> {
        self.callers.touch(action, make).await
    }
}

fn pool(options: &Options, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(options.acquire_timeout)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move { Ok(meta.idle_for < IDLE_MAX || connection.ping().await.is_ok()) })
        })
        .connect_lazy_with(options.connect.clone())
}

async fn check_server(connection: &mut PgConnection, location: &str) -> Result<(), OpenError> {
    let sql = "select current_setting('server_version_num')::integer, \
               current_setting('server_version'), current_setting('server_encoding')";
    let failed = |error: sqlx::Error| OpenError::Database {
        location: location.to_owned(),
        source: error.into(),
    };
    let row = sqlx::raw_sql(sql).fetch_one(connection).await.map_err(failed)?;
    let number: i32 = row.try_get(0).map_err(failed)?;
    let version: String = row.try_get(1).map_err(failed)?;
    let encoding: String = row.try_get(2).map_err(failed)?;
    if number < 150_000 {
        return Err(OpenError::Version { location: location.to_owned(), found: version });
    }
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { location: location.to_owned(), found: encoding });
    }
    Ok(())
}

/// Returns a random number that makes the name of this process unique.
fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}
