//! How a request fails.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every reply that is not a success.
///
/// `error` and `status` are what the wire has always had; `code` is stable and for programs.
/// `detail` and `message` repeat the sentence, because published clients look in either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong, in one sentence.
    pub error: String,
    /// The HTTP status.
    pub status: u16,
    /// The class, in snake case; it never changes for one class.
    #[serde(default)]
    pub code: String,
    /// The sentence again.
    #[serde(default)]
    pub detail: String,
    /// The sentence again.
    #[serde(default)]
    pub message: String,
    /// What is wrong with a document, finding by finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

impl ErrorBody {
    /// A body for this status, code and sentence.
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

/// One finding about a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnostic {
    /// `error` or `warning`.
    pub severity: String,
    /// A stable code, `E…` or `W…`.
    pub code: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Where in the document; empty for the whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}
