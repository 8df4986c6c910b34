//! Purges tables by a time column.

use noetl_model::Timestamp;
use noetl_store::StoreError;

use super::ACTION;
use crate::SqliteStore;
use crate::column::count;
use crate::encoded_append::rows;

/// Number of rows per transaction, which takes the writer a few milliseconds.
const PORTION: usize = 1000;

/// A table, its key, and the condition for rows to delete: those with a time of `?1` or earlier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep {
    table: &'static str,
    key: &'static str,
    goes: &'static str,
}

impl Sweep {
    pub(super) const RUNTIMES: Self = Self {
        table: "runtime",
        key: "runtime_id",
        goes: "kind = 'worker_pool' and heartbeat <= ?1",
    };
    pub(super) const OUTBOX: Self = Self {
        table: "outbox",
        key: "outbox_id",
        goes: "status = 'PUBLISHED' and published_at <= ?1",
    };
    pub(super) const DEDUP: Self = Self {
        table: "subscription_dedup",
        key: "(tenant_id, subscription_id, dedup_key)",
        goes: "seen_at <= ?1",
    };
    pub(super) const AUDIT: Self =
        Self { table: "secret_audit", key: "audit_id", goes: "occurred_at <= ?1" };
    pub(super) const KEYCHAIN: Self =
        Self { table: "keychain", key: "rowid", goes: "expires_at <= ?1" };
    pub(super) const VARIABLES: Self =
        Self { table: "transient", key: "rowid", goes: "expires_at <= ?1" };
    pub(super) const RESULTS: Self =
        Self { table: "result_store", key: "result_id", goes: "expires_at <= ?1" };

    fn count_sql(&self) -> String {
        format!("select count(*) from {} where {}", self.table, self.goes)
    }

    fn delete_sql(&self) -> String {
        let Self { table, key, goes } = self;
        let keys = key.trim_matches(['(', ')']);
        format!(
            "delete from {table} where {key} in (select {keys} from {table} where {goes} limit ?2)"
        )
    }
}

impl SqliteStore {
    /// Deletes the rows of a table up to a time, and returns their number. A dry run only counts.
    pub(super) async fn sweep(
        &self,
        sweep: Sweep,
        since: Timestamp,
        dry_run: bool,
    ) -> Result<u64, StoreError> {
        let since = since.as_micros();
        if dry_run {
            let counted = self.read(ACTION, move |connection| {
                connection.query_row(&sweep.count_sql(), [since], |row| count(row, 0))
            });
            return counted.await;
        }
        let mut removed = 0;
        loop {
            let portion = self.write(ACTION, move |connection, _| {
                let mut delete = connection.prepare_cached(&sweep.delete_sql())?;
                delete.execute((since, rows(PORTION)))
            });
            let portion = portion.await?;
            removed += u64::try_from(portion).unwrap_or(u64::MAX);
            if portion < PORTION {
                return Ok(removed);
            }
        }
    }
}
