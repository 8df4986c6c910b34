//! Retention: what is removed when it is old enough, table by table.
//!
//! Every table that grows has a [`Window`]. Nothing unfinished is ever touched, whatever the policy
//! says: no execution that can still move, no subscription, and no log of one that is not
//! deactivated. Rows that wait for a delivery are not part of it, because they go when they are
//! delivered.

mod fate;
mod window;

use async_trait::async_trait;
use serde::Serialize;

pub use self::fate::{Age, Fate, Partition, Tally, partition_of};
pub use self::window::{DAYS_MAX, OutOfRange, Window};
use crate::StoreError;

/// How long what is kept. A window begins at the last time a row was of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Finished executions with everything they have, since their last event. Imported ones, which
    /// nothing here drives, count as finished. The logs of deactivated subscriptions go by it too,
    /// since their deactivation.
    pub executions: Window,
    /// Commands of finished executions, since they ended.
    pub commands: Window,
    /// Worker pools, since their last heartbeat. Servers and brokers stay.
    pub runtimes: Window,
    /// Published rows of the outbox, since they were published. Others stay, however old.
    pub outbox: Window,
    /// Messages that subscriptions have seen. Not shorter than the longest window of any
    /// subscription, or its repeats are taken for new ones.
    pub dedup: Window,
    /// Uses of secrets.
    pub audit: Window,
    /// Whether secrets, variables and results go that have expired by themselves.
    pub expired: bool,
}

impl Policy {
    /// A policy by which everything stays.
    pub const KEEP: Self = Self {
        executions: Window::KEEP,
        commands: Window::KEEP,
        runtimes: Window::KEEP,
        outbox: Window::KEEP,
        dedup: Window::KEEP,
        audit: Window::KEEP,
        expired: false,
    };
}

impl Default for Policy {
    /// Executions stay for good. What only serves operation goes after a week, which is time enough
    /// to look into a bad one; the audit after a quarter of a year.
    fn default() -> Self {
        Self {
            executions: Window::KEEP,
            commands: Window::of_days(7),
            runtimes: Window::of_minutes(60),
            outbox: Window::of_days(7),
            dedup: Window::of_days(7),
            audit: Window::of_days(90),
            expired: true,
        }
    }
}

/// How many rows went, by table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Removed {
    /// Executions.
    pub executions: u64,
    /// Events of their logs.
    pub events: u64,
    /// Commands.
    pub commands: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// References to content. The content itself is for [`crate::collect`].
    pub references: u64,
    /// Variables.
    pub variables: u64,
    /// Results.
    pub results: u64,
    /// Lines that steps printed.
    pub lines: u64,
    /// Resolved secrets.
    pub keychain: u64,
    /// Worker pools.
    pub runtimes: u64,
    /// Rows of the outbox.
    pub outbox: u64,
    /// Messages of subscriptions.
    pub dedup: u64,
    /// Uses of secrets.
    pub audit: u64,
}

impl Removed {
    /// Counts what another portion removed.
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

/// A part of the log that still holds executions, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Name of the partition, or of the calendar quarter in a store without partitions, as
    /// `event_2026_q4`.
    pub partition: String,
    /// What keeps it, as `2 executions are unfinished`.
    pub reason: String,
}

/// What a purge did, or in a dry run would have done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// The rows that went.
    pub removed: Removed,
    /// Partitions that were dropped, in the order of time. In a store without partitions: calendar
    /// quarters that are over and whose executions went.
    pub dropped: Vec<String>,
    /// Parts of the log that hold executions still, in the order of time. Empty when the policy
    /// keeps executions, because then nothing was looked at.
    pub kept: Vec<Kept>,
}

/// Removes what a policy lets go.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Removes what the policy lets go, of every tenant, and says what went and what stayed.
    ///
    /// It goes in portions, each durable by itself, so that writers never wait long; a purge that
    /// is cut short is finished by the next. An execution goes whole: from the portion that takes
    /// its row on it does not exist, and a late append to it is a conflict at the start. Its events
    /// that still wait to be published are published all the same, and the newest event id and
    /// positions never go back. A dry run changes nothing and answers the same report.
    async fn purge(&self, policy: &Policy, dry_run: bool) -> Result<Report, StoreError>;
}
