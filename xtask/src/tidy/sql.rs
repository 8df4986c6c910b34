//! SQL lives in the store crates, nowhere else.
//!
//! A string literal counts as SQL when it opens like a statement. Prose that happens to begin with
//! "select" or "update" does not: the statement's second word is asked for too.

use super::{Finding, exceptions::Exceptions, scan, tree::Tree};

/// The crates that speak to a database, and the tests that inspect it below a control plane.
const ADAPTERS: [&str; 3] = [
    "crates/noetl-store-",
    "crates/noetl-test-app/tests/it/postgres/",
    "crates/noetl-test-app/tests/it/sqlite/",
];

pub(super) fn check(tree: &Tree, exceptions: &Exceptions) -> Vec<Finding> {
    let is_adapter = |path: &str| ADAPTERS.iter().any(|adapter| path.starts_with(adapter));
    let outside = tree.ending(".rs").filter(|(path, _)| !is_adapter(path));
    let mut findings = Vec::new();
    for (path, text) in outside {
        let mut statements = scan::literals(text).filter(|literal| is_statement(&literal.text));
        match exceptions.sql(path) {
            Some(line) if statements.next().is_none() => {
                findings.push(exceptions.unneeded(line, format!("{path} holds no SQL")));
            }
            Some(_) => {}
            None => findings.extend(statements.map(|literal| {
                let wrong = "SQL outside the store crates";
                let right = "put it behind a store trait, into a query file of each adapter";
                Finding::new(path, literal.line, wrong, right)
            })),
        }
    }
    findings
}

fn is_statement(literal: &str) -> bool {
    let lower = literal.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    match words[..] {
        ["select", ..] => words.contains(&"from") || words.len() == 2,
        ["insert", "into" | "or", ..] | ["delete", "from", ..] | ["replace", "into", ..] => true,
        ["update", ..] => words.contains(&"set"),
        ["create" | "alter" | "drop", object, ..] => matches!(
            object,
            "table" | "index" | "unique" | "view" | "trigger" | "schema" | "sequence" | "virtual"
        ),
        ["with", _, "as", ..] => lower.contains("select"),
        ["pragma", _] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATEMENT: &str = "fn f() {\n    run(\"select id from event\");\n}\n";

    #[test]
    fn a_statement_outside_the_store_crates_is_a_finding() {
        let tree = Tree::of(&[
            ("crates/noetl-control/src/a.rs", STATEMENT),
            ("crates/noetl-store-sqlite/src/b.rs", STATEMENT),
            ("crates/noetl-test-app/tests/it/postgres/c.rs", STATEMENT),
        ]);
        let findings = check(&tree, &Exceptions::default());
        assert_eq!(findings.len(), 1);
        let said = findings[0].to_string();
        assert!(said.starts_with("crates/noetl-control/src/a.rs:2: SQL outside"), "{said}");
    }

    #[test]
    fn statements_are_distinguished_from_prose() {
        for sql in [
            "SELECT 1",
            "\n  insert into event (a) values (1)",
            "insert or ignore into event values (1)",
            "update command set state = 1",
            "delete from event",
            "create table event (a)",
            "create unique index x on event (a)",
            "with due as (select 1) select * from due",
            "pragma journal_mode=wal",
        ] {
            assert!(is_statement(sql), "{sql}");
        }
        for prose in [
            "select one of the steps",
            "update the manifest",
            "insert a line",
            "delete the file",
            "create a token",
            "",
        ] {
            assert!(!is_statement(prose), "{prose}");
        }
    }

    #[test]
    fn an_exception_must_be_needed() {
        let (exceptions, _) = Exceptions::parse("list.txt", "sql bench/raw.rs - the raw rate");
        let needed = Tree::of(&[("bench/raw.rs", STATEMENT)]);
        assert!(check(&needed, &exceptions).is_empty());
        let unneeded = Tree::of(&[("bench/raw.rs", "fn f() {}")]);
        let said = "list.txt:1: bench/raw.rs holds no SQL; remove the line";
        assert_eq!(check(&unneeded, &exceptions)[0].to_string(), said);
    }
}
