//! What can be wrong with a template: its text, or one rendering of it.

/// Text that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What is wrong with it.
    pub message: String,
    /// Line within the string, from 1.
    pub line: usize,
    /// Column within that line in characters, from 1; 1 where it is not known.
    pub column: usize,
}

impl SyntaxError {
    /// A mistake at a byte offset of `source`.
    pub(super) fn at(source: &str, offset: usize, message: impl Into<String>) -> Self {
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

/// A template that could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} in `{template}`")]
pub struct RenderError {
    /// What went wrong, with the values.
    pub message: String,
    /// The template's text, shortened.
    pub template: String,
}

/// Why an evaluation stopped, before it is known in which template.
#[derive(Debug)]
pub(super) struct Fault(pub(super) String);

impl Fault {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(super) fn in_template(self, source: &str) -> RenderError {
        RenderError { message: self.0, template: shorten(source, TEMPLATE_CHARS_SHOWN) }
    }
}

impl From<minijinja::Error> for Fault {
    /// Keeps the sentence and drops the engine's own prefix and source listing.
    fn from(error: minijinja::Error) -> Self {
        let kind = error.kind();
        match error.detail() {
            Some(detail) => Self(detail.to_owned()),
            None => Self(kind.to_string()),
        }
    }
}

impl From<Fault> for minijinja::Error {
    fn from(fault: Fault) -> Self {
        Self::new(minijinja::ErrorKind::InvalidOperation, fault.0)
    }
}

/// Enough of a template to recognise it, little enough for one line of a log.
const TEMPLATE_CHARS_SHOWN: usize = 120;

/// The first `chars` characters of `text`, marked when some are missing.
pub(super) fn shorten(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
