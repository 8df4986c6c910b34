//! Documents: registering, listing, reading.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Diagnostic, Id, Version};

/// The body of `POST /api/catalog/register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisterRequest {
    /// The document, plain or in base64.
    pub content: String,
    /// Its kind when it names none itself.
    #[serde(default = "playbook")]
    pub resource_type: String,
}

fn playbook() -> String {
    "Playbook".to_owned()
}

impl RegisterRequest {
    /// A playbook to register.
    pub fn playbook(content: impl Into<String>) -> Self {
        Self { content: content.into(), resource_type: playbook() }
    }
}

/// What was registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisterReply {
    /// `success`.
    pub status: String,
    /// One sentence for people.
    pub message: String,
    /// The document's path.
    pub path: String,
    /// Its version at that path.
    pub version: u32,
    /// Its id, as text.
    pub catalog_id: Id,
    /// Its kind, lower-case.
    pub kind: String,
    /// What its author should look at; with `force` also what would have been refused.
    #[serde(default)]
    pub warnings: Vec<Diagnostic>,
}

/// The body of `POST /api/catalog/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListRequest {
    /// Only this kind, whatever its case.
    #[serde(default)]
    pub resource_type: Option<String>,
}

/// Documents, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListReply {
    /// Every version of every document.
    pub entries: Vec<Entry>,
}

/// The body of `POST /api/catalog/resource`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceRequest {
    /// The entry; wins over `path`.
    #[serde(default)]
    pub catalog_id: Option<Id>,
    /// The path.
    #[serde(default)]
    pub path: Option<String>,
    /// The version at that path; the highest when absent.
    #[serde(default)]
    pub version: Option<Version>,
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// Its id, as text.
    pub catalog_id: Id,
    /// Its path.
    pub path: String,
    /// Its kind, lower-case.
    pub kind: String,
    /// Its version at that path.
    pub version: u32,
    /// The document as it was sent.
    pub content: Option<String>,
    /// Its `workflow` block.
    pub layout: Option<Value>,
    /// Its `workload` block.
    pub payload: Option<Value>,
    /// Its labels.
    pub meta: Option<Value>,
    /// When it was registered.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
