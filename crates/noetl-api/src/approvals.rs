//! Pending approvals: steps that wait for a person's answer.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Response of `GET /api/approvals`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalList {
    /// Pending approvals, oldest first.
    pub approvals: Vec<ApprovalView>,
    /// Value of `after` for the next page, as text. `null` on the last page.
    pub next_after: Option<Id>,
}

/// A step that waits for an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalView {
    /// ID of the execution, as text.
    pub execution_id: Id,
    /// Catalog path of the execution's playbook.
    pub path: String,
    /// Name of the waiting step.
    pub step: String,
    /// Zero-based index of the loop item. `null` outside a loop.
    pub item: Option<u32>,
    /// ID of the parked command, as text. Send the answer to `POST
    /// /api/executions/{id}/answers/{command}` with this ID.
    pub command_id: Id,
    /// Callback token that the answer must contain.
    pub token: String,
    /// Question for the approver.
    pub message: Option<String>,
    /// Context shown to the approver.
    pub data: Option<Value>,
    /// Time at which the step began to wait.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// Deadline for the answer. The step fails if none arrives by then.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
}
