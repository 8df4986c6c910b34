//! Text in, tree or findings out.

use insta::assert_snapshot;

use super::build::read_up_to;
use super::{Node, NodeKind, SourceText, locate, read};
use crate::diagnostic::SourcePos;
use crate::diagnostics::Diagnostics;

/// Returns the tree with positions as text, or the diagnostics.
fn tree(text: &str) -> String {
    let source = SourceText::new(text);
    let mut findings = Diagnostics::default();
    let node = read(&source, &mut findings);
    let diagnostics = findings.into_sorted();
    if diagnostics.is_empty() {
        return show(&node.expect("a node when nothing is wrong"));
    }
    let lines = diagnostics.iter().map(|diagnostic| {
        let help = diagnostic.help.as_deref().unwrap_or("none");
        format!("{diagnostic}\n  help: {help}\n")
    });
    lines.collect()
}

fn show(node: &Node) -> String {
    match &node.kind {
        NodeKind::Null => "null".to_owned(),
        NodeKind::Bool(value) => value.to_string(),
        NodeKind::Int(value) => value.to_string(),
        NodeKind::Large(value) => value.to_string(),
        NodeKind::Float(value) => format!("{value:?}f"),
        NodeKind::Text(text, _) => format!("{text:?}"),
        NodeKind::List(items) => {
            format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        NodeKind::Map(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", key.name, show(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    assert_snapshot!(tree("[~, null, Null, NULL, true, True, false, FALSE]"), @"[null, null, null, null, true, true, false, false]");
    assert_snapshot!(tree("[yes, no, on, off, y, nULL, tRUE]"), @r#"["yes", "no", "on", "off", "y", "nULL", "tRUE"]"#);
    assert_snapshot!(tree("[0, -1, +2, 007, 0x1F, 0o17, 9223372036854775808, 18446744073709551615]"), @"[0, -1, 2, 7, 31, 15, 9223372036854775808, 18446744073709551615]");
    assert_snapshot!(tree("[1.5, -.5, 3., 1e3, .inf, -.INF, .nan, 1.2.3, 1e, '-', +, 0xZZ, 12:30, 2024-01-02]"), @r#"[1.5f, -0.5f, 3.0f, 1000.0f, inff, -inff, NaNf, "1.2.3", "1e", "-", "+", "0xZZ", "12:30", "2024-01-02"]"#);
    assert_snapshot!(tree("a:\nb: ''\nc: '1'\nd: \"true\"\ne: |\n  1\n"), @r#"{a: null, b: "", c: "1", d: "true", e: "1\n"}"#);
    assert_snapshot!(tree("99999999999999999999"), @r"
        error[E009] at 1:1: the number 99999999999999999999 does not fit 64 bits
          help: put it in quotes to keep it as text
        ");
}

#[test]
fn core_tags_are_applied_and_others_rejected() {
    assert_snapshot!(tree("[!!str 1, !!int '2', !!float 3, !!bool 'true', !!null '', !!str , ! 4, !!seq [], !!map {}]"), @r#"["1", 2, 3.0f, true, null, "", "4", [], {}]"#);
    assert_snapshot!(tree("[!!int x, !!binary aGk=, !mine 1, !mine {a: b}, !!set {a}]"), @r"
        error[E009] at 1:2: 'x' is tagged !!int but is not one
          help: remove the tag or correct the value
        error[E009] at 1:11: the tag '!!binary' is not known here
          help: remove the tag; the core tags !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are understood
        error[E009] at 1:26: the tag '!mine' is not known here
          help: remove the tag; the core tags !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are understood
        error[E009] at 1:35: the tag '!mine' is not known here
          help: remove the tag; the core tags !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are understood
        error[E009] at 1:49: the tag '!!set' is not known here
          help: remove the tag; the core tags !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are understood
        ");
}

#[test]
fn keys_are_text_and_unique() {
    assert_snapshot!(tree("{1: a, true: b, 'c d': c, ~: d}"), @r#"{1: "a", true: "b", c d: "c", ~: "d"}"#);
    assert_snapshot!(tree("? [a]\n: b\n"), @r"
        error[E009] at 1:3: a key must be text or a number
          help: write a name, in quotes if it holds special characters
        ");
    assert_snapshot!(tree("a: 1\nb: 2\na: 3\n"), @r"
        error[E008] at 3:1: the key 'a' is on line 1 already
          help: keep one of lines 1 and 3
        ");
    let many: String = (0..40).map(|n| format!("k{n}: 1\n")).collect();
    assert_snapshot!(tree(&format!("{many}k30: 2\n")), @r"
        error[E008] at 41:1: the key 'k30' is on line 31 already
          help: keep one of lines 31 and 41
        ");
}

#[test]
fn anchors_aliases_and_merge_keys_are_expanded() {
    assert_snapshot!(tree("a: &x [1, &y {b: 2}]\nc: *x\nd: *y\n"), @"{a: [1, {b: 2}], c: [1, {b: 2}], d: {b: 2}}");
    assert_snapshot!(tree("base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\nuse: {<<: [*b, *m], x: 0}\none: {<<: *b}\n"), @"{base: {x: 1, y: 2}, more: {y: 3, z: 4}, use: {x: 0, y: 2, z: 4}, one: {x: 1, y: 2}}");
    assert_snapshot!(tree("a: {<<: 5}"), @r"
        error[E009] at 1:5: '<<' merges mappings; this is a number
          help: write '<<: *anchor' or '<<: [*one, *two]'
        ");
    assert_snapshot!(tree("a: *nowhere"), @r"
        error[E000] at 1:4: this is not valid YAML: while parsing node, found unknown anchor
          help: declare the anchor with '&name' before '*name', or put the value in quotes
        ");
    assert_snapshot!(tree("a: &x [*x]"), @r"
        error[E000] at 1:8: the alias stands inside the value it repeats
          help: a value cannot contain itself; remove the alias
        ");
}

#[test]
fn an_alias_bomb_is_rejected() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert_snapshot!(tree(&text), @r"
        error[E007] at 6:10: aliases unfold to more than 200000 values or 16777216 bytes
          help: repeat less, or pass the data as workload
        ");
}

#[test]
fn many_aliases_of_a_long_text_are_rejected() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 200].join(", "));
    assert_snapshot!(tree(&text), @r"
        error[E007] at 2:673: aliases unfold to more than 200000 values or 16777216 bytes
          help: repeat less, or pass the data as workload
        ");
}

#[test]
fn nesting_is_limited_even_through_aliases() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(tree(&nested(64)), nested(64));
    assert_snapshot!(tree(&nested(65)), @r"
        error[E007] at 1:65: the document is nested deeper than 64 levels
          help: make it flatter
        ");
    assert_snapshot!(tree(&nested(300)), @r"
        error[E007] at 1:256: the document is nested deeper than 64 levels
          help: make it flatter
        ");
    assert_snapshot!(tree(&format!("a: &a {}\nb: {}*a{}\n", nested(40), "[".repeat(30), "]".repeat(30))), @r"
        error[E007] at 2:34: the document is nested deeper than 64 levels
          help: make it flatter
        ");
}

#[test]
fn size_and_number_of_values_are_limited() {
    assert_snapshot!(tree(&"#".repeat(16 * 1024 * 1024 + 1)), @r"
        error[E007] at 1:1: the document has 16777217 bytes; the limit is 16777216
          help: split the playbook, or move its data out of the document
        ");
    let mut findings = Diagnostics::default();
    assert_eq!(read_up_to(3, &SourceText::new("[1, 2, 3]"), &mut findings), None);
    assert_snapshot!(findings.into_sorted()[0], @"error[E007] at 1:8: the document holds more than 3 values");
}

#[test]
fn a_file_contains_exactly_one_document() {
    assert_snapshot!(tree(""), @r"
        error[E000] at 1:1: the document is empty
          help: a playbook begins with 'apiVersion: noetl.io/v2' and 'kind: Playbook'
        ");
    assert_snapshot!(tree("# only a comment\n"), @r"
        error[E000] at 1:1: the document is empty
          help: a playbook begins with 'apiVersion: noetl.io/v2' and 'kind: Playbook'
        ");
    assert_snapshot!(tree("---\n...\n"), @r"
        error[E000] at 1:1: the document is empty
          help: a playbook begins with 'apiVersion: noetl.io/v2' and 'kind: Playbook'
        ");
    assert_snapshot!(tree("a: 1\n---\nb: 2\n"), @r"
        error[E000] at 2:1: the file holds several documents
          help: keep one document per file; remove '---'
        ");
    assert_snapshot!(tree("---\na: 1\n...\n"), @"{a: 1}");
}

#[test]
fn invalid_syntax_is_reported_at_its_position() {
    assert_snapshot!(tree("a:\n\tb: 1\n"), @r"
        error[E000] at 2:1: this is not valid YAML: tabs disallowed within this context (block indentation)
          help: indent with spaces; YAML allows no tabs there
        ");
    assert_snapshot!(tree("a:\n    b: 1\n  c: 2\n"), @r"
        error[E000] at 3:3: this is not valid YAML: while parsing a block mapping, did not find expected key
          help: check indentation, quotes and brackets on this line and the one before it
        ");
    assert_snapshot!(tree("a: b: c\n"), @r"
        error[E000] at 1:5: this is not valid YAML: mapping values are not allowed in this context
          help: put a value that holds ': ' in quotes, or correct the indentation of this line
        ");
    assert_snapshot!(tree("a: \"open\nb: 1\n"), @r"
        error[E000] at 1:4: this is not valid YAML: invalid indentation in quoted scalar
          help: check indentation, quotes and brackets on this line and the one before it
        ");
    assert_snapshot!(tree("a: [1, 2\nb: 3\n"), @r"
        error[E000] at 2:2: this is not valid YAML: illegal placement of ':' indicator
          help: check indentation, quotes and brackets on this line and the one before it
        ");
    assert_snapshot!(tree("é: \u{1}\n"), @r"
        error[E000] at 1:4: a control character cannot be part of a YAML document
          help: remove it, or write it as an escape in double quotes
        ");
}

#[test]
fn an_unquoted_template_is_reported_as_such() {
    assert_snapshot!(tree("a: {{ workload.x }}\n"), @r#"
        error[E009] at 1:4: a value that begins with a template must be in quotes
          help: write "{{ workload.x }}"
        "#);
    assert_snapshot!(tree("a: {{ workload.x }} and more\n"), @r#"
        error[E009] at 1:4: a value that begins with a template must be in quotes
          help: write "{{ workload.x }}"
        error[E000] at 1:21: this is not valid YAML: while parsing a block mapping, did not find expected key
          help: put a value that begins with a template in quotes: key: "{{ … }}"
        "#);
    assert_snapshot!(tree("a:\n  - {{ x | default({}) }}\n"), @r#"
        error[E000] at 2:20: this is not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'
          help: put a value that begins with a template in quotes: key: "{{ … }}"
        "#);
}

#[test]
fn columns_count_characters_from_one() {
    let text = "é: {ü: x, ö: [1, \"y\"]}\n";
    let source = SourceText::new(text);
    let node = read(&source, &mut Diagnostics::default()).expect("valid");
    let map = &node.entries().expect("a map")[0].1;
    assert_eq!(map.at, SourcePos { line: 1, column: 4 });
    let (key, list) = &map.entries().expect("a map")[1];
    assert_eq!(key.at, SourcePos { line: 1, column: 11 });
    assert_eq!(list.items().expect("a list")[1].at, SourcePos { line: 1, column: 18 });
}

/// Returns the position that `locate` reports for every `@` in the value of `a`.
fn located(text: &str) -> String {
    let source = SourceText::new(text);
    let node = read(&source, &mut Diagnostics::default()).expect("valid");
    let value = node.get("a").expect("a value under a");
    let NodeKind::Text(content, style) = &value.kind else {
        panic!("not text");
    };
    let mut positions = Vec::new();
    for (line, content_line) in content.split('\n').enumerate() {
        for (column, _) in content_line.chars().enumerate().filter(|(_, c)| *c == '@') {
            let place = locate(&source, value.at, (content, *style), (line + 1, column + 1));
            let there = source.rest(place).chars().next();
            assert_eq!(there, Some('@'), "{}:{} in {text:?}", place.line, place.column);
            positions.push(format!("{}:{}", place.line, place.column));
        }
    }
    positions.join(" ")
}

#[test]
fn positions_inside_scalars_map_to_the_file() {
    assert_eq!(located("a: x @ y @\n"), "1:6 1:10");
    assert_eq!(located("a: 'é '' @'\n"), "1:10");
    assert_eq!(located("a: \"\\\"\\u00e9\\n @\"\n"), "1:16");
    assert_eq!(located("a: &anchor !!str \"x @\"\n"), "1:21");
    assert_eq!(located("a: |\n  one @\n    two @\n\n  three @\n"), "2:7 3:9 5:9");
    assert_eq!(located("a: |\n\n\n  late @\n"), "4:8");
    assert_eq!(located("a: >\n  one @\n  two @\n\n  three @\n"), "2:7 3:7 5:9");
    assert_eq!(located("a: plain @\n  goes on @\n"), "1:10 2:11");
    assert_eq!(located("a: \"quoted @\n  goes \\\n  on @\"\n"), "1:12 3:6");
    assert_eq!(located("a: |\r\n  one\r\n  two @\r\n"), "3:7");
}
