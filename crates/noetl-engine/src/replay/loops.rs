//! Loops in the read model.

use serde::{Deserialize, Serialize};

use super::event::ReplayEvent;
use super::meta;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayLoop {
    pub loop_id: String,
    /// Step of the loop, from its first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_name: Option<String>,
    /// Number of items, from its first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// Number of items that succeeded.
    pub done: u64,
    /// Number of items that failed.
    pub failed: u64,
    /// Whether the loop has ended.
    pub completed: bool,
    /// ID of the newest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<i64>,
}

impl ReplayLoop {
    /// Creates a loop from its first event.
    pub(super) fn new(loop_id: String, event: &ReplayEvent) -> Self {
        let total = || meta::integer(&event.meta, "total");
        Self {
            loop_id,
            step_name: event.node_name.clone(),
            total: meta::integer(&event.meta, "collection_size").or_else(total),
            done: 0,
            failed: 0,
            completed: false,
            last_event_id: None,
        }
    }

    /// Folds an event about the loop.
    pub(super) fn apply(&mut self, event: &ReplayEvent) {
        self.last_event_id = Some(event.event_id);
        match event.kind() {
            "command.completed" | "loop.shard.done" => self.done += 1,
            "command.failed" | "loop.shard.failed" => self.failed += 1,
            "loop.done" | "loop.fanin.completed" => self.completed = true,
            _ => {}
        }
    }
}
