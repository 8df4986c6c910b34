use super::*;

#[test]
fn a_sole_expression_keeps_its_type() {
    let object = json!({"b": [1, null], "a": {"c": true}});
    for value in [
        json!(5),
        json!(-5),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.5),
        object.clone(),
        json!([1, "2"]),
        json!(null),
        json!(true),
    ] {
        assert_eq!(render(json!({"x": value}), "{{ x }}"), value);
    }
    let text = render(json!({"x": object}), "{{ x }}").to_string();
    assert_eq!(text, r#"{"b":[1,null],"a":{"c":true}}"#, "keys keep their order");
}

#[test]
fn text_is_never_retyped() {
    for text in ["00501", "true", "", "1e3", "12345678901234567890", "{\"a\":1}", "null"] {
        assert_eq!(render(json!({"s": text}), "{{ s }}"), json!(text));
    }
    assert_eq!(render(json!({"s": " 00501 "}), "{{ s | trim }}"), json!("00501"));
}

#[test]
fn json_text_stays_text() {
    let rendered = render(json!({"obj": {"b": 1, "a": "<&'>"}}), "{{ obj | tojson }}");
    assert_eq!(rendered, json!(r#"{"b":1,"a":"<&'>"}"#));
}

#[test]
fn anything_but_a_sole_expression_is_text() {
    let workload = json!({"n": 5, "a": 1, "b": 2, "obj": {"k": [1, null, "x"]}, "t": true});
    for (template, expected) in [
        ("x {{ n }}", "x 5"),
        ("{{ a }}{{ b }}", "12"),
        (" {{ n }}", " 5"),
        ("{{ obj }} text", "{\"k\":[1,null,\"x\"]} text"),
        ("{{ t }}!", "true!"),
        ("{{ 1.0 }} {{ 1.5 }}", "1.0 1.5"),
        ("[{{ none }}][{{ missing }}]", "[][]"),
        ("{% if t %}5{% endif %}", "5"),
    ] {
        assert_eq!(render(workload.clone(), template), json!(expected), "{template}");
    }
}

#[test]
fn a_literal_is_never_changed() {
    for literal in ["00042", "null", "None", "a } b", "line\n"] {
        assert_eq!(render(json!({}), literal), json!(literal));
    }
}

#[test]
fn a_missing_name_is_null() {
    check("missing", json!(null));
    check("missing.deep[0].er", json!(null));
    check("none", json!(null));
}

#[test]
fn computed_values_are_native() {
    check("true", json!(true));
    check("1 == 1", json!(true));
    check("'5' | int", json!(5));
    check("7 / 2", json!(3.5));
    check("[1, 'a', {'k': none}]", json!([1, "a", {"k": null}]));
}

#[test]
fn a_newline_after_a_sole_expression_is_not_text() {
    assert_eq!(render(json!({"n": 5}), "{{ n }}\n"), json!(5));
    assert_eq!(render(json!({"n": 5}), "{{- n -}}"), json!(5));
    assert_eq!(render(json!({"n": 5}), "n: {{ n }}\n"), json!("n: 5\n"));
}

#[test]
fn null_is_defined_and_none_and_a_missing_name_is_neither() {
    let workload = json!({"x": null});
    for (template, expected) in [
        ("{{ x is none }}", true),
        ("{{ x is defined }}", true),
        ("{{ x is undefined }}", false),
        ("{{ y is none }}", false),
        ("{{ y is defined }}", false),
        ("{{ y.z is not defined }}", true),
    ] {
        assert_eq!(render(workload.clone(), template), json!(expected), "{template}");
    }
}

#[test]
fn nested_values_are_rendered_in_place() {
    let value =
        json!({"a": "{{ n }}", "b": ["x{{ n }}", 7], "c": {"d": "00042"}, "e": "{{ ids }}"});
    let template = super::super::ValueTemplate::compile(value).unwrap();
    assert!(!template.is_literal());
    let rendered = template.render(&scope(json!({"n": 5, "ids": [1]}))).unwrap();
    let expected = r#"{"a":5,"b":["x5",7],"c":{"d":"00042"},"e":[1]}"#;
    assert_eq!(rendered.to_string(), expected);
}

#[test]
fn a_value_without_templates_is_literal() {
    let value = json!({"a": ["00042", {"b": null}]});
    let template = super::super::ValueTemplate::compile(value.clone()).unwrap();
    assert!(template.is_literal());
    assert_eq!(template.render(&Scope::default()).unwrap(), value);
}

#[test]
fn json_survives_a_round_trip() {
    let value = json!({"z": [1, -1, 1.5, u64::MAX, "t", null, true], "a": {"n": {}}});
    assert_eq!(super::super::to_json(&from_json(&value)).unwrap(), value);
    let copied = super::super::to_json(&from_json_owned(value.clone())).unwrap();
    assert_eq!(copied.to_string(), value.to_string());
}

#[test]
fn values_without_a_json_form_are_rejected() {
    use crate::{Data, to_json};
    assert!(to_json(&Data::from(f64::NAN)).is_err());
    assert!(to_json(&Data::from(f64::INFINITY)).is_err());
    assert!(to_json(&Data::from_bytes(vec![1, 255])).is_err());
    assert!(to_json(&Data::from(i128::MAX)).is_err());
    let odd_keys = Data::from_pairs([(Data::from(1), "a"), (Data::from(true), "b")]);
    assert_eq!(to_json(&odd_keys).unwrap(), json!({"1": "a", "true": "b"}));
}
