//! Measures of the crates: their length, import cycles between their modules, and short doc comments.
//!
//! Each measure has a limit. Where a crate is above it, [`CEILINGS`] has its count, which only falls.

mod cycles;
mod imports;
mod short_docs;

use std::collections::BTreeMap;

use super::{
    Finding,
    ceilings::{Allowance, Ceilings, Counts},
    production::{self, Source},
    tree::Tree,
};

/// The list of ceilings, from the root of the workspace.
pub(crate) const CEILINGS: &str = "xtask/crate-ceilings.txt";

const HEAD: &str = "\
# Measures of crates above their limit. The numbers only fall: `cargo xtask ceilings` lowers them after a
# cleanup, and `cargo xtask measure MEASURE CRATE` lists what one of them counts.
#
#   cycles <crate> <count>           top-level modules that import each other in a circle; limit 0
#   lines <crate> <count>            lines without tests and conformance suites; limit 13,000
#   short-docs all-crates <count>    doc comments of four words or fewer per 1,000 comments; limit 30

";

/// Rules that the list names.
const CYCLES: &str = "cycles";
const LINES: &str = "lines";
const SHORT_DOCS: &str = "short-docs";

/// Area of measures that all crates share.
const ALL: &str = "all-crates";

/// A count and the lines that show where it comes from.
struct Measured {
    count: usize,
    details: Vec<String>,
}

/// Compares each measure with its limit, or with its ceiling above that.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let measured = measure(tree);
    let (ceilings, mut findings) = Ceilings::parse(CEILINGS, tree.text(CEILINGS));
    for ((rule, area), Measured { count, .. }) in &measured {
        let ceiling = ceilings.get(rule, area).unwrap_or(0).max(allowance(rule).limit);
        if *count > ceiling {
            let (wrong, right) = described(rule, area, *count, ceiling);
            findings.push(Finding::new(CEILINGS, 1, wrong, right));
        }
    }
    findings.extend(ceilings.too_high(&counts(&measured), allowance));
    findings
}

/// Returns the list of ceilings with every count that fell.
pub(crate) fn lowered(tree: &Tree) -> String {
    let (ceilings, _) = Ceilings::parse(CEILINGS, tree.text(CEILINGS));
    ceilings.lowered(HEAD, &counts(&measure(tree)), allowance)
}

/// Returns the lines that show what a measure counts, or `None` if there is no such count.
pub(crate) fn details(tree: &Tree, rule: &str, area: &str) -> Option<Vec<String>> {
    measure(tree).remove(&(rule.to_owned(), area.to_owned())).map(|measured| measured.details)
}

fn allowance(rule: &str) -> Allowance {
    match rule {
        LINES => Allowance { limit: 13_000, slack: 200 },
        SHORT_DOCS => Allowance { limit: 30, slack: 1 },
        _ => Allowance::default(),
    }
}

fn described(rule: &str, area: &str, count: usize, ceiling: usize) -> (String, String) {
    let list = format!("`cargo xtask measure {rule} {area}`");
    match rule {
        CYCLES => (
            format!(
                "{count} modules of {area} import each other in circles, the ceiling is {ceiling}"
            ),
            format!("{list} lists the imports; let each import point one way"),
        ),
        LINES => (
            format!("{area} has {count} lines without tests, the ceiling is {ceiling}"),
            "move a part with a small face into a crate of its own".to_owned(),
        ),
        _ => (
            format!(
                "{count} of 1,000 comments are doc comments of {} words or fewer, the ceiling is {ceiling}",
                short_docs::WORDS_MAX
            ),
            format!(
                "{list} lists them; state a unit, range, default, or invariant, or write nothing"
            ),
        ),
    }
}

fn measure(tree: &Tree) -> BTreeMap<(String, String), Measured> {
    let crates = production::crates(tree);
    let mut measured = BTreeMap::new();
    for (name, sources) in &crates {
        let mut add =
            |rule: &str, counted| measured.insert((rule.to_owned(), (*name).to_owned()), counted);
        add(CYCLES, cycles::measure(sources));
        add(LINES, lines(sources));
    }
    let all = short_docs::measure(crates.values().flatten());
    measured.insert((SHORT_DOCS.to_owned(), ALL.to_owned()), all);
    measured
}

/// Counts the lines of a crate. The details list its files, longest first.
fn lines(sources: &[Source<'_>]) -> Measured {
    let mut files: Vec<(usize, &str)> =
        sources.iter().map(|source| (source.code.lines().count(), source.path)).collect();
    files.sort_by(|a, b| b.cmp(a));
    Measured {
        count: files.iter().map(|(lines, _)| lines).sum(),
        details: files.iter().map(|(lines, path)| format!("{lines} {path}")).collect(),
    }
}

fn counts(measured: &BTreeMap<(String, String), Measured>) -> Counts {
    measured.iter().map(|(key, measured)| (key.clone(), measured.count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)], list: &str) -> Vec<String> {
        let files = [files, &[(CEILINGS, list)]].concat();
        check(&Tree::of(&files)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_crate_above_the_limit_of_lines_is_a_finding() {
        let code = "x\n".repeat(6_500);
        let more = format!("{code}x\n");
        let files = |second| [("crates/a/src/b.rs", code.as_str()), ("crates/a/src/c.rs", second)];
        assert_eq!(findings(&files(&code), ""), [""; 0]);
        let above = "xtask/crate-ceilings.txt:1: a has 13001 lines without tests, the ceiling is \
                     13000; move a part with a small face into a crate of its own";
        assert_eq!(findings(&files(&more), ""), [above]);
        assert_eq!(findings(&files(&more), "lines a 13001\n"), [""; 0]);
        let tests = format!("{code}#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert_eq!(findings(&files(&tests), ""), [""; 0], "tests don't count");
    }

    #[test]
    fn a_ceiling_that_its_crate_no_longer_needs_is_a_finding() {
        let long = "x\n".repeat(13_500);
        let files = [("crates/a/src/b.rs", long.as_str())];
        assert_eq!(findings(&files, "lines a 13700\n"), [""; 0]);
        assert_eq!(findings(&files, "lines a 13701\n").len(), 1);
        assert_eq!(findings(&[("crates/a/src/b.rs", "x\n")], "lines a 13001\n").len(), 1);
        assert_eq!(
            lowered(&Tree::of(&[files[0], (CEILINGS, "lines a 14000\n")])),
            format!("{HEAD}lines a 13500\n")
        );
    }

    #[test]
    fn modules_that_import_each_other_are_a_finding() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;\nmod c;\n"),
            ("crates/a/src/b.rs", "use crate::c::C;\n"),
            ("crates/a/src/c.rs", "use crate::b::B;\n"),
        ];
        let said = "xtask/crate-ceilings.txt:1: 2 modules of a import each other in circles, the \
                    ceiling is 0; `cargo xtask measure cycles a` lists the imports; let each import \
                    point one way";
        assert_eq!(findings(&files, ""), [said]);
        assert_eq!(findings(&files, "cycles a 2\n"), [""; 0]);
        assert_eq!(findings(&files, "cycles a 3\n").len(), 1);
        let listed = details(&Tree::of(&files), CYCLES, "a").unwrap();
        assert_eq!(listed, ["circle of b, c", "  b -> c: b.rs:1 c::C", "  c -> b: c.rs:1 b::B"]);
    }

    #[test]
    fn a_share_of_short_doc_comments_above_the_limit_is_a_finding() {
        let long = "/// Returns the end of the lease.\nfn end() {}\n".repeat(97);
        let short = |count| format!("{long}{}", "/// Ends it.\nfn end() {}\n".repeat(count));
        let found = |count| findings(&[("crates/a/src/b.rs", &short(count))], "");
        assert_eq!(found(3), [""; 0]);
        let above = "xtask/crate-ceilings.txt:1: 40 of 1,000 comments are doc comments of 4 words \
                     or fewer, the ceiling is 30; `cargo xtask measure short-docs all-crates` lists \
                     them; state a unit, range, default, or invariant, or write nothing";
        assert_eq!(found(4), [above]);
    }
}
