//! Which executions a purge takes, and how their calendar quarters stand after it. Every store asks
//! these functions.

use std::collections::BTreeMap;

use noetl_model::{ExecutionId, Snowflakes, Timestamp};

use super::Kept;
use crate::SubscriptionState;

/// What decides on an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    /// Whether something can still move it: it has not ended, and was started here.
    pub is_live: bool,
    /// Whether something it sent still waits for its delivery.
    pub is_awaited: bool,
    /// The time of its newest event.
    pub updated_at: Timestamp,
}

impl Age {
    /// What becomes of it when executions last of use at `since` or earlier go.
    pub fn fate(&self, since: Timestamp) -> Fate {
        if self.is_live {
            Fate::Unfinished
        } else if self.updated_at > since {
            Fate::Recent
        } else if self.is_awaited {
            Fate::Awaited
        } else {
            Fate::Goes
        }
    }
}

/// What becomes of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes.
    Goes,
    /// It stays: it can still move.
    Unfinished,
    /// It stays: its newest event is within the window.
    Recent,
    /// It stays: something it sent is not delivered yet.
    Awaited,
    /// It stays: it is the log of a subscription that is not deactivated, or was a short time ago.
    Subscribed,
}

impl Fate {
    /// What becomes of the log of a subscription in this state since `updated_at`.
    pub fn of_subscription(
        state: SubscriptionState,
        updated_at: Timestamp,
        since: Timestamp,
    ) -> Self {
        if state == SubscriptionState::Deactivated && updated_at <= since {
            Self::Goes
        } else {
            Self::Subscribed
        }
    }
}

/// The part of the log an execution is in: the calendar quarter its id was minted in.
pub fn partition_of(execution: ExecutionId) -> String {
    name(Snowflakes::time_of(execution.get()).quarter())
}

fn name(quarter: Option<(i16, i8)>) -> String {
    match quarter {
        Some((year, quarter)) => format!("event_{year}_q{quarter}"),
        // Of an id that no clock of ours minted.
        None => "event_default".to_owned(),
    }
}

/// Counts fates by quarter.
#[derive(Debug, Default)]
pub struct Tally(BTreeMap<Option<(i16, i8)>, Quarter>);

#[derive(Debug, Default)]
struct Quarter {
    gone: u64,
    unfinished: u64,
    recent: u64,
    awaited: u64,
    subscribed: u64,
}

impl Tally {
    /// Notes the fate of an execution.
    pub fn note(&mut self, execution: ExecutionId, fate: Fate) {
        let quarter = Snowflakes::time_of(execution.get()).quarter();
        let quarter = self.0.entry(quarter).or_default();
        let count = match fate {
            Fate::Goes => &mut quarter.gone,
            Fate::Unfinished => &mut quarter.unfinished,
            Fate::Recent => &mut quarter.recent,
            Fate::Awaited => &mut quarter.awaited,
            Fate::Subscribed => &mut quarter.subscribed,
        };
        *count += 1;
    }

    /// The quarters that hold nothing any more, and those that do, both in the order of time.
    pub fn finish(self) -> (Vec<String>, Vec<Kept>) {
        let (mut dropped, mut kept) = (Vec::new(), Vec::new());
        for (quarter, counts) in self.0 {
            let partition = name(quarter);
            match counts.reason() {
                Some(reason) => kept.push(Kept { partition, reason }),
                None => dropped.push(partition),
            }
        }
        (dropped, kept)
    }
}

impl Quarter {
    fn reason(&self) -> Option<String> {
        let said = |count: u64, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 execution {one}")),
            _ => Some(format!("{count} executions {many}")),
        };
        let subscribed = match self.subscribed {
            0 => None,
            1 => Some("1 subscription keeps its log".to_owned()),
            count => Some(format!("{count} subscriptions keep their logs")),
        };
        let reasons = [
            said(self.unfinished, "is unfinished", "are unfinished"),
            said(self.recent, "has events within the window", "have events within the window"),
            said(self.awaited, "waits for a delivery", "wait for a delivery"),
            subscribed,
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first id of a quarter, as the published layout of partitions has it.
    const Q4_2026: i64 = 363_837_417_062_400_000;

    #[test]
    fn a_partition_is_named_after_its_quarter() {
        let name = |id| partition_of(ExecutionId::new(id));
        assert_eq!(name(Q4_2026 - 1), "event_2026_q3");
        assert_eq!(name(Q4_2026), "event_2026_q4");
        assert_eq!(name(397_177_100_697_600_000), "event_2027_q1");
        assert_eq!(name(0), "event_2024_q1");
        assert_eq!(name(i64::MIN), "event_1954_q2");
    }

    #[test]
    fn quarters_are_told_in_the_order_of_time_with_every_reason() {
        let mut tally = Tally::default();
        tally.note(ExecutionId::new(1), Fate::Goes);
        for fate in [
            Fate::Goes,
            Fate::Unfinished,
            Fate::Unfinished,
            Fate::Recent,
            Fate::Awaited,
            Fate::Subscribed,
        ] {
            tally.note(ExecutionId::new(Q4_2026), fate);
        }
        let (dropped, kept) = tally.finish();
        assert_eq!(dropped, ["event_2024_q1"]);
        let reason = "2 executions are unfinished, 1 execution has events within the window, \
                      1 execution waits for a delivery, 1 subscription keeps its log";
        assert_eq!(kept, [Kept { partition: "event_2026_q4".into(), reason: reason.into() }]);
    }
}
