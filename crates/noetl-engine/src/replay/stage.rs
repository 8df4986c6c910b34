//! Stages: parts of an execution that open and close.

use serde::{Deserialize, Serialize};

use super::event::ReplayEvent;
use super::meta;
use super::state::UNKNOWN;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    pub stage_id: String,
    pub status: String,
    /// Kind of the stage, from its first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Step of the stage, from its first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_name: Option<String>,
    /// Stage that contains this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_stage_id: Option<String>,
    /// Loop that contains the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_event_id: Option<String>,
    /// ID of the event that opened the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_event_id: Option<i64>,
    /// ID of the event that closed the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_event_id: Option<i64>,
    /// Number of frames, from the closing event.
    pub frame_count: i64,
    pub row_count: i64,
    pub events_emitted: i64,
    pub failed_count: i64,
    /// ID of the newest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<i64>,
}

impl Stage {
    /// Creates a stage from its first event.
    pub(super) fn new(stage_id: String, event: &ReplayEvent) -> Self {
        let step_name = || meta::text(&event.meta, "step_name");
        Self {
            stage_id,
            status: UNKNOWN.to_owned(),
            kind: meta::text(&event.meta, "kind"),
            step_name: event.node_name.clone().or_else(step_name),
            parent_stage_id: None,
            loop_event_id: None,
            opened_event_id: None,
            closed_event_id: None,
            frame_count: 0,
            row_count: 0,
            events_emitted: 0,
            failed_count: 0,
            last_event_id: None,
        }
    }

    /// Folds an event about the stage.
    pub(super) fn apply(&mut self, event: &ReplayEvent) {
        let meta = &event.meta;
        self.last_event_id = Some(event.event_id);
        self.parent_stage_id =
            meta::text(meta, "parent_stage_id").or_else(|| self.parent_stage_id.take());
        self.loop_event_id = event.loop_id().or_else(|| self.loop_event_id.take());
        match event.kind() {
            "stage.opened" => {
                self.status = "OPEN".to_owned();
                self.opened_event_id = Some(event.event_id);
            }
            "stage.closed" => {
                self.status = event.status_or("CLOSED");
                self.closed_event_id = Some(event.event_id);
                let count = |key, so_far: i64| meta::integer(meta, key).unwrap_or(so_far);
                self.frame_count = count("frame_count", self.frame_count);
                self.row_count = count("row_count", self.row_count);
                self.events_emitted = count("events_emitted", self.events_emitted);
                self.failed_count = count("failed_count", self.failed_count);
            }
            _ => {
                if let Some(status) = event.status() {
                    self.status = status.to_owned();
                }
            }
        }
    }
}
