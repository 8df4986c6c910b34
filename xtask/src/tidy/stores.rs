//! A service takes the store trait with the tables that it uses, not the whole store.

use super::{Finding, production, tree::Tree};

/// Crates of services, each with a store trait in `noetl-store`.
const SERVICES: [&str; 9] = [
    "noetl-identity",
    "noetl-catalog",
    "noetl-results",
    "noetl-secrets",
    "noetl-journal",
    "noetl-remote",
    "noetl-views",
    "noetl-triggers",
    "noetl-publishing",
];

const WHOLE: &str = "dyn Store";

/// Finds production code of services that names the whole store.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let crates = production::crates(tree);
    let sources = SERVICES.iter().filter_map(|name| crates.get(name)).flatten();
    let lines = sources.flat_map(|source| {
        let lines = (1..).zip(source.code.lines());
        lines.filter(|(_, line)| names_whole(line)).map(|(line, _)| (source.path, line))
    });
    let found = lines.map(|(path, line)| {
        let right = "take the trait of the service in crates/noetl-store/src/services.rs";
        Finding::new(path, line, format!("a service takes `{WHOLE}`"), right)
    });
    found.collect()
}

/// Returns `true` if a line of code names the whole store.
fn names_whole(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices(WHOLE).any(|(at, _)| {
        let after = code[at + WHOLE.len()..].chars().next();
        !after.is_some_and(|next| next.is_alphanumeric() || next == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_takes_the_whole_store_is_a_finding() {
        let code = "// dyn Store\nfn a(s: &dyn StoreClock) {}\nfn b(s: Arc<dyn Store>) {}\n\
                    #[cfg(test)]\nmod tests {\n    fn c(s: Arc<dyn Store>) {}\n}\n";
        let files = [
            ("crates/noetl-views/src/lib.rs", code),
            ("crates/noetl-views/tests/it/main.rs", code),
            ("crates/noetl-control/src/lib.rs", code),
        ];
        let found = check(&Tree::of(&files));
        let found: Vec<String> = found.iter().map(Finding::to_string).collect();
        let expected = "crates/noetl-views/src/lib.rs:3: a service takes `dyn Store`; take the \
                        trait of the service in crates/noetl-store/src/services.rs";
        assert_eq!(found, [expected]);
    }
}
