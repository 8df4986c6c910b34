//! An open command in a snapshot.

use std::sync::Arc;

use noetl_model::event::{CommandSpec, LoopItem, ParkReason};
use noetl_model::scope::CommandScope;
use noetl_model::trace::Trace;
use noetl_model::{CommandId, CommandState, Map, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::SnapshotError;
use super::slot::SlotShape;
use crate::execution::OpenCommand;

#[derive(Serialize, Deserialize)]
pub(super) struct CommandShape {
    id: i64,
    step: Arc<str>,
    #[serde(rename = "generation")]
    run: u32,
    attempt: u32,
    tool: Arc<str>,
    config: Map,
    input: Map,
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<Box<CommandScope>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<LoopItem>,
    #[serde(default = "super::yes", skip_serializing_if = "super::is_true")]
    idempotent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pool: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parked: Option<ParkReason>,
    state: String,
    worker: Option<Arc<str>>,
    /// Time in microseconds; 0 in older snapshots, which lack it.
    #[serde(default, skip_serializing_if = "is_unknown")]
    since: i64,
    answer: Option<SlotShape>,
}

fn is_unknown(since: &i64) -> bool {
    *since == 0
}

impl CommandShape {
    pub(super) fn from_command(id: CommandId, open: &OpenCommand) -> Self {
        let issued = &open.issued;
        Self {
            id: id.get(),
            step: issued.step.clone(),
            run: issued.run,
            attempt: issued.attempt,
            tool: issued.tool.clone(),
            config: issued.config.clone(),
            input: issued.input.clone(),
            timeout_ms: issued.timeout_ms,
            scope: issued.scope.clone(),
            item: issued.item.clone(),
            idempotent: issued.idempotent,
            pool: issued.pool.clone(),
            parked: open.parked.clone(),
            state: open.state.as_str().to_owned(),
            worker: open.worker.clone(),
            since: open.since.as_micros(),
            answer: open.answer.as_ref().map(|answer| SlotShape::from_slot(&answer.slot)),
        }
    }

    /// Restores the command of an execution that belongs to this trace.
    pub(super) fn restored(
        self,
        trace: Option<Arc<Trace>>,
    ) -> Result<(CommandId, OpenCommand), SnapshotError> {
        let state = CommandState::from_text(&self.state).filter(|state| !state.is_terminal());
        let state = state.ok_or_else(|| {
            SnapshotError::Impossible(format!("an open command that is {}", self.state))
        })?;
        let issued = CommandSpec {
            step: self.step,
            run: self.run,
            attempt: self.attempt,
            tool: self.tool,
            config: self.config,
            input: self.input,
            timeout_ms: self.timeout_ms,
            scope: self.scope,
            item: self.item,
            idempotent: self.idempotent,
            pool: self.pool,
            trace,
        };
        let mut open = OpenCommand::new(Arc::new(issued), Timestamp::from_micros(self.since));
        open.state = state;
        open.worker = self.worker;
        open.parked = self.parked;
        open.answer = self.answer.map(SlotShape::into_stored).transpose()?;
        Ok((CommandId::new(self.id), open))
    }
}
