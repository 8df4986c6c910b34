use super::*;

#[test]
fn numbers_are_computed_as_in_python() {
    check("1 + 2 * 3", json!(7));
    check("7 // 2", json!(3));
    check("-7 // 2", json!(-4));
    check("7 // -2", json!(-4));
    check("-7 // -2", json!(3));
    check("-7 % 3", json!(2));
    check("7 % -3", json!(-2));
    check("7.5 // 2", json!(3.0));
    check("-7.5 % 2", json!(0.5));
    check("2 ** 10", json!(1024));
    check("2 ** -1", json!(0.5));
    check("6 / 2", json!(3.0));
    check("true + 1", json!(2));
    check("-(3)", json!(-3));
}

#[test]
fn text_and_lists_are_concatenated() {
    check("'a' + 'b'", json!("ab"));
    check("'a' ~ 1 ~ true ~ none ~ [1]", json!("a1true[1]"));
    check("[1] + [2]", json!([1, 2]));
    check("'ab' * 2", json!("abab"));
    check("3 * [0]", json!([0, 0, 0]));
    check("'a' * -1", json!(""));
}

#[test]
fn division_by_zero_names_the_expression() {
    for template in ["{{ a / b }}", "{{ a // b }}", "{{ a % b }}", "{{ a / 0.0 }}"] {
        let message = error_of(json!({"a": 1, "b": 0}), template);
        let expression = template.trim_matches(['{', '}', ' ']);
        assert_eq!(message, format!("division by zero in `{expression}`"));
    }
}

#[test]
fn integer_overflow_is_an_error() {
    let workload = json!({"big": u64::MAX, "small": i64::MIN});
    for template in [
        "{{ big + 1 }}",
        "{{ big * big }}",
        "{{ small - 1 }}",
        "{{ 2 ** 64 }}",
        "{{ 10 ** 100 }}",
        "{{ -big }}",
    ] {
        let message = error_of(workload.clone(), template);
        assert!(message.contains("integer overflow"), "{template}: {message}");
    }
    assert_eq!(render(workload, "{{ big - 1 }}"), json!(u64::MAX - 1));
}

#[test]
fn arithmetic_on_a_non_number_reports_both_values() {
    assert_eq!(
        error_of(json!({"n": 1}), "{{ missing + n }}"),
        "cannot compute `missing + n` of undefined (undefined) and 1 (number)"
    );
    assert_eq!(
        error_of(json!({}), "{{ 'a' + 1 }}"),
        "cannot compute `'a' + 1` of \"a\" (string) and 1 (number)"
    );
}

#[test]
fn ordering_different_types_is_an_error_with_both_values() {
    assert_eq!(
        error_of(json!({}), "{{ '10' > 9 }}"),
        "cannot order \"10\" (string) and 9 (number)"
    );
    for template in [
        "{{ missing < 3 }}",
        "{{ none >= 0 }}",
        "{{ true < 2 }}",
        "{{ [1] < 'a' }}",
        "{{ {} < {} }}",
        "{{ 'a' is gt 1 }}",
        "{{ [1, 'a'] | select('gt', 0) | list }}",
    ] {
        let message = error_of(json!({}), template);
        assert!(message.contains("cannot order"), "{template}: {message}");
    }
}

#[test]
fn values_of_one_type_are_ordered() {
    check("1 < 1.5", json!(true));
    check("2 >= 2.0", json!(true));
    check("'a' < 'b'", json!(true));
    check("[1, 2] < [1, 3]", json!(true));
    check("1 < 2 < 3", json!(true));
    check("1 < 3 < 2", json!(false));
    check("18446744073709551615 > 9223372036854775807", json!(true));
}

#[test]
fn equality_across_types_is_false() {
    check("1 == '1'", json!(false));
    check("1 == true", json!(false));
    check("0 == false", json!(false));
    check("none == missing", json!(false));
    check("'' == none", json!(false));
    check("1 != '1'", json!(true));
    check("1 == 1.0", json!(true));
    check("{'a': [1]} == {'a': [1]}", json!(true));
}

#[test]
fn membership_tests_search_lists_maps_and_text() {
    check("2 in [1, 2]", json!(true));
    check("'2' in [1, 2]", json!(false));
    check("'a' in {'a': none}", json!(true));
    check("'b' not in 'abc'", json!(false));
    check("1 in missing", json!(false));
}

#[test]
fn logical_operators_return_the_deciding_operand() {
    check("missing or 'x'", json!("x"));
    check("0 and 1/0", json!(0));
    check("not []", json!(true));
    check("'a' if missing", json!(null));
    check("'a' if missing else 'b'", json!("b"));
}

#[test]
fn slices_and_indexes_count_from_both_ends() {
    check("[1, 2, 3][-1]", json!(3));
    check("[1, 2, 3][5]", json!(null));
    check("[1, 2, 3, 4][1:3]", json!([2, 3]));
    check("[1, 2, 3, 4][::-1]", json!([4, 3, 2, 1]));
    check("[1, 2, 3, 4][-2:]", json!([3, 4]));
    check("'hällo'[1:3]", json!("äl"));
    check("'abc'[0]", json!("a"));
    check("missing[1:]", json!([]));
}
