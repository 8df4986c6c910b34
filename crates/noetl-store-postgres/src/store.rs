//! The store itself: one writer, and a pool for everything else.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use noetl_store::{OutboxOptions, StoreError};
use sqlx::postgres::{PgArguments, PgPool, PgPoolOptions, PgQueryResult, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, Row, Transaction};

use crate::arrays::Speaker;
use crate::error::{Fate, fate, store_error, write_error};
use crate::hold::How;
use crate::listen::Ears;
use crate::writer::{LANES, Writer};
use crate::{OpenError, Options, migrate, partitions};

/// How often a read is sent again when its connection was lost: a restart of the server leaves
/// none of the pooled ones.
const READS_MAX: usize = 4;

/// How often a change is sent again that the server undid because of others.
const CHANGES_MAX: usize = 10;

/// A connection that was idle for longer is asked whether it is still there before it is used again.
/// Longer than an idle process rests between two statements, so that it is not asked twice as often
/// as it speaks; a read that meets a dead one is sent again anyway.
const IDLE_MAX: Duration = Duration::from_secs(45);

/// A store in a Postgres database.
#[derive(Debug)]
pub struct PostgresStore {
    pool: PgPool,
    writer: Writer,
    outbox: OutboxOptions,
    how: How,
    ears: Ears,
}

pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

impl PostgresStore {
    /// Opens a store: connects, checks the server and brings the schema up to date.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let place = options.place();
        let connected = options.connect.connect().await;
        let mut connection = connected
            .map_err(|error| OpenError::Connect { place: place.clone(), source: error.into() })?;
        check_server(&mut connection, &place).await?;
        if options.migrate {
            migrate::migrate(&mut connection, &place).await?;
            partitions::make_ahead(&mut connection).await.map_err(|source| {
                OpenError::Database { place: place.clone(), source: source.into() }
            })?;
        } else {
            migrate::check(&mut connection, &place).await?;
        }
        let is_binary = migrate::is_binary(&mut connection).await.map_err(|source| {
            OpenError::Database { place: place.clone(), source: source.into() }
        })?;
        // What it holds is of no use to anybody any more.
        let _ = connection.close().await;
        let pool = PgPoolOptions::new()
            .max_connections(options.connections.saturating_sub(1).max(1))
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(
                    async move { Ok(meta.idle_for < IDLE_MAX || connection.ping().await.is_ok()) },
                )
            })
            .connect_lazy_with(options.connect.clone());
        let outbox = options.outbox;
        let name = format!("{}-{:x}", std::process::id(), entropy());
        // A proxy that pools by transaction would hand on a connection that listens, and words meant
        // for this process would come between the answers to others.
        let own = (!options.is_pooled).then(|| options.connect.clone());
        let ears = Ears::open(options.direct.or(own), pool.clone(), name);
        let speaker = Speaker {
            lane: i16::try_from(options.lane % LANES).unwrap_or_default(),
            work_left: ears.work_left().into(),
            is_pooled: options.is_pooled,
        };
        let writer = Writer::start(options.connect, speaker.clone(), outbox.is_on);
        let how = How { speaker, has_outbox: outbox.is_on, is_binary };
        Ok(Self { pool, writer, outbox, how, ears })
    }

    /// Ends every connection.
    pub async fn close(self) {
        self.pool.close().await;
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    pub(crate) fn how(&self) -> &How {
        &self.how
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(crate) fn ears(&self) -> &Ears {
        &self.ears
    }

    pub(crate) fn outbox(&self) -> OutboxOptions {
        self.outbox
    }

    /// Begins a transaction. A connection that turns out to be gone is replaced by another.
    pub(crate) async fn begin(
        &self,
        action: &'static str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        let mut tries = 1;
        loop {
            match self.pool.begin().await {
                Ok(transaction) => return Ok(transaction),
                Err(error) if tries < READS_MAX && fate(&error) == Fate::Unknown => tries += 1,
                Err(error) => return Err(store_error(action, error)),
            }
        }
    }

    /// Sends one statement and takes its rows, the way [`Speaker::is_pooled`] asks for.
    async fn fetch(&self, statement: Statement<'_>) -> Result<Vec<PgRow>, sqlx::Error> {
        if !self.how.speaker.is_pooled {
            return statement.fetch_all(&self.pool).await;
        }
        let mut transaction = self.pool.begin().await?;
        let rows = statement.persistent(false).fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(rows)
    }

    /// The same for one that returns nothing.
    async fn execute(&self, statement: Statement<'_>) -> Result<PgQueryResult, sqlx::Error> {
        if !self.how.speaker.is_pooled {
            return statement.execute(&self.pool).await;
        }
        let mut transaction = self.pool.begin().await?;
        let done = statement.persistent(false).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done)
    }

    /// Reads rows.
    pub(crate) async fn list<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let mut tries = 1;
        let rows = loop {
            match self.fetch(make()).await {
                Ok(rows) => break rows,
                Err(error)
                    if tries < READS_MAX && matches!(fate(&error), Fate::Unknown | Fate::Retry) =>
                {
                    tries += 1;
                }
                Err(error) => return Err(store_error(action, error)),
            }
        };
        let decoded = rows.iter().map(decode).collect::<Result<_, _>>();
        decoded.map_err(|error| store_error(action, error))
    }

    /// Reads the first row.
    pub(crate) async fn one<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.list(action, make, decode).await?.into_iter().next())
    }

    /// Sends one statement that changes something, and decodes what it returns.
    pub(crate) async fn change<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let mut tries = 1;
        let rows = loop {
            match self.fetch(make()).await {
                Ok(rows) => break rows,
                Err(error) if tries < CHANGES_MAX && fate(&error) == Fate::Retry => tries += 1,
                Err(error) => return Err(write_error(action, error)),
            }
        };
        let decoded = rows.iter().map(decode).collect::<Result<_, _>>();
        decoded.map_err(|error| store_error(action, error))
    }

    /// Sends one statement that changes something, and says how many rows it changed.
    pub(crate) async fn touch<'q>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
    ) -> Result<usize, StoreError> {
        let mut tries = 1;
        let done = loop {
            match self.execute(make()).await {
                Ok(done) => break done,
                Err(error) if tries < CHANGES_MAX && fate(&error) == Fate::Retry => tries += 1,
                Err(error) => return Err(write_error(action, error)),
            }
        };
        Ok(usize::try_from(done.rows_affected()).unwrap_or(usize::MAX))
    }
}

async fn check_server(connection: &mut PgConnection, place: &str) -> Result<(), OpenError> {
    let sql = "select current_setting('server_version_num')::integer, \
               current_setting('server_version'), current_setting('server_encoding')";
    let failed =
        |error: sqlx::Error| OpenError::Database { place: place.to_owned(), source: error.into() };
    let row = sqlx::raw_sql(sql).fetch_one(connection).await.map_err(failed)?;
    let number: i32 = row.try_get(0).map_err(failed)?;
    let version: String = row.try_get(1).map_err(failed)?;
    let encoding: String = row.try_get(2).map_err(failed)?;
    if number < 150_000 {
        return Err(OpenError::Version { place: place.to_owned(), found: version });
    }
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { place: place.to_owned(), found: encoding });
    }
    Ok(())
}

/// A number to tell processes apart by.
fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}
