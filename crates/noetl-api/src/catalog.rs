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
    /// When it was deleted, if it was; such a one is found by its id only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
}

/// The body of `POST /api/catalog/register/batch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchRequest {
    /// The documents, registered in this order.
    pub items: Vec<RegisterRequest>,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchReply {
    /// How many were registered.
    pub registered: usize,
    /// How many were not.
    pub failed: usize,
    /// One per document, in their order.
    pub results: Vec<BatchResult>,
}

/// What became of one document of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// Its place in the request, from 0.
    pub index: usize,
    /// `registered` or `failed`.
    pub status: String,
    /// Its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its version at that path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Its id, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog_id: Option<Id>,
    /// Why it was not registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What there is to say about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

/// A document to look at without keeping it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckRequest {
    /// The document, plain or in base64.
    pub content: String,
    /// Its kind when it names none itself.
    #[serde(default = "playbook")]
    pub resource_type: String,
}

/// What was found about a document that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckReply {
    /// Whether it could be registered as it is.
    pub valid: bool,
    /// Its path.
    pub path: Option<String>,
    /// Its kind, lower-case.
    pub kind: Option<String>,
    /// What is wrong with it, each as one sentence with its place.
    pub errors: Vec<String>,
    /// Everything there is to say about it.
    pub diagnostics: Vec<Diagnostic>,
}

/// The versions of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionsReply {
    /// The path.
    pub path: String,
    /// Every version, highest first.
    pub versions: Vec<VersionView>,
}

/// One version of a document, without what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    /// Its id, as text.
    pub catalog_id: Id,
    /// Its version.
    pub version: u32,
    /// Its kind, lower-case.
    pub kind: String,
    /// When it was registered.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was deleted, if it was.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
}

/// What `POST /api/catalog/delete` and `POST /api/catalog/restore` are about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeleteRequest {
    /// The entry; wins over `path`.
    #[serde(default)]
    pub catalog_id: Option<Id>,
    /// The path.
    #[serde(default)]
    pub path: Option<String>,
    /// The version at that path; all of them when absent.
    #[serde(default)]
    pub version: Option<Version>,
}

/// What was deleted or restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeleteReply {
    /// `deleted` or `restored`.
    pub status: String,
    /// The path.
    pub path: String,
    /// The versions that were not so before, highest first.
    pub versions: Vec<u32>,
}

/// The body of `POST /api/catalog/agents/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentsRequest {
    /// Only agents that can do all of this.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// The text of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlaybookContent {
    /// Its path.
    pub path: String,
    /// Its version.
    pub version: u32,
    /// Its id, as text.
    pub catalog_id: Id,
    /// The document as it was sent.
    pub content: String,
}

/// The body of `PUT /api/catalog/playbook/content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PutContent {
    /// The document, plain or in base64.
    pub content: String,
}

/// A form for the input of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UiForm {
    /// Its path.
    pub path: String,
    /// Its version.
    pub version: u32,
    /// Its kind, lower-case.
    pub kind: String,
    /// What it is called.
    pub title: Option<String>,
    /// What it is for.
    pub description_markdown: Option<String>,
    /// Whether its author wants it shown.
    pub exposed_in_ui: bool,
    /// One per key of its `workload`, in the order of the document.
    pub fields: Vec<UiFormField>,
    /// When this was made.
    #[schema(value_type = String, format = DateTime)]
    pub generated_at: Timestamp,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UiFormField {
    /// Its key.
    pub name: String,
    /// `enum`, `boolean`, `integer`, `number`, `null`, `object`, `array` or `string`.
    pub kind: String,
    /// What it is when nothing is filled in.
    pub default: Value,
    /// What it is for.
    pub description: Option<String>,
    /// Whether what is typed is not to be shown.
    pub secret: bool,
    /// Which credentials may be chosen.
    pub credential_glob: Option<String>,
    /// What may be chosen.
    pub options: Option<Vec<Value>>,
    /// The fields of an object.
    #[schema(no_recursion)]
    pub children: Option<Vec<UiFormField>>,
}
