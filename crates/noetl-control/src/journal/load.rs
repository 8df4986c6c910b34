//! Folds an execution's state from its log, when it is not in memory.

use std::sync::Arc;

use noetl_engine::{Execution, Limits};
use noetl_model::{ExecutionId, Seq};
use noetl_store::Store;

use super::SubmitError;
use crate::cache::Cached;
use crate::catalog::{PlaybookError, Playbooks};

/// Events read at a time: large enough to spare round trips, small enough to hold.
pub(super) const PAGE: usize = 1000;

/// The state of an execution, with its playbook; `None` when there is no such execution.
pub(super) async fn load(
    store: &dyn Store,
    catalog: &dyn Store,
    playbooks: &Playbooks,
    execution: ExecutionId,
) -> Result<Option<Cached>, SubmitError> {
    let failed = |error| SubmitError::Store(Arc::new(error));
    let Some(tenant) = store.tenant_of(execution).await.map_err(failed)? else {
        return Ok(None);
    };
    // Decisions are made without loading, so a state has to hold all its values.
    let mut state = Execution::within(execution, Limits::NONE);
    loop {
        let events = store.read(execution, state.version(), PAGE).await.map_err(failed)?;
        for event in &events {
            state.apply(event);
        }
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
    Ok(Some(Cached::new(state, playbook)))
}
