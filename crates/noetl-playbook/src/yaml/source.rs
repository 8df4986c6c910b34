//! Text of a document, addressed by line and column.

use std::cell::OnceCell;

use crate::diagnostic::SourcePos;

/// Text of a document. Line starts are computed on first use, because only documents with mistakes
/// need them.
#[derive(Debug)]
pub(crate) struct SourceText<'t> {
    text: &'t str,
    lines: OnceCell<Vec<usize>>,
}

impl<'t> SourceText<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, lines: OnceCell::new() }
    }

    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns a line without its line break; empty past the end.
    pub(crate) fn line(&self, line: u32) -> &'t str {
        let rest = self.starting_at(line);
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Returns the text from a position on; empty past the end.
    pub(crate) fn rest(&self, place: SourcePos) -> &'t str {
        let rest = self.starting_at(place.line);
        let skipped = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let start = rest.char_indices().nth(skipped).map_or(rest.len(), |(at, _)| at);
        &rest[start..]
    }

    fn starting_at(&self, line: u32) -> &'t str {
        let lines = self.lines.get_or_init(|| line_starts(self.text));
        let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        lines.get(index).map_or("", |start| &self.text[*start..])
    }
}

/// Returns the byte offsets of line starts. A lone carriage return ends a line, as YAML specifies.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}
