//! Frames: portions of a stage's rows.

use serde::{Deserialize, Serialize};

use super::event::ReplayEvent;
use super::meta::{self, Value};
use super::reference::PayloadSummary;
use super::state::UNKNOWN;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayFrame {
    pub frame_id: String,
    /// Stage the frame belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_id: Option<String>,
    /// Frame this one was split from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_frame_id: Option<String>,
    /// Command that processes the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// ID of the event that dispatched the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_event_id: Option<i64>,
    /// ID of the event that ended the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_event_id: Option<i64>,
    pub status: String,
    /// Number of rows in the frame.
    pub row_count: i64,
    /// Number of times the frame was dispatched.
    pub attempts: i64,
    /// ID of the newest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<i64>,
    /// Number of events emitted, as its final event reports.
    pub events_emitted: i64,
    /// Reference to the stored output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<Value>,
    /// Summary of `output_ref`; empty if the frame ended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_ref_summary: Option<PayloadSummary>,
}

impl ReplayFrame {
    /// Creates a frame without events.
    pub(super) fn new(frame_id: String) -> Self {
        Self {
            frame_id,
            stage_id: None,
            parent_frame_id: None,
            command_id: None,
            claimed_event_id: None,
            terminal_event_id: None,
            status: UNKNOWN.to_owned(),
            row_count: 0,
            attempts: 0,
            last_event_id: None,
            events_emitted: 0,
            output_ref: None,
            output_ref_summary: None,
        }
    }

    /// Folds an event about the frame.
    pub(super) fn apply(&mut self, event: &ReplayEvent) {
        let meta = &event.meta;
        self.last_event_id = Some(event.event_id);
        self.stage_id = event.stage().or_else(|| self.stage_id.take());
        self.parent_frame_id =
            meta::text(meta, "parent_frame_id").or_else(|| self.parent_frame_id.take());
        self.command_id = event.command().or_else(|| self.command_id.take());
        match event.kind() {
            "frame.dispatched" => {
                self.status = "CLAIMED".to_owned();
                self.claimed_event_id = Some(event.event_id);
                let attempt = meta::integer(meta, "attempt").unwrap_or(1);
                self.attempts = self.attempts.max(attempt);
            }
            "frame.started" => self.status = "RUNNING".to_owned(),
            "frame.abandoned" => self.status = event.status_or("ABANDONED"),
            "frame.committed" => {
                self.row_count = meta::integer(meta, "row_count").unwrap_or(self.row_count);
                self.end(event, "COMPLETED");
            }
            "frame.failed" => self.end(event, "FAILED"),
            _ => {
                if let Some(status) = event.status() {
                    self.status = status.to_owned();
                }
            }
        }
    }

    fn end(&mut self, event: &ReplayEvent, status: &str) {
        self.status = event.status_or(status);
        self.terminal_event_id = Some(event.event_id);
        let emitted = meta::integer(&event.meta, "events_emitted");
        self.events_emitted = emitted.unwrap_or(self.events_emitted);
        let summary = event.reference.as_ref().map(PayloadSummary::from_value);
        self.output_ref_summary = Some(summary.unwrap_or_default());
        self.output_ref.clone_from(&event.reference);
    }
}
