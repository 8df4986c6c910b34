//! Enqueues the pending commands of a store.

use noetl_model::{CommandId, CommandState};
use noetl_store::{JournalStore, StoreError};

use crate::dispatch::{Dispatcher, PendingCommand};

/// Commands read at a time.
const PAGE: usize = 1000;

/// Enqueues every pending command for a slot, oldest first.
pub(crate) async fn enqueue_pending(
    store: &dyn JournalStore,
    dispatch: &Dispatcher,
) -> Result<(), StoreError> {
    let mut after = CommandId::new(i64::MIN);
    loop {
        let open = store.open_commands(after, PAGE).await?;
        let Some(last) = open.last() else { return Ok(()) };
        after = last.id;
        for row in open.iter().filter(|row| row.state == CommandState::Pending) {
            dispatch.enqueue(PendingCommand { execution: row.execution, command: row.id });
        }
    }
}
