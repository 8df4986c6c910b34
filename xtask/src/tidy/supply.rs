//! What comes from outside: its source, its licence, and what is not wanted at all.
//!
//! `deny.toml` is the one list. `cargo deny` reads it more strictly where it is at hand; this check
//! needs no further program and no network, so these three rules hold on every machine.

use serde_json::Value;

use super::Finding;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The part of `deny.toml` that is checked here.
#[derive(Debug, Default)]
pub(super) struct Policy {
    licences: Vec<String>,
    banned: Vec<String>,
}

impl Policy {
    /// Reads the two lists by their shape: `allow = [`, one licence a line, and `crate = "…"`.
    pub(super) fn parse(text: &str) -> Self {
        let lines = || text.lines().map(str::trim);
        let licences = lines()
            .skip_while(|line| *line != "allow = [")
            .skip(1)
            .take_while(|line| *line != "]")
            .filter_map(quoted)
            .collect();
        let banned = lines().filter_map(|line| quoted(line.strip_prefix("{ crate = ")?)).collect();
        Self { licences, banned }
    }

    /// Whether one of the ways a licence expression offers is on the list.
    ///
    /// `OR` binds weaker than `AND`; the old `/` between licences means `OR`.
    fn allows(&self, expression: &str) -> bool {
        let mut words: Vec<String> = Vec::new();
        for word in expression
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace('/', " OR ")
            .split_whitespace()
        {
            match words.last_mut() {
                // A licence with its exception is one name.
                Some(last) if word == "WITH" || last.ends_with(" WITH") => {
                    last.push(' ');
                    last.push_str(word);
                }
                Some(_) | None => words.push(word.to_owned()),
            }
        }
        let mut at = 0;
        let allowed = self.any(&words, &mut at);
        allowed && at == words.len()
    }

    fn any(&self, words: &[String], at: &mut usize) -> bool {
        let mut allowed = self.all(words, at);
        while words.get(*at).is_some_and(|word| word == "OR") {
            *at += 1;
            allowed |= self.all(words, at);
        }
        allowed
    }

    fn all(&self, words: &[String], at: &mut usize) -> bool {
        let mut allowed = self.one(words, at);
        while words.get(*at).is_some_and(|word| word == "AND") {
            *at += 1;
            allowed &= self.one(words, at);
        }
        allowed
    }

    fn one(&self, words: &[String], at: &mut usize) -> bool {
        let Some(word) = words.get(*at) else {
            return false;
        };
        *at += 1;
        if word != "(" {
            return self.licences.contains(word);
        }
        let allowed = self.any(words, at);
        *at += 1;
        allowed
    }
}

/// Checks the sources and names in the lock file.
pub(super) fn check_lock(policy: &Policy, lock: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(lock.lines()) {
        let finding = |wrong: String, right: &str| Finding::new("Cargo.lock", line, wrong, right);
        if let Some(source) = text.strip_prefix("source = ").and_then(quoted)
            && source != REGISTRY
        {
            let wrong = format!("a dependency comes from {source}");
            findings.push(finding(wrong, "take it from the public registry"));
        }
        if let Some(name) = text.strip_prefix("name = ").and_then(quoted)
            && policy.banned.contains(&name)
        {
            let right = "see the reason in deny.toml; `cargo tree -i` says who asks for it";
            findings.push(finding(format!("{name} is banned"), right));
        }
    }
    findings
}

/// Checks the licences in the answer of `cargo metadata`.
pub(super) fn check_licences(policy: &Policy, metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("nothing");
            let name = package["name"].as_str().unwrap_or_default();
            let wrong = format!("the licence of {name} is {licence}, which is not on the list");
            let right = "choose another crate, or add the licence with a reason";
            (!policy.allows(licence)).then(|| Finding::new("deny.toml", 1, wrong, right))
        })
        .collect()
}

/// The text between the first two quotes.
fn quoted(text: &str) -> Option<String> {
    text.split('"').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DENY: &str = "[licenses]\nallow = [\n    \"MIT\",\n    \"ISC\",\n    \
                        \"Apache-2.0 WITH LLVM-exception\",\n]\n\n[bans]\ndeny = [\n    \
                        { crate = \"serde_yaml\", reason = \"archived\" },\n]\n";

    #[test]
    fn licence_expressions_are_read_as_written() {
        let policy = Policy::parse(DENY);
        for licence in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "MIT AND ISC",
            "(MIT OR GPL-3.0) AND ISC",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
            "GPL-3.0 AND MIT OR ISC",
        ] {
            assert!(policy.allows(licence), "{licence}");
        }
        for licence in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "", "MIT)", "nothing"] {
            assert!(!policy.allows(licence), "{licence}");
        }
    }

    #[test]
    fn a_licence_that_is_not_listed_is_a_finding() {
        let metadata = json!({"packages": [
            {"name": "good", "license": "MIT"},
            {"name": "bad", "license": "GPL-3.0"},
            {"name": "worse", "license": null},
        ]});
        let findings = check_licences(&Policy::parse(DENY), &metadata);
        let said: Vec<&str> = findings.iter().map(|f| f.wrong.as_str()).collect();
        let expected = [
            "the licence of bad is GPL-3.0, which is not on the list",
            "the licence of worse is nothing, which is not on the list",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn other_sources_and_banned_crates_are_findings() {
        let lock = format!(
            "[[package]]\nname = \"serde_yaml\"\nsource = \"{REGISTRY}\"\n\
             [[package]]\nname = \"x\"\nsource = \"git+https://example.org/x\"\n"
        );
        let findings = check_lock(&Policy::parse(DENY), &lock);
        let lines: Vec<usize> = findings.iter().map(|f| f.line).collect();
        assert_eq!(lines, [2, 6]);
    }
}
