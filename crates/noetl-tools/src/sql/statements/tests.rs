use proptest::prelude::*;

use super::*;

fn texts(text: &str, dialect: Dialect) -> Vec<&str> {
    split(text, dialect).into_iter().map(|statement| statement.text).collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(texts(text, Dialect::Postgres), expected, "{text}");
}

#[test]
fn semicolons_in_quotes_and_comments_do_not_split_statements() {
    check("a; b", &["a", "b"]);
    check(" ; -- c;\n ; /* ; */ ", &[]);
    check("x ';' ; y \";\" z", &["x ';'", "y \";\" z"]);
    check("x 'it''s;' ; y", &["x 'it''s;'", "y"]);
    check(r"x E'\';' ; y '\' ; z", &[r"x E'\';'", r"y '\'", "z"]);
    check("x $$ ; $$ ; y $a$ $$ ; $a$", &["x $$ ; $$", "y $a$ $$ ; $a$"]);
    check("x $1 ; y $2", &["x $1", "y $2"]);
    check("x /* /* ; */ ; */ y ; z", &["x /* /* ; */ ; */ y", "z"]);
    check("x 'open ; y", &["x 'open ; y"]);
    check("x $$open ; y", &["x $$open ; y"]);
    check("grün ; 'ü;'", &["grün", "'ü;'"]);
}

#[test]
fn bodies_of_routines_and_triggers_are_not_split() {
    let routine = "create function f() returns int begin atomic \
                   insert a; return case when b then 1 else 2 end; end";
    check(&format!("{routine}; next"), &[routine, "next"]);
    let trigger = "create trigger t after insert on a begin \
                   update b; c case when d then e end; end";
    let text = format!("{trigger}; next");
    assert_eq!(texts(&text, Dialect::Sqlite), [trigger, "next"]);
    // Only a definition has a body.
    check("begin; a; end; b", &["begin", "a", "end", "b"]);
    assert_eq!(texts("a [;] ; `;` b", Dialect::Sqlite), ["a [;]", "`;` b"]);
}

#[test]
fn verbs_and_transaction_control_are_recognized() {
    let read = |text| {
        let statement = split(text, Dialect::Postgres).remove(0);
        (statement.verb, statement.control)
    };
    assert_eq!(read("with a as (delete from b returning c) insert into d").0, "insert");
    assert_eq!(read("WITH RECURSIVE a AS (values (1)) Select 1").0, "select");
    assert_eq!(read("(select 1)").0, "");
    assert_eq!(read("Begin work").1, TransactionControl::Begin);
    assert_eq!(read("start transaction").1, TransactionControl::Begin);
    assert_eq!(read("rollback to savepoint a").1, TransactionControl::Inner);
    assert_eq!(read("rollback").1, TransactionControl::Finish);
    assert_eq!(read("prepare a as b").1, TransactionControl::None);
    assert!(split("copy a from stdin", Dialect::Postgres)[0].streams);
    assert!(!split("copy a from 'stdin'", Dialect::Postgres)[0].streams);
}

#[test]
fn named_parameters_become_numbered_parameters() {
    let number = |text| {
        let (text, names) = number_names(text, Dialect::Postgres, |_| Ok(true)).unwrap();
        (text, names.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let (text, names) = number("a = :a and b = :b_2::int or c = :a");
    assert_eq!(text, "a = $1 and b = $2::int or c = $1");
    assert_eq!(names, ["a", "b_2"]);
    for untouched in
        ["':a'", "\":a\"", "-- :a", "/* :a */", "$$ :a $$", "x::text", "f(a := 1)", "a[1:2]"]
    {
        assert_eq!(number(untouched), (untouched.to_owned(), Vec::new()));
    }
    let some = number_names("a[x:y] = :z", Dialect::Postgres, |name| Ok(name == "z"));
    assert_eq!(some.unwrap(), ("a[x:y] = $1".to_owned(), vec!["z"]));
}

#[test]
fn identifiers_are_quoted() {
    assert_eq!(quoted("a\"; drop", false), "\"a\"\"; drop\"");
    assert_eq!(quoted("a.b", true), "\"a\".\"b\"");
    assert_eq!(quoted("a.b", false), "\"a.b\"");
}

proptest! {
    #[test]
    fn any_text_is_split_without_loss(text in "[a-z:;'\"$*/\\-\\\\\\[\\]`() \nü1]{0,60}") {
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            for statement in split(&text, dialect) {
                prop_assert!(text.contains(statement.text));
                prop_assert!(!statement.text.trim().is_empty());
            }
            let (same, _) = number_names(&text, dialect, |_| Ok(false)).unwrap();
            prop_assert_eq!(same, text.as_str());
        }
    }
}
