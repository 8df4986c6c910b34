//! Sends statements over a connection pool, and retries those whose connection was lost.

use noetl_store::StoreError;
use sqlx::postgres::{PgArguments, PgPool, PgQueryResult, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Transaction};

use crate::error::{StatementOutcome, fate, store_error, write_error};

/// Maximum number of attempts of a change that the server rolls back because of conflicts.
const CHANGES_MAX: usize = 10;

pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// Planner settings for the statements of a line.
///
/// Without statistics, and while a table or a partition is small, the planner considers all indexes
/// with the same first column equally good, and scanning or sorting a whole table cheaper than an
/// index. It reuses such a plan until the connection ends or the table is analyzed, even if the
/// table has grown by then. The settings of a transaction exclude those plans. They also disable
/// `jit`, because a plan that uses an excluded method seems expensive enough to be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plans {
    /// Chooses plans by cost, without a separate transaction.
    ByCost,
    /// Finds rows by index.
    ByKey,
    /// Finds rows by the index that provides the order of the statement. Only for statements in
    /// which every `order by` on a table is the order of the index to use.
    InOrder,
}

/// A connection pool with its settings.
#[derive(Debug)]
pub(crate) struct PgClient {
    pub(crate) pool: PgPool,
    /// Whether a transaction-pooling proxy is in between.
    pub(crate) is_pooled: bool,
    pub(crate) plans: Plans,
}

impl PgClient {
    /// Returns the maximum number of attempts of a read whose connection was lost. A restart of the
    /// server breaks all pooled connections, and each of them may be used next.
    fn reads_max(&self) -> u32 {
        self.pool.options().get_max_connections() + 1
    }

    /// Begins a transaction with the planner settings of the line. Replaces a connection that turns
    /// out to be closed.
    pub(crate) async fn begin(
        &self,
        action: &'static str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        let mut tries = 1;
        loop {
            match self.transaction().await {
                Ok(transaction) => return Ok(transaction),
                Err(error)
                    if tries < self.reads_max() && fate(&error) == StatementOutcome::Unknown =>
                {
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

    /// Sends a statement and returns its rows, in a transaction if the line needs one.
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

    /// Like [`PgClient::fetch`], for a statement that returns no rows.
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

    /// Reads and decodes rows. Retries after a lost connection or a conflict.
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
                        && matches!(
                            fate(&error),
                            StatementOutcome::Unknown | StatementOutcome::Retry
                        ) =>
                {
                    tries += 1;
                }
                Err(error) => return Err(store_error(action, error)),
            }
        };
        let decoded = rows.iter().map(decode).collect::<Result<_, _>>();
        decoded.map_err(|error| store_error(action, error))
    }

    /// Reads and decodes the first row, if there is one.
    pub(crate) async fn one<'q, T>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
        decode: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.list(action, make, decode).await?.into_iter().next())
    }

    /// Sends a statement that changes data, and decodes the rows it returns. Retries after a
    /// conflict, but not after a lost connection, because the outcome is unknown then.
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
                Err(error) if tries < CHANGES_MAX && fate(&error) == StatementOutcome::Retry => {
                    tries += 1
                }
                Err(error) => return Err(write_error(action, error)),
            }
        };
        let decoded = rows.iter().map(decode).collect::<Result<_, _>>();
        decoded.map_err(|error| store_error(action, error))
    }

    /// Sends a statement that changes data, and returns the number of changed rows. Retries after a
    /// conflict, but not after a lost connection, because the outcome is unknown then.
    pub(crate) async fn touch<'q>(
        &self,
        action: &'static str,
        make: impl Fn() -> Statement<'q>,
    ) -> Result<usize, StoreError> {
        let mut tries = 1;
        let done = loop {
            match self.execute(make()).await {
                Ok(done) => break done,
                Err(error) if tries < CHANGES_MAX && fate(&error) == StatementOutcome::Retry => {
                    tries += 1
                }
                Err(error) => return Err(write_error(action, error)),
            }
        };
        Ok(usize::try_from(done.rows_affected()).unwrap_or(usize::MAX))
    }
}
