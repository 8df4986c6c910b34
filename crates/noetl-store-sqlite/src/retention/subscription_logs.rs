//! Purges event logs of ended subscriptions.

use noetl_model::{SubscriptionId, Timestamp};
use noetl_store::retention::{PartitionTally, PurgeDecision};
use noetl_store::{StoreError, SubscriptionState};
use rusqlite::Row;

use super::{ACTION, PurgeRun};
use crate::SqliteStore;
use crate::column::{count, parsed};
use crate::encoded_append::rows;

/// Number of rows per transaction, which takes the writer a few milliseconds.
const PORTION: usize = 1000;

/// Statements that delete rows of a log: `?1` is the subscription, `?2` the time by which it must have
/// ended, and `?3` the maximum number of rows.
const ROWS: &str = include_str!("../../queries/row_subscription_purge.sql");
const APPENDS: &str = include_str!("../../queries/append_subscription_purge.sql");
const LOOKUP: &str = include_str!("../../queries/lookup_subscription_purge.sql");

/// A subscription with an event log.
struct Log {
    of: SubscriptionId,
    state: SubscriptionState,
    updated_at: Timestamp,
    events: u64,
}

impl SqliteStore {
    /// Deletes event logs of ended subscriptions, and returns the number of events. A dry run only
    /// counts.
    pub(super) async fn logs_of_subscriptions(
        &self,
        run: &PurgeRun,
        tally: &mut PartitionTally,
    ) -> Result<u64, StoreError> {
        let Some(since) = run.policy.executions.since(run.now) else { return Ok(0) };
        let logs = self.read(ACTION, |connection| {
            let sql = include_str!("../../queries/subscription_logs.sql");
            let mut read = connection.prepare_cached(sql)?;
            read.query_map([], log)?.collect()
        });
        let logs: Vec<Log> = logs.await?;
        let mut removed = 0;
        for log in logs {
            let fate = PurgeDecision::of_subscription(log.state, log.updated_at, since);
            tally.note(log.of.log(), fate);
            match fate {
                PurgeDecision::Goes if run.dry_run => removed += log.events,
                PurgeDecision::Goes => removed += self.remove_log(log.of, since).await?,
                _ => {}
            }
        }
        Ok(removed)
    }

    /// Deletes the event log of a subscription if it is still ended, and returns the number of
    /// events.
    async fn remove_log(&self, of: SubscriptionId, since: Timestamp) -> Result<u64, StoreError> {
        let mut removed = 0;
        for (sql, is_counted) in [(ROWS, true), (APPENDS, true), (LOOKUP, false)] {
            loop {
                let portion = self.write(ACTION, move |connection, _| {
                    let mut delete = connection.prepare_cached(sql)?;
                    delete.execute((of.get(), since.as_micros(), rows(PORTION)))
                });
                let portion = portion.await?;
                if is_counted {
                    removed += u64::try_from(portion).unwrap_or(u64::MAX);
                }
                if portion < PORTION {
                    break;
                }
            }
        }
        Ok(removed)
    }
}

fn log(row: &Row<'_>) -> rusqlite::Result<Log> {
    Ok(Log {
        of: SubscriptionId::new(row.get(0)?),
        state: parsed(row, 1, SubscriptionState::from_text)?,
        updated_at: Timestamp::from_micros(row.get(2)?),
        events: count(row, 3)?,
    })
}
