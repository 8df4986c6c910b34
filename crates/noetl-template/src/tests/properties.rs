use proptest::prelude::*;

use super::*;
use crate::ValueTemplate;

/// Pieces that templates are made of, so that random texts get past the parser.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "{{-",
        "-}}",
        " ",
        "\n",
        "a",
        "ctx",
        "workload",
        "xs",
        "m",
        ".",
        ".k",
        "[0]",
        "[-1]",
        "['k']",
        "[1:]",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "'t'",
        "\"q\"",
        "'",
        "0",
        "1",
        "2.5",
        "9999999999999999999",
        "-",
        "+",
        "*",
        "**",
        "/",
        "//",
        "%",
        "~",
        "==",
        "<",
        ">=",
        "in",
        "not ",
        "and ",
        "or ",
        "is ",
        "defined",
        "none",
        "true",
        "if ",
        "else ",
        "for ",
        "endfor",
        "endif",
        "set ",
        "|",
        "length",
        "int",
        "default",
        "join",
        "tojson",
        "first",
        "upper()",
        ".items()",
        ".get('k')",
        "range(3)",
        "dict(k=1)",
        "uuid4()",
        "sort",
        "batch(2)",
        "slice(2)",
        "replace('a','b')",
        "loop.index",
        "ä",
        "🦀",
    ];
    prop::sample::select(pieces.to_vec()).prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "xs",
        "m",
        "m.k",
        "missing.x",
        "1",
        "0",
        "-3",
        "2.5",
        "'t'",
        "'10'",
        "''",
        "none",
        "true",
        "[]",
        "[1,'a']",
        "{'k': 1}",
        "18446744073709551615",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 32, 2, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "in", "and", "or",
        ]);
        let filter = prop::sample::select(vec![
            "length",
            "int",
            "float",
            "string",
            "upper",
            "first",
            "last",
            "sort",
            "tojson",
            "list",
            "keys",
            "sum",
            "min",
            "unique",
            "flatten",
            "sql",
            "urlencode",
            "title",
            "reverse",
            "round",
            "abs",
            "strftime('%Y')",
            "truncate(3)",
            "batch(2)",
            "slice(3)",
            "split",
            "b64decode",
            "fromjson",
            "json_query('k[*].x')",
            "regex_replace('(.)', '\\\\1')",
            "groupby('k')",
            "dictsort",
            "zip(xs)",
            "format(1)",
            "indent",
            "default(1)",
        ]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            (inner.clone(), filter).prop_map(|(a, filter)| format!("({a} | {filter})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}:]")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("[{a}, {{'k': {b}}}]")),
        ]
    })
}

fn world() -> Scope {
    Scope {
        ctx: names(json!({"a": 1, "m": {"k": "v", "items": [1]}})),
        results: names(json!({"xs": [1, "a", null, [2.5]], "r": {"status_code": 200}})),
        ..Scope::default()
    }
}

proptest! {
    #[test]
    fn no_text_makes_parsing_or_rendering_panic(source in "\\PC*") {
        let _ = render_in(&world(), &source);
        let _ = Guard::parse(&source).map(|guard| guard.holds(&world()));
    }

    #[test]
    fn no_mix_of_template_parts_makes_rendering_panic(
        parts in prop::collection::vec(piece(), 0..24),
    ) {
        let source = parts.concat();
        let _ = render_in(&world(), &source);
        let _ = render_in(&world(), &format!("{{{{ {source} }}}}"));
        let _ = Guard::parse(&source).map(|guard| guard.holds(&world()));
    }

    #[test]
    fn no_expression_makes_evaluation_panic(expression in expression()) {
        let _ = render_in(&world(), &format!("{{{{ {expression} }}}}"));
        let _ = render_in(&world(), &format!("x{{{{ {expression} }}}}"));
    }

    #[test]
    fn text_without_template_delimiters_is_unchanged(text in "[^{]*") {
        let value = ValueTemplate::compile(json!(text)).unwrap();
        prop_assert!(value.is_literal());
        prop_assert_eq!(value.render(&world()).unwrap(), json!(text));
    }

    #[test]
    fn a_value_survives_a_sole_expression(text in "\\PC*", number in any::<i64>(), big in any::<u64>()) {
        let value = json!({"t": text, "n": [number, big], "m": {"k": null}});
        let rendered = render(json!({"x": value}), "{{ x }}");
        prop_assert_eq!(rendered, value);
    }
}
