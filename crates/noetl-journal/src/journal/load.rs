//! Rebuilds an execution's state from its snapshot and event log if the state is not cached.

use std::sync::Arc;

use noetl_catalog::{PlaybookError, Playbooks};
use noetl_identity::IdGenerator;
use noetl_model::{EventId, ExecutionId, Seq};
use noetl_store::JournalStore;

use super::SubmitError;
use crate::snapshots;
use crate::state_cache::CachedState;

/// Events per read: large enough to save round trips, small enough for memory.
pub(super) const PAGE: usize = 1000;

/// Returns the state of an execution with its playbook, or `None` if the execution does not exist.
pub(super) async fn load(
    store: &dyn JournalStore,
    catalog: &dyn JournalStore,
    playbooks: &Playbooks,
    ids: &IdGenerator,
    execution: ExecutionId,
) -> Result<Option<CachedState>, SubmitError> {
    let failed = |error| SubmitError::Store(Arc::new(error));
    let Some(tenant) = store.tenant_of(execution).await.map_err(failed)? else {
        return Ok(None);
    };
    // The latest usable snapshot, or the absent state. The loop below applies the later events.
    let (mut state, snapshot_bytes) = snapshots::restore(store, &tenant, execution).await;
    let from = state.version();
    go_past(ids, state.last_event());
    loop {
        let events = store.read(execution, state.version(), PAGE).await.map_err(failed)?;
        for event in &events {
            state.apply(event);
        }
        go_past(ids, events.iter().map(|event| event.id).max());
        if events.len() < PAGE {
            break;
        }
    }
    if state.version() == Seq::START {
        return Ok(None);
    }
    let Some(started) = state.started() else { return Ok(None) };
    let entry = started.catalog;
    let playbook = playbooks.get(catalog, &tenant, entry).await;
    let playbook = playbook.map_err(|error| match error {
        PlaybookError::Store(error) => SubmitError::Store(Arc::new(error)),
        error => SubmitError::Playbook(Arc::new(error)),
    })?;
    let read = usize::try_from(state.version().0 - from.0).unwrap_or(usize::MAX);
    let mut cached = CachedState::new(state, playbook, tenant);
    cached.snapshot_bytes = snapshot_bytes;
    cached.log_bytes = snapshots::log_bytes(read);
    Ok(Some(cached))
}

/// Advances the ID generator past `newest`. The clock of another process may be ahead of this one,
/// and events appended here must still get larger IDs.
pub(super) fn go_past(ids: &IdGenerator, newest: Option<EventId>) {
    if let Some(newest) = newest {
        ids.advance_past(newest);
    }
}
