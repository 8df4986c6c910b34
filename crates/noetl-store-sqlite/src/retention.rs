//! Purges old data in batches.
//!
//! A read connection searches for rows to delete, page by page. The writer deletes each batch in
//! its own transaction, which checks again all conditions that may have changed. Appends therefore
//! wait for at most one batch. An execution is deleted in two steps: its row moves to
//! `purged_execution`, from which time it no longer exists; then its rows in other tables are
//! deleted, in any number of batches. A purge starts with the second step for executions of an
//! interrupted purge.

mod logs;
mod remains;
mod subscription_logs;
mod sweep;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Timestamp};
use noetl_store::StoreError;
use noetl_store::retention::{
    ExecutionAge, PartitionTally, PurgeCounts, PurgeDecision, PurgeReport, RetentionPolicy,
    RetentionStore,
};
use rusqlite::{OptionalExtension, Row};

use self::sweep::Sweep;
use crate::SqliteStore;
use crate::encoded_append::rows;

const ACTION: &str = "purge";

/// Number of rows per page, and of executions that are purged in one transaction.
const PAGE: usize = 500;

/// Parameters of a purge, with its single current time.
#[derive(Debug, Clone, Copy)]
struct PurgeRun {
    policy: RetentionPolicy,
    now: Timestamp,
    dry_run: bool,
}

/// An execution of a page.
struct Aged {
    id: ExecutionId,
    tenant: String,
    age: ExecutionAge,
}

#[async_trait]
impl RetentionStore for SqliteStore {
    async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<PurgeReport, StoreError> {
        let run = PurgeRun { policy: *policy, now: self.clock().now(), dry_run };
        let mut removed = PurgeCounts::default();
        self.remains(&run, &mut removed).await?;
        // Sweep rows by their own age first, so that a dry run counts them there, too.
        self.sweep_all(&run, &mut removed).await?;
        removed.commands += self.commands_of_age(&run).await?;
        let mut tally = PartitionTally::default();
        self.executions_of_age(&run, &mut tally, &mut removed).await?;
        removed.events += self.logs_of_subscriptions(&run, &mut tally).await?;
        let dropped = policy.executions.since(run.now).map(|since| tally.dropped(since));
        Ok(PurgeReport { removed, dropped: dropped.unwrap_or_default(), kept: tally.kept() })
    }
}

impl SqliteStore {
    async fn sweep_all(&self, run: &PurgeRun, removed: &mut PurgeCounts) -> Result<(), StoreError> {
        let RetentionPolicy { runtimes, outbox, dedup, audit, expired, .. } = run.policy;
        let expired = expired.then_some(run.now);
        for (sweep, since, count) in [
            (Sweep::RUNTIMES, runtimes.since(run.now), &mut removed.runtimes),
            (Sweep::OUTBOX, outbox.since(run.now), &mut removed.outbox),
            (Sweep::DEDUP, dedup.since(run.now), &mut removed.dedup),
            (Sweep::AUDIT, audit.since(run.now), &mut removed.audit),
            (Sweep::KEYCHAIN, expired, &mut removed.keychain),
            (Sweep::VARIABLES, expired, &mut removed.variables),
            (Sweep::RESULTS, expired, &mut removed.results),
        ] {
            if let Some(since) = since {
                *count += self.sweep(sweep, since, run.dry_run).await?;
            }
        }
        Ok(())
    }

    /// Deletes commands by their own age, and returns their number.
    async fn commands_of_age(&self, run: &PurgeRun) -> Result<u64, StoreError> {
        let Some(since) = run.policy.commands.since(run.now) else { return Ok(0) };
        let (mut after, mut removed) = (i64::MIN, 0);
        loop {
            let page = self.read(ACTION, move |connection| {
                let sql = include_str!("../queries/command_ages.sql");
                let mut read = connection.prepare_cached(sql)?;
                let row = |row: &Row<'_>| {
                    let goes: Option<bool> = row.get(1)?;
                    Ok((row.get(0)?, goes.unwrap_or(false)))
                };
                let found = read.query_map((after, since.as_micros(), rows(PAGE)), row)?;
                found.collect::<rusqlite::Result<Vec<(i64, bool)>>>()
            });
            let page = page.await?;
            let Some(&(last, _)) = page.last() else { return Ok(removed) };
            after = last;
            let old: Vec<i64> = page.iter().filter(|(_, goes)| *goes).map(|(id, _)| *id).collect();
            removed += u64::try_from(old.len()).unwrap_or(u64::MAX);
            if !run.dry_run && !old.is_empty() {
                self.write(ACTION, move |connection, _| {
                    let mut delete =
                        connection.prepare_cached("delete from command where id = ?1")?;
                    old.iter().try_for_each(|id| delete.execute([id]).map(|_| ()))
                })
                .await?;
            }
        }
    }

    async fn executions_of_age(
        &self,
        run: &PurgeRun,
        tally: &mut PartitionTally,
        removed: &mut PurgeCounts,
    ) -> Result<(), StoreError> {
        let Some(since) = run.policy.executions.since(run.now) else { return Ok(()) };
        let mut after = i64::MIN;
        loop {
            let page = self.ages(after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id.get();
            let mut going = Vec::new();
            for execution in page {
                match execution.age.fate(since) {
                    PurgeDecision::Goes => going.push(execution),
                    stays => tally.note(execution.id, stays),
                }
            }
            if going.is_empty() {
                continue;
            }
            if run.dry_run {
                for execution in going {
                    tally.note(execution.id, PurgeDecision::Goes);
                    removed.executions += 1;
                    removed.add(&self.belongings(run, execution.id, execution.tenant).await?);
                }
            } else {
                for (id, is_gone) in self.leave(going, since).await? {
                    // An execution that advanced since the page was read has a recent event.
                    tally.note(
                        id,
                        if is_gone { PurgeDecision::Goes } else { PurgeDecision::Recent },
                    );
                    removed.executions += u64::from(is_gone);
                }
                self.remains(run, removed).await?;
            }
        }
    }

    async fn ages(&self, after: i64) -> Result<Vec<Aged>, StoreError> {
        self.read(ACTION, move |connection| {
            let sql = include_str!("../queries/execution_ages.sql");
            let mut read = connection.prepare_cached(sql)?;
            read.query_map((after, rows(PAGE)), aged)?.collect()
        })
        .await
    }

    /// Runs the first step of a purge: the executions no longer exist. Returns whether each was
    /// purged.
    async fn leave(
        &self,
        going: Vec<Aged>,
        since: Timestamp,
    ) -> Result<Vec<(ExecutionId, bool)>, StoreError> {
        self.write(ACTION, move |connection, _| {
            let sql = include_str!("../queries/execution_purge.sql");
            let mut purge = connection.prepare_cached(sql)?;
            let sql = "insert or ignore into purged_execution values (?1, ?2)";
            let mut note = connection.prepare_cached(sql)?;
            let mut left = Vec::with_capacity(going.len());
            for Aged { id, .. } in going {
                let tenant = purge.query_row((id.get(), since.as_micros()), |row| row.get(0));
                let tenant: Option<String> = tenant.optional()?;
                if let Some(tenant) = &tenant {
                    note.execute((id.get(), tenant))?;
                }
                left.push((id, tenant.is_some()));
            }
            Ok(left)
        })
        .await
    }
}

fn aged(row: &Row<'_>) -> rusqlite::Result<Aged> {
    Ok(Aged {
        id: ExecutionId::new(row.get(0)?),
        tenant: row.get(1)?,
        age: ExecutionAge {
            updated_at: Timestamp::from_micros(row.get(2)?),
            is_live: row.get(3)?,
            is_awaited: row.get(4)?,
        },
    })
}
