//! The execution as a whole in the read model.

use serde::{Deserialize, Serialize};

use super::event::ReplayEvent;
use super::reference::PayloadRef;
use super::state::UNKNOWN;

/// Status of the execution, and references of its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayedExecution {
    /// `UNKNOWN`, `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub status: String,
    /// Step that was last entered or left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_node_name: Option<String>,
    /// Payload references of the execution's events, in event order.
    pub payload_refs: Vec<PayloadRef>,
}

impl Default for ReplayedExecution {
    fn default() -> Self {
        Self { status: UNKNOWN.to_owned(), last_node_name: None, payload_refs: Vec::new() }
    }
}

impl ReplayedExecution {
    /// Folds an event. The last of several terminal events counts.
    pub(super) fn apply(&mut self, event: &ReplayEvent) {
        let kind = event.kind();
        let end = kind.strip_prefix("playbook").and_then(|rest| rest.strip_prefix(['.', '_']));
        match (kind, end) {
            (_, Some(end @ ("completed" | "failed" | "cancelled"))) => {
                self.status = end.to_ascii_uppercase();
            }
            ("step.enter" | "step_enter" | "step_started", _) => {
                if self.status == UNKNOWN {
                    self.status = "RUNNING".to_owned();
                }
                self.note_node(event);
            }
            ("step.exit" | "step_completed" | "command.completed", _) => self.note_node(event),
            _ => {}
        }
        if let Some(reference) = &event.reference {
            self.payload_refs.push(PayloadRef::new(event.event_id, reference));
        }
    }

    fn note_node(&mut self, event: &ReplayEvent) {
        if event.node_name.is_some() {
            self.last_node_name.clone_from(&event.node_name);
        }
    }
}
