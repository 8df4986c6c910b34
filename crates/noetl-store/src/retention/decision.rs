//! Decides which executions a purge removes, and summarizes the partitions after it. Every store
//! calls these functions.

use std::collections::BTreeMap;

use noetl_model::{ExecutionId, Snowflakes, Timestamp};

use super::RetainedPartition;
use crate::SubscriptionState;

/// Properties of an execution that decide whether it is purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionAge {
    /// Whether the engine can still advance the execution: it has not ended and was started here.
    pub is_live: bool,
    /// Whether a timer or message that the execution sent is undelivered.
    pub is_awaited: bool,
    /// Time of the newest event.
    pub updated_at: Timestamp,
}

impl ExecutionAge {
    /// Returns the decision for an execution if those last in use at or before `since` are purged.
    pub fn fate(&self, since: Timestamp) -> PurgeDecision {
        if self.is_live {
            PurgeDecision::Unfinished
        } else if self.updated_at > since {
            PurgeDecision::Recent
        } else if self.is_awaited {
            PurgeDecision::Awaited
        } else {
            PurgeDecision::Goes
        }
    }
}

/// Purge decision for an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeDecision {
    Goes,
    /// Retained: the engine can still advance the execution.
    Unfinished,
    /// Retained: the newest event is within the window.
    Recent,
    /// Retained: a timer or message that the execution sent is undelivered.
    Awaited,
    /// Retained: the log of a subscription that is not deactivated, or was deactivated within the
    /// window.
    Subscribed,
}

impl PurgeDecision {
    /// Returns the decision for the log of a subscription that has been in this state since
    /// `updated_at`.
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

/// Returns the name of an execution's partition: the calendar quarter in which its ID was minted.
pub fn partition_of(execution: ExecutionId) -> String {
    name(Snowflakes::time_of(execution.get()).quarter())
}

fn name(quarter: Option<(i16, i8)>) -> String {
    match quarter {
        Some((year, quarter)) => format!("event_{year}_q{quarter}"),
        // The ID was not minted by a clock of this system.
        None => "event_default".to_owned(),
    }
}

/// A partition of a stored log: the executions whose IDs are in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    pub name: String,
    /// First ID, or `None` if there is no bound.
    pub first: Option<i64>,
    /// First ID after the last one, or `None` if there is no bound.
    pub end: Option<i64>,
}

impl Partition {
    fn holds(&self, id: i64) -> bool {
        self.first.is_none_or(|first| first <= id) && self.end.is_none_or(|end| id < end)
    }
}

/// Counts decisions by partition, or by calendar quarter in a store without partitions.
#[derive(Debug, Default)]
pub struct PartitionTally {
    /// Partitions in chronological order. Empty in a store without partitions.
    partitions: Vec<Partition>,
    parts: BTreeMap<LogPartition, PartitionCounts>,
}

/// A partition or quarter, ordered chronologically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LogPartition {
    /// A calendar quarter, or `None` for an ID without a valid time.
    Quarter(Option<(i16, i8)>),
    Partition(usize),
    /// The default partition, for IDs outside all others.
    Default,
}

#[derive(Debug, Default)]
struct PartitionCounts {
    gone: u64,
    unfinished: u64,
    recent: u64,
    awaited: u64,
    subscribed: u64,
}

impl PartitionTally {
    /// Creates a tally of these partitions, which must be in chronological order.
    pub fn by_partition(partitions: Vec<Partition>) -> Self {
        Self { partitions, parts: BTreeMap::new() }
    }

    /// Counts the decision for an execution.
    pub fn note(&mut self, execution: ExecutionId, fate: PurgeDecision) {
        let counts = self.parts.entry(self.part(execution.get())).or_default();
        let count = match fate {
            PurgeDecision::Goes => &mut counts.gone,
            PurgeDecision::Unfinished => &mut counts.unfinished,
            PurgeDecision::Recent => &mut counts.recent,
            PurgeDecision::Awaited => &mut counts.awaited,
            PurgeDecision::Subscribed => &mut counts.subscribed,
        };
        *count += 1;
    }

    fn part(&self, id: i64) -> LogPartition {
        if self.partitions.is_empty() {
            return LogPartition::Quarter(Snowflakes::time_of(id).quarter());
        }
        let found = self.partitions.iter().position(|partition| partition.holds(id));
        found.map_or(LogPartition::Default, LogPartition::Partition)
    }

    /// Returns the quarters that ended before `since` and that are empty after the purge, in
    /// chronological order. A store without partitions reports them as dropped, because a store
    /// with partitions never drops one that may still receive executions.
    pub fn dropped(&self, since: Timestamp) -> Vec<String> {
        let is_dropped = |part: &LogPartition, counts: &PartitionCounts| match part {
            LogPartition::Quarter(Some(quarter)) => {
                counts.reason().is_none() && since.quarter().is_some_and(|now| *quarter < now)
            }
            LogPartition::Quarter(None) | LogPartition::Partition(_) | LogPartition::Default => {
                false
            }
        };
        let dropped = self.parts.iter().filter(|(part, counts)| is_dropped(part, counts));
        dropped.map(|(part, _)| self.name(*part)).collect()
    }

    /// Returns the partitions that still contain executions, in chronological order.
    pub fn kept(&self) -> Vec<RetainedPartition> {
        let kept = self.parts.iter().filter_map(|(part, counts)| {
            Some(RetainedPartition { partition: self.name(*part), reason: counts.reason()? })
        });
        kept.collect()
    }

    fn name(&self, part: LogPartition) -> String {
        match part {
            LogPartition::Quarter(quarter) => name(quarter),
            LogPartition::Partition(index) => self.partitions[index].name.clone(),
            LogPartition::Default => name(None),
        }
    }
}

impl PartitionCounts {
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
    fn quarters_are_listed_by_time_with_every_reason() {
        let mut tally = PartitionTally::default();
        tally.note(ExecutionId::new(1), PurgeDecision::Goes);
        for fate in [
            PurgeDecision::Goes,
            PurgeDecision::Unfinished,
            PurgeDecision::Unfinished,
            PurgeDecision::Recent,
            PurgeDecision::Awaited,
            PurgeDecision::Subscribed,
        ] {
            tally.note(ExecutionId::new(Q4_2026), fate);
        }
        assert_eq!(tally.dropped(Snowflakes::time_of(Q4_2026)), ["event_2024_q1"]);
        let reason = "2 executions are unfinished, 1 execution has events within the window, \
                      1 execution waits for a delivery, 1 subscription keeps its log";
        let partition = "event_2026_q4".into();
        assert_eq!(tally.kept(), [RetainedPartition { partition, reason: reason.into() }]);
    }

    #[test]
    fn a_quarter_is_dropped_when_it_is_over_and_not_before() {
        let mut tally = PartitionTally::default();
        tally.note(ExecutionId::new(Q4_2026), PurgeDecision::Goes);
        let q1_2027 = Snowflakes::time_of(397_177_100_697_600_000);
        let before = Timestamp::from_millis(q1_2027.as_millis() - 1);
        assert_eq!(tally.dropped(before), [] as [&str; 0]);
        assert_eq!(tally.dropped(q1_2027), ["event_2026_q4"]);
    }

    #[test]
    fn kept_partitions_have_their_own_names() {
        let partition = |name: &str, first, end| Partition { name: name.into(), first, end };
        let mut tally = PartitionTally::by_partition(vec![
            partition("event_before_2026_q4", None, Some(Q4_2026)),
            partition("event_2026_q4", Some(Q4_2026), Some(Q4_2026 + 100)),
        ]);
        for id in [i64::MIN, 1, Q4_2026 - 1, Q4_2026, Q4_2026 + 99, Q4_2026 + 100] {
            tally.note(ExecutionId::new(id), PurgeDecision::Recent);
        }
        let kept: Vec<_> = tally.kept().into_iter().map(|kept| kept.partition).collect();
        assert_eq!(kept, ["event_before_2026_q4", "event_2026_q4", "event_default"]);
    }
}
