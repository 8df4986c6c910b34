//! `docs/patterns.md`: every pattern has an example playbook or a reason why it is not offered, and
//! every playbook returns its documented result on both kinds of store.

use crate::noetl::EXAMPLES;
use crate::shown::{self, ShownPlaybook};

const PAGE: &str = include_str!("../../../../docs/patterns.md");

/// Number of the classic patterns, numbered from 1.
const CLASSIC: usize = 20;

fn patterns() -> Vec<ShownPlaybook> {
    shown::all(&directory(), |_| true)
}

fn directory() -> String {
    format!("{EXAMPLES}/patterns")
}

#[test]
fn patterns_return_their_documented_results_on_sqlite() {
    shown::run_on_sqlite(&patterns());
}

#[test]
fn patterns_return_their_documented_results_on_postgres() {
    shown::run_on_postgres(&patterns());
}

#[test]
fn every_pattern_has_an_example_or_a_reason() {
    shown::assert_valid(&directory());
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    for number in 1..=CLASSIC {
        let row = rows.iter().find(|row| row[0] == number.to_string());
        let row = row.unwrap_or_else(|| panic!("pattern {number} is not on the page"));
        let [_, _, how, file] = row[..] else { panic!("{row:?}") };
        assert!(how.len() > 20, "pattern {number} is not explained");
        assert!(file.contains(".yaml") || how.starts_with("Not offered:"), "{row:?}");
    }
    for ShownPlaybook { name, text, .. } in patterns() {
        let link = format!("[{name}.yaml](../examples/patterns/{name}.yaml)");
        assert!(PAGE.contains(&link), "{name} is not on the page");
        let is_sure = text.contains("on_no_match: fail") || text.contains("do: fail");
        // Pattern 2 ends only if both of its branches run at a time.
        assert!(is_sure || name.starts_with("02"), "{name} asserts nothing");
    }
}
