//! Changes to a text, by position.

use std::ops::Range;

use super::Change;

/// Text that takes the place of other text.
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

/// A rewrite of one thing: all of its edits, or none.
#[derive(Debug)]
pub(super) struct Rewrite {
    /// The byte it is about.
    pub(super) at: usize,
    pub(super) what: String,
    pub(super) edits: Vec<Edit>,
}

/// The text with as many rewrites as do not get in each other's way, and those that were made.
pub(super) fn apply(text: &str, rewrites: &[Rewrite]) -> (String, Vec<Change>) {
    let mut taken: Vec<&Edit> = Vec::new();
    let mut made = Vec::new();
    for rewrite in rewrites {
        let clash = |edit: &Edit| taken.iter().any(|other| overlap(&edit.range, &other.range));
        if rewrite.edits.iter().any(clash) {
            continue;
        }
        taken.extend(&rewrite.edits);
        made.push(change(text, rewrite));
    }
    // Stable: what is inserted at one place keeps its order.
    taken.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut changed = String::with_capacity(text.len());
    let mut at = 0;
    for edit in taken {
        changed.push_str(&text[at..edit.range.start]);
        changed.push_str(&edit.with);
        at = edit.range.end;
    }
    changed.push_str(&text[at..]);
    (changed, made)
}

/// Whether two edits change the same characters; insertions at the edge of another do not.
fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

fn change(text: &str, rewrite: &Rewrite) -> Change {
    let before = &text[..rewrite.at];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Change {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        what: rewrite.what.clone(),
    }
}
