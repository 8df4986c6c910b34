//! Edits of a text by byte position.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use super::Change;

/// Replacement of a byte range by new text.
#[derive(Debug)]
pub(super) struct Edit {
    range: Range<usize>,
    with: String,
}

impl Edit {
    pub(super) fn replace(range: Range<usize>, with: impl Into<String>) -> Self {
        Self { range, with: with.into() }
    }

    pub(super) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { range: at..at, with: text.into() }
    }

    pub(super) fn delete(range: Range<usize>) -> Self {
        Self { range, with: String::new() }
    }
}

/// A rewrite, applied atomically: all of its edits or none.
#[derive(Debug)]
pub(super) struct Rewrite {
    /// Byte position reported for the rewrite.
    pub(super) at: usize,
    pub(super) what: String,
    pub(super) edits: Vec<Edit>,
}

/// Applies as many rewrites as don't conflict. Returns the new text and the applied changes.
pub(super) fn apply(text: &str, rewrites: &[Rewrite]) -> (String, Vec<Change>) {
    let lines = line_starts(text);
    let mut edited = EditedRanges::default();
    let mut edits: Vec<&Edit> = Vec::new();
    let mut made = Vec::new();
    for rewrite in rewrites {
        if rewrite.edits.iter().any(|edit| edited.touches(&edit.range)) {
            continue;
        }
        rewrite.edits.iter().for_each(|edit| edited.take(&edit.range));
        edits.extend(&rewrite.edits);
        made.push(change(text, &lines, rewrite));
    }
    // The sort is stable: insertions at the same position retain their order.
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut changed = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        changed.push_str(&text[at..edit.range.start]);
        changed.push_str(&edit.with);
        at = edit.range.end;
    }
    changed.push_str(&text[at..]);
    (changed, made)
}

/// Byte ranges that edits change, and positions where they insert.
#[derive(Default)]
struct EditedRanges {
    ranges: BTreeMap<usize, usize>,
    places: BTreeSet<usize>,
}

impl EditedRanges {
    /// Returns `true` if an edit would overlap another one. Adjacent edits don't overlap.
    fn touches(&self, range: &Range<usize>) -> bool {
        let before = self.ranges.range(..range.end.max(range.start + 1)).next_back();
        let overlaps = before.is_some_and(|(start, end)| {
            *end > range.start && (*start < range.end || *start < range.start)
        });
        let within = (Bound::Excluded(range.start), Bound::Excluded(range.end));
        overlaps || (range.len() > 1 && self.places.range(within).next().is_some())
    }

    fn take(&mut self, range: &Range<usize>) {
        if range.is_empty() {
            self.places.insert(range.start);
        } else {
            self.ranges.insert(range.start, range.end);
        }
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

fn change(text: &str, lines: &[usize], rewrite: &Rewrite) -> Change {
    let line = lines.partition_point(|start| *start <= rewrite.at);
    let start = lines[line - 1];
    Change { line, column: text[start..rewrite.at].chars().count() + 1, what: rewrite.what.clone() }
}
