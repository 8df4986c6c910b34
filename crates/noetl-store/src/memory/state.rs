//! State of the in-memory store, and its change by an append.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use noetl_model::row::EventRow;
use noetl_model::{CatalogId, CommandId, EventId, ExecutionId, Seq, Tenant, Timestamp};

use super::auxiliary::AuxiliaryTables;
use super::due::DueTable;
use super::leases::LeaseTable;
use super::logs::LogBuffer;
use super::outbox::OutboxTable;
use super::runtimes::RuntimeTable;
use super::schedules::ScheduleTable;
use super::snapshots::SnapshotTable;
use super::subscriptions::SubscriptionTable;
use super::tail::Positions;
use crate::command_leases::{CommandLease, lease_of};
use crate::{
    Append, CatalogEntry, CommandChange, CommandRow, Committed, ExecutionRow, Import,
    ImportedExecution, Malformed, NewEntry, StartAppend, StoreError,
};

/// All tables of the store.
#[derive(Debug, Default)]
pub(super) struct MemoryState {
    pub(super) executions: BTreeMap<ExecutionId, Execution>,
    pub(super) commands: BTreeMap<CommandId, CommandRow>,
    pub(super) holdings: BTreeMap<CommandId, CommandLease>,
    pub(super) newest: Option<EventId>,
    pub(super) positions: Positions,
    pub(super) due: DueTable,
    pub(super) leases: LeaseTable,
    pub(super) outbox: OutboxTable,
    pub(super) runtimes: RuntimeTable,
    pub(super) schedules: ScheduleTable,
    pub(super) snapshots: SnapshotTable,
    pub(super) subscriptions: SubscriptionTable,
    pub(super) catalog: BTreeMap<CatalogId, (Tenant, CatalogEntry)>,
    pub(super) kept: AuxiliaryTables,
    pub(super) lines: BTreeMap<ExecutionId, LogBuffer>,
}

/// An execution and its event log.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) tenant: Tenant,
    pub(super) row: ExecutionRow,
    pub(super) log: Vec<EventRow>,
    /// Set if the execution was imported: the event that ended it, if any.
    pub(super) imported: Option<Option<EventId>>,
    /// Index in `log` of each event.
    ids: BTreeMap<EventId, usize>,
    start_key: u64,
}

/// Effects of earlier items of a batch on later ones.
#[derive(Default)]
struct Planned<'a> {
    heads: HashMap<ExecutionId, (Seq, EventId)>,
    starts: HashMap<ExecutionId, &'a StartAppend>,
    commands: HashSet<CommandId>,
    events: HashSet<(ExecutionId, EventId)>,
    ended: HashSet<ExecutionId>,
}

impl MemoryState {
    /// Returns the outcome of each append without changing anything, so that a batch that fails in
    /// the middle has no effect.
    pub(super) fn plan(&self, batch: &[Append]) -> Result<Vec<Committed>, StoreError> {
        for append in batch {
            append.check()?;
        }
        let mut planned = Planned::default();
        let mut outcomes = Vec::with_capacity(batch.len());
        for append in batch {
            let outcome = self.outcome(append, &planned);
            if outcome == Committed::Appended {
                self.note(append, &mut planned)?;
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn outcome(&self, append: &Append, planned: &Planned<'_>) -> Committed {
        let id = append.row.id;
        let known = self.executions.get(&id);
        let stored = known.and_then(Execution::head);
        if known.is_some_and(|known| known.imported.is_some()) {
            // The engine does not drive an imported execution.
            let found = stored.map_or(Seq::START, |head| head.0);
            return match append.start {
                Some(_) => Committed::Taken,
                None => Committed::Conflict { found },
            };
        }
        let found = planned.heads.get(&id).copied().or(stored);
        let started = match planned.starts.get(&id) {
            Some(start) => Some((start.key, &start.tenant)),
            None => known.map(|known| (known.start_key, &known.tenant)),
        };
        match (&append.start, started) {
            (Some(start), Some(earlier)) if (start.key, &start.tenant) == earlier => {
                Committed::Repeated
            }
            (Some(_), Some(_)) => Committed::Taken,
            (Some(_), None) => Committed::Appended,
            (None, _) if found == append.after.map(|id| (append.expected, id)) => {
                Committed::Appended
            }
            (None, _) => Committed::Conflict { found: found.map_or(Seq::START, |head| head.0) },
        }
    }

    fn note<'a>(&self, append: &'a Append, planned: &mut Planned<'a>) -> Result<(), Malformed> {
        if let Some(last) = append.events.last() {
            planned.heads.insert(append.row.id, (last.seq, last.id));
        }
        if let Some(start) = &append.start {
            planned.starts.insert(append.row.id, start);
        }
        let execution = append.row.id;
        let known = self.executions.get(&execution);
        for event in &append.events {
            let is_taken = known.is_some_and(|known| known.ids.contains_key(&event.id));
            if is_taken || !planned.events.insert((execution, event.id)) {
                return Err(Malformed::EventTaken { execution, event: event.id });
            }
            let ended = known.is_some_and(|known| known.row.status.is_final());
            if event.fact.is_end() && (ended || !planned.ended.insert(execution)) {
                return Err(Malformed::SecondEnd { execution });
            }
        }
        for change in &append.commands {
            let CommandChange::Insert(row) = change else {
                continue;
            };
            if self.commands.contains_key(&row.id) || !planned.commands.insert(row.id) {
                return Err(Malformed::CommandTaken { command: row.id });
            }
        }
        Ok(())
    }

    /// Returns the log of an execution or of a subscription; empty if neither exists.
    pub(super) fn log(&self, id: ExecutionId) -> &[EventRow] {
        let execution = self.executions.get(&id).map(|known| &*known.log);
        execution.or_else(|| self.subscriptions.log(id)).unwrap_or_default()
    }

    /// Applies an append that [`State::plan`] accepted.
    pub(super) fn apply(&mut self, append: Append, now: Timestamp) {
        let Append { start, events, row, leases, commands, due, delivered, blobs, .. } = append;
        let execution = row.id;
        self.kept.references.extend(blobs.into_iter().map(|to| (execution, to)));
        for change in commands {
            self.change(change, &leases, now);
        }
        let newest = events.iter().map(|event| event.id).max();
        self.newest = self.newest.max(newest);
        let rows: Vec<EventRow> =
            events.iter().map(|event| EventRow::from(event.as_ref())).collect();
        for row in &rows {
            self.positions.give(execution, row.seq);
        }
        let outgoing = rows.clone();
        let known = self.executions.get(&execution).and_then(|known| known.log.last());
        let previous = known.map(|known| known.event_id);
        match (start, self.executions.get_mut(&row.id)) {
            (Some(start), _) => {
                let mut execution = Execution {
                    tenant: start.tenant,
                    start_key: start.key,
                    imported: None,
                    log: Vec::with_capacity(rows.len()),
                    ids: BTreeMap::new(),
                    row,
                };
                rows.into_iter().for_each(|row| execution.add(row));
                self.executions.insert(execution.row.id, execution);
            }
            (None, Some(execution)) => {
                rows.into_iter().for_each(|row| execution.add(row));
                execution.update(row);
            }
            (None, None) => {}
        }
        if let Some(sender) = self.executions.get(&execution) {
            self.outbox.add((&sender.tenant, sender.row.catalog), &outgoing, previous, now);
            for new in due {
                self.due.add(&sender.tenant, execution, new);
            }
        }
        self.due.remove(&delivered);
    }

    fn change(&mut self, change: CommandChange, named: &[(CommandId, Duration)], now: Timestamp) {
        match change {
            CommandChange::Insert(row) => {
                self.hold(&row, named, now);
                self.commands.insert(row.id, row);
            }
            CommandChange::Move { id, state, worker, ended_at } => {
                let Some(row) = self.commands.get_mut(&id) else { return };
                let before = row.state;
                row.advance(state, worker.as_ref(), ended_at);
                if row.state != before {
                    let row = row.clone();
                    self.hold(&row, named, now);
                }
            }
            CommandChange::Release { id } => {
                self.holdings.remove(&id);
            }
        }
    }

    /// Sets the lease that a command has in its new state.
    fn hold(&mut self, row: &CommandRow, named: &[(CommandId, Duration)], now: Timestamp) {
        let before = self.holdings.remove(&row.id);
        if let Some(begun) = lease_of(named, row.id, row.state, row.worker.as_deref()) {
            self.holdings.insert(row.id, begun.holding(before, row.limit_ms, now));
        }
    }

    pub(super) fn register(
        &mut self,
        tenant: &Tenant,
        entry: NewEntry,
    ) -> Result<CatalogEntry, StoreError> {
        if self.catalog.contains_key(&entry.id) {
            let taken = format!("catalog entry {} exists already", entry.id);
            return Err(StoreError::backend("register a catalog entry", taken));
        }
        let versions = self
            .entries_of(tenant)
            .filter(|known| known.path == entry.path)
            .map(|known| known.version);
        let entry = CatalogEntry {
            version: versions.max().unwrap_or(0) + 1,
            id: entry.id,
            path: entry.path,
            kind: entry.kind,
            content: entry.content,
            layout: entry.layout,
            payload: entry.payload,
            meta: entry.meta,
            created_at: entry.at,
            deleted_at: None,
        };
        self.catalog.insert(entry.id, (tenant.clone(), entry.clone()));
        Ok(entry)
    }

    pub(super) fn entries_of(&self, tenant: &Tenant) -> impl Iterator<Item = &CatalogEntry> {
        let mine = self.catalog.values().filter(move |(owner, _)| owner == tenant);
        mine.map(|(_, entry)| entry)
    }

    /// Returns the entries of a tenant that are not deleted.
    pub(super) fn live_entries_of(&self, tenant: &Tenant) -> impl Iterator<Item = &CatalogEntry> {
        self.entries_of(tenant).filter(|entry| entry.deleted_at.is_none())
    }
}

impl Execution {
    /// Creates an imported execution without events.
    pub(super) fn of_elsewhere(import: &Import) -> Self {
        Self {
            tenant: import.tenant.clone(),
            row: ImportedExecution::empty(import).row,
            log: Vec::new(),
            imported: Some(None),
            ids: BTreeMap::new(),
            start_key: 0,
        }
    }

    /// Returns `true` if the log contains this event.
    pub(super) fn has(&self, event: EventId) -> bool {
        self.ids.contains_key(&event)
    }

    /// Adds a row at the end of the log.
    pub(super) fn add(&mut self, row: EventRow) {
        self.ids.insert(row.event_id, self.log.len());
        self.log.push(row);
    }

    /// Returns the rows from one ID to another, in order of IDs.
    pub(super) fn rows_by_id(
        &self,
        first: EventId,
        last: EventId,
    ) -> impl Iterator<Item = &EventRow> {
        self.ids.range(first..=last).filter_map(|(_, place)| self.log.get(*place))
    }

    /// Returns the sequence number and ID of the last event.
    fn head(&self) -> Option<(Seq, EventId)> {
        self.log.last().map(|row| (row.seq, row.event_id))
    }

    /// Replaces the fields that change during an execution. Fields set at its start are unchanged.
    fn update(&mut self, row: ExecutionRow) {
        self.row = ExecutionRow {
            catalog: self.row.catalog,
            path: self.row.path.clone(),
            playbook_version: self.row.playbook_version,
            parent: self.row.parent,
            started_at: self.row.started_at,
            ..row
        };
    }
}
