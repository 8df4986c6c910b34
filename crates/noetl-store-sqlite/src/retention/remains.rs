//! Deletes the remaining rows of purged executions.

use noetl_model::ExecutionId;
use noetl_store::StoreError;
use noetl_store::retention::PurgeCounts;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{ACTION, PurgeRun, logs};
use crate::SqliteStore;
use crate::column::count;

/// Number of rows per transaction, which takes the writer a few milliseconds.
const PORTION: u64 = 1000;

/// Statements that delete rows of an execution outside the event log: `?1` is the execution, `?2`
/// its tenant, and `?3` the maximum number of rows.
const SNAPSHOTS: &str = include_str!("../../queries/projection_snapshot_purge.sql");
const REFERENCES: &str = include_str!("../../queries/blob_ref_purge.sql");
const VARIABLES: &str = include_str!("../../queries/transient_purge_execution.sql");
const RESULTS: &str = include_str!("../../queries/result_store_purge_execution.sql");
const LINES: &str = include_str!("../../queries/log_purge.sql");
const KEYCHAIN: &str = include_str!("../../queries/keychain_purge_execution.sql");
const LOOKUP: &str = include_str!("../../queries/event_lookup_purge.sql");

impl SqliteStore {
    /// Runs the second step of a purge: deletes the remaining rows of every purged execution. A dry
    /// run counts the rows of executions that an earlier purge left.
    pub(super) async fn remains(
        &self,
        run: &PurgeRun,
        removed: &mut PurgeCounts,
    ) -> Result<(), StoreError> {
        if run.dry_run {
            let left = self.read(ACTION, |connection| {
                let sql = "select execution_id, tenant_id from purged_execution";
                let row = |row: &Row<'_>| Ok((ExecutionId::new(row.get(0)?), row.get(1)?));
                let mut read = connection.prepare(sql)?;
                read.query_map([], row)?.collect()
            });
            let left: Vec<(ExecutionId, String)> = left.await?;
            for (id, tenant) in left {
                removed.add(&self.belongings(run, id, tenant).await?);
            }
            return Ok(());
        }
        loop {
            let portion = self.write(ACTION, |connection, _| {
                let mut portion = PurgeCounts::default();
                let is_done = remove_portion(connection, &mut portion)?;
                Ok((portion, is_done))
            });
            let (portion, is_done) = portion.await?;
            removed.add(&portion);
            if is_done {
                return Ok(());
            }
        }
    }

    /// Counts the rows of an execution in other tables, without those that expire by their own age.
    pub(super) async fn belongings(
        &self,
        run: &PurgeRun,
        id: ExecutionId,
        tenant: String,
    ) -> Result<PurgeCounts, StoreError> {
        let commands = run.policy.commands.since(run.now).map_or(i64::MIN, |at| at.as_micros());
        let expired = if run.policy.expired { run.now.as_micros() } else { i64::MIN };
        self.read(ACTION, move |connection| {
            let sql = include_str!("../../queries/purged_execution_counts.sql");
            let mut read = connection.prepare_cached(sql)?;
            let counts = read.query_row(params![id.get(), expired, tenant], |row| {
                Ok(PurgeCounts {
                    events: count(row, 0)?,
                    snapshots: count(row, 1)?,
                    references: count(row, 2)?,
                    variables: count(row, 3)?,
                    results: count(row, 4)?,
                    keychain: count(row, 5)?,
                    lines: count(row, 6)?,
                    ..PurgeCounts::default()
                })
            });
            let commands = logs::count_commands(connection, id, commands)?;
            Ok(PurgeCounts { commands, ..counts? })
        })
        .await
    }
}

/// Deletes one batch of rows. Returns `true` if none are left.
fn remove_portion(connection: &Connection, removed: &mut PurgeCounts) -> rusqlite::Result<bool> {
    let mut room = PORTION;
    let sql = "select execution_id, tenant_id from purged_execution limit 1";
    let mut next = connection.prepare_cached(sql)?;
    loop {
        let found = next.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((execution, tenant)): Option<(i64, String)> = found else { return Ok(true) };
        logs::remove_rows(connection, execution, &mut room, removed)?;
        logs::remove_appends(connection, execution, &mut room, removed)?;
        for (sql, count) in [
            (SNAPSHOTS, &mut removed.snapshots),
            (REFERENCES, &mut removed.references),
            (VARIABLES, &mut removed.variables),
            (RESULTS, &mut removed.results),
            (LINES, &mut removed.lines),
            (KEYCHAIN, &mut removed.keychain),
            // Entries are parts of events, which are counted above.
            (LOOKUP, &mut 0),
        ] {
            let mut delete = connection.prepare_cached(sql)?;
            let gone = delete.execute(params![execution, tenant, signed(room)])?;
            let gone = u64::try_from(gone).unwrap_or(u64::MAX);
            *count += gone;
            room = room.saturating_sub(gone);
        }
        if room == 0 {
            // The execution may have more rows.
            return Ok(false);
        }
        for table in ["log_command", "log_execution"] {
            let sql = format!("delete from {table} where execution_id = ?1");
            connection.prepare_cached(&sql)?.execute([execution])?;
        }
        connection
            .prepare_cached("delete from purged_execution where execution_id = ?1")?
            .execute([execution])?;
        // An execution without rows counts, too, because it also takes time.
        room = room.saturating_sub(1);
        if room == 0 {
            return Ok(false);
        }
    }
}

pub(super) fn signed(room: u64) -> i64 {
    i64::try_from(room).unwrap_or(i64::MAX)
}
