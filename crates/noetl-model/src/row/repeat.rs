//! Encoding and decoding of rows about loops, frames, and loop items.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::encode::{json, row};
use super::error::RowError;
use super::{EventRow, types};
use crate::Event;
use crate::event::{LoopEvent, LoopFact, LoopItem, LoopItemRef};
use crate::loops::{
    FrameState, FrameTransition, LoopItems, LoopStarted, LoopStats, StageClosed, loop_name,
};

/// Loop metadata of a row. The number of the step run is the suffix of `loop_id`.
#[derive(Serialize, Deserialize)]
struct LoopMeta<T> {
    loop_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frame_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frame: Option<u32>,
    #[serde(flatten)]
    rest: T,
}

#[derive(Serialize, Deserialize)]
struct Nothing {}

#[derive(Serialize, Deserialize)]
struct Rows {
    row_count: u32,
}

#[derive(Serialize, Deserialize)]
struct KindMeta<T> {
    kind: String,
    #[serde(flatten)]
    rest: T,
}

/// Loop item metadata of a command's row, with wire names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ItemMeta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loop_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collection_size: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iteration_index: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frame: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    claims: bool,
}

impl ItemMeta {
    /// Returns the metadata of an issued command. A claim is not an item, so it omits `loop_id`;
    /// otherwise readers that count a loop's items by their commands would count it.
    pub(super) fn issued(step: &str, run: u32, item: Option<&LoopItem>) -> Self {
        let Some(item) = item else { return Self::default() };
        Self {
            loop_id: (!item.claims).then(|| loop_name(step, run)),
            collection_size: item.total,
            iteration_index: Some(item.index),
            frame: item.frame,
            claims: item.claims,
        }
    }

    /// Returns the metadata of a completed or failed command as JSON.
    pub(super) fn ended(step: &str, item: Option<&LoopItemRef>) -> Option<String> {
        let item = item?;
        Some(json(&Self {
            loop_id: Some(loop_name(step, item.run)),
            collection_size: item.total,
            iteration_index: Some(item.index),
            frame: item.frame,
            claims: false,
        }))
    }

    pub(super) fn item(self) -> Option<LoopItem> {
        let Self { collection_size: total, frame, claims, .. } = self;
        self.iteration_index.map(|index| LoopItem { index, total, frame, claims })
    }

    pub(super) fn item_of(self) -> Option<Box<LoopItemRef>> {
        let run = run_number(self.loop_id.as_deref()?)?;
        let Self { collection_size: total, frame, .. } = self;
        let index = self.iteration_index?;
        Some(Box::new(LoopItemRef { run, index, total, frame }))
    }
}

fn run_number(loop_id: &str) -> Option<u32> {
    loop_id.rsplit_once(':')?.1.parse().ok()
}

/// Encodes a loop event as a row.
pub(super) fn encode(event: &Event, fact: &LoopFact) -> EventRow {
    let name = loop_name(&fact.step, fact.run);
    let step = &fact.step;
    match &fact.what {
        LoopEvent::Started(started) if started.total.is_none() => {
            let rest = KindMeta { kind: "cursor".to_owned(), rest: started };
            let meta = of_stage(name, None, rest);
            EventRow { meta: Some(meta), ..row(event, types::STAGE_OPENED, step, "OPEN") }
        }
        LoopEvent::Started(started) => EventRow {
            meta: Some(of_loop(name, started)),
            ..row(event, types::LOOP_STARTED, step, "STARTED")
        },
        LoopEvent::Items(items) => {
            let (meta, event_type, status) = match items.frame {
                Some(frame) => {
                    let row_count = u32::try_from(items.items.len()).unwrap_or(u32::MAX);
                    let meta = of_stage(name, Some(frame), Rows { row_count });
                    (meta, types::FRAME_STARTED, "RUNNING")
                }
                None => (of_loop(name, Nothing {}), types::LOOP_ITEMS, "RECORDED"),
            };
            EventRow {
                context: Some(json(items)),
                meta: Some(meta),
                ..row(event, event_type, step, status)
            }
        }
        LoopEvent::Frame(moved) => {
            let (event_type, status) = match moved.to {
                FrameState::Dispatched => (types::FRAME_DISPATCHED, "CLAIMED"),
                FrameState::Committed => (types::FRAME_COMMITTED, "COMPLETED"),
                FrameState::Failed => (types::FRAME_FAILED, "FAILED"),
            };
            let meta = of_stage(name, Some(moved.frame), Rows { row_count: moved.rows });
            EventRow { meta: Some(meta), ..row(event, event_type, step, status) }
        }
        LoopEvent::StageClosed(closed) => {
            let meta = of_stage(name, None, closed);
            EventRow { meta: Some(meta), ..row(event, types::STAGE_CLOSED, step, "CLOSED") }
        }
        LoopEvent::Done(stats) => EventRow {
            meta: Some(of_loop(name, stats)),
            ..row(event, types::LOOP_DONE, step, "COMPLETED")
        },
    }
}

fn of_loop<T: Serialize>(loop_id: String, rest: T) -> String {
    json(&LoopMeta { loop_id, stage_id: None, frame_id: None, frame: None, rest })
}

fn of_stage<T: Serialize>(loop_id: String, frame: Option<u32>, rest: T) -> String {
    let stage_id = Some(loop_id.clone());
    let frame_id = frame.map(|frame| format!("{loop_id}:{frame}"));
    json(&LoopMeta { loop_id, stage_id, frame_id, frame, rest })
}

impl EventRow {
    /// Decodes the loop fact of a row, or returns `None` if the row has another type.
    pub(super) fn loop_fact(&self, event_type: &str) -> Result<Option<LoopFact>, RowError> {
        let frame_state = match event_type {
            types::FRAME_DISPATCHED => Some(FrameState::Dispatched),
            types::FRAME_COMMITTED => Some(FrameState::Committed),
            types::FRAME_FAILED => Some(FrameState::Failed),
            _ => None,
        };
        let (loop_id, what) = match event_type {
            types::LOOP_STARTED => {
                let of: LoopMeta<LoopStarted> = self.meta()?;
                (of.loop_id, LoopEvent::Started(of.rest))
            }
            types::STAGE_OPENED => {
                let of: LoopMeta<KindMeta<LoopStarted>> = self.meta()?;
                (of.loop_id, LoopEvent::Started(of.rest.rest))
            }
            types::LOOP_ITEMS | types::FRAME_STARTED => {
                let of: LoopMeta<Nothing> = self.meta()?;
                let items: LoopItems = self.context()?;
                (of.loop_id, LoopEvent::Items(items))
            }
            types::STAGE_CLOSED => {
                let of: LoopMeta<StageClosed> = self.meta()?;
                (of.loop_id, LoopEvent::StageClosed(of.rest))
            }
            types::LOOP_DONE => {
                let of: LoopMeta<LoopStats> = self.meta()?;
                (of.loop_id, LoopEvent::Done(of.rest))
            }
            _ => {
                let Some(to) = frame_state else { return Ok(None) };
                let of: LoopMeta<Rows> = self.meta()?;
                let frame = of.frame.ok_or_else(|| self.missing("meta.frame"))?;
                let moved = FrameTransition { frame, to, rows: of.rest.row_count };
                (of.loop_id, LoopEvent::Frame(moved))
            }
        };
        let run =
            run_number(&loop_id).ok_or_else(|| self.missing("meta.loop_id with its visit"))?;
        let step: Arc<str> = self.node()?;
        Ok(Some(LoopFact { step, run, what }))
    }
}
