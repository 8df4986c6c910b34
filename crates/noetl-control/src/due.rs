//! Delivers what is due: timers, and what one execution asks of another. Rows were written in the
//! transaction that decided them; whichever process takes one delivers it, at least once.

mod deliver;

use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Due, DueKind};
use noetl_model::{Clock, DueId, ExecutionId, Timestamp, Value};
use noetl_store::{NewDue, Store, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::executions::Executions;
use crate::journal::Journal;
use crate::notices::Notices;

/// A failing execution gives up on commands it told to stop.
pub(crate) const ABANDON: &str = "abandon";

/// Rows delivered at a time.
const PAGE: usize = 100;

/// How long a row is lent to whoever delivers it.
const LENT_FOR: Duration = Duration::from_secs(30);

/// The slow look: what another process wrote, and was not there to deliver, is found by it.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How long a row rests that could not be delivered.
const REST: Duration = Duration::from_secs(10);

/// How far the clock of a process may be ahead of the database's without delaying what is to be done at
/// once. Timers that are overdue by more come first all the same.
const AHEAD_MAX: Duration = Duration::from_secs(600);

/// The row that ends a failing execution's patience.
pub(crate) fn abandon(id: DueId, execution: ExecutionId, at: Timestamp) -> NewDue {
    NewDue { id, kind: ABANDON.to_owned(), target: execution, at, payload: Value::Null }
}

/// The row of something the engine asks for.
pub(crate) fn row(id: DueId, due: Due) -> NewDue {
    let Due { target, at, kind } = due;
    let payload = serde_json::to_value(&kind).expect("maps with text keys always have a JSON form");
    let at = if is_at_once(&kind) { at.minus(AHEAD_MAX) } else { at };
    NewDue { id, kind: name(&kind).to_owned(), target, at, payload }
}

/// Whether it waits for no time, only to be delivered: its time is that of the process that decided it.
/// A notice says when what it tells of was, by that very time.
fn is_at_once(kind: &DueKind) -> bool {
    match kind {
        DueKind::StartChild { .. } | DueKind::ChildEnded { .. } | DueKind::CancelChild { .. } => {
            true
        }
        DueKind::Notify { .. }
        | DueKind::Wake { .. }
        | DueKind::StepTimeout { .. }
        | DueKind::AdmissionTimeout { .. }
        | DueKind::Deadline => false,
    }
}

/// The name of a row, for people who look at the table.
fn name(kind: &DueKind) -> &'static str {
    match kind {
        DueKind::Wake { .. } => "wake",
        DueKind::StepTimeout { .. } => "step_timeout",
        DueKind::AdmissionTimeout { .. } => "admission_timeout",
        DueKind::Deadline => "deadline",
        DueKind::StartChild { .. } => "start_child",
        DueKind::ChildEnded { .. } => "child_ended",
        DueKind::CancelChild { .. } => "cancel_child",
        DueKind::Notify { .. } => "notify",
    }
}

/// Delivers the due rows of one database.
pub(crate) struct Deliverer {
    pub(crate) store: Arc<dyn Store>,
    /// Where every execution is found, whatever its shard.
    pub(crate) everywhere: Arc<dyn Store>,
    pub(crate) journal: Journal,
    pub(crate) executions: Executions,
    pub(crate) notices: Notices,
    pub(crate) clock: Arc<dyn Clock>,
    /// Told when this process writes a row.
    pub(crate) written: Arc<Notify>,
    pub(crate) closing: CancellationToken,
}

impl Deliverer {
    pub(crate) async fn run(self) {
        loop {
            let pause = match self.deliver().await {
                Ok(pause) => pause,
                Err(error) => {
                    warn!(%error, "due rows are not read yet");
                    REST
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.written.notified() => {}
                () = self.closing.cancelled() => return,
            }
        }
    }

    /// Delivers what is ready; answers how long there is nothing to do.
    async fn deliver(&self) -> Result<Duration, StoreError> {
        let Some(next) = self.store.next_due().await? else { return Ok(LOOK_EVERY) };
        let wait = next.since(self.clock.now());
        if !wait.is_zero() {
            return Ok(wait.min(LOOK_EVERY));
        }
        let rows = self.store.take_due(PAGE, LENT_FOR).await?;
        if rows.is_empty() {
            // The store's clock is behind ours, or somebody else took them.
            return Ok(Duration::from_secs(1));
        }
        let delivered = rows.iter().map(|row| self.deliver_one(row));
        let delivered = futures::future::join_all(delivered).await;
        let done: Vec<DueId> = rows
            .iter()
            .zip(delivered)
            .filter_map(|(row, is_done)| is_done.then_some(row.id))
            .collect();
        self.store.done(&done).await?;
        Ok(Duration::ZERO)
    }
}
