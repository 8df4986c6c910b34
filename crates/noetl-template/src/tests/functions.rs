use noetl_model::Timestamp;

use super::super::Entropy;
use super::*;

#[test]
fn functions_behave_as_in_python() {
    check("range(3)", json!([0, 1, 2]));
    check("range(5, 0, -2)", json!([5, 3, 1]));
    check("range(0)", json!([]));
    check("dict(a=1)", json!({"a": 1}));
    check("dict({'a': 1}, b=2)", json!({"a": 1, "b": 2}));
    check("zip([1, 2], ['a', 'b'])", json!([[1, "a"], [2, "b"]]));
    check("len('äb')", json!(2));
    check("[min(2, 1), max([1, 3])]", json!([1, 3]));
    check("[int('4'), str(5), float('1.5'), bool('no')]", json!([4, "5", 1.5, false]));
    check("json({'a': none})", json!("{\"a\":null}"));
}

#[test]
fn an_unknown_function_is_an_error_when_it_is_called() {
    assert_eq!(error_of(json!({}), "{{ token('x') }}"), "there is no function `token`");
    check("true or token('x')", json!(true));
}

#[test]
fn now_is_the_time_of_the_scope() {
    let scope = Scope { now: Timestamp::from_millis(1_704_067_200_000), ..Scope::default() };
    assert_eq!(render_in(&scope, "{{ now() }}"), json!("2024-01-01T00:00:00Z"));
    assert_eq!(render_in(&scope, "{{ now('%Y/%m/%d') }}"), json!("2024/01/01"));
}

#[test]
fn uuid4_is_reproducible_valid_and_unique() {
    let scope = |seed| Scope { entropy: Entropy::new(seed), ..Scope::default() };
    let value = json!(["{{ uuid4() }}", "{{ uuid4() }}", "{{ [uuid4(), uuid4()] }}"]);
    let template = super::super::ValueTemplate::compile(value).unwrap();
    let first = template.render(&scope(1)).unwrap();
    assert_eq!(first, template.render(&scope(1)).unwrap());
    assert_ne!(first, template.render(&scope(2)).unwrap());
    let ids = [&first[0], &first[1], &first[2][0], &first[2][1]].map(|id| id.as_str().unwrap());
    for (place, id) in ids.iter().enumerate() {
        assert_eq!(id.len(), 36);
        assert_eq!(&id[14..15], "4");
        assert!("89ab".contains(&id[19..20]));
        assert!(!ids[..place].contains(id));
    }
}

#[test]
fn text_lists_and_maps_have_methods() {
    check("'aB'.upper() ~ 'aB'.lower()", json!("ABab"));
    check("' a '.strip()", json!("a"));
    check("'xaxx'.lstrip('x') ~ 'xaxx'.rstrip('x')", json!("axxxa"));
    check("'a,b'.split(',')", json!(["a", "b"]));
    check("' a  b '.split()", json!(["a", "b"]));
    check("'abc'.startswith('ab') and 'abc'.endswith('c')", json!(true));
    check("'aXa'.replace('a', 'b', 1)", json!("bXa"));
    check("'two words'.title() ~ 'aB'.capitalize()", json!("Two WordsAb"));
    check("', '.join([1, 'a', true])", json!("1, a, true"));
    check("[1, 1, 2].count(1) + 'aab'.count('a')", json!(4));
    check("[5, 6].index(6)", json!(1));
    check("'7'.zfill(3)", json!("007"));
    check("{'a': 1}.get('a') + {'a': 1}.get('b', 2)", json!(3));
    check("{'a': 1}.get('b')", json!(null));
    check("missing.get('a', 1)", json!(1));
    check("[{'b': 1, 'a': 2}.keys(), {'b': 1}.values()]", json!([["b", "a"], [1]]));
}

#[test]
fn values_are_immutable() {
    let message = error_of(json!({"xs": [1]}), "{{ xs.append(2) }}");
    assert!(message.starts_with("values are immutable: .append() cannot change [1]"), "{message}");
    let message = error_of(json!({"xs": [1]}), "{{ xs.nosuch() }}");
    assert_eq!(message, "there is no method .nosuch() on [1] (sequence)");
    let message = error_of(json!({}), "{{ missing.upper() }}");
    assert_eq!(message, "cannot call .upper() on an undefined value");
}

#[test]
fn tests_check_types_and_comparisons() {
    check("1 is number and 'a' is string and true is boolean", json!(true));
    check("{} is mapping and [] is sequence and 'a' is iterable", json!(true));
    check("2 is even and 3 is odd and 6 is divisibleby(3)", json!(true));
    check("1 is in [1] and 1 is eq(1) and 1 is ne(2)", json!(true));
    check("1 is lt(2) and 1 is le(1) and 2 is gt(1) and 2 is ge(2)", json!(true));
    check("true is true and false is false and 1 is not true", json!(true));
    check("'' is empty and [] is empty and missing is empty and 'a' is not empty", json!(true));
    check("none is none and missing is undefined", json!(true));
}
