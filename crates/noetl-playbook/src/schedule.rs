//! Schedule documents: run times of a playbook, and handling of missed and overlapping runs.
//!
//! [`crate::check_schedule`] decodes a document into this form. Run times depend only on the
//! document and on the time passed in; this module does not read a clock.

mod calendar;
mod cron;

use std::time::Duration;

use noetl_model::{Map, Timestamp};

pub use calendar::{Zone, zone_names};
pub use cron::{Cron, CronError};

/// Default time zone of a cron expression.
pub const ZONE: &str = "UTC";

#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Name of the schedule. Defaults to the path.
    pub name: String,
    /// Catalog path of the document.
    pub path: String,
    /// Path of the playbook to start.
    pub playbook: String,
    /// Version of the playbook. `None` for the newest.
    pub version: Option<u32>,
    pub when: Trigger,
    /// Handling of missed runs. Default: make up for one of them.
    pub missed: MissedRunPolicy,
    /// Handling of a run that is due while an earlier one is unfinished. Default: both run.
    pub overlap: OverlapPolicy,
    /// Whether the schedule is enabled, if the document specifies it.
    pub enabled: Option<bool>,
    pub payload: Map,
    /// Worker pool of started executions.
    pub execution_pool: Option<String>,
}

/// Run times of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// At the times of a cron expression, in local time of a zone.
    Cron { cron: Cron, zone: Zone },
    /// At a fixed interval, independent of local time.
    Every {
        /// Interval between runs in seconds.
        seconds: u32,
    },
    /// A single run at a fixed time.
    Once {
        /// Time of the run. May be in the past.
        at: Timestamp,
    },
}

impl Trigger {
    /// Returns the first run of a schedule created at `now`. The time of a single run may be in the
    /// past.
    pub fn first(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { cron, zone } => calendar::after(cron, zone, now),
            Self::Every { seconds } => Some(now.plus(Duration::from_secs((*seconds).into()))),
            Self::Once { at } => Some(*at),
        }
    }

    /// Returns the first run after `after` of a schedule whose previous run was due at `due`, or
    /// `None` if no run follows.
    pub fn next(&self, due: Timestamp, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { cron, zone } => calendar::after(cron, zone, after.max(due)),
            Self::Every { seconds } => {
                let step = i64::from((*seconds).max(1)) * 1_000_000;
                let past = after.max(due).as_micros().checked_sub(due.as_micros())?;
                let ahead = (past / step + 1).checked_mul(step)?;
                due.as_micros().checked_add(ahead).map(Timestamp::from_micros)
            }
            Self::Once { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedRunPolicy {
    /// Skips all missed runs.
    Skip,
    /// Makes up for a single run, regardless of how many were missed.
    #[default]
    One,
    /// Makes up for all missed runs, one after another.
    All,
}

impl MissedRunPolicy {
    /// All values as written in documents.
    pub const WORDS: &'static [&'static str] = &["skip", "one", "all"];

    /// Parses the value as written in documents.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Skip, Self::One, Self::All].into_iter().find(|word| word.as_str() == text)
    }

    /// Returns the value as written in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::One => "one",
            Self::All => "all",
        }
    }
}

/// Handling of a run that is due while an earlier one is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverlapPolicy {
    /// Starts the run; both proceed.
    #[default]
    Allow,
    /// Skips the new run.
    Skip,
    /// Delays the new run until the earlier one ends.
    Queue,
    /// Cancels the earlier execution and starts the new run.
    CancelPrevious,
}

impl OverlapPolicy {
    /// All values as written in documents.
    pub const WORDS: &'static [&'static str] = &["allow", "skip", "queue", "cancel_previous"];

    /// Parses the value as written in documents.
    pub fn from_text(text: &str) -> Option<Self> {
        let all = [Self::Allow, Self::Skip, Self::Queue, Self::CancelPrevious];
        all.into_iter().find(|word| word.as_str() == text)
    }

    /// Returns the value as written in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::CancelPrevious => "cancel_previous",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_late_run_does_not_shift_an_interval() {
        let every = Trigger::Every { seconds: 10 };
        assert_eq!(every.first(at(3)), Some(at(13)));
        for (after, next) in [(0, 23), (13, 23), (22, 23), (23, 33), (3613, 3623)] {
            assert_eq!(every.next(at(13), at(after)), Some(at(next)), "{after}");
        }
        assert_eq!(every.next(at(13), Timestamp::from_micros(i64::MAX)), None);
    }

    #[test]
    fn a_one_time_schedule_has_no_next_run() {
        let once = Trigger::Once { at: at(5) };
        assert_eq!((once.first(at(9)), once.next(at(5), at(5))), (Some(at(5)), None));
    }

    #[test]
    fn every_policy_name_survives_a_round_trip() {
        for word in MissedRunPolicy::WORDS {
            assert_eq!(MissedRunPolicy::from_text(word).map(MissedRunPolicy::as_str), Some(*word));
        }
        for word in OverlapPolicy::WORDS {
            assert_eq!(OverlapPolicy::from_text(word).map(OverlapPolicy::as_str), Some(*word));
        }
        assert_eq!(
            (MissedRunPolicy::from_text(""), OverlapPolicy::from_text("Allow")),
            (None, None)
        );
    }
}
