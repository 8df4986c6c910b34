//! Checks that a test asserts every stored snapshot, and that none waits for review.
//!
//! A snapshot names the source file of its test. That file must set the snapshot's folder and mention its
//! name; a snapshot of a removed or renamed test would otherwise stay in the tree and check nothing.

use super::{Finding, tree::Tree};

/// Folder of snapshots, beside their source, that sets no other.
const DEFAULT_FOLDER: &str = "snapshots";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let stored = tree.ending(".snap").filter_map(|(path, text)| {
        let wrong = orphaned(tree, path, text)?;
        Some(Finding::new(path, 2, wrong, "remove the snapshot, or fix its test"))
    });
    let pending = tree.ending(".snap.new").map(|(path, _)| {
        Finding::new(path, 1, "the snapshot waits for review", "accept or remove it")
    });
    stored.chain(pending).collect()
}

/// Returns why no test asserts a snapshot, or `None` if one does.
fn orphaned(tree: &Tree, path: &str, text: &str) -> Option<String> {
    let Some(source) = header(text, "source") else {
        return Some("the snapshot names no source".to_owned());
    };
    if !tree.has(source) {
        return Some(format!("its source {source} does not exist"));
    }
    let code = tree.text(source);
    if !code.contains("assert_") || !code.contains("snapshot!(") {
        return Some(format!("{source} asserts no snapshot"));
    }
    let (folder, file) = path.rsplit_once('/')?;
    let source_folder = source.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_set = |name: &str| {
        name == DEFAULT_FOLDER || code.contains(&format!("set_snapshot_path(\"{name}\")"))
    };
    let relative = folder.strip_prefix(source_folder).map(|rest| rest.trim_start_matches('/'));
    if !relative.is_some_and(is_set) {
        return Some(format!("{source} sets no snapshot folder {folder}"));
    }
    // A module path may come before the name, a number after it.
    let name = file.trim_end_matches(".snap").rsplit("__").next()?;
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
    if !is_mentioned(code, name) && !is_mentioned(code, base) {
        return Some(format!("{source} does not mention '{name}'"));
    }
    None
}

/// Returns a field of a snapshot's header, between its first two lines of dashes.
fn header<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    if lines.next() != Some("---") {
        return None;
    }
    let mut fields = lines.take_while(|line| *line != "---");
    fields.find_map(|line| line.strip_prefix(field)?.strip_prefix(": "))
}

/// Returns `true` if a word of the code is this name.
fn is_mentioned(code: &str, name: &str) -> bool {
    let is_part = |c: char| c == '_' || c == '-' || c.is_alphanumeric();
    code.split(|c: char| !is_part(c)).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\nsource: crates/a/tests/it/wire.rs\n---\nGET /\n";
    const CODE: &str =
        "settings.set_snapshot_path(\"wire\");\ninsta::assert_snapshot!(\"form\", text);";

    fn said(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn a_snapshot_that_a_test_asserts_is_no_finding() {
        let source = ("crates/a/tests/it/wire.rs", CODE);
        assert_eq!(said(&[source, ("crates/a/tests/it/wire/form.snap", TEXT)]), [""; 0]);
        let code = "insta::assert_debug_snapshot!(form());";
        let source = ("crates/a/tests/it/wire.rs", code);
        for name in ["it__wire__form", "it__wire__form-2", "form"] {
            let path = format!("crates/a/tests/it/snapshots/{name}.snap");
            assert_eq!(said(&[source, (&path, TEXT)]), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_snapshot_that_no_test_asserts_is_a_finding() {
        let source = ("crates/a/tests/it/wire.rs", CODE);
        let form = "crates/a/tests/it/wire/form.snap";
        assert_eq!(said(&[(form, TEXT)]), ["its source crates/a/tests/it/wire.rs does not exist"]);
        assert_eq!(said(&[source, (form, "GET /\n")]), ["the snapshot names no source"]);
        let silent = ("crates/a/tests/it/wire.rs", "set_snapshot_path(\"wire\"); form");
        assert_eq!(
            said(&[silent, (form, TEXT)]),
            ["crates/a/tests/it/wire.rs asserts no snapshot"]
        );
        assert_eq!(
            said(&[source, ("crates/a/tests/it/wire/gone.snap", TEXT)]),
            ["crates/a/tests/it/wire.rs does not mention 'gone'"]
        );
        assert_eq!(
            said(&[source, ("crates/a/tests/it/other/form.snap", TEXT)]),
            ["crates/a/tests/it/wire.rs sets no snapshot folder crates/a/tests/it/other"]
        );
    }

    #[test]
    fn a_snapshot_that_waits_for_review_is_a_finding() {
        let pending = ("crates/a/tests/it/wire/form.snap.new", TEXT);
        assert_eq!(said(&[pending]), ["the snapshot waits for review"]);
    }
}
