//! Frames of a cursor: rows that one command claims, and that the loop records and issues.

use std::sync::Arc;

use noetl_model::event::{CommandSpec, LoopEvent, LoopItem};
use noetl_model::loops::{FrameSizes, FrameState, FrameTransition, LoopItems};
use noetl_model::{CommandId, Fact, Failure, FailureKind, Value};
use noetl_playbook::document::{Cursor, LoopSource, Step};
use noetl_template::from_json_owned;

use super::collection;
use crate::draft::Draft;
use crate::scope;

/// Variable that passes the number of rows to claim to the claim's statement.
const FRAME_MAX_ROWS: &str = "__frame_max_rows";

impl Draft<'_, '_> {
    /// Returns the frame sizes that were rendered when the loop started, or else those of the
    /// playbook.
    pub(super) fn frame_sizes(
        &self,
        cursor: &Cursor,
        step_run_key: &(Arc<str>, u32),
    ) -> FrameSizes {
        self.loop_state(step_run_key).and_then(|state| state.frame).unwrap_or(cursor.frame.sizes)
    }

    /// Closes the frames whose rows have all ended.
    pub(super) fn close_frames(&mut self, step_run_key: &(Arc<str>, u32)) {
        let Some(state) =
            self.loop_state(step_run_key).filter(|state| state.counters.total.is_none())
        else {
            return;
        };
        let ended: Vec<FrameTransition> = state
            .spans
            .iter()
            .filter(|(_, span)| span.open == 0 && span.next >= span.rows)
            .map(|(frame, span)| {
                let failed = span.failed > 0;
                let to = if failed { FrameState::Failed } else { FrameState::Committed };
                FrameTransition { frame: *frame, to, rows: span.rows }
            })
            .collect();
        for moved in ended {
            self.loop_fact(&step_run_key.0, step_run_key.1, LoopEvent::Frame(moved));
        }
    }

    /// Claims rows for as many frames as may be in flight.
    pub(super) fn claim_frames(
        &mut self,
        step: &Step,
        cursor: &Cursor,
        run: u32,
        step_run_key: &(Arc<str>, u32),
    ) {
        loop {
            let Some(state) = self.loop_state(step_run_key) else { return };
            let counters = state.counters;
            let in_flight = counters.claims + u32::try_from(state.spans.len()).unwrap_or(u32::MAX);
            let is_full = in_flight >= counters.max_in_flight;
            if counters.drained || is_full || !self.needed.is_empty() {
                return;
            }
            let frame = counters.frames;
            let moved = FrameTransition { frame, to: FrameState::Dispatched, rows: 0 };
            self.loop_fact(&step.name, run, LoopEvent::Frame(moved));
            let item = LoopItem { index: frame, total: None, frame: Some(frame), claims: true };
            if !self.claim_frame(step, cursor, run, step_run_key, item) {
                return;
            }
        }
    }

    /// Claims the rows of a frame. Returns `false` if the claim does not render, which fails the
    /// loop.
    pub(super) fn claim_frame(
        &mut self,
        step: &Step,
        cursor: &Cursor,
        run: u32,
        step_run_key: &(Arc<str>, u32),
        item: LoopItem,
    ) -> bool {
        let from = self.loop_state(step_run_key).and_then(|state| state.from.clone());
        let mut scope = scope::tool_scope(self, from.as_deref());
        let rows = from_json_owned(self.frame_sizes(cursor, step_run_key).max_rows.into());
        Arc::make_mut(&mut scope.labels).insert(Arc::from(FRAME_MAX_ROWS), rows.into());
        let Err(message) = self.issue_tool(step, &cursor.claim, run, &scope, item) else {
            return true;
        };
        let failure = Failure::new(FailureKind::TemplateError, message);
        self.exit_loop_failed(&step.name, run, failure);
        false
    }

    /// Records the rows that a claim returned and issues them. An empty result means that no rows
    /// are left.
    pub(super) fn rows_claimed(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
        item: &LoopItem,
    ) {
        let answer = self.state.open_command(command).and_then(|open| open.answer.as_ref());
        let slot = answer.map(|answer| answer.slot.clone()).unwrap_or_default();
        let scope = scope::tool_scope(self, None);
        let data = scope.reach.data(&slot);
        if self.misses(&scope) {
            return;
        }
        let (name, run) = (issued.step.clone(), issued.run);
        self.record(Fact::CommandCompleted { command, step: name.clone(), item: None });
        let frame = item.frame.unwrap_or_default();
        let Some(rows) = collection::rows(&data) else {
            let message = "the claim returned no list of rows";
            let failure = Failure::new(FailureKind::Schema, message);
            return self.exit_loop_failed(&name, run, failure);
        };
        if rows.is_empty() {
            let moved = FrameTransition { frame, to: FrameState::Committed, rows: 0 };
            self.loop_fact(&name, run, LoopEvent::Frame(moved));
        } else {
            let ix = self.playbook.find(&name);
            let repeat = ix.and_then(|ix| self.playbook.step(ix).repeat.as_ref());
            let whole = matches!(
                repeat.map(|repeat| &repeat.over),
                Some(LoopSource::Cursor(cursor)) if cursor.frame.whole
            );
            let items = if whole { vec![Value::Array(rows)] } else { rows };
            let known = self.loop_state(&(name.clone(), run)).map_or(0, |r| r.ends.len());
            let from = u32::try_from(known).unwrap_or(u32::MAX);
            let recorded = LoopItems { from, items, frame: Some(frame) };
            self.loop_fact(&name, run, LoopEvent::Items(recorded));
        }
        self.advance_loop(&name, run);
    }
}
