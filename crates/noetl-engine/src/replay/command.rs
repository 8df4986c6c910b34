//! Commands in the read model.

use serde::{Deserialize, Serialize};

use super::event::ReplayEvent;
use super::meta;
use super::state::UNKNOWN;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayedCommand {
    pub command_id: String,
    /// Stage the command belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_id: Option<String>,
    /// Frame the command belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_id: Option<String>,
    /// Command this one follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_command_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_locator: Option<String>,
    pub status: String,
    /// ID of the event that issued the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_event_id: Option<i64>,
    /// ID of the event that claimed the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_event_id: Option<i64>,
    /// ID of the event that started the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_event_id: Option<i64>,
    /// ID of the event that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_event_id: Option<i64>,
    /// ID of the newest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_id: Option<i64>,
}

impl ReplayedCommand {
    /// Creates a command without events.
    pub(super) fn new(command_id: String) -> Self {
        Self {
            command_id,
            stage_id: None,
            frame_id: None,
            parent_command_id: None,
            worker_id: None,
            worker_locator: None,
            status: UNKNOWN.to_owned(),
            issued_event_id: None,
            claimed_event_id: None,
            started_event_id: None,
            terminal_event_id: None,
            last_event_id: None,
        }
    }

    /// Folds an event about the command.
    pub(super) fn apply(&mut self, event: &ReplayEvent) {
        let id = Some(event.event_id);
        self.last_event_id = id;
        self.note_who(event);
        match event.kind() {
            "command.issued" => {
                self.status = event.status_or("PENDING");
                self.issued_event_id = id;
            }
            "command.claimed" => {
                self.status = event.status_or("CLAIMED");
                self.claimed_event_id = id;
            }
            "command.started" => {
                self.status = event.status_or("RUNNING");
                self.started_event_id = id;
            }
            "command.completed" => self.end(event, "COMPLETED"),
            "command.failed" => self.end(event, "FAILED"),
            "command.cancelled" => self.end(event, "CANCELLED"),
            other if other.starts_with("command.") => {
                if let Some(status) = event.status() {
                    self.status = status.to_owned();
                }
            }
            _ => {}
        }
    }

    fn note_who(&mut self, event: &ReplayEvent) {
        let meta_text = |key| meta::text(&event.meta, key);
        self.stage_id = event.stage().or_else(|| self.stage_id.take());
        self.frame_id = event.frame().or_else(|| self.frame_id.take());
        self.parent_command_id =
            meta_text("parent_command_id").or_else(|| self.parent_command_id.take());
        let worker = event.worker_id.clone().or_else(|| meta_text("worker_id"));
        self.worker_id = worker.or_else(|| self.worker_id.take());
        self.worker_locator = meta_text("worker_locator").or_else(|| self.worker_locator.take());
    }

    fn end(&mut self, event: &ReplayEvent, status: &str) {
        self.status = event.status_or(status);
        self.terminal_event_id = Some(event.event_id);
    }
}
