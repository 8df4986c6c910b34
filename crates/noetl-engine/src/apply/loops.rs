//! Applies loop events to the state.

use std::sync::Arc;

use noetl_model::event::{Issued, LoopEvent, LoopFact, LoopItem};
use noetl_model::repeat::{FrameState, LoopItems};
use noetl_model::{Failure, Seq, Value};
use noetl_playbook::template::{Source, from_json_owned};

use crate::execution::{Execution, OpenCommand};
use crate::repeat::{self, Chunk, End, Repeat, Short, Span};
use crate::trail::{Trail, Undo};
use crate::values::{Kept, size_of, slot};

type Visit = (Arc<str>, u32);

impl Execution {
    pub(super) fn loop_moved(&mut self, fact: &LoopFact, seq: Seq, trail: &mut Trail) {
        let visit = (fact.step.clone(), fact.generation);
        match &fact.what {
            LoopEvent::Started(started) => {
                let before = self.loops.insert(visit.clone(), Repeat::new(started));
                trail.push(|| Undo::Loop(visit, before.map(Box::new)));
            }
            LoopEvent::Items(items) => self.add_items(&visit, items, seq, trail),
            LoopEvent::Frame(moved) => {
                let (frame, rows) = (moved.frame, moved.rows);
                self.in_loop(&visit, trail, |repeat| match moved.to {
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
                let Some(repeat) = self.loops.get(&visit) else { return };
                let result = repeat.result();
                if let Some(under_way) = self.running.get_mut(&visit) {
                    let before = under_way.clone();
                    under_way.data = Some(result);
                    trail.push(|| Undo::Visit(visit, Some(before)));
                }
            }
        }
    }

    fn add_items(&mut self, visit: &Visit, given: &LoopItems, seq: Seq, trail: &mut Trail) {
        let bytes: usize = given.items.iter().map(size_of).sum();
        let fits = self.held_bytes().saturating_add(bytes) <= self.limits.total_bytes
            && self.limits.holds_items();
        let source = if fits {
            Source::Held(from_json_owned(Value::Array(given.items.clone())))
        } else {
            Source::Event { seq, key: None, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
        };
        trail.note(&source);
        let held = if fits { bytes } else { 0 };
        let len = u32::try_from(given.items.len()).unwrap_or(u32::MAX);
        let items = Kept { slot: slot(source), bytes: held };
        let chunk = Chunk { from: given.from, len, items };
        let first = given.from;
        self.in_loop(visit, trail, |repeat| {
            let mut undo = vec![
                repeat.add_chunk(chunk),
                repeat.set_counters(|counters| {
                    counters.bytes += held;
                }),
            ];
            if let Some(frame) = given.frame {
                let span = Span { first, rows: len, next: 0, open: 0, failed: 0 };
                undo.push(repeat.set_span(frame, Some(span)));
            }
            undo
        });
    }

    /// Counts a command of a loop as issued, for the first time or as another attempt.
    pub(super) fn item_issued(&mut self, issued: &Issued, item: &LoopItem, trail: &mut Trail) {
        let visit = (issued.step.clone(), issued.generation);
        let item = item.clone();
        self.in_loop(&visit, trail, |repeat| {
            if item.claims {
                return vec![repeat.set_counters(|counters| counters.claims += 1)];
            }
            let mut undo = Vec::with_capacity(3);
            let ended = repeat.ends.get(repeat::index(item.index)).cloned().flatten();
            let failed_before = matches!(ended, Some(End::Failed(_)));
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
        end: Option<End>,
        trail: &mut Trail,
    ) {
        let issued = &command.issued;
        let Some(item) = &issued.item else { return };
        let visit = (issued.step.clone(), issued.generation);
        self.in_loop(&visit, trail, |repeat| {
            if item.claims {
                return vec![repeat.set_counters(|counters| {
                    counters.claims = counters.claims.saturating_sub(1);
                })];
            }
            let mut undo = Vec::with_capacity(3);
            let failed = matches!(end, Some(End::Failed(_)));
            undo.push(repeat.set_counters(|counters| {
                counters.open = counters.open.saturating_sub(1);
                match &end {
                    Some(End::Done(kept)) => {
                        counters.done += 1;
                        counters.bytes += kept.bytes;
                    }
                    Some(End::Failed(_)) => {
                        counters.failed += 1;
                        counters.first_failed.get_or_insert(item.index);
                    }
                    Some(End::Skipped) => counters.skipped += 1,
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
    pub(super) fn drop_loop(&mut self, visit: &Visit, trail: &mut Trail) {
        if let Some(repeat) = self.loops.remove(visit) {
            trail.push(|| Undo::Loop(visit.clone(), Some(Box::new(repeat))));
        }
    }

    fn in_loop(
        &mut self,
        visit: &Visit,
        trail: &mut Trail,
        change: impl FnOnce(&mut Repeat) -> Vec<repeat::Undo>,
    ) {
        let Some(repeat) = self.loops.get_mut(visit) else { return };
        for undo in change(repeat) {
            trail.push(|| Undo::InLoop(visit.clone(), undo));
        }
    }
}

/// Returns the outcome of an item that failed.
pub(super) fn failed(failure: &Failure) -> End {
    End::Failed(Arc::new(Short::of(failure)))
}
