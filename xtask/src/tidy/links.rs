//! Every link in a page leads somewhere: to a file or folder that is there, and to a heading of it.
//!
//! Links to other machines are not followed, and what stands in code is no link.

use std::collections::BTreeSet;

use super::{Finding, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (page, text) in tree.ending(".md") {
        for (line, target) in links(text) {
            if let Some(wrong) = wrong(tree, page, text, target) {
                let right = "link to what is there";
                findings.push(Finding::new(page, line, wrong, right));
            }
        }
    }
    findings
}

/// What is wrong with a link of a page, if anything is.
fn wrong(tree: &Tree, page: &str, text: &str, target: &str) -> Option<String> {
    if target.contains(':') || target.starts_with('/') {
        return None;
    }
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let (path, text) = match file {
        "" => (page.to_owned(), text),
        _ => {
            let Some(path) = resolved(page, file) else {
                return Some(format!("{target} leads out of the tree"));
            };
            if !tree.is_there(&path) {
                return Some(format!("{target} leads nowhere"));
            }
            let text = tree.text(&path);
            (path, text)
        }
    };
    let heading = heading.filter(|_| path.ends_with(".md"))?;
    let has = headings(text).contains(heading);
    (!has).then(|| format!("{path} has no heading #{heading}"))
}

/// The path that a link of a page means, from the root; nothing when it leads out of the tree.
fn resolved(page: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The targets of the links in a text, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, prose) in prose(text) {
        let mut rest = prose;
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = rest[..end].split(' ').next().unwrap_or_default();
            found.push((line, target.trim_matches(['<', '>'])));
            rest = &rest[end..];
        }
    }
    found
}

/// The lines outside of fenced code, with what is in code within them left out.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().flat_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        let shown = if fenced || is_fence { "" } else { line };
        // Every second part between backticks is code.
        shown.split('`').step_by(2).map(move |part| (number + 1, part))
    })
}

/// The names by which the headings of a page can be linked to.
fn headings(text: &str) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let name: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'))
            .map(|sign| if sign == ' ' { '-' } else { sign })
            .collect();
        let again = (1..).map(|count| format!("{name}-{count}"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(page: &str) -> Vec<String> {
        let other = "# One thing\n\n```\n# not this\n```\n\n## It's `code`, too\n## One thing\n";
        let tree = Tree::of(&[
            ("docs/guide/page.md", page),
            ("docs/other.md", other),
            ("docs/images/a.png", ""),
        ]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_link_to_a_missing_file_is_a_finding() {
        let page = "[a](../other.md), ![b](../images/a.png)\n[c](../images/b.png) and [d](e.md)\n";
        let expected = [
            "docs/guide/page.md:2: ../images/b.png leads nowhere; link to what is there",
            "docs/guide/page.md:2: e.md leads nowhere; link to what is there",
        ];
        assert_eq!(said(page), expected);
    }

    #[test]
    fn folders_and_headings_are_places_too() {
        let page = "# Here\n[a](#here) [b](../other.md#one-thing) [c](../images/) [d](..)\n\
                    [e](../other.md#its-code-too) [f](../other.md#one-thing-1)\n\
                    [g](#there) [h](../other.md#not-this)\n";
        let expected = [
            "docs/guide/page.md:4: docs/guide/page.md has no heading #there; link to what is there",
            "docs/guide/page.md:4: docs/other.md has no heading #not-this; link to what is there",
        ];
        assert_eq!(said(page), expected);
    }

    #[test]
    fn code_and_other_machines_are_left_alone() {
        let page = "[a](https://example.org/b) `[c](d)`\n```\n[e](f)\n```\n[g](../../../h)\n";
        let expected =
            ["docs/guide/page.md:5: ../../../h leads out of the tree; link to what is there"];
        assert_eq!(said(page), expected);
    }
}
