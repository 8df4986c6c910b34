//! In-memory store: everything in one process, lost when the process ends.
//!
//! Its results equal those of the stores on disk, to the byte: it stores rows and decodes them on
//! every read, so data that does not survive a row does not survive here either. One lock guards
//! all state; calls hold it briefly and never across an await. Intended for tests and simulations,
//! not for speed.

mod auxiliary;
mod blobs;
mod catalog;
mod credentials;
mod due;
mod grants;
mod holdings;
mod imports;
mod keychain;
mod leases;
mod logs;
mod objects;
mod outbox;
mod result_store;
mod retention;
mod runtimes;
mod schedules;
mod sealed_rows;
mod secret_audit;
mod snapshots;
mod state;
mod subscriptions;
mod tail;
mod tokens;
mod transient;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CommandId, CommandState, Event, EventId, ExecutionId, Seq, Tenant};

use self::state::MemoryState;
use crate::tail::PAGE_BYTES;
use crate::{
    Append, CommandFilter, CommandRow, CommandStore, Committed, Database, EventLog,
    ExecutionFilter, ExecutionRow, ExecutionStatus, ExecutionStore, LockedLog, OutboxOptions,
    ReadBound, StartCounts, StoreClock, StoreError, TimeBuckets, UnsharedLog, first_after,
    path_contains, row_bytes,
};

#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<MemoryState>,
    clock: StoreClock,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the clock of the store.
    #[must_use]
    pub fn with_clock(self, clock: StoreClock) -> Self {
        Self { clock, ..self }
    }

    /// Sets the outbox options of the store.
    #[must_use]
    pub fn with_outbox(self, options: OutboxOptions) -> Self {
        self.state().outbox.options = options;
        self
    }

    /// Returns the locked state. Ignores poisoning: every change is planned before it is made, so a
    /// panic cannot leave the state half-written.
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first of these rows up to the size of a page, without their `context`.
fn page<'a>(rows: impl Iterator<Item = &'a EventRow>) -> Vec<EventRow> {
    let mut page = Vec::new();
    let mut bytes = 0;
    for row in rows {
        if bytes >= PAGE_BYTES {
            break;
        }
        let row = EventRow { context: None, ..row.clone() };
        bytes += row_bytes(&row);
        page.push(row);
    }
    page
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let outcomes = state.plan(&batch)?;
        for (append, outcome) in batch.into_iter().zip(&outcomes) {
            if *outcome == Committed::Appended {
                state.apply(append, now);
            }
        }
        Ok(outcomes)
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError> {
        Ok(Box::new(UnsharedLog::new(self, execution)))
    }

    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let state = self.state();
        let rows = state.log(execution).iter().filter(|row| row.seq > after);
        rows.take(limit)
            .map(|row| row.decode().map_err(|error| StoreError::Row(error.into())))
            .collect()
    }

    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: ReadBound,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let state = self.state();
        let (first, last) = (first_after(after), until.last_id());
        let Some(first) = first.filter(|first| *first <= last) else { return Ok(Vec::new()) };
        let is_early = |row: &&EventRow| until.last_time().is_none_or(|at| row.created_at <= at);
        if let Some(known) = state.executions.get(&execution) {
            let rows = known.rows_by_id(first, last);
            return Ok(page(rows.filter(is_early).take(limit)));
        }
        // The log of a subscription is short.
        let mut rows: Vec<&EventRow> = state.log(execution).iter().collect();
        rows.sort_unstable_by_key(|row| row.event_id);
        let rows = rows.into_iter().filter(|row| (first..=last).contains(&row.event_id));
        Ok(page(rows.filter(is_early).take(limit)))
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        let state = self.state();
        let since = state.log(execution).iter().filter(|row| row.seq > after);
        Ok(since.map(|row| row.event_id).min())
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        let state = self.state();
        let mut log = state.log(execution).iter();
        let is_it =
            |row: &&EventRow| row.event_id == event || row.idempotency_key == Some(event.get());
        Ok(log.find(is_it).map(|row| row.seq))
    }

    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError> {
        let state = self.state();
        let known = state.log(execution).iter();
        let known: HashSet<i64> = known
            .flat_map(|row| [Some(row.event_id.get()), row.idempotency_key])
            .flatten()
            .collect();
        Ok(events.iter().copied().filter(|event| known.contains(&event.get())).collect())
    }

    async fn newest_id(&self) -> Result<Option<EventId>, StoreError> {
        Ok(self.state().newest)
    }
}

#[async_trait]
impl ExecutionStore for MemoryStore {
    async fn execution(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        let state = self.state();
        let known = state.executions.get(&id);
        Ok(known.filter(|known| known.tenant == *tenant).map(|known| known.row.clone()))
    }

    async fn tenant_of(&self, id: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        let state = self.state();
        Ok(state.executions.get(&id).map(|known| known.tenant.clone()))
    }

    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        let state = self.state();
        let mine = state.executions.values().filter(|known| known.tenant == *tenant);
        let mut rows: Vec<&ExecutionRow> =
            mine.map(|known| &known.row).filter(|row| matches(filter, row)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.started_at, row.id)));
        let page = rows.into_iter().skip(filter.offset).take(filter.limit);
        Ok(page.cloned().collect())
    }

    async fn executions_by_status(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(ExecutionStatus, u64)>, StoreError> {
        let mut counts = BTreeMap::new();
        for known in self.state().executions.values().filter(|known| known.tenant == *tenant) {
            let (_, count) =
                counts.entry(known.row.status.as_str()).or_insert((known.row.status, 0));
            *count += 1;
        }
        Ok(counts.into_values().collect())
    }

    async fn executions_by_start(
        &self,
        tenant: &Tenant,
        stretch: TimeBuckets,
    ) -> Result<Vec<StartCounts>, StoreError> {
        let mut counts = BTreeMap::new();
        for known in self.state().executions.values().filter(|known| known.tenant == *tenant) {
            let status = known.row.status;
            let Some(place) = stretch.bucket_at(known.row.started_at) else { continue };
            let (_, count) = counts.entry((place, status.as_str())).or_insert((status, 0));
            *count += 1;
        }
        let started = |((place, _), (status, count))| StartCounts { place, status, count };
        Ok(counts.into_iter().map(started).collect())
    }

    async fn every_execution(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<(Tenant, ExecutionRow)>, StoreError> {
        let state = self.state();
        let rest = state.executions.values().filter(|known| known.row.id > after).take(limit);
        Ok(rest.map(|known| (known.tenant.clone(), known.row.clone())).collect())
    }

    async fn unfinished(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let state = self.state();
        let open = state
            .executions
            .values()
            .filter(|known| known.imported.is_none())
            .map(|known| &known.row)
            .filter(|row| row.id > after && !row.status.is_final());
        Ok(open.take(limit).map(|row| row.id).collect())
    }
}

fn matches(filter: &ExecutionFilter, row: &ExecutionRow) -> bool {
    filter.status.is_none_or(|status| row.status == status)
        && filter.catalog.is_none_or(|catalog| row.catalog == catalog)
        && filter.parent.is_none_or(|parent| row.parent == Some(parent))
        && filter.started_before.is_none_or(|before| row.started_at < before)
        && filter.started_after.is_none_or(|after| row.started_at >= after)
        && filter.text.as_ref().is_none_or(|text| {
            path_contains(&row.path, text)
                || row.id.to_string().contains(text)
                || row.error.as_ref().is_some_and(|error| error.contains(text))
        })
        && filter.path.as_ref().is_none_or(|text| path_contains(&row.path, text))
}

#[async_trait]
impl CommandStore for MemoryStore {
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError> {
        Ok(self.state().commands.get(&id).cloned())
    }

    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let state = self.state();
        let open = state.commands.values().filter(|row| row.id > after && !row.state.is_terminal());
        Ok(open.take(limit).cloned().collect())
    }

    async fn pending_commands(
        &self,
        wanted: &CommandFilter,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let state = self.state();
        let pending = state.commands.values().filter(|row| {
            row.state == CommandState::Pending
                && wanted.takes(&row.pool, &row.tool)
                && wanted.not_of != Some(row.execution)
                && state.is_of(row.execution, wanted.tenant.as_ref())
        });
        Ok(pending.take(limit).cloned().collect())
    }

    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError> {
        let mut pools = BTreeMap::new();
        let state = self.state();
        for row in state.commands.values().filter(|row| row.state == CommandState::Pending) {
            *pools.entry(row.pool.clone()).or_default() += 1;
        }
        Ok(pools.into_iter().collect())
    }
}

#[async_trait]
impl Database for MemoryStore {
    async fn table_names(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryStore;
    use crate::OutboxStore;
    use crate::conformance::story::{Story, write};
    use crate::conformance::{Subject, outbox_on};

    fn store() -> MemoryStore {
        MemoryStore::new().with_outbox(outbox_on())
    }

    #[tokio::test]
    async fn nothing_is_published_unless_requested() {
        let store = MemoryStore::new();
        write(&store, Story::new(10).start()).await;
        assert_eq!(store.pending().await.expect("a count"), 0);
    }

    crate::conformance_suite!(memory, async || Subject::new(store()));

    crate::lapse_suite!(memory_lapse, async |clock| { Subject::new(store().with_clock(clock)) });

    #[tokio::test]
    async fn a_finished_execution_is_purged_completely() {
        let store = std::sync::Arc::new(MemoryStore::new());
        crate::conformance::retention::a_finished_execution_is_purged_completely(store).await;
    }
}
