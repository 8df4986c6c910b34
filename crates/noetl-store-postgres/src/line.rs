//! Connections that statements go through, and what becomes of a statement whose connection is lost.

use noetl_store::StoreError;
use sqlx::postgres::{PgArguments, PgPool, PgQueryResult, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Transaction};

use crate::error::{Fate, fate, store_error, write_error};

/// How often a change is sent again that the server undid because of others.
const CHANGES_MAX: usize = 10;

pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// How the server plans the statements of a line.
///
/// Without statistics, and while a table or a partition is small, the planner takes indexes that
/// begin with the same column for equally good, and reading or sorting a whole table for cheaper
/// than an index. It uses such a plan until the connection ends or the table is analyzed, however
/// many rows there are by then. The settings of a transaction rule those plans out. They also switch
/// `jit` off, because a plan that uses what they rule out looks expensive enough to be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plans {
    /// By cost, without a transaction of its own.
    ByCost,
    /// Rows are found by index.
    ByKey,
    /// Rows are found by the index that has them in the order the statement asks for. Only for
    /// statements whose every `order by` on a table is the order of the index to use.
    InOrder,
}

/// A pool, and how it is spoken to.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) pool: PgPool,
    /// Whether a proxy that pools by transaction stands between.
    pub(crate) is_pooled: bool,
    pub(crate) plans: Plans,
}

impl Line {
    /// How often a read is sent when its connection was lost: a restart of the server leaves none of
    /// the pooled ones, and each of them may be the next to be taken.
    fn reads_max(&self) -> u32 {
        self.pool.options().get_max_connections() + 1
    }

    /// Begins a transaction, with the line's plans. A connection that turns out to be gone is
    /// replaced by another.
    pub(crate) async fn begin(
        &self,
        action: &'static str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        let mut tries = 1;
        loop {
            match self.transaction().await {
                Ok(transaction) => return Ok(transaction),
                Err(error) if tries < self.reads_max() && fate(&error) == Fate::Unknown => {
                    tries += 1
                }
                Err(error) => return Err(store_error(action, error)),
            }
        }
    }

    async fn transaction(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        match self.plans {
            Plans::ByCost => self.pool.begin().await,
            Plans::ByKey => self.pool.begin_with(include_str!("../queries/begin_by_key.sql")).await,
            Plans::InOrder => {
                self.pool.begin_with(include_str!("../queries/begin_in_order.sql")).await
            }
        }
    }

    fn needs_transaction(&self) -> bool {
        self.is_pooled || self.plans != Plans::ByCost
    }

    /// Sends one statement and returns its rows, in a transaction if the line needs one.
    async fn fetch(&self, statement: Statement<'_>) -> Result<Vec<PgRow>, sqlx::Error> {
        if !self.needs_transaction() {
            return statement.fetch_all(&self.pool).await;
        }
        let mut transaction = self.transaction().await?;
        let statement = statement.persistent(!self.is_pooled);
        let rows = statement.fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(rows)
    }

    /// Like [`Line::fetch`], for a statement that returns no rows.
    async fn execute(&self, statement: Statement<'_>) -> Result<PgQueryResult, sqlx::Error> {
        if !self.needs_transaction() {
            return statement.execute(&self.pool).await;
        }
        let mut transaction = self.transaction().await?;
        let statement = statement.persistent(!self.is_pooled);
        let done = statement.execute(&mut *transaction).await?;
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
                    if tries < self.reads_max()
                        && matches!(fate(&error), Fate::Unknown | Fate::Retry) =>
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
