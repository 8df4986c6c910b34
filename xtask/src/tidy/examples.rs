//! Every example says in its first lines what it teaches.

use super::{Finding, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let examples = tree.ending(".yaml").filter(|(path, text)| {
        path.starts_with("examples/") && !text.trim_start().starts_with('#')
    });
    examples
        .map(|(path, _)| {
            let wrong = "the example does not say what it is";
            let right = "begin with a comment: what it teaches, how to run it, what it prints";
            Finding::new(path, 1, wrong, right)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_begins_with_a_comment() {
        let tree = Tree::of(&[
            ("examples/good.yaml", "# Says hello.\nkind: Playbook\n"),
            ("examples/bad.yaml", "kind: Playbook # a comment too late\n"),
            ("crates/a/test-data/other.yaml", "kind: Playbook\n"),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].file, "examples/bad.yaml");
    }
}
