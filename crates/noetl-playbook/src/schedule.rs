//! Schedule documents: when a playbook is started, and what happens to starts that are late.
//!
//! A document is read as a whole by [`crate::check_schedule`]; this is what it means. Times follow
//! from what is said and from the time that is given; no clock is read here.

mod calendar;
mod cron;

use std::time::Duration;

use noetl_model::{Map, Timestamp};

pub use calendar::{Zone, zone_names};
pub use cron::{Cron, CronError};

/// The time zone of a cron expression that names none.
pub const ZONE: &str = "UTC";

/// A checked schedule document.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// What it is called.
    pub name: String,
    /// Where the catalog keeps it.
    pub path: String,
    /// The playbook it starts.
    pub playbook: String,
    /// That playbook's version; the newest when none is given.
    pub version: Option<u32>,
    pub when: When,
    /// What happens to runs nobody was there for. Default: one of them is made up for.
    pub missed: Missed,
    /// What happens while an earlier run still runs. Default: both run.
    pub overlap: Overlap,
    /// Whether it runs at all, where that is said.
    pub enabled: Option<bool>,
    /// What executions are started with.
    pub payload: Map,
    /// Which pool runs them.
    pub execution_pool: Option<String>,
}

/// When a schedule runs.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// At the times of a cron expression, as clocks of a place show them.
    Cron { cron: Cron, zone: Zone },
    /// So often, whatever clocks show.
    Every {
        /// Seconds from one run to the next.
        seconds: u32,
    },
    /// Once.
    Once {
        /// Then.
        at: Timestamp,
    },
}

impl When {
    /// The first run of a schedule that is made now. One that is to run once may be late already.
    pub fn first(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { cron, zone } => calendar::after(cron, zone, now),
            Self::Every { seconds } => Some(now.plus(Duration::from_secs((*seconds).into()))),
            Self::Once { at } => Some(*at),
        }
    }

    /// The first run after a time, of a schedule that had one at `due`. Without one there is none
    /// any more.
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

/// What happens to runs that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// They are left out.
    Skip,
    /// One is made up for, whatever their number.
    #[default]
    One,
    /// All of them are made up for, one after the other.
    All,
}

impl Missed {
    /// Every word, as it is written.
    pub const WORDS: &'static [&'static str] = &["skip", "one", "all"];

    /// What is written so.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Skip, Self::One, Self::All].into_iter().find(|word| word.as_str() == text)
    }

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::One => "one",
            Self::All => "all",
        }
    }
}

/// What happens when a run is due and an earlier one still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// Both run.
    #[default]
    Allow,
    /// The new one is left out.
    Skip,
    /// The new one waits.
    Queue,
    /// The earlier one is cancelled.
    CancelPrevious,
}

impl Overlap {
    /// Every word, as it is written.
    pub const WORDS: &'static [&'static str] = &["allow", "skip", "queue", "cancel_previous"];

    /// What is written so.
    pub fn from_text(text: &str) -> Option<Self> {
        let all = [Self::Allow, Self::Skip, Self::Queue, Self::CancelPrevious];
        all.into_iter().find(|word| word.as_str() == text)
    }

    /// As it is written.
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
    fn an_interval_keeps_its_step_however_late_it_is() {
        let every = When::Every { seconds: 10 };
        assert_eq!(every.first(at(3)), Some(at(13)));
        for (after, next) in [(0, 23), (13, 23), (22, 23), (23, 33), (3613, 3623)] {
            assert_eq!(every.next(at(13), at(after)), Some(at(next)), "{after}");
        }
        assert_eq!(every.next(at(13), Timestamp::from_micros(i64::MAX)), None);
    }

    #[test]
    fn what_runs_once_has_no_next_run() {
        let once = When::Once { at: at(5) };
        assert_eq!((once.first(at(9)), once.next(at(5), at(5))), (Some(at(5)), None));
    }

    #[test]
    fn every_word_is_read_back() {
        for word in Missed::WORDS {
            assert_eq!(Missed::from_text(word).map(Missed::as_str), Some(*word));
        }
        for word in Overlap::WORDS {
            assert_eq!(Overlap::from_text(word).map(Overlap::as_str), Some(*word));
        }
        assert_eq!((Missed::from_text(""), Overlap::from_text("Allow")), (None, None));
    }
}
