//! The one list of places where a rule does not hold, each with its reason.
//!
//! The list can only shrink: every check reports an entry it did not need.

use super::{Finding, tree::Tree};

const SHAPE: &str = "write `ceiling <path> <lines> <reason>` or `sql <path> - <reason>`";

/// The list, parsed.
#[derive(Debug, Default)]
pub(super) struct Exceptions {
    list: String,
    entries: Vec<Exception>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exception {
    pub(super) rule: Rule,
    pub(super) path: String,
    /// Where the list says so.
    pub(super) line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The file may have this many lines.
    Ceiling(usize),
    /// The file may hold SQL.
    Sql,
}

impl Exceptions {
    /// Reads the list; lines that cannot be read are findings.
    pub(super) fn parse(list: &str, text: &str) -> (Self, Vec<Finding>) {
        let mut entries = Vec::new();
        let mut findings = Vec::new();
        for (line, written) in (1..).zip(text.lines()) {
            let written = written.trim();
            if written.is_empty() || written.starts_with('#') {
                continue;
            }
            match entry(written, line) {
                Some(entry) => entries.push(entry),
                None => findings.push(Finding::new(list, line, "not an exception", SHAPE)),
            }
        }
        let list = list.to_owned();
        (Self { list, entries }, findings)
    }

    /// How many lines the file may have, when the list says so, and the line saying it.
    pub(super) fn ceiling(&self, path: &str) -> Option<(usize, usize)> {
        self.entries.iter().find_map(|entry| match entry.rule {
            Rule::Ceiling(limit) if entry.path == path => Some((limit, entry.line)),
            Rule::Ceiling(_) | Rule::Sql => None,
        })
    }

    /// The line of the list that lets this file hold SQL.
    pub(super) fn sql(&self, path: &str) -> Option<usize> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.rule == Rule::Sql && entry.path == path)?;
        Some(entry.line)
    }

    /// A finding about a line of the list itself.
    pub(super) fn unneeded(&self, line: usize, why: String) -> Finding {
        Finding::new(&self.list, line, why, "remove the line")
    }

    /// A finding about a limit that is higher than it has to be.
    pub(super) fn too_high(&self, line: usize, path: &str, lines: usize) -> Finding {
        let wrong = format!("{path} has only {lines} lines");
        Finding::new(&self.list, line, wrong, format!("lower its limit to {lines}"))
    }

    /// Entries for files that do not exist.
    pub(super) fn gone(&self, tree: &Tree) -> Vec<Finding> {
        let gone = self.entries.iter().filter(|entry| !tree.has(&entry.path));
        gone.map(|entry| self.unneeded(entry.line, format!("{} does not exist", entry.path)))
            .collect()
    }
}

fn entry(written: &str, line: usize) -> Option<Exception> {
    let mut words = written.split_whitespace();
    let (name, path, limit) = (words.next()?, words.next()?, words.next()?);
    words.next()?;
    let rule = match name {
        "ceiling" => Rule::Ceiling(limit.parse().ok()?),
        "sql" if limit == "-" => Rule::Sql,
        _ => return None,
    };
    let path = path.to_owned();
    Some(Exception { rule, path, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_rule_and_path() {
        let text = "# why\n\nceiling a.rs 450 a table\nsql b.rs - measures the raw rate\n";
        let (exceptions, findings) = Exceptions::parse("list.txt", text);
        assert!(findings.is_empty());
        assert_eq!(exceptions.ceiling("a.rs"), Some((450, 3)));
        assert_eq!(exceptions.ceiling("b.rs"), None);
        assert_eq!(exceptions.sql("b.rs"), Some(4));
        assert_eq!(exceptions.sql("a.rs"), None);
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        for text in ["ceiling a.rs 450", "ceiling a.rs many rows", "sql a.rs 3 why", "other a - b"]
        {
            let (_, findings) = Exceptions::parse("list.txt", text);
            assert_eq!(findings.len(), 1, "{text}");
        }
    }

    #[test]
    fn an_exception_for_a_missing_file_is_a_finding() {
        let (exceptions, _) = Exceptions::parse("list.txt", "sql b.rs - why");
        let findings = exceptions.gone(&Tree::of(&[("a.rs", "")]));
        let said = "list.txt:1: b.rs does not exist; remove the line";
        assert_eq!(findings[0].to_string(), said);
    }
}
