//! Every diagnostic code has a page, `docs/errors/<code>.md`, and every page has a code.

use std::collections::BTreeMap;

use super::{Finding, scan, tree::Tree};

const SOURCE: &str = "crates/noetl-playbook/src/";
const PAGES: &str = "docs/errors/";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let codes = codes(tree);
    let missing = codes.iter().filter_map(|(code, (path, line))| {
        let page = format!("{PAGES}{code}.md");
        let wrong = format!("{code} has no page");
        (!tree.has(&page)).then(|| Finding::new(path, *line, wrong, format!("write {page}")))
    });
    let stale = tree.ending(".md").filter_map(|(page, _)| {
        let code = page.strip_prefix(PAGES)?.strip_suffix(".md")?;
        let wrong = format!("no diagnostic has the code {code}");
        let is_stale = is_code(code) && !codes.contains_key(code);
        is_stale.then(|| Finding::new(page, 1, wrong, "remove the page"))
    });
    missing.chain(stale).collect()
}

/// The codes named in literals outside tests, each with the first place that names it.
fn codes(tree: &Tree) -> BTreeMap<String, (String, usize)> {
    let mut codes = BTreeMap::new();
    let files =
        tree.ending(".rs").filter(|(path, _)| path.starts_with(SOURCE) && !scan::only_tests(path));
    for (path, text) in files {
        let tests = scan::tests_begin(text);
        for literal in scan::literals(text).filter(|literal| literal.line < tests) {
            let words = literal.text.split(|c: char| !c.is_alphanumeric());
            for code in words.filter(|word| is_code(word)) {
                codes.entry(code.to_owned()).or_insert_with(|| (path.to_owned(), literal.line));
            }
        }
    }
    codes
}

fn is_code(word: &str) -> bool {
    let digits = word.strip_prefix(['E', 'W']).unwrap_or_default();
    digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_without_a_page_and_a_page_without_a_code_are_findings() {
        let source = "fn f() { report(\"E011\"); report(\"W102\"); }\n\
                      #[cfg(test)]\nmod tests {\n    const NONE: &str = \"E999\";\n}\n";
        let tree = Tree::of(&[
            ("crates/noetl-playbook/src/a.rs", source),
            ("crates/noetl-engine/src/b.rs", "const OTHER: &str = \"E500\";"),
            ("docs/errors/W102.md", ""),
            ("docs/errors/E050.md", ""),
            ("docs/errors/README.md", ""),
        ]);
        let said: Vec<String> = check(&tree).iter().map(Finding::to_string).collect();
        let expected = [
            "crates/noetl-playbook/src/a.rs:1: E011 has no page; write docs/errors/E011.md",
            "docs/errors/E050.md:1: no diagnostic has the code E050; remove the page",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn only_a_letter_and_three_digits_are_a_code() {
        assert!(is_code("E001") && is_code("W110"));
        assert!(!is_code("E01") && !is_code("E0011") && !is_code("X001") && !is_code("EUR1"));
    }
}
