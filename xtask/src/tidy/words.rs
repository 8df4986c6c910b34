//! A comment gives reasons. It does not tell history, plans, tickets or one machine's paths.

use super::{Finding, scan, tree::Tree};

/// Words that mark work left undone.
const MARKERS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Roots of paths that exist on one machine only.
const ROOTS: [&str; 4] = ["/tmp/", "/home/", "/root/", "/Users/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let lines = tree.ending(".rs").flat_map(|(path, text)| {
        scan::comment_lines(text).map(move |(line, comment)| (path, line, comment))
    });
    lines
        .filter_map(|(path, line, comment)| {
            let (wrong, right) = judge(&comment)?;
            Some(Finding::new(path, line, wrong, right))
        })
        .collect()
}

/// What is wrong with a line of a comment, and what would be right.
fn judge(comment: &str) -> Option<(String, &'static str)> {
    let words: Vec<&str> = comment
        .split(|c: char| !c.is_alphanumeric() && c != '#' && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let said = |what: &str| format!("a comment says `{what}`");

    if let Some(marker) = words.iter().find(|word| MARKERS.contains(word)) {
        return Some((said(marker), "do it, or leave it out"));
    }
    if let Some(root) = ROOTS.iter().find(|root| names_a_path(comment, root)) {
        return Some((said(root), "name no path of one machine"));
    }
    let pairs = words.iter().zip(words.iter().skip(1));
    for (first, second) in pairs {
        let number = second.trim_start_matches('#');
        let pair = format!("{first} {second}");
        match first.to_lowercase().as_str() {
            "phase" | "round" if is_number(number) => {
                return Some((said(&pair), "say what the code is for; plans go elsewhere"));
            }
            "issue" | "issues" | "ticket" | "pr" | "pull" | "gh" if is_number(number) => {
                return Some((said(&pair), "give the reason itself, not its ticket"));
            }
            _ => {}
        }
    }
    let ticket = words.iter().find(|word| word.strip_prefix('#').is_some_and(is_number))?;
    Some((said(ticket), "give the reason itself, not its ticket"))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text holds an absolute path below this root.
fn names_a_path(text: &str, root: &str) -> bool {
    text.match_indices(root).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + root.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '}' | '>' | '~'))
            && after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_judged_and_a_literal_is_not() {
        let source = "// Fine.\nlet s = \"TODO\"; // TODO: later\n";
        let findings = check(&Tree::of(&[("a.rs", source)]));
        let said = "a.rs:2: a comment says `TODO`; do it, or leave it out";
        assert_eq!(findings.iter().map(Finding::to_string).collect::<Vec<_>>(), [said]);
    }

    #[test]
    fn the_line_inside_a_block_is_named() {
        let source = "/* Fine.\n   Phase 2 comes next. */\n";
        assert_eq!(check(&Tree::of(&[("a.rs", source)]))[0].line, 2);
    }

    #[test]
    fn history_plans_tickets_and_paths_are_refused() {
        for comment in [
            "FIXME: slow",
            "XXX",
            "Part of Phase 3.",
            "See round 12",
            "Fixes #42.",
            "see issue 42",
            "see issues/42 upstream",
            "GH-42",
            "written to /tmp/noetl by hand",
            "see `/home/somebody/x`",
            "under /home/someone",
        ] {
            assert!(judge(comment).is_some(), "{comment}");
        }
    }

    #[test]
    fn ordinary_comments_pass() {
        for comment in [
            "An arc that closes a loop opens the next round.",
            "The first phase of a commit.",
            "Nothing is any longer than 400 lines.",
            "Served at `/api/work/queue` and `{root}/tmp/x`.",
            "Message id `<command_id>#<n>`.",
            "`#[cfg(test)]` and r#type",
            "HTTP 500 round trips",
        ] {
            assert!(judge(comment).is_none(), "{comment}");
        }
    }
}
