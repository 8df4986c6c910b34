//! Retention: removes old rows, table by table.
//!
//! Every table that grows has a [`RetentionWindow`]. Unfinished work is never removed, whatever the policy:
//! no execution that can still advance, no subscription, and no log of a subscription that is not
//! deactivated. Timers are not subject to retention, because they are deleted on delivery.

mod decision;
mod window;

use async_trait::async_trait;
use serde::Serialize;

pub use self::decision::{ExecutionAge, Partition, PartitionTally, PurgeDecision, partition_of};
pub use self::window::{DAYS_MAX, OutOfRange, RetentionWindow};
use crate::StoreError;

/// Retention times by table. A window starts at the time a row was last in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Window of finished executions with all their data, since their last event. Imported
    /// executions count as finished. Also applies to the logs of deactivated subscriptions, since
    /// their deactivation. Default unlimited.
    pub executions: RetentionWindow,
    /// Window of commands of finished executions, since they ended. Default 7 days.
    pub commands: RetentionWindow,
    /// Window of worker pools, since their last heartbeat. Servers and brokers stay. Default 60
    /// minutes.
    pub runtimes: RetentionWindow,
    /// Window of published outbox rows, since their publication. Others stay, however old. Default
    /// 7 days.
    pub outbox: RetentionWindow,
    /// Window of the dedup keys of subscriptions' messages. Must not be shorter than the longest
    /// window of any subscription; otherwise repeated messages count as new. Default 7 days.
    pub dedup: RetentionWindow,
    /// Window of the audit log of secret uses. Default 90 days.
    pub audit: RetentionWindow,
    /// Whether to remove expired secrets, variables, and results. Default `true`.
    pub expired: bool,
}

impl RetentionPolicy {
    /// Policy that removes nothing.
    pub const KEEP: Self = Self {
        executions: RetentionWindow::KEEP,
        commands: RetentionWindow::KEEP,
        runtimes: RetentionWindow::KEEP,
        outbox: RetentionWindow::KEEP,
        dedup: RetentionWindow::KEEP,
        audit: RetentionWindow::KEEP,
        expired: false,
    };
}

impl Default for RetentionPolicy {
    /// Returns the default policy. Executions stay forever. Most operational data stays for a week,
    /// long enough to investigate an incident; worker pools for an hour, and the audit log for 90
    /// days.
    fn default() -> Self {
        Self {
            executions: RetentionWindow::KEEP,
            commands: RetentionWindow::of_days(7),
            runtimes: RetentionWindow::of_minutes(60),
            outbox: RetentionWindow::of_days(7),
            dedup: RetentionWindow::of_days(7),
            audit: RetentionWindow::of_days(90),
            expired: true,
        }
    }
}

/// Number of removed rows by table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PurgeCounts {
    pub executions: u64,
    /// Number of events removed from event logs.
    pub events: u64,
    pub commands: u64,
    pub snapshots: u64,
    /// Number of blob references removed. [`crate::collect_garbage`] removes the blobs themselves.
    pub references: u64,
    pub variables: u64,
    pub results: u64,
    /// Number of step log lines removed.
    pub lines: u64,
    /// Number of keychain entries removed.
    pub keychain: u64,
    /// Number of worker pools removed.
    pub runtimes: u64,
    /// Number of outbox rows removed.
    pub outbox: u64,
    /// Number of dedup keys removed.
    pub dedup: u64,
    /// Number of audited secret uses removed.
    pub audit: u64,
}

impl PurgeCounts {
    /// Adds the counts of another batch.
    pub fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.events += other.events;
        self.commands += other.commands;
        self.snapshots += other.snapshots;
        self.references += other.references;
        self.variables += other.variables;
        self.results += other.results;
        self.lines += other.lines;
        self.keychain += other.keychain;
        self.runtimes += other.runtimes;
        self.outbox += other.outbox;
        self.dedup += other.dedup;
        self.audit += other.audit;
    }
}

/// A partition of the event log that still contains executions, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RetainedPartition {
    /// Name of the partition, or of the calendar quarter in a store without partitions, such as
    /// `event_2026_q4`.
    pub partition: String,
    /// Reason that the partition is retained, such as `2 executions are unfinished`.
    pub reason: String,
}

/// Report of a purge or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PurgeReport {
    /// Number of removed rows by table.
    pub removed: PurgeCounts,
    /// Dropped partitions, in chronological order. In a store without partitions: past calendar
    /// quarters whose executions were all removed.
    pub dropped: Vec<String>,
    /// Partitions that still contain executions, in chronological order. Empty if the policy
    /// retains executions, because then none are examined.
    pub kept: Vec<RetainedPartition>,
}

/// Removes rows that a policy no longer retains.
#[async_trait]
pub trait RetentionStore: Send + Sync {
    /// Removes rows of all tenants that the policy no longer retains, and reports removed and
    /// retained ones.
    ///
    /// Works in batches, each durable by itself, so that writers never wait long; the next purge
    /// completes an interrupted one. An execution is removed as a whole: after the batch that
    /// removes its row it does not exist, and a late append to it conflicts at
    /// [`Seq::START`](noetl_model::Seq::START). Its unpublished events are still published, and the
    /// newest event ID and positions never go back. A dry run returns the same report without
    /// changing anything.
    async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<PurgeReport, StoreError>;
}
