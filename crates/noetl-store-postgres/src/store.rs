//! The store itself: one writer, one connection for what goes on by itself, and a pool for callers.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use noetl_store::{OutboxOptions, StoreError};
use sqlx::postgres::{PgPool, PgPoolOptions, PgRow};
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, Row, Transaction};

use crate::arrays::Speaker;
use crate::hold::How;
use crate::line::{Line, Plans, Statement};
use crate::listen::Ears;
use crate::writer::{LANES, Writer};
use crate::{OpenError, Options, migrate, partitions};

/// Connections that are in no caller's hands: the writer's, and the reserved one.
const OWN: u32 = 2;

/// A connection that was idle for longer is asked whether it is still there before it is used again.
/// Longer than an idle process rests between two statements, so that it is not asked twice as often
/// as it speaks; a read that meets a dead one is sent again anyway.
const IDLE_MAX: Duration = Duration::from_secs(45);

/// A store in a Postgres database.
#[derive(Debug)]
pub struct PostgresStore {
    callers: Line,
    /// The pool of `callers`, with [`Plans::ByKey`].
    by_key: Line,
    /// The pool of `callers`, with [`Plans::InOrder`].
    in_order: Line,
    reserved: Line,
    writer: Writer,
    outbox: OutboxOptions,
    how: How,
    ears: Ears,
}

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
        let is_pooled = options.is_pooled;
        let callers = options.connections.saturating_sub(OWN).max(1);
        let callers = Line { pool: pool(&options, callers), is_pooled, plans: Plans::ByCost };
        let by_key = Line { pool: callers.pool.clone(), is_pooled, plans: Plans::ByKey };
        let in_order = Line { pool: callers.pool.clone(), is_pooled, plans: Plans::InOrder };
        let reserved = Line { pool: pool(&options, 1), is_pooled, plans: Plans::ByCost };
        let outbox = options.outbox;
        let name = format!("{}-{:x}", std::process::id(), entropy());
        // A proxy that pools by transaction would hand on a connection that listens, and words meant
        // for this process would come between the answers to others.
        let own = (!options.is_pooled).then(|| options.connect.clone());
        let ears = Ears::open(options.direct.or(own), callers.pool.clone(), name);
        let speaker = Speaker {
            lane: i16::try_from(options.lane % LANES).unwrap_or_default(),
            work_left: ears.work_left().into(),
            is_pooled: options.is_pooled,
        };
        let writer = Writer::start(options.connect, speaker.clone(), outbox.is_on);
        let how = How { speaker, has_outbox: outbox.is_on, is_binary };
        Ok(Self { callers, by_key, in_order, reserved, writer, outbox, how, ears })
    }

    /// Ends every connection.
    pub async fn close(self) {
        self.callers.pool.close().await;
        self.reserved.pool.close().await;
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    pub(crate) fn how(&self) -> &How {
        &self.how
    }

    pub(crate) fn ears(&self) -> &Ears {
        &self.ears
    }

    pub(crate) fn outbox(&self) -> OutboxOptions {
        self.outbox
    }

    /// What callers ask for goes through here.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.callers.pool
    }

    /// Returns the line of statements that must find their rows by index; see [`Plans::ByKey`].
    pub(crate) fn by_key(&self) -> &Line {
        &self.by_key
    }

    /// Returns the line of statements whose order names the index; see [`Plans::InOrder`].
    pub(crate) fn in_order(&self) -> &Line {
        &self.in_order
    }

    /// A connection that callers cannot use up: what keeps executions going goes through it, so that
    /// nobody's lease ends and nothing that is due waits because many ask at once.
    pub(crate) fn reserved(&self) -> &Line {
        &self.reserved
    }

    /// As [`Line::begin`].
    pub(crate) async fn begin(
        &self,
        action: &'static str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.callers.begin(action).await
    }

    /// As [`Line::list`].
    pub(crate) async fn list<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.callers.list(action, make, decode).await
    }

    /// As [`Line::one`].
    pub(crate) async fn one<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Option<T>, StoreError> {
        self.callers.one(action, make, decode).await
    }

    /// As [`Line::change`].
    pub(crate) async fn change<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.callers.change(action, make, decode).await
    }

    /// As [`Line::touch`].
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
