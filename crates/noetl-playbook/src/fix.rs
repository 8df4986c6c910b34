//! Rewrites deprecated forms of a playbook in its source text.
//!
//! Applies only rewrites that are certain, each as a few local edits, so that comments, order, and
//! spacing stay. Leaves documents with errors unchanged, and every value with an anchor, because a
//! change there would affect its aliases. The result is compiled and compared with the original: a
//! rewrite that would change the meaning is not applied.

mod arcs;
mod edits;
mod loops;
mod meaning;
mod policies;
mod steps;
mod templates;
mod tools;
mod tree;

#[cfg(test)]
mod tests;

use edits::{Edit, Rewrite};
use tree::{FixNode, NodeStyle, Shape};

use crate::decode::check;
use crate::diagnostic::{Diagnostic, Severity};

/// Maximum number of passes over a text. Each pass applies rewrites that conflicted with others in
/// the pass before. Forms nest only a few levels deep.
const PASSES_MAX: usize = 8;

/// Maximum number of bytes parsed to try rewrites one at a time if applying all would change the
/// meaning. Each try parses the whole document.
const TRIED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Codes of diagnostics that suggest a rewrite.
const REWRITTEN: &[&str] = &["W101", "W112", "W113"];

/// Result of fixing a playbook with [`fix`].
#[derive(Debug)]
pub struct FixReport {
    /// Text of the document, changed or not.
    pub text: String,
    /// Applied changes, in the order of the text.
    pub changes: Vec<Change>,
    /// Diagnostics that still suggest a rewrite, with positions in the new text. For a document
    /// with errors, those errors.
    pub left: Vec<Diagnostic>,
}

/// An applied rewrite, at its original position.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Line in the original text, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    pub what: String,
}

/// Rewrites a playbook to the current dialect where the rewrite is certain. The result has the same
/// meaning, and running `fix` on it changes nothing.
pub fn fix(text: &str) -> FixReport {
    let body = text.trim_start_matches('\u{feff}');
    let checked = check(body);
    let Some(before) = checked.playbook else {
        let errors = checked.diagnostics.into_iter();
        let left = errors.filter(|diagnostic| diagnostic.severity == Severity::Error).collect();
        return FixReport { text: text.to_owned(), changes: Vec::new(), left };
    };
    let before = meaning::meaning_of(&before);
    let mark = &text[..text.len() - body.len()];
    let mut current = body.to_owned();
    let mut changes = Vec::new();
    let mut left = checked.diagnostics;
    for _ in 0..PASSES_MAX {
        let Some(tree) = tree::read(&current) else { break };
        let rewrites = rewrites(&current, &tree);
        let Some((changed, made, rest)) = attempt(&current, rewrites, &before) else { break };
        current = changed;
        changes.extend(made);
        left = rest;
    }
    changes.sort_by_key(|change| (change.line, change.column));
    left.retain(|diagnostic| REWRITTEN.contains(&diagnostic.code));
    FixReport { text: format!("{mark}{current}"), changes, left }
}

/// Applies all rewrites or, if that would change the meaning, those that preserve it individually.
/// Returns `None` if no rewrite can be applied.
fn attempt(
    text: &str,
    rewrites: Vec<Rewrite>,
    before: &str,
) -> Option<(String, Vec<Change>, Vec<Diagnostic>)> {
    let same = |changed: &str| {
        let checked = check(changed);
        let playbook = checked.playbook?;
        (meaning::meaning_of(&playbook) == before).then_some(checked.diagnostics)
    };
    if rewrites.is_empty() {
        return None;
    }
    let (changed, made) = edits::apply(text, &rewrites);
    if let Some(diagnostics) = same(&changed) {
        return Some((changed, made, diagnostics));
    }
    let tried_max = TRIED_BYTES_MAX / text.len().max(1);
    let harmless = |rewrite: &Rewrite| {
        let (changed, _) = edits::apply(text, std::slice::from_ref(rewrite));
        same(&changed).is_some()
    };
    let applied: Vec<Rewrite> = rewrites.into_iter().take(tried_max).filter(harmless).collect();
    if applied.is_empty() {
        return None;
    }
    let (changed, made) = edits::apply(text, &applied);
    let diagnostics = same(&changed)?;
    Some((changed, made, diagnostics))
}

/// Collects the possible rewrites of a document.
fn rewrites(text: &str, root: &FixNode) -> Vec<Rewrite> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut fixer = Fixer { text, newline, rewrites: Vec::new() };
    if let Some(version) = root.get("apiVersion").filter(|at| at.text() == Some("noetl.io/v10")) {
        let within = fixer.content(version);
        let edit = Edit::replace(within, "noetl.io/v2");
        fixer.push(version.start, "wrote 'apiVersion: noetl.io/v2'", vec![edit]);
    }
    for step in root.get("workflow").map(FixNode::items).unwrap_or_default() {
        steps::rewrite(&mut fixer, step);
    }
    let workbook = root.get("workbook").map(FixNode::items).unwrap_or_default();
    for tool in workbook.iter().filter_map(|task| task.get("tool")) {
        tools::rewrite(&mut fixer, tool);
    }
    for name in ["workflow", "workbook"] {
        if let Some(section) = root.get(name) {
            templates::rewrite(&mut fixer, section, false);
        }
    }
    fixer.rewrites
}

/// Text of the document, and the rewrites collected so far.
struct Fixer<'t> {
    text: &'t str,
    /// Line terminator of the text.
    newline: &'static str,
    rewrites: Vec<Rewrite>,
}

impl Fixer<'_> {
    fn push(&mut self, at: usize, what: impl Into<String>, edits: Vec<Edit>) {
        self.rewrites.push(Rewrite { at, what: what.into(), edits });
    }

    /// Returns the byte range of a scalar without its quotes.
    fn content(&self, item: &FixNode) -> std::ops::Range<usize> {
        match &item.shape {
            Shape::Scalar(_, NodeStyle::Single | NodeStyle::Double) => item.start + 1..item.end - 1,
            _ => item.start..item.end,
        }
    }

    /// Returns a value as written.
    fn written(&self, item: &FixNode) -> &str {
        &self.text[item.start..item.end]
    }

    /// Renames a key, unless the new name is already in use.
    fn rename(&mut self, map: &FixNode, older: &str, name: &str) {
        let Some((key, _)) = map.entry(older) else { return };
        if map.has(name) {
            return;
        }
        let within = self.content(key);
        let what = format!("renamed '{older}' to '{name}'");
        self.push(key.start, what, vec![Edit::replace(within, name)]);
    }

    /// Returns the edits that remove an entry from a mapping, or `None` if that would remove a
    /// comment.
    fn remove(&self, map: &FixNode, name: &str) -> Option<Vec<Edit>> {
        let entries = map.entries();
        let index = entries.iter().position(|(key, _)| key.text() == Some(name))?;
        let (key, value) = &entries[index];
        let range = if map.is_flow() {
            match (entries.get(index + 1), index.checked_sub(1)) {
                (Some((next, _)), _) => key.start..next.start,
                (None, Some(before)) => entries[before].1.end..value.end,
                (None, None) => key.start..value.end,
            }
        } else {
            let start = self.line_start(key.start);
            // After a dash, the entry starts the list item, which would need another first line.
            let leads = !self.text[start..key.start].trim().is_empty();
            let end =
                self.text[value.end..].find('\n').map_or(self.text.len(), |at| value.end + at + 1);
            if leads || entries.len() == 1 {
                return None;
            }
            start..end
        };
        (!self.text[range.clone()].contains('#')).then(|| vec![Edit::delete(range)])
    }

    /// Returns the edits that nest a value under additional keys, or `None` if they are not
    /// certain.
    fn put_under(&self, key: &FixNode, value: &FixNode, names: &[&str]) -> Option<Vec<Edit>> {
        let is_scalar = matches!(value.shape, Shape::Scalar(..));
        if value.is_flow() || is_scalar {
            let opening: String = names.iter().map(|name| format!("{{{name}: ")).collect();
            let closing = "}".repeat(names.len());
            return Some(vec![
                Edit::insert(value.start, opening),
                Edit::insert(value.end, closing),
            ]);
        }
        let line = self.line_start(value.start);
        if !self.text[line..value.start].trim().is_empty() {
            return None;
        }
        let (outer, column) = (self.indent(key.start), self.indent(value.start));
        let by = (outer + 2 * (names.len() + 1)).saturating_sub(column);
        let mut above = String::new();
        for (depth, name) in names.iter().enumerate() {
            let indent = " ".repeat(outer + 2 * (depth + 1));
            above.push_str(&format!("{indent}{name}:{}", self.newline));
        }
        above.push_str(&" ".repeat(by));
        let mut edits = vec![Edit::insert(line, above)];
        if by > 0 {
            edits.extend(self.shift(value.start, value.end, by));
        }
        Some(edits)
    }

    /// Returns the start of the line that contains a byte.
    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |at| at + 1)
    }

    /// Returns the number of columns before a byte in its line.
    fn indent(&self, at: usize) -> usize {
        self.text[self.line_start(at)..at].chars().count()
    }

    /// Returns the edits that indent all lines of a range except the first.
    fn shift(&self, start: usize, end: usize, by: usize) -> Vec<Edit> {
        let inner = self.lines_after(start, end);
        inner.map(|line| Edit::insert(line, " ".repeat(by))).collect()
    }

    /// Returns the starts of the lines of a range after the first. Skips blank lines.
    fn lines_after(&self, start: usize, end: usize) -> impl Iterator<Item = usize> {
        let breaks = self.text[start..end].match_indices('\n');
        let starts = breaks.map(move |(at, _)| start + at + 1);
        starts.filter(|at| !self.text[*at..].lines().next().unwrap_or_default().trim().is_empty())
    }
}
