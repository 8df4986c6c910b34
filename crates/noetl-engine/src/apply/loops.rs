//! Applies loop events to the state.

use std::sync::Arc;

use noetl_model::event::{CommandSpec, LoopEvent, LoopFact, LoopItem};
use noetl_model::loops::{FrameState, LoopItems};
use noetl_model::{Failure, Seq, Value};
use noetl_template::{ValueSource, from_json_owned};

use crate::execution::{Execution, OpenCommand};
use crate::loops::{self, Chunk, ItemFailure, ItemOutcome, ItemRange, LoopState};
use crate::undo_log::{UndoEntry, UndoLog};
use crate::values::{StoredValue, size_of, slot};

type StepRunKey = (Arc<str>, u32);

impl Execution {
    pub(super) fn loop_moved(&mut self, fact: &LoopFact, seq: Seq, trail: &mut UndoLog) {
        let step_run_key = (fact.step.clone(), fact.run);
        match &fact.what {
            LoopEvent::Started(started) => {
                let before = self.loops.insert(step_run_key.clone(), LoopState::new(started));
                trail.push(|| UndoEntry::Loop(step_run_key, before.map(Box::new)));
            }
            LoopEvent::Items(items) => self.add_items(&step_run_key, items, seq, trail),
            LoopEvent::Frame(moved) => {
                let (frame, rows) = (moved.frame, moved.rows);
                self.in_loop(&step_run_key, trail, |repeat| match moved.to {
                    FrameState::Dispatched => {
                        vec![repeat.set_counters(|counters| {
                            counters.frames = counters.frames.max(frame + 1);
                        })]
                    }
                    FrameState::Committed | FrameState::Failed => vec![
                        repeat.set_span(frame, None),
                        repeat.set_counters(|counters| {
                            counters.drained |= rows == 0;
                            counters.full_frames += u32::from(rows > 0);
                        }),
                    ],
                });
            }
            LoopEvent::StageClosed(_) => {}
            LoopEvent::Done(_) => {
                let Some(repeat) = self.loops.get(&step_run_key) else { return };
                let result = repeat.result();
                if let Some(step_run) = self.running.get_mut(&step_run_key) {
                    let before = step_run.clone();
                    step_run.data = Some(result);
                    trail.push(|| UndoEntry::StepRun(step_run_key, Some(before)));
                }
            }
        }
    }

    fn add_items(
        &mut self,
        step_run_key: &StepRunKey,
        added: &LoopItems,
        seq: Seq,
        trail: &mut UndoLog,
    ) {
        let bytes: usize = added.items.iter().map(size_of).sum();
        let fits = self.inline_bytes().saturating_add(bytes) <= self.limits.total_bytes
            && self.limits.holds_items();
        let source = if fits {
            ValueSource::Held(from_json_owned(Value::Array(added.items.clone())))
        } else {
            ValueSource::Event { seq, key: None, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
        };
        trail.note(&source);
        let inline_bytes = if fits { bytes } else { 0 };
        let len = u32::try_from(added.items.len()).unwrap_or(u32::MAX);
        let items = StoredValue { slot: slot(source), bytes: inline_bytes };
        let chunk = Chunk { from: added.from, len, items };
        let first = added.from;
        self.in_loop(step_run_key, trail, |repeat| {
            let mut undo = vec![
                repeat.add_chunk(chunk),
                repeat.set_counters(|counters| {
                    counters.bytes += inline_bytes;
                }),
            ];
            if let Some(frame) = added.frame {
                let span = ItemRange { first, rows: len, next: 0, open: 0, failed: 0 };
                undo.push(repeat.set_span(frame, Some(span)));
            }
            undo
        });
    }

    /// Counts a command of a loop as issued, for the first time or as another attempt.
    pub(super) fn item_issued(
        &mut self,
        issued: &CommandSpec,
        item: &LoopItem,
        trail: &mut UndoLog,
    ) {
        let step_run_key = (issued.step.clone(), issued.run);
        let item = item.clone();
        self.in_loop(&step_run_key, trail, |repeat| {
            if item.claims {
                return vec![repeat.set_counters(|counters| counters.claims += 1)];
            }
            let mut undo = Vec::with_capacity(3);
            let ended = repeat.ends.get(loops::index(item.index)).cloned().flatten();
            let failed_before = matches!(ended, Some(ItemOutcome::Failed(_)));
            if failed_before {
                undo.extend(repeat.set_end(item.index, None));
            }
            undo.push(repeat.set_counters(|counters| {
                counters.open += 1;
                if failed_before {
                    counters.failed -= 1;
                    counters.first_failed =
                        counters.first_failed.filter(|first| *first != item.index);
                }
            }));
            let span = repeat.span_of(item.frame);
            if let Some(mut now) = repeat.spans.get(&span).copied() {
                now.open += 1;
                now.failed -= u32::from(failed_before);
                now.next = now.next.max(item.index.saturating_sub(now.first) + 1);
                undo.push(repeat.set_span(span, Some(now)));
            }
            undo
        });
    }

    /// Records the outcome of an item's command. `None` means that the item has not ended: the
    /// lease expired, or the item's pipeline has another segment.
    pub(super) fn item_ended(
        &mut self,
        command: &OpenCommand,
        end: Option<ItemOutcome>,
        trail: &mut UndoLog,
    ) {
        let issued = &command.issued;
        let Some(item) = &issued.item else { return };
        let step_run_key = (issued.step.clone(), issued.run);
        self.in_loop(&step_run_key, trail, |repeat| {
            if item.claims {
                return vec![repeat.set_counters(|counters| {
                    counters.claims = counters.claims.saturating_sub(1);
                })];
            }
            let mut undo = Vec::with_capacity(3);
            let failed = matches!(end, Some(ItemOutcome::Failed(_)));
            undo.push(repeat.set_counters(|counters| {
                counters.open = counters.open.saturating_sub(1);
                match &end {
                    Some(ItemOutcome::Done(stored)) => {
                        counters.done += 1;
                        counters.bytes += stored.bytes;
                    }
                    Some(ItemOutcome::Failed(_)) => {
                        counters.failed += 1;
                        counters.first_failed.get_or_insert(item.index);
                    }
                    Some(ItemOutcome::Skipped) => counters.skipped += 1,
                    None => {}
                }
            }));
            let span = repeat.span_of(item.frame);
            if let Some(mut now) = repeat.spans.get(&span).copied() {
                now.open = now.open.saturating_sub(1);
                now.failed += u32::from(failed);
                undo.push(repeat.set_span(span, Some(now)));
            }
            if end.is_some() {
                undo.extend(repeat.set_end(item.index, end));
            }
            undo
        });
    }

    /// Removes the loop of a step run that ends.
    pub(super) fn drop_loop(&mut self, step_run_key: &StepRunKey, trail: &mut UndoLog) {
        if let Some(repeat) = self.loops.remove(step_run_key) {
            trail.push(|| UndoEntry::Loop(step_run_key.clone(), Some(Box::new(repeat))));
        }
    }

    fn in_loop(
        &mut self,
        step_run_key: &StepRunKey,
        trail: &mut UndoLog,
        change: impl FnOnce(&mut LoopState) -> Vec<loops::LoopUndo>,
    ) {
        let Some(repeat) = self.loops.get_mut(step_run_key) else { return };
        for undo in change(repeat) {
            trail.push(|| UndoEntry::InLoop(step_run_key.clone(), undo));
        }
    }
}

/// Returns the outcome of an item that failed.
pub(super) fn failed(failure: &Failure) -> ItemOutcome {
    ItemOutcome::Failed(Arc::new(ItemFailure::from_failure(failure)))
}
