//! Implements [`LeaseStore`] on the table `leader`, and [`CursorStore`] on the table `stream_cursor`.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Timestamp;
use noetl_store::leases::number_to_take;
use noetl_store::{CursorStore, CursorUpdate, Lease, LeaseStore, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;

const ACQUIRE: &str = "acquire a lease";

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.write(ACQUIRE, move |connection, now| acquire(connection, &name, &holder, ttl, now))
            .await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        let lease = lease.clone();
        self.write("renew a lease", move |connection, now| {
            set_end(connection, &lease, now.plus(ttl), now)
        })
        .await
    }

    async fn release(&self, lease: &Lease) -> Result<bool, StoreError> {
        let lease = lease.clone();
        // Expires at time zero, so that a clock that is set back doesn't revive the lease.
        self.write("release a lease", move |connection, now| {
            set_end(connection, &lease, Timestamp::default(), now)
        })
        .await
    }

    async fn lease(&self, name: &str) -> Result<Option<Lease>, StoreError> {
        let (name, clock) = (name.to_owned(), self.clock());
        self.read("read a lease", move |connection| {
            let found = find(connection, &name)?;
            Ok(found.filter(|lease| lease.is_live(clock.now())))
        })
        .await
    }

    async fn live(&self, prefix: &str) -> Result<Vec<Lease>, StoreError> {
        let (prefix, clock) = (prefix.to_owned(), self.clock());
        self.read("list leases", move |connection| live(connection, &prefix, clock.now())).await
    }

    async fn acquire_any(
        &self,
        prefix: &str,
        numbers: Range<u16>,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<(u16, Lease)>, StoreError> {
        let (prefix, holder) = (prefix.to_owned(), holder.to_owned());
        self.write(ACQUIRE, move |connection, now| {
            let live = live(connection, &prefix, now)?;
            let Some(number) = number_to_take(&prefix, numbers, &holder, &live) else {
                return Ok(None);
            };
            let name = format!("{prefix}{number}");
            let lease = acquire(connection, &name, &holder, ttl, now)?;
            Ok(lease.map(|lease| (number, lease)))
        })
        .await
    }
}

#[async_trait]
impl CursorStore for SqliteStore {
    async fn cursor(&self, name: &str) -> Result<Option<i64>, StoreError> {
        let name = name.to_owned();
        self.read("read a cursor", move |connection| {
            let sql = "select position from stream_cursor where name = ?1";
            connection.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()
        })
        .await
    }

    async fn advance(
        &self,
        name: &str,
        position: i64,
        fence: Option<&Lease>,
    ) -> Result<CursorUpdate, StoreError> {
        let (name, fence) = (name.to_owned(), fence.cloned());
        self.write("advance a cursor", move |connection, now| {
            if let Some(fence) = fence {
                let found = find(connection, &fence.name)?;
                if !found.is_some_and(|found| found.is_live(now) && found.is_same(&fence)) {
                    return Ok(CursorUpdate::Fenced);
                }
            }
            let sql = include_str!("../queries/stream_cursor_advance.sql");
            let mut advance = connection.prepare_cached(sql)?;
            let moved = advance.execute((name, position, now.as_micros()))?;
            Ok(if moved == 1 { CursorUpdate::Moved } else { CursorUpdate::Kept })
        })
        .await
    }
}

fn acquire(
    connection: &Connection,
    name: &str,
    holder: &str,
    ttl: Duration,
    now: Timestamp,
) -> rusqlite::Result<Option<Lease>> {
    let sql = include_str!("../queries/leader_acquire.sql");
    let given = (name, holder, now.plus(ttl).as_micros(), now.as_micros());
    connection.prepare_cached(sql)?.query_row(given, lease).optional()
}

fn set_end(
    connection: &Connection,
    lease: &Lease,
    until: Timestamp,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let sql = include_str!("../queries/leader_renew.sql");
    let mut renew = connection.prepare_cached(sql)?;
    let moved = renew.execute(params![
        lease.name,
        lease.holder,
        lease.epoch,
        until.as_micros(),
        now.as_micros()
    ])?;
    Ok(moved == 1)
}

fn find(connection: &Connection, name: &str) -> rusqlite::Result<Option<Lease>> {
    let sql = "select name, holder, epoch, until from leader where name = ?1";
    connection.prepare_cached(sql)?.query_row([name], lease).optional()
}

/// Returns the live leases whose names have a prefix. In byte order, these names are contiguous and
/// start at the prefix.
fn live(connection: &Connection, prefix: &str, now: Timestamp) -> rusqlite::Result<Vec<Lease>> {
    let sql = include_str!("../queries/leader_live.sql");
    let mut list = connection.prepare_cached(sql)?;
    let found = list.query_map((prefix, now.as_micros()), lease)?;
    let named = found.take_while(|found| match found {
        Ok(lease) => lease.name.starts_with(prefix),
        Err(_) => true,
    });
    named.collect()
}

fn lease(row: &Row<'_>) -> rusqlite::Result<Lease> {
    Ok(Lease {
        name: row.get(0)?,
        holder: row.get(1)?,
        epoch: row.get(2)?,
        until: Timestamp::from_micros(row.get(3)?),
    })
}
