//! Errors of compiling and rendering templates.

/// Error for text that is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    pub message: String,
    /// Line within the string, from 1.
    pub line: usize,
    /// Column within the line in characters, from 1. 1 if unknown.
    pub column: usize,
}

impl SyntaxError {
    /// Creates an error at a byte offset of `source`.
    pub(super) fn at_offset(source: &str, offset: usize, message: impl Into<String>) -> Self {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &source[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            message: message.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Error of rendering a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} in `{template}`")]
pub struct RenderError {
    /// Description of the problem, including the values involved.
    pub message: String,
    /// Source text of the template, shortened.
    pub template: String,
}

/// Evaluation error, before the template is known.
#[derive(Debug)]
pub(super) struct EvalError(pub(super) String);

impl EvalError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(super) fn in_template(self, source: &str) -> RenderError {
        RenderError { message: self.0, template: shorten(source, TEMPLATE_CHARS_SHOWN) }
    }
}

impl From<minijinja::Error> for EvalError {
    /// Keeps the detail message and drops minijinja's prefix and source listing.
    fn from(error: minijinja::Error) -> Self {
        let kind = error.kind();
        match error.detail() {
            Some(detail) => Self(detail.to_owned()),
            None => Self(kind.to_string()),
        }
    }
}

impl From<EvalError> for minijinja::Error {
    fn from(fault: EvalError) -> Self {
        Self::new(minijinja::ErrorKind::InvalidOperation, fault.0)
    }
}

/// Maximum number of characters of a template in an error: enough to recognize it, and short enough
/// for a log line.
const TEMPLATE_CHARS_SHOWN: usize = 120;

/// Returns the first `chars` characters of `text`, with an ellipsis if some are missing.
pub(super) fn shorten(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
