//! The mechanical checks of the prose guide, counted by rule and area.
//!
//! Text that was written before the guide breaks its rules in many places, so each rule has a ceiling per
//! area in [`CEILINGS`]. A count above its ceiling is a finding, and so is a ceiling above its count: ceilings
//! only fall. An area is a crate, `docs`, or `web`.

mod rules;

use std::collections::BTreeMap;

use super::{
    Finding,
    ceilings::{Allowance, Ceilings, Counts},
    production,
    tree::Tree,
};

/// The list of ceilings, from the root of the workspace.
pub(crate) const CEILINGS: &str = "xtask/prose-ceilings.txt";

const HEAD: &str = "\
# Lines that break a rule of the prose guide, by rule and area. The numbers only fall: `cargo xtask ceilings`
# lowers them after a cleanup, and `cargo xtask prose RULE AREA` lists the lines of one of them.
#
#   <rule> <area> <lines>

";

/// One line that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Hits by rule and area.
pub(crate) type Hits = BTreeMap<(&'static str, String), Vec<Hit>>;

/// Finds every line that breaks a rule.
pub(crate) fn hits(tree: &Tree) -> Hits {
    let mut hits = Hits::new();
    let mut add = |rule: &'static str, path: &str, line: usize, text: &str| {
        let hit = Hit { file: path.to_owned(), line, text: text.trim().to_owned() };
        hits.entry((rule, area(path))).or_default().push(hit);
    };
    let mut names: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| is_checked(path)) {
        let code = production::before_tests(text);
        for (line, rule, found) in rules::in_rust(code) {
            add(rule, path, line, found);
        }
        for (line, name) in rules::types(code) {
            names.entry(name).or_default().push((path, line));
        }
    }
    for (name, places) in names {
        let mut files: Vec<&str> = places.iter().map(|(path, _)| *path).collect();
        files.dedup();
        if files.len() >= 3 && !rules::SHARED_NAMES.contains(&name) {
            places.iter().for_each(|(path, line)| add("shared-name", path, *line, name));
        }
    }
    for (path, text) in [".md", ".tsx", ".ts"].into_iter().flat_map(|end| tree.ending(end)) {
        let is_ours = !path.starts_with("crates/") && path != "CHANGELOG.md";
        for (place, line) in text.lines().enumerate().filter(|_| is_ours) {
            if rules::has_banned_word(line) {
                add("banned-word", path, place + 1, line);
            }
        }
    }
    hits
}

/// Compares the hits with the ceilings.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let hits = hits(tree);
    let (ceilings, mut findings) = Ceilings::parse(CEILINGS, tree.text(CEILINGS));
    for ((rule, area), found) in &hits {
        let ceiling = ceilings.get(rule, area).unwrap_or(0);
        if found.len() > ceiling {
            let wrong = format!(
                "{} lines of {area} break the rule {rule}, the ceiling is {ceiling}",
                found.len()
            );
            let right =
                format!("`cargo xtask prose {rule} {area}` lists them; rewrite the new ones");
            findings.push(Finding::new(&found[0].file, found[0].line, wrong, right));
        }
    }
    findings.extend(ceilings.too_high(&counts(&hits), |_| Allowance::default()));
    findings
}

/// Returns the list of ceilings with every count that fell, and with rules that have no ceiling yet when
/// there is no list.
pub(crate) fn lowered(tree: &Tree) -> String {
    let (ceilings, _) = Ceilings::parse(CEILINGS, tree.text(CEILINGS));
    ceilings.lowered(HEAD, &counts(&hits(tree)), |_| Allowance::default())
}

fn counts(hits: &Hits) -> Counts {
    let counts = hits.iter();
    counts.map(|((rule, area), found)| (((*rule).to_owned(), area.clone()), found.len())).collect()
}

fn area(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("crates"), Some(name)) => name.to_owned(),
        (Some(root @ ("docs" | "web" | "bench" | "xtask" | "examples")), Some(_)) => {
            root.to_owned()
        }
        _ => "docs".to_owned(),
    }
}

/// Whether a Rust file is one that users and maintainers read as code: not a test, nor its scaffolding.
fn is_checked(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && production::is_production(path)
        && !path.starts_with("crates/noetl-test-")
        && !path.starts_with("crates/noetl-fuzz")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(source: &str, list: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/a/src/b.rs", source), (CEILINGS, list)]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_count_above_its_ceiling_and_a_ceiling_above_its_count_are_findings() {
        let source =
            "/// What it is.\npub struct Thing;\n/// The name\n/// and more.\nfn thing() {}\n";
        let list = "interrogative-doc a 1\nstub-doc a 1\nverbless-doc a 1\n";
        assert_eq!(findings(source, list), Vec::<String>::new());
        let above = "crates/a/src/b.rs:1: 1 lines of a break the rule stub-doc, the ceiling is 0; \
                     `cargo xtask prose stub-doc a` lists them; rewrite the new ones";
        assert_eq!(findings(source, &list.replace("stub-doc a 1", "stub-doc a 0")), [above]);
        let below = "xtask/prose-ceilings.txt:2: the count of stub-doc in a is 1, not 2; \
                     run `cargo xtask ceilings`";
        assert_eq!(findings(source, &list.replace("stub-doc a 1", "stub-doc a 2")), [below]);
        assert_eq!(findings("fn b() {}\n", "stub-doc\n").len(), 1);
    }

    #[test]
    fn ceilings_fall_and_never_rise() {
        let source = "/// What it is.\npub struct Thing;\n";
        let tree = |list| Tree::of(&[("crates/a/src/b.rs", source), (CEILINGS, list)]);
        let lines = |list| lowered(&tree(list)).replace(HEAD, "");
        assert_eq!(lines(""), "interrogative-doc a 1\nstub-doc a 1\n");
        assert_eq!(lines("stub-doc a 5\n"), "stub-doc a 1\n");
        assert_eq!(lines("stub-doc a 0\n"), "stub-doc a 0\n");
    }

    #[test]
    fn tests_and_scaffolding_are_not_checked() {
        let doc = "/// What it is.\n";
        for path in ["crates/a/tests/it/b.rs", "crates/noetl-test-app/src/a.rs", "bench/src/a.rs"] {
            assert_eq!(hits(&Tree::of(&[(path, doc)])), Hits::new(), "{path}");
        }
        let tests = "fn a() {}\n#[cfg(test)]\nmod tests {\n    /// What it is.\n    fn b() {}\n}\n";
        assert_eq!(hits(&Tree::of(&[("crates/a/src/b.rs", tests)])), Hits::new());
    }

    #[test]
    fn pages_have_no_banned_words() {
        let tree =
            Tree::of(&[("docs/a.md", "Fine.\nIt runs elsewhere.\n"), ("CHANGELOG.md", "anew")]);
        let found = hits(&tree);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&("banned-word", "docs".to_owned())]);
    }
}
