//! Every crate takes the workspace's lints and says what it is for.

use super::{Finding, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.ending("/Cargo.toml").filter(|(path, _)| path.starts_with("crates/"));
    manifests.flat_map(|(path, text)| check_manifest(path, text)).collect()
}

fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !holds(text, "lints", |line| spaceless(line) == "workspace=true") {
        let right = "add `[lints]` with `workspace = true`";
        findings.push(Finding::new(path, 1, "the crate has lints of its own", right));
    }
    if !holds(text, "package", |line| {
        let value = spaceless(line);
        value.starts_with("description=\"") && value != "description=\"\""
    }) {
        let right = "add `description = \"…\"` in one line";
        findings.push(Finding::new(path, 1, "the crate has no description", right));
    }
    findings
}

fn spaceless(line: &str) -> String {
    line.split_whitespace().collect()
}

/// Whether a line of this section of the manifest is as wanted.
fn holds(text: &str, section: &str, wanted: impl Fn(&str) -> bool) -> bool {
    let head = format!("[{section}]");
    let mut lines = text.lines().map(str::trim);
    lines.by_ref().any(|line| line == head)
        && lines.take_while(|line| !line.starts_with('[')).any(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_manifest_passes() {
        let text =
            "[package]\nname = \"a\"\ndescription = \"Words\"\n\n[lints]\nworkspace = true\n";
        assert!(check(&Tree::of(&[("crates/a/Cargo.toml", text)])).is_empty());
    }

    #[test]
    fn missing_lints_and_description_are_findings() {
        let text = "[package]\nname = \"a\"\n\n[lints]\nrust.unsafe_code = \"warn\"\n\
                    [dependencies]\nworkspace = true\ndescription = \"x\"\n";
        let findings = check(&Tree::of(&[("crates/a/Cargo.toml", text)]));
        let said: Vec<&str> = findings.iter().map(|f| f.wrong.as_str()).collect();
        assert_eq!(said, ["the crate has lints of its own", "the crate has no description"]);
    }
}
