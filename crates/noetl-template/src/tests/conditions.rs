use super::*;
use crate::{Data, truthy};

#[track_caller]
fn holds(workload: Value, source: &str) -> bool {
    Guard::parse(source).unwrap().holds(&scope(workload)).unwrap()
}

#[test]
fn a_condition_needs_no_braces() {
    assert!(holds(json!({"n": 4}), "ctx.n > 3"));
    assert!(!holds(json!({"n": 3}), "ctx.n > 3"));
    assert!(holds(json!({"n": 4}), "{{ ctx.n > 3 }}"));
    assert!(holds(json!({"n": 4}), "\n  {{ ctx.n > 3 }}  \n"));
    assert!(holds(json!({"n": 4}), "  n > 3\n and n < 5\n"));
}

#[test]
fn a_constant_condition_is_evaluated_at_parse_time() {
    for (source, expected) in [("true", true), ("{{ false }}", false), ("0", false), (" ", false)] {
        let guard = Guard::parse(source).unwrap();
        assert!(matches!(guard, Guard::Constant(answer) if answer == expected), "{source}");
    }
}

#[test]
fn several_expressions_are_evaluated_as_text() {
    let workload = json!({"a": false, "b": false});
    assert!(holds(workload.clone(), "{{ a }} and {{ b }}"));
    assert!(!holds(workload.clone(), "{% if a %}yes{% endif %}"));
    assert!(!holds(workload, "{% if not a %}no{% endif %}"));
}

#[test]
fn empty_values_zero_and_spellings_of_false_are_false() {
    for value in [
        json!(false),
        json!(0),
        json!(0.0),
        json!(""),
        json!(null),
        json!([]),
        json!({}),
        json!("False"),
        json!("NO"),
        json!("off"),
        json!("None"),
        json!("null"),
        json!("0"),
        json!("  "),
    ] {
        assert!(!truthy(&from_json(&value)), "{value}");
    }
    assert!(!truthy(&Data::UNDEFINED));
    for value in [
        json!(true),
        json!(1),
        json!(-0.5),
        json!("x"),
        json!("0.0"),
        json!([0]),
        json!({"a": 0}),
        json!("yes"),
    ] {
        assert!(truthy(&from_json(&value)), "{value}");
    }
}

#[test]
fn every_alias_of_an_event_name_matches() {
    let done = Scope { event: Some("step.done"), ..Scope::default() };
    let failed = Scope { event: Some("step.failed"), ..Scope::default() };
    for source in [
        "event.name == 'call.done'",
        "{{ 'step.done' == event.name }}",
        "event.name in ['call.done', 'x']",
        "event.name != 'call.error'",
    ] {
        let guard = Guard::parse(source).unwrap();
        assert!(guard.holds(&done).unwrap(), "{source}");
        assert!(!guard.holds(&failed).unwrap(), "{source}");
    }
}

#[test]
fn a_condition_that_fails_to_evaluate_is_an_error() {
    let guard = Guard::parse("ctx.n > 3").unwrap();
    let error = guard.holds(&scope(json!({"n": "4"}))).unwrap_err();
    assert_eq!(error.to_string(), "cannot order \"4\" (string) and 3 (number) in `ctx.n > 3`");
}
