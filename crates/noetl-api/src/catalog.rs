//! Catalog documents: register, check, list, read, delete, and restore.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Diagnostic, Id, Version};

/// Body of `POST /api/catalog/register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisterRequest {
    /// Document source, as plain text or base64.
    pub content: String,
    /// Document kind if the document doesn't name one. Default: `Playbook`.
    #[serde(default = "playbook")]
    pub resource_type: String,
}

fn playbook() -> String {
    "Playbook".to_owned()
}

impl RegisterRequest {
    /// Builds a request that registers a playbook.
    pub fn playbook(content: impl Into<String>) -> Self {
        Self { content: content.into(), resource_type: playbook() }
    }
}

/// Response of `POST /api/catalog/register` and `PUT /api/catalog/playbook/content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisterReply {
    /// Always `success`; failures are HTTP errors.
    pub status: String,
    /// Confirmation as readable text.
    pub message: String,
    /// Catalog path of the document.
    pub path: String,
    /// Version assigned at that path.
    pub version: u32,
    /// Catalog entry ID, as text.
    pub catalog_id: Id,
    /// Document kind, in lower case.
    pub kind: String,
    /// Diagnostics for the author. With `force`, includes errors that would otherwise reject the
    /// document.
    #[serde(default)]
    pub warnings: Vec<Diagnostic>,
}

/// Body of `POST /api/catalog/list`. Optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListRequest {
    /// Kind to list, case-insensitive. Default: all kinds. `credential` lists credentials without
    /// their secrets.
    #[serde(default)]
    pub resource_type: Option<String>,
}

/// Response of `POST /api/catalog/list` and `POST /api/catalog/agents/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListReply {
    /// Catalog entries, newest first. A catalog list contains every version; an agent list contains
    /// only the newest version of each path.
    pub entries: Vec<CatalogItem>,
}

/// Body of `POST /api/catalog/resource`. Requires `catalog_id` or `path`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceRequest {
    /// Catalog entry ID. Takes precedence over `path`.
    #[serde(default)]
    pub catalog_id: Option<Id>,
    /// Catalog path of the document.
    #[serde(default)]
    pub path: Option<String>,
    /// Version at that path. Default: the highest.
    #[serde(default)]
    pub version: Option<Version>,
}

/// A version of a catalog document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CatalogItem {
    /// Catalog entry ID, as text.
    pub catalog_id: Id,
    /// Catalog path of the document.
    pub path: String,
    /// Document kind, in lower case.
    pub kind: String,
    /// Version at that path.
    pub version: u32,
    /// Document source, as registered.
    pub content: Option<String>,
    /// The document's `workflow` block.
    pub layout: Option<Value>,
    /// The document's `workload` block.
    pub payload: Option<Value>,
    /// The document's labels (`metadata.labels`).
    pub meta: Option<Value>,
    /// Time at which the version was registered.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Deletion time. Absent unless the version is deleted; a deleted version can be read only by
    /// its ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
}

/// Body of `POST /api/catalog/register/batch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisterBatchRequest {
    /// Documents to register, in order: 1 to 1,000.
    pub items: Vec<RegisterRequest>,
}

/// Response of `POST /api/catalog/register/batch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisterBatchReply {
    /// Number of registered documents.
    pub registered: usize,
    /// Number of documents that were not registered.
    pub failed: usize,
    /// Results of the documents, in request order.
    pub results: Vec<BatchResult>,
}

/// Outcome of registering one document of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// Zero-based index in the request.
    pub index: usize,
    /// `registered` or `failed`, per document.
    pub status: String,
    /// Catalog path of the document. Absent on failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Version assigned at that path. Absent on failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Catalog entry ID, as text. Absent on failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog_id: Option<Id>,
    /// Reason for the failure. Absent on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Diagnostics about the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

/// Body of `POST /api/catalog/validate`. The document is checked but not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckRequest {
    /// Document source, as plain text or base64.
    pub content: String,
    /// Document kind if the document doesn't name one. Default: `Playbook`.
    #[serde(default = "playbook")]
    pub resource_type: String,
}

/// Response of `POST /api/catalog/validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckReply {
    /// Whether the document can be registered without `force`.
    pub valid: bool,
    /// Catalog path of the document, if the document names one.
    pub path: Option<String>,
    /// Document kind, in lower case.
    pub kind: Option<String>,
    /// Errors, each as one sentence with its location in the document.
    pub errors: Vec<String>,
    /// All diagnostics: errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Response of `GET /api/catalog/versions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionsReply {
    /// Catalog path that was requested.
    pub path: String,
    /// All versions, deleted ones included, highest first.
    pub versions: Vec<VersionView>,
}

/// A version of a document, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    /// Catalog entry ID, as text.
    pub catalog_id: Id,
    /// Version at the requested path.
    pub version: u32,
    /// Document kind, in lower case.
    pub kind: String,
    /// Time at which the version was registered.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Deletion time. `null` unless the version is deleted.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
}

/// Body of `POST /api/catalog/delete` and `POST /api/catalog/restore`. Requires `catalog_id` or
/// `path`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeleteRequest {
    /// Catalog entry ID. Takes precedence over `path`.
    #[serde(default)]
    pub catalog_id: Option<Id>,
    /// Catalog path of the document.
    #[serde(default)]
    pub path: Option<String>,
    /// Version at that path. Default: all versions. `latest` means the highest version that is not
    /// deleted.
    #[serde(default)]
    pub version: Option<Version>,
}

/// Response of `POST /api/catalog/delete` and `POST /api/catalog/restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeleteReply {
    /// `deleted` or `restored`, depending on the request.
    pub status: String,
    /// Catalog path of the document.
    pub path: String,
    /// Versions that the request changed, highest first. Empty if it changed nothing.
    pub versions: Vec<u32>,
}

/// Body of `POST /api/catalog/agents/list`. Optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentsRequest {
    /// Capabilities that a listed agent must have, all of them. Default: none.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// Response of `GET /api/catalog/playbook/content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlaybookContent {
    /// Catalog path of the playbook.
    pub path: String,
    /// Version at that path.
    pub version: u32,
    /// Catalog entry ID, as text.
    pub catalog_id: Id,
    /// Document source, as registered.
    pub content: String,
}

/// Body of `PUT /api/catalog/playbook/content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PutContent {
    /// Document source, as plain text or base64. The document must have the path of the version it
    /// replaces.
    pub content: String,
}

/// Form for the workload of a document. Response of `GET /api/catalog/{path}/ui_schema`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UiForm {
    /// Catalog path of the document.
    pub path: String,
    /// Version at that path.
    pub version: u32,
    /// Document kind, in lower case.
    pub kind: String,
    /// Title of the form (`metadata.name`).
    pub title: Option<String>,
    /// Form description in Markdown (`metadata.description`).
    pub description_markdown: Option<String>,
    /// Whether the author wants the document shown in the UI (`metadata.exposed_in_ui`). Default:
    /// `false`.
    pub exposed_in_ui: bool,
    /// Fields for the keys of `workload`, in document order.
    pub fields: Vec<UiFormField>,
    /// Time at which the server generated the form.
    #[schema(value_type = String, format = DateTime)]
    pub generated_at: Timestamp,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UiFormField {
    /// Key in the workload, or in the enclosing object.
    pub name: String,
    /// `enum`, `boolean`, `integer`, `number`, `null`, `object`, `array`, or `string`.
    pub kind: String,
    /// Value used if the user leaves the field unchanged.
    pub default: Value,
    /// Explanation for the user (`# ui:description=…`).
    pub description: Option<String>,
    /// Whether the UI must mask the input (`# ui:secret`).
    pub secret: bool,
    /// Glob pattern of selectable credential names (`# ui:credential=glob`).
    pub credential_glob: Option<String>,
    /// Selectable values of an `enum` field (`# ui:enum=[a, b]`).
    pub options: Option<Vec<Value>>,
    /// Fields of an `object` field.
    #[schema(no_recursion)]
    pub children: Option<Vec<UiFormField>>,
}
