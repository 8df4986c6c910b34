//! Events that name the callers who act on an execution.

use noetl_model::{EventId, ExecutionId};

use super::{Report, ReportError, Reports};

/// Type of the event that names the caller of a start, a cancellation and the like.
pub(super) const ACTOR_RECORDED: &str = "actor.recorded";

impl Reports {
    /// Records in an execution's log which caller is about to change it, or has started it. The event
    /// decides nothing, and no caller can report one.
    pub async fn record_actor(
        &self,
        execution: ExecutionId,
        actor: &str,
        operation: &str,
    ) -> Result<EventId, ReportError> {
        self.keep(Report {
            execution,
            step: String::new(),
            event_type: ACTOR_RECORDED.to_owned(),
            status: Some("RECORDED".to_owned()),
            payload: None,
            meta: Some(serde_json::json!({ "actor": actor, "operation": operation })),
            worker: None,
            event: None,
        })
        .await
    }
}
