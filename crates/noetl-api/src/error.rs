//! Error responses and diagnostics about documents.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of every error response.
///
/// `code` is stable and meant for programs. `detail` and `message` repeat `error`, because
/// published clients read one or the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// Error message for people.
    pub error: String,
    /// HTTP status code of the response.
    pub status: u16,
    /// Stable error code in snake case, such as `playbook_not_found`. Never changes for a class of
    /// errors.
    #[serde(default)]
    pub code: String,
    /// Same text as `error`.
    #[serde(default)]
    pub detail: String,
    /// Same text as `error`.
    #[serde(default)]
    pub message: String,
    /// Diagnostics about the document in the request. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

impl ErrorBody {
    /// Creates a body with a status, code, and message, and no diagnostics.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            error: message.clone(),
            status,
            code: code.to_owned(),
            detail: message.clone(),
            message,
            diagnostics: Vec::new(),
        }
    }
}

/// Error or warning about a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnostic {
    /// Severity of the diagnostic: `error` or `warning`.
    pub severity: String,
    /// Stable code: `E…` for errors, `W…` for warnings.
    pub code: String,
    /// Line number, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// Path to the element in the document, such as `metadata.labels[0]`. Empty for the whole
    /// document.
    pub path: String,
    /// Description of the problem.
    pub message: String,
    /// Suggested correction. `null` if there is none.
    pub help: Option<String>,
}
