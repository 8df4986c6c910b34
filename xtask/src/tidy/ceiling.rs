//! A file fits in a sitting: at most [`LINES_MAX`] lines, not counting its tests.

use super::{Finding, exceptions::Exceptions, scan, tree::Tree};

/// What one reads in a sitting without losing the thread.
const LINES_MAX: usize = 400;

/// How far a limit in the list may be above the file, so that a small change is no chore.
const SLACK: usize = 20;

pub(super) fn check(tree: &Tree, exceptions: &Exceptions) -> Vec<Finding> {
    let files = tree.ending(".rs").filter(|(path, _)| !scan::only_tests(path));
    files
        .filter_map(|(path, text)| check_file(path, scan::tests_begin(text) - 1, exceptions))
        .collect()
}

fn check_file(path: &str, lines: usize, exceptions: &Exceptions) -> Option<Finding> {
    let exception = exceptions.ceiling(path);
    let limit = exception.map_or(LINES_MAX, |(limit, _)| limit);
    match exception {
        _ if lines > limit => {
            let wrong = format!("{lines} lines without tests, the ceiling is {limit}");
            let right = "split it along its parts, one thing per file";
            Some(Finding::new(path, limit + 1, wrong, right))
        }
        Some((_, line)) if lines <= LINES_MAX => {
            let why = format!("{path} is under the ceiling of {LINES_MAX} lines");
            Some(exceptions.unneeded(line, why))
        }
        Some((_, line)) if lines + SLACK < limit => Some(exceptions.too_high(line, path, lines)),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str, list: &str) -> Vec<String> {
        let (exceptions, _) = Exceptions::parse("list.txt", list);
        let findings = check(&Tree::of(&[(path, text)]), &exceptions);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_long_file_is_a_finding() {
        assert!(findings("a.rs", &"x\n".repeat(400), "").is_empty());
        let said = "a.rs:401: 401 lines without tests, the ceiling is 400; \
                    split it along its parts, one thing per file";
        assert_eq!(findings("a.rs", &"x\n".repeat(401), ""), [said]);
    }

    #[test]
    fn tests_do_not_count() {
        let long = "x\n".repeat(500);
        assert!(findings("crates/a/tests/it/b.rs", &long, "").is_empty());
        assert!(findings("crates/a/src/b/tests.rs", &long, "").is_empty());
        let inline = format!("{}#[cfg(test)]\nmod tests {{\n{long}}}\n", "x\n".repeat(400));
        assert!(findings("a.rs", &inline, "").is_empty());
    }

    #[test]
    fn an_exception_lifts_the_ceiling_and_must_be_needed() {
        let list = "ceiling a.rs 450 one table";
        assert!(findings("a.rs", &"x\n".repeat(450), list).is_empty());
        assert!(findings("a.rs", &"x\n".repeat(451), list)[0].contains("the ceiling is 450"));
        let unneeded = "list.txt:1: a.rs is under the ceiling of 400 lines; remove the line";
        assert_eq!(findings("a.rs", &"x\n".repeat(400), list), [unneeded]);
        let high = "list.txt:1: a.rs has only 420 lines; lower its limit to 420";
        assert_eq!(findings("a.rs", &"x\n".repeat(420), list), [high]);
    }
}
