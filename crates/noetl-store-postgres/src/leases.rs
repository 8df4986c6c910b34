//! Implements [`LeaseStore`] on the table `leader`.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_store::leases::number_to_take;
use noetl_store::{Lease, LeaseStore, StoreError};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::PostgresStore;
use crate::client::Statement;
use crate::column::{PgTimestamptz, interval};
use crate::error::{StatementOutcome, fate, store_error, write_error};

const ACQUIRE: &str = "acquire a lease";

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let taken = self.reserved().change(ACQUIRE, || acquire(name, holder, ttl), lease).await?;
        Ok(taken.into_iter().next())
    }

    async fn renew(&self, held: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/leader_renew.sql");
        let make = || {
            let query = sqlx::query(sql).bind(&held.name).bind(&held.holder);
            query.bind(held.epoch).bind(interval(ttl))
        };
        Ok(self.reserved().touch("renew a lease", make).await? == 1)
    }

    async fn release(&self, held: &Lease) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/leader_release.sql");
        let make = || sqlx::query(sql).bind(&held.name).bind(&held.holder).bind(held.epoch);
        Ok(self.reserved().touch("release a lease", make).await? == 1)
    }

    async fn lease(&self, name: &str) -> Result<Option<Lease>, StoreError> {
        let sql = "select name, holder, epoch, until from noetl.leader \
                   where name = $1 and until > now()";
        self.reserved().one("read a lease", || sqlx::query(sql).bind(name), lease).await
    }

    async fn live(&self, prefix: &str) -> Result<Vec<Lease>, StoreError> {
        self.reserved().list("list leases", || live(prefix), lease).await
    }

    async fn acquire_any(
        &self,
        prefix: &str,
        numbers: Range<u16>,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<(u16, Lease)>, StoreError> {
        let failed = |error| write_error(ACQUIRE, error);
        let mut transaction = self.reserved().begin(ACQUIRE).await?;
        // Serialize the callers of one prefix, which would otherwise all try to acquire the same
        // number.
        let lock = "select pg_advisory_xact_lock(hashtextextended('noetl.leader/' || $1, 0))";
        sqlx::query(lock)
            .persistent(false)
            .bind(prefix)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        let taken = loop {
            let found = live(prefix)
                .persistent(false)
                .fetch_all(&mut *transaction)
                .await
                .map_err(failed)?;
            let found = found.iter().map(lease).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            let Some(number) = number_to_take(prefix, numbers.clone(), holder, &found) else {
                return Ok(None);
            };
            let name = format!("{prefix}{number}");
            // `None` if another caller acquired this name since the list was read: try again.
            if let Some(lease) = take(&mut transaction, &name, holder, ttl).await.map_err(failed)? {
                break (number, lease);
            }
        };
        match transaction.commit().await {
            Ok(()) => Ok(Some(taken)),
            Err(error) if fate(&error) == StatementOutcome::Full => {
                Err(store_error(ACQUIRE, error))
            }
            Err(error) => Err(StoreError::Unknown(error.into())),
        }
    }
}

fn acquire<'q>(name: &'q str, holder: &'q str, ttl: Duration) -> Statement<'q> {
    let sql = include_str!("../queries/leader_acquire.sql");
    sqlx::query(sql).bind(name).bind(holder).bind(interval(ttl))
}

async fn take(
    connection: &mut PgConnection,
    name: &str,
    holder: &str,
    ttl: Duration,
) -> Result<Option<Lease>, sqlx::Error> {
    let taken = acquire(name, holder, ttl).persistent(false).fetch_optional(connection).await?;
    taken.as_ref().map(lease).transpose()
}

fn live(prefix: &str) -> Statement<'_> {
    sqlx::query(include_str!("../queries/leader_live.sql")).bind(prefix)
}

fn lease(row: &PgRow) -> Result<Lease, sqlx::Error> {
    Ok(Lease {
        name: row.try_get(0)?,
        holder: row.try_get(1)?,
        epoch: row.try_get(2)?,
        until: row.try_get::<PgTimestamptz, _>(3)?.0,
    })
}
