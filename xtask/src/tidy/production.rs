//! The production code of the crates: without tests and conformance suites.

use std::collections::BTreeMap;

use super::{scan, tree::Tree};

/// The production part of a file.
pub(super) struct Source<'a> {
    /// Path from the root of the workspace.
    pub(super) path: &'a str,
    /// Path from the crate's folder `src`.
    pub(super) name: &'a str,
    /// Text without the tests at its end.
    pub(super) code: &'a str,
}

/// Returns the production code of each crate below `crates`, by crate.
pub(super) fn crates(tree: &Tree) -> BTreeMap<&str, Vec<Source<'_>>> {
    let mut crates: BTreeMap<&str, Vec<Source<'_>>> = BTreeMap::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| is_production(path)) {
        let below = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        if let Some((name, file)) = below {
            let source = Source { path, name: file, code: before_tests(text) };
            crates.entry(name).or_default().push(source);
        }
    }
    crates
}

/// Returns `true` if a file holds neither only tests nor a conformance suite.
pub(super) fn is_production(path: &str) -> bool {
    !scan::only_tests(path) && !path.contains("/conformance")
}

/// Returns a file's text without the tests at its end.
pub(super) fn before_tests(text: &str) -> &str {
    let lines = scan::tests_begin(text) - 1;
    let bytes: usize = text.split_inclusive('\n').take(lines).map(str::len).sum();
    &text[..bytes.min(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_conformance_suites_are_left_out() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n"),
            ("crates/a/src/b/c.rs", "fn c() {}\n"),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/b/tests/d.rs", ""),
            ("crates/a/src/conformance/e.rs", ""),
            ("crates/a/src/conformance.rs", ""),
            ("crates/a/tests/it/f.rs", ""),
            ("bench/src/main.rs", ""),
        ]);
        let crates = crates(&tree);
        assert_eq!(crates.keys().collect::<Vec<_>>(), [&"a"]);
        let found: Vec<_> = crates["a"].iter().map(|source| (source.name, source.code)).collect();
        assert_eq!(found, [("b/c.rs", "fn c() {}\n"), ("lib.rs", "fn a() {}\n")]);
    }
}
