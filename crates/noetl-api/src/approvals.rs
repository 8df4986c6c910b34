//! Steps that wait for a person.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The reply of `GET /api/approvals`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalList {
    /// Oldest first.
    pub approvals: Vec<ApprovalView>,
    /// What to ask for as `after` to go on, as text; null when that is all.
    pub next_after: Option<Id>,
}

/// One step that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalView {
    /// Its execution, as text.
    pub execution_id: Id,
    /// The path of its playbook.
    pub path: String,
    /// The step.
    pub step: String,
    /// The place of its item in a loop.
    pub item: Option<u32>,
    /// Its command, as text: what the answer is for.
    pub command_id: Id,
    /// What an answer has to carry.
    pub token: String,
    /// What is to be decided.
    pub message: Option<String>,
    /// What whoever decides should see.
    pub data: Option<Value>,
    /// Since when it waits.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// When it stops waiting, and fails.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
}
