use super::*;

#[track_caller]
fn mistake(source: &str, line: usize, column: usize, part: &str) {
    let error = Template::parse(source).unwrap_err();
    assert!(error.message.contains(part), "{}", error.message);
    assert_eq!((error.line, error.column), (line, column), "{}", error.message);
}

#[test]
fn a_syntax_error_has_a_position() {
    mistake("{{ a b }}", 1, 6, "unexpected");
    mistake("one\ntwö {{ a | nosuch }}", 2, 12, "unknown filter `nosuch`");
    mistake("{{ x is nosuch }}", 1, 9, "unknown test `nosuch`");
    mistake("{% if x %}", 1, 9, "unexpected end");
    mistake("a\n{% include 'b' %}", 2, 4, "not supported");
    mistake("{{ [1](2) }}", 1, 4, "only functions");
}

#[test]
fn an_unknown_filter_gets_a_suggestion() {
    mistake("{{ x | defalt(1) }}", 1, 8, "did you mean `default`?");
}

#[test]
fn positions_in_a_condition_count_from_the_start_of_its_text() {
    let error = Guard::parse("\n  a ==\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 5));
    let error = Guard::parse("  {{ a | nosuch }}").unwrap_err();
    assert_eq!((error.line, error.column), (1, 10));
}

#[test]
fn statements_that_combine_templates_are_rejected() {
    for source in [
        "{% extends 'a' %}",
        "{% import 'a' as b %}",
        "{% from 'a' import b %}",
        "{% macro f() %}{% endmacro %}",
        "{% block a %}{% endblock %}",
        "{% autoescape true %}{% endautoescape %}",
    ] {
        assert!(Template::parse(source).is_err(), "{source}");
    }
}

#[test]
fn a_compiled_template_is_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Template>();
    shared::<Guard>();
    shared::<super::super::ValueTemplate>();
}

#[test]
fn raw_blocks_and_comments_are_not_evaluated() {
    assert_eq!(render(json!({}), "{% raw %}{{ a }}{% endraw %}"), json!("{{ a }}"));
    assert_eq!(render(json!({}), "a{# b #}c"), json!("ac"));
    assert_eq!(render(json!({}), "{{ '{{' }}"), json!("{{"));
}

#[test]
fn names_may_be_in_any_script() {
    let results = [(Arc::from("größe"), from_json(&json!({"v": 3})).into())].into_iter().collect();
    let scope = Scope { results: Arc::new(results), ..Scope::default() };
    assert_eq!(render_in(&scope, "{{ größe.v + 1 }}"), json!(4));
}
