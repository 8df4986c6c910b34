//! Purges old data in batches.
//!
//! Each batch of rows is a short statement in its own transaction, so that other transactions don't
//! wait long. An execution is deleted with all its data in one statement. Partitions of the event
//! log are named after the calendar quarter in which their executions started.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Snowflakes, Timestamp};
use noetl_store::retention::{
    ExecutionAge, Partition, PartitionTally, PurgeCounts, PurgeDecision, PurgeReport,
    RetainedPartition, RetentionPolicy, RetentionStore,
};
use noetl_store::{StoreError, SubscriptionState};
use sqlx::Row;
use sqlx::postgres::PgRow;
use tracing::info;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, number, parsed};

const ACTION: &str = "purge";

/// Number of executions per page, and per delete statement.
const PAGE: usize = 200;

/// Number of rows of other tables per delete statement.
const PORTION: usize = 5000;

/// Statements that purge a table by a time column, for rows with a time of `$1` or earlier.
struct Sweep {
    count: &'static str,
    delete: &'static str,
}

/// Builds the statements of a sweep from a table and the condition for rows to delete.
macro_rules! sweep {
    ($table:literal, $goes:literal) => {
        sweep!($table, "ctid", "t.ctid", $goes)
    };
    // `ctid` identifies a row within one physical table only, so a partitioned table needs a key.
    ($table:literal, $key:literal, $of_t:literal, $goes:literal) => {
        Sweep {
            count: concat!("select count(*) from noetl.", $table, " t where ", $goes),
            delete: concat!(
                "delete from noetl.",
                $table,
                " where ",
                $key,
                " in (select ",
                $of_t,
                " from noetl.",
                $table,
                " t where ",
                $goes,
                " limit $2)"
            ),
        }
    };
}

const RUNTIMES: Sweep = sweep!("runtime", "t.kind = 'worker_pool' and t.heartbeat <= $1");
const OUTBOX: Sweep = sweep!("outbox", "t.status = 'PUBLISHED' and t.published_at <= $1");
const DEDUP: Sweep = sweep!("subscription_dedup", "t.seen_at <= $1");
const AUDIT: Sweep = sweep!("secret_audit", "t.occurred_at <= $1");
const KEYCHAIN: Sweep = sweep!("keychain", "t.expires_at <= $1");
const VARIABLES: Sweep = sweep!("transient", "t.expires_at <= $1");
const RESULTS: Sweep = sweep!("result_store", "t.expires_at <= $1");
const COMMANDS: Sweep = sweep!(
    "command",
    "(execution_id, command_id)",
    "t.execution_id, t.command_id",
    "t.completed_at <= $1 and not exists (select from noetl.execution e \
     where e.execution_id = t.execution_id and e.end_time is null and e.origin = 'own')"
);

#[async_trait]
impl RetentionStore for PostgresStore {
    async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<PurgeReport, StoreError> {
        let now = || sqlx::query("select now()");
        let now = self.one(ACTION, now, |row| Ok(row.try_get::<PgTimestamptz, _>(0)?.0)).await?;
        let now = now.ok_or_else(|| StoreError::backend(ACTION, "no time"))?;
        let mut removed = PurgeCounts::default();
        let expired = policy.expired.then_some(now);
        // Sweep rows by their own age first, so that a dry run counts them there, too.
        for (sweep, since, count) in [
            (RUNTIMES, policy.runtimes.since(now), &mut removed.runtimes),
            (OUTBOX, policy.outbox.since(now), &mut removed.outbox),
            (DEDUP, policy.dedup.since(now), &mut removed.dedup),
            (AUDIT, policy.audit.since(now), &mut removed.audit),
            (KEYCHAIN, expired, &mut removed.keychain),
            (VARIABLES, expired, &mut removed.variables),
            (RESULTS, expired, &mut removed.results),
            (COMMANDS, policy.commands.since(now), &mut removed.commands),
        ] {
            if let Some(since) = since {
                *count += self.sweep(&sweep, since, dry_run).await?;
            }
        }
        let Some(since) = policy.executions.since(now) else {
            return Ok(PurgeReport { removed, ..PurgeReport::default() });
        };
        let mut tally = PartitionTally::by_partition(self.partitions().await?);
        let purge = Purge { since, commands: policy.commands.since(now), expired, dry_run };
        self.executions_of_age(&purge, &mut tally, &mut removed).await?;
        removed.events += self.logs_of_subscriptions(&purge, &mut tally).await?;
        let mut kept = tally.kept();
        let mut dropped: Vec<String> = Vec::new();
        for name in self.drop_partitions(since, &kept, dry_run).await? {
            let name = reported_name(&name);
            if !dropped.contains(&name) {
                dropped.push(name);
            }
        }
        kept.iter_mut().for_each(|kept| kept.partition = reported_name(&kept.partition));
        Ok(PurgeReport { removed, dropped, kept })
    }
}

/// Criteria for executions to purge, and for their rows that the sweeps have already counted.
struct Purge {
    since: Timestamp,
    commands: Option<Timestamp>,
    expired: Option<Timestamp>,
    dry_run: bool,
}

impl PostgresStore {
    async fn sweep(
        &self,
        sweep: &Sweep,
        since: Timestamp,
        dry_run: bool,
    ) -> Result<u64, StoreError> {
        if dry_run {
            let make = || sqlx::query(sweep.count).bind(PgTimestamptz::clamped(since));
            let counted = self.one(ACTION, make, |row| number(row, 0)).await?;
            return Ok(counted.unwrap_or_default());
        }
        let mut removed = 0;
        loop {
            let make = || {
                sqlx::query(sweep.delete).bind(PgTimestamptz::clamped(since)).bind(rows(PORTION))
            };
            let portion = self.touch(ACTION, make).await?;
            removed += u64::try_from(portion).unwrap_or(u64::MAX);
            if portion < PORTION {
                return Ok(removed);
            }
        }
    }

    /// Returns the partitions of the event log in chronological order, without the default one.
    async fn partitions(&self) -> Result<Vec<Partition>, StoreError> {
        let sql = "select partition, lower_bound, upper_bound from noetl.event_bounds_2() \
                   order by upper_bound nulls last";
        let partition = |row: &PgRow| {
            let (name, first, end) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            Ok(Partition { name, first, end })
        };
        self.list(ACTION, || sqlx::query(sql), partition).await
    }

    /// Drops the empty partitions of the event log that end before this time, and returns their
    /// names. A dry run returns the names of those that would be empty.
    async fn drop_partitions(
        &self,
        since: Timestamp,
        kept: &[RetainedPartition],
        dry_run: bool,
    ) -> Result<Vec<String>, StoreError> {
        let first_kept = Snowflakes::first_at(since);
        let kept: Vec<&str> = kept.iter().map(|kept| kept.partition.as_str()).collect();
        let sql = "select noetl.event_partitions_drop_3($1, $2, $3)";
        let make = || sqlx::query(sql).bind(first_kept).bind(&kept).bind(dry_run);
        let dropped = self.change(ACTION, make, |row| row.try_get::<String, _>(0)).await?;
        if !dropped.is_empty() && !dry_run {
            info!(partitions = dropped.join(", "), "dropped empty event log partitions");
        }
        Ok(dropped)
    }

    async fn executions_of_age(
        &self,
        purge: &Purge,
        tally: &mut PartitionTally,
        removed: &mut PurgeCounts,
    ) -> Result<(), StoreError> {
        let mut after = i64::MIN;
        loop {
            let sql = include_str!("../queries/execution_ages.sql");
            let make = || sqlx::query(sql).bind(after).bind(rows(PAGE));
            let page = self.list(ACTION, make, aged).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = last.get();
            let mut going = Vec::new();
            for (id, age) in page {
                match age.fate(purge.since) {
                    PurgeDecision::Goes => going.push(id.get()),
                    stays => tally.note(id, stays),
                }
            }
            if going.is_empty() {
                continue;
            }
            let (gone, portion) = self.remove(purge, &going).await?;
            removed.add(&portion);
            for id in going {
                // An execution that advanced since the page was read has a recent event.
                let fate =
                    if gone.contains(&id) { PurgeDecision::Goes } else { PurgeDecision::Recent };
                tally.note(ExecutionId::new(id), fate);
            }
        }
    }

    /// Deletes the event logs of subscriptions that have ended, and returns the number of events.
    async fn logs_of_subscriptions(
        &self,
        purge: &Purge,
        tally: &mut PartitionTally,
    ) -> Result<u64, StoreError> {
        let sql = include_str!("../queries/subscription_logs.sql");
        let logs = self.list(ACTION, || sqlx::query(sql), log_of_subscription).await?;
        let mut removed = 0;
        for (id, state, updated_at, events) in logs {
            let fate = PurgeDecision::of_subscription(state, updated_at, purge.since);
            tally.note(id, fate);
            match fate {
                PurgeDecision::Goes if purge.dry_run => removed += events,
                PurgeDecision::Goes => removed += self.remove_log(id, purge.since).await?,
                _ => {}
            }
        }
        Ok(removed)
    }

    /// Deletes the event log of a subscription if it is still ended, and returns the number of
    /// events.
    async fn remove_log(&self, id: ExecutionId, since: Timestamp) -> Result<u64, StoreError> {
        let sql = include_str!("../queries/subscription_log_purge.sql");
        let mut removed = 0;
        loop {
            let make = || {
                sqlx::query(sql)
                    .bind(id.get())
                    .bind(PgTimestamptz::clamped(since))
                    .bind(rows(PORTION))
            };
            let portion = |row: &PgRow| Ok((number(row, 0)?, row.try_get::<bool, _>(1)?));
            let portions = self.change(ACTION, make, portion).await?;
            removed += portions.iter().map(|(events, _)| events).sum::<u64>();
            if portions.iter().all(|(_, may_have_more)| !may_have_more) {
                return Ok(removed);
            }
        }
    }

    /// Deletes executions that still match, and returns their IDs and the deleted rows. A dry run
    /// only counts.
    async fn remove(
        &self,
        purge: &Purge,
        going: &[i64],
    ) -> Result<(Vec<i64>, PurgeCounts), StoreError> {
        let at = |time: Option<Timestamp>| {
            PgTimestamptz::clamped(time.unwrap_or(Timestamp::from_micros(i64::MIN)))
        };
        let answer = if purge.dry_run {
            let sql = include_str!("../queries/execution_purge_counts.sql");
            let make =
                || sqlx::query(sql).bind(going).bind(at(purge.commands)).bind(at(purge.expired));
            self.one(ACTION, make, gone).await?
        } else {
            let sql = include_str!("../queries/execution_purge.sql");
            let make = || sqlx::query(sql).bind(going).bind(at(Some(purge.since)));
            self.change(ACTION, make, gone).await?.into_iter().next()
        };
        Ok(answer.unwrap_or_default())
    }
}

/// Returns the name of a partition in reports, which is the same for both tables of the event log.
fn reported_name(partition: &str) -> String {
    partition.replacen("event_append_", "event_", 1)
}

fn aged(row: &PgRow) -> Result<(ExecutionId, ExecutionAge), sqlx::Error> {
    let age = ExecutionAge {
        updated_at: row.try_get::<PgTimestamptz, _>(1)?.0,
        is_live: row.try_get(2)?,
        is_awaited: row.try_get(3)?,
    };
    Ok((ExecutionId::new(row.try_get(0)?), age))
}

fn log_of_subscription(
    row: &PgRow,
) -> Result<(ExecutionId, SubscriptionState, Timestamp, u64), sqlx::Error> {
    let state = parsed(row, 1, SubscriptionState::from_text)?;
    let updated_at = row.try_get::<PgTimestamptz, _>(2)?.0;
    Ok((ExecutionId::new(row.try_get(0)?), state, updated_at, number(row, 3)?))
}

fn gone(row: &PgRow) -> Result<(Vec<i64>, PurgeCounts), sqlx::Error> {
    let ids: Vec<i64> = row.try_get(0)?;
    let removed = PurgeCounts {
        executions: u64::try_from(ids.len()).unwrap_or(u64::MAX),
        events: number(row, 1)?,
        commands: number(row, 2)?,
        snapshots: number(row, 3)?,
        references: number(row, 4)?,
        variables: number(row, 5)?,
        results: number(row, 6)?,
        keychain: number(row, 7)?,
        lines: number(row, 8)?,
        ..PurgeCounts::default()
    };
    Ok((ids, removed))
}
