//! [`RetentionStore`] of the in-memory store.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use noetl_model::{ExecutionId, Origin, Timestamp};

use super::MemoryStore;
use super::auxiliary::has_expired;
use super::state::{Execution, MemoryState};
use crate::retention::{
    ExecutionAge, PartitionTally, PurgeCounts, PurgeDecision, PurgeReport, RetentionPolicy,
    RetentionStore,
};
use crate::snapshots::execution_of;
use crate::{KeychainEntry, KeychainScope, StoreError};

#[async_trait]
impl RetentionStore for MemoryStore {
    async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<PurgeReport, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let mut tally = PartitionTally::default();
        let gone = match policy.executions.since(now) {
            Some(since) => state.going(since, &mut tally),
            None => HashSet::new(),
        };
        let mut removed = state.purge(policy, &gone, now, dry_run);
        if let Some(since) = policy.executions.since(now) {
            removed.events += state.subscriptions.purge_logs(since, &mut tally, dry_run);
        }
        let dropped = policy.executions.since(now).map(|since| tally.dropped(since));
        Ok(PurgeReport { removed, dropped: dropped.unwrap_or_default(), kept: tally.kept() })
    }
}

impl MemoryState {
    /// Returns the executions to purge.
    fn going(&self, since: Timestamp, tally: &mut PartitionTally) -> HashSet<ExecutionId> {
        let mut going = HashSet::new();
        for (&id, execution) in &self.executions {
            let age = ExecutionAge {
                is_live: execution.is_live(),
                is_awaited: self.due.has_of(id),
                updated_at: execution.row.updated_at,
            };
            let fate = age.fate(since);
            tally.note(id, fate);
            if fate == PurgeDecision::Goes {
                going.insert(id);
            }
        }
        going
    }

    fn purge(
        &mut self,
        policy: &RetentionPolicy,
        gone: &HashSet<ExecutionId>,
        now: Timestamp,
        dry_run: bool,
    ) -> PurgeCounts {
        let is_old = |at: Option<Timestamp>, since: Option<Timestamp>| {
            at.zip(since).is_some_and(|(at, since)| at <= since)
        };
        let goes_by_itself = |at| policy.expired && has_expired(at, now);
        let since = policy.commands.since(now);
        let executions = &self.executions;
        let commands = take(&mut self.commands, dry_run, |_, row| {
            let is_live = executions.get(&row.execution).is_some_and(Execution::is_live);
            gone.contains(&row.execution) || (!is_live && is_old(row.ended_at, since))
        });
        let events = gone.iter().filter_map(|id| executions.get(id)).map(|known| known.log.len());
        let events = count(events.sum());
        let snapshots = take(&mut self.snapshots, dry_run, |(_, _, aggregate), _| {
            execution_of(aggregate).is_some_and(|id| gone.contains(&id))
        });
        let kept = &mut self.kept;
        let references = kept.references.iter().filter(|(of, _)| gone.contains(of)).count();
        kept.references.retain(|(of, _)| dry_run || !gone.contains(of));
        let variables = take(&mut kept.variables, dry_run, |(_, of, _), variable| {
            gone.contains(of) || goes_by_itself(variable.kept.expires_at)
        });
        let results = take(&mut kept.results, dry_run, |_, (_, result)| {
            gone.contains(&result.summary.execution) || goes_by_itself(result.summary.expires_at)
        });
        let of_gone = self.lines.iter().filter(|(of, _)| gone.contains(of));
        let lines = count(of_gone.map(|(_, lines)| lines.kept.len()).sum());
        self.lines.retain(|of, _| dry_run || !gone.contains(of));
        let keychain = take(&mut kept.keychain, dry_run, |_, entry| {
            is_of(entry, gone) || goes_by_itself(entry.kept.expires_at)
        });
        let since = policy.audit.since(now);
        let audit = take(&mut kept.audit, dry_run, |_, (_, used)| is_old(Some(used.at), since));
        let since = policy.runtimes.since(now);
        let runtimes = take(&mut self.runtimes, dry_run, |_, row| {
            row.said.kind.is_purged() && is_old(Some(row.heartbeat), since)
        });
        let since = policy.dedup.since(now);
        let seen = &mut self.subscriptions.seen;
        let dedup = take(seen, dry_run, |_, (_, at)| is_old(Some(*at), since));
        let outbox = policy.outbox.since(now).map_or(0, |since| self.outbox.purge(since, dry_run));
        let executions = take(&mut self.executions, dry_run, |id, _| gone.contains(id));
        PurgeCounts {
            executions,
            events,
            commands,
            snapshots,
            references: count(references),
            variables,
            results,
            lines,
            keychain,
            runtimes,
            outbox: count(outbox),
            dedup,
            audit,
        }
    }
}

impl Execution {
    /// Returns `true` if the engine can still advance the execution.
    fn is_live(&self) -> bool {
        let is_imported = self.imported.is_some()
            || self.log.first().is_some_and(|row| row.origin == Origin::Imported);
        !self.row.status.is_final() && !is_imported
    }
}

/// Returns `true` if an entry is local to one of the purged executions.
fn is_of(entry: &KeychainEntry, gone: &HashSet<ExecutionId>) -> bool {
    let of = entry.kept.execution.filter(|_| entry.kept.scope == KeychainScope::Local);
    of.is_some_and(|of| gone.contains(&of))
}

/// Removes the entries for which `goes` returns `true` and returns their number. A dry run only
/// counts them.
fn take<K: Ord, V>(
    entries: &mut BTreeMap<K, V>,
    dry_run: bool,
    goes: impl Fn(&K, &V) -> bool,
) -> u64 {
    let mut gone = 0;
    entries.retain(|key, value| {
        let goes = goes(key, value);
        gone += usize::from(goes);
        !goes || dry_run
    });
    count(gone)
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
