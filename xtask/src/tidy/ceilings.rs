//! Lists of ceilings: a count per rule and area that may only fall.

use std::collections::BTreeMap;

use super::Finding;

/// Counts by rule and area.
pub(super) type Counts = BTreeMap<(String, String), usize>;

/// A list of ceilings.
pub(super) struct Ceilings {
    /// Path of the list, from the root of the workspace.
    file: &'static str,
    /// Each ceiling and its line.
    entries: BTreeMap<(String, String), (usize, usize)>,
}

impl Ceilings {
    /// Reads a list. A line of another form is a finding.
    pub(super) fn parse(file: &'static str, text: &str) -> (Self, Vec<Finding>) {
        let (mut entries, mut findings) = (BTreeMap::new(), Vec::new());
        for (line, written) in (1..).zip(text.lines()) {
            if written.is_empty() || written.starts_with('#') {
                continue;
            }
            match entry(written) {
                Some((key, ceiling)) => drop(entries.insert(key, (ceiling, line))),
                None => findings.push(Finding::new(
                    file,
                    line,
                    "a line isn't a ceiling",
                    "write a rule, an area, and a count",
                )),
            }
        }
        (Self { file, entries }, findings)
    }

    /// Returns the ceiling of a rule in an area, if the list has one.
    pub(super) fn get(&self, rule: &str, area: &str) -> Option<usize> {
        let key = (rule.to_owned(), area.to_owned());
        self.entries.get(&key).map(|(ceiling, _)| *ceiling)
    }

    /// Returns a finding for each ceiling that its count no longer needs: the count fell by more
    /// than `slack`, or to `limit`, which needs no ceiling.
    pub(super) fn too_high(
        &self,
        counts: &Counts,
        rule_of: impl Fn(&str) -> Allowance,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (key @ (rule, area), (ceiling, line)) in &self.entries {
            let Allowance { limit, slack } = rule_of(rule);
            let count = counts.get(key).copied().unwrap_or(0);
            if count <= limit || count + slack < *ceiling {
                let wrong = format!("the count of {rule} in {area} is {count}, not {ceiling}");
                findings.push(Finding::new(self.file, *line, wrong, "run `cargo xtask ceilings`"));
            }
        }
        findings
    }

    /// Returns the list with every count that fell. A list without entries gets one for each count
    /// above its limit.
    pub(super) fn lowered(
        &self,
        head: &str,
        counts: &Counts,
        rule_of: impl Fn(&str) -> Allowance,
    ) -> String {
        let mut list = head.to_owned();
        for (key @ (rule, area), count) in counts {
            let ceiling = match self.entries.get(key) {
                Some((ceiling, _)) => *count.min(ceiling),
                None if self.entries.is_empty() => *count,
                None => continue,
            };
            if *count > rule_of(rule).limit {
                list += &format!("{rule} {area} {ceiling}\n");
            }
        }
        list
    }
}

/// Bounds of the counts of a rule.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Allowance {
    /// Greatest count that needs no ceiling.
    pub(super) limit: usize,
    /// Greatest distance of a count from its ceiling, so that a small change is no chore.
    pub(super) slack: usize,
}

fn entry(written: &str) -> Option<((String, String), usize)> {
    let words: Vec<&str> = written.split(' ').collect();
    match words[..] {
        [rule, area, count] => Some(((rule.to_owned(), area.to_owned()), count.parse().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "list.txt";

    fn counts(counts: &[(&str, usize)]) -> Counts {
        counts
            .iter()
            .map(|(area, count)| (("rule".to_owned(), (*area).to_owned()), *count))
            .collect()
    }

    fn allowance(limit: usize, slack: usize) -> impl Fn(&str) -> Allowance {
        move |_| Allowance { limit, slack }
    }

    fn ceilings(text: &str) -> Ceilings {
        let (ceilings, findings) = Ceilings::parse(LIST, text);
        assert_eq!(findings, []);
        ceilings
    }

    #[test]
    fn a_line_of_another_form_is_a_finding() {
        for text in ["rule a", "rule a many", "rule a 1 more"] {
            assert_eq!(Ceilings::parse(LIST, text).1.len(), 1, "{text}");
        }
        assert_eq!(ceilings("# words\n\nrule a 3\n").get("rule", "a"), Some(3));
        assert_eq!(ceilings("rule a 3\n").get("rule", "b"), None);
    }

    #[test]
    fn a_ceiling_that_is_too_high_is_a_finding() {
        let found = |list: &str, count: usize, limit: usize, slack: usize| {
            let findings =
                ceilings(list).too_high(&counts(&[("a", count)]), allowance(limit, slack));
            findings.iter().map(Finding::to_string).collect::<Vec<_>>()
        };
        let said = "list.txt:1: the count of rule in a is 8, not 10; run `cargo xtask ceilings`";
        assert_eq!(found("rule a 10\n", 8, 0, 1), [said]);
        assert_eq!(found("rule a 10\n", 9, 0, 1), [""; 0]);
        assert_eq!(found("rule a 10\n", 10, 0, 0), [""; 0]);
        assert_eq!(found("rule a 10\n", 9, 9, 5).len(), 1, "the limit needs no ceiling");
        assert_eq!(found("rule gone 10\n", 3, 0, 20).len(), 1, "an area without a count");
    }

    #[test]
    fn ceilings_fall_and_never_rise() {
        let lowered = |list: &str, count: usize| {
            ceilings(list).lowered("# head\n", &counts(&[("a", count), ("b", 7)]), allowance(3, 0))
        };
        assert_eq!(lowered("rule a 9\n", 8), "# head\nrule a 8\n");
        assert_eq!(lowered("rule a 9\n", 12), "# head\nrule a 9\n");
        assert_eq!(lowered("rule a 9\n", 3), "# head\n");
        assert_eq!(lowered("", 4), "# head\nrule a 4\nrule b 7\n");
    }
}
