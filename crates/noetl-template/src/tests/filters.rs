use super::*;

#[test]
fn default_replaces_missing_values_and_optionally_false_ones() {
    check("missing | default", json!(""));
    check("missing | default(0) | int", json!(0));
    check("missing | default(none)", json!(null));
    check("missing | default(default_value=none)", json!(null));
    check("missing | default(null)", json!(null));
    check("missing | default", json!(""));
    check("none | default(1, true)", json!(1));
    check("none | default(1, boolean=true)", json!(1));
    check("none | default(1)", json!(null));
    check("missing.a.b | d('x')", json!("x"));
    check("none | default('x')", json!(null));
    check("'' | default('x', true)", json!("x"));
    check("none | default('x', boolean=true)", json!("x"));
    check("0 | default(5)", json!(0));
}

#[test]
fn numbers_are_parsed_leniently() {
    check(
        "['5', ' 5 ', '5.9', 'abc', '', none, missing, 5.9, true] | map('int') | list",
        json!([5, 5, 5, 0, 0, 0, 0, 5, 1]),
    );
    check("'abc' | int(7)", json!(7));
    check("'abc' | int(default=7)", json!(7));
    check("'0x1f' | int(base=16)", json!(31));
    check("'ff' | int(0, 16)", json!(255));
    check("'-12' | int", json!(-12));
    check("['1.5', 'x', none, 2] | map('float') | list", json!([1.5, 0.0, 0.0, 2.0]));
    check("'x' | float(1.5)", json!(1.5));
    check("['no', '', 'x', 0] | map('bool') | list", json!([false, false, true, false]));
    check("[-3 | abs, 2.567 | round(2), 7.4 | round | int]", json!([3, 2.57, 7]));
}

#[test]
fn text_filters_take_any_value() {
    check("[5 | string, true | string, none | string]", json!(["5", "true", ""]));
    check("[1, 'A', true] | map('lower') | list", json!(["1", "a", "true"]));
    check("'a-b-c' | replace('-', '')", json!("abc"));
    check("\"it's\" | replace(\"'\", \"''\")", json!("it''s"));
    check("5 | replace(5, 6)", json!("6"));
    check("'a,b,c' | split(',', 1)", json!(["a", "b,c"]));
    check("[1, none, 'a'] | join('-')", json!("1--a"));
    check("[{'n': 1}, {'n': 2}] | join(', ', attribute='n')", json!("1, 2"));
    check("'a\nb' | indent(2)", json!("a\n  b"));
    check("'one two three' | truncate(9, leeway=0)", json!("one..."));
    check("'one two three' | truncate(9, true, '', leeway=0)", json!("one two t"));
    check("'%s=%03d' | format('a', 7)", json!("a=007"));
    check("'Hello,  Wörld!' | slugify", json!("hello-wörld"));
    check("'xax' | trim('x')", json!("a"));
}

#[test]
fn list_and_map_filters_match_jinja() {
    check("[[], none, missing, 'äb', {'a': 1}] | map('length') | list", json!([0, 0, 0, 2, 1]));
    check("[[] | first, [] | last, [1, 2] | first, 'ab' | last]", json!([null, null, 1, "b"]));
    check("{'b': 1, 'a': 2} | items", json!([["b", 1], ["a", 2]]));
    check("[{'b': 1} | keys, {'b': 1} | values]", json!([["b"], [1]]));
    check("[{'a': 1} | get('a'), {'a': 1} | get('b', 2), [5] | get(0)]", json!([1, 2, 5]));
    check("[1, [2, [3]]] | flatten", json!([1, 2, 3]));
    check("[1, [2, [3]]] | flatten(levels=1)", json!([1, 2, [3]]));
    check("[1, 2] | zip(['a', 'b', 'c'])", json!([[1, "a"], [2, "b"]]));
    check("[1, 2, 3] | batch(2, 0)", json!([[1, 2], [3, 0]]));
    check("[1, 2, 3] | slice(2)", json!([[1, 2], [3]]));
    check("{'b': 1, 'a': 2} | dictsort", json!([["a", 2], ["b", 1]]));
    check("[3, 1, 2] | sort | reverse", json!([3, 2, 1]));
    check("[1, 1, 2] | unique", json!([1, 2]));
    check("[1, 2] | sum", json!(3));
    check("[{'a': 1}, {'a': 2}] | map(attribute='a')", json!([1, 2]));
    check("[{'a': 1}, {'a': 2}] | selectattr('a', 'gt', 1)", json!([{"a": 2}]));
    check("[1, 2, 3] | reject('odd')", json!([2]));
    check("([{'k': 'x', 'v': 1}] | groupby('k'))[0][1]", json!([{"k": "x", "v": 1}]));
    check("[[1, 2] | min, [1, 2] | max, [1, 2] | count]", json!([1, 2, 2]));
}

#[test]
fn json_text_is_compact_ordered_and_unescaped() {
    check("{'b': '<a>', 'a': [1, none]} | tojson", json!("{\"b\":\"<a>\",\"a\":[1,null]}"));
    check("{'a': 1} | to_json(indent=2)", json!("{\n  \"a\": 1\n}"));
    check("'{\"b\": 1, \"a\": [null]}' | from_json", json!({"b": 1, "a": [null]}));
    check("[1] | fromjson", json!([1]));
    let message = error_of(json!({}), "{{ '{' | fromjson }}");
    assert!(message.starts_with("fromjson: this is not JSON"), "{message}");
}

#[test]
fn encodings_and_hashes_match_known_values() {
    check("'häh' | b64encode", json!("aMOkaA=="));
    check("'aMOkaA==' | b64decode", json!("häh"));
    check("'a b&c/ü' | urlencode", json!("a%20b%26c/%C3%BC"));
    check("{'a': 'x y', 'b': 1} | urlencode", json!("a=x%20y&b=1"));
    check("'a%20b%26c+d' | urldecode", json!("a b&c d"));
    check("'%C3%bc%2B' | urldecode", json!("ü+"));
    for text in ["%", "a%4", "%zz", "%%41", "%+5", "%é"] {
        let message = error_of(json!({"text": text}), "{{ text | urldecode }}");
        let expected = "urldecode: a `%` is not followed by two hexadecimal digits";
        assert!(message.starts_with(expected), "{text}: {message}");
    }
    let message = error_of(json!({}), "{{ '%FF' | urldecode }}");
    assert!(message.starts_with("urldecode: the decoded bytes are not UTF-8 text"), "{message}");
    check("'a' | md5", json!("0cc175b9c0f1b6a831c399e269772661"));
    check("('a' | sha256) == ('a' | hash)", json!(true));
    check("'a' | hash('sha512') | length", json!(128));
    check(
        "[\"O'x\", 1, true, none, [1]] | map('sql') | list",
        json!(["'O''x'", "1", "TRUE", "NULL", "'[1]'"]),
    );
}

#[test]
fn regular_expressions_search_and_replace() {
    check("'abc' | regex_match('b')", json!(false));
    check("'abc' | regex_match('a.')", json!(true));
    check("'abc' | regex_search('B', ignorecase=true)", json!(true));
    check("'2024-01' | regex_replace('(\\\\d+)-(\\\\d+)', '\\\\2/\\\\1')", json!("01/2024"));
    check("{'rows': [{'id': 1}, {'id': 2}, {}]} | json_query('rows[*].id')", json!([1, 2]));
    check("{'a': {'b': [5, 6]}} | json_query('a.b[-1]')", json!(6));
    check("{} | json_query('a.b')", json!(null));
}

#[test]
fn times_are_written_in_utc() {
    check("'2024-02-03T04:05:06+01:00' | strftime('%Y-%m-%d %H:%M')", json!("2024-02-03 03:05"));
    check("0 | strftime('%Y')", json!("1970"));
    let message = error_of(json!({}), "{{ 'soon' | strftime('%Y') }}");
    assert!(message.contains("\"soon\" is not a time"), "{message}");
}
