//! The kinds of bad input.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::document::{Body, Field, Operation};

const JSON: Option<&str> = Some("application/json");

/// A text of this length goes past no limit of a body, and past every limit of a name.
const LONG: usize = 1 << 20;

/// Past what a body may have, and past what a body with a result or an object may have.
const TOO_LARGE: usize = (2 << 20) + 1;
const FAR_TOO_LARGE: usize = (64 << 20) + 1;

/// Routes that take up to 64 MiB.
const LARGE: [&str; 5] = [
    "/api/result/{execution_id}",
    "/api/internal/objects/{key}",
    "/api/internal/plugins/{path}",
    "/api/internal/events/project",
    "/api/internal/events/materialize",
];

/// A request with bad input, and its label.
pub(super) struct Kind {
    pub(super) label: String,
    pub(super) sent: RequestParts,
}

/// A request besides its verb and its address.
#[derive(Default)]
pub(super) struct RequestParts {
    /// The path with its query, unless it is the usual one.
    pub(super) path: Option<String>,
    pub(super) content_type: Option<&'static str>,
    pub(super) body: Option<Vec<u8>>,
}

/// Returns a valid value for a parameter or a field, by its name.
pub(super) type Good<'a> = &'a dyn Fn(&str) -> String;

/// Kinds as they are found. Only what is wanted is made: some are many megabytes.
pub(super) struct Kinds<'a> {
    /// Number of kinds to skip, selected or not.
    from: usize,
    /// Selects kinds by their labels.
    is_wanted: &'a dyn Fn(&str) -> bool,
    count: usize,
    all: Vec<(usize, Kind)>,
}

impl<'a> Kinds<'a> {
    /// Collects the kinds after the first `from`.
    pub(super) fn after(from: usize, is_wanted: &'a dyn Fn(&str) -> bool) -> Self {
        Self { from, is_wanted, count: 0, all: Vec::new() }
    }

    fn add(&mut self, label: String, sent: impl FnOnce() -> RequestParts) {
        self.count += 1;
        if self.count > self.from && (self.is_wanted)(&label) {
            self.all.push((self.count, Kind { label, sent: sent() }));
        }
    }
}

/// Kinds of bad input for an operation, each with how many there were with it.
pub(super) fn of(
    operation: &Operation,
    good: Good<'_>,
    mut kinds: Kinds<'_>,
) -> Vec<(usize, Kind)> {
    in_path(operation, good, &mut kinds);
    in_query(operation, good, &mut kinds);
    match &operation.body {
        None => {}
        Some(Body::Raw) => too_large(operation, &mut kinds),
        Some(Body::Other) => whole_bodies(operation, None, &mut kinds),
        Some(Body::Fields(fields)) => {
            whole_bodies(operation, fields.first(), &mut kinds);
            in_fields(operation, fields, good, &mut kinds);
        }
    }
    inside(operation, &mut kinds);
    for (_, kind) in &mut kinds.all {
        kind.sent.path.get_or_insert_with(|| address(operation, good, None, None));
    }
    kinds.all
}

/// The address of an operation, with one part of its path or one parameter as it is given.
fn address(
    operation: &Operation,
    good: Good<'_>,
    part: Option<(&str, &str)>,
    parameter: Option<(&str, &str)>,
) -> String {
    let mut path = operation.path.clone();
    for name in &operation.path_names {
        let value = part.filter(|(of, _)| of == name).map(|(_, value)| value.to_owned());
        path = path.replace(&format!("{{{name}}}"), &value.unwrap_or_else(|| good(name)));
    }
    let required = operation.query_required.iter();
    let required = required.filter(|name| parameter.is_none_or(|(of, _)| of != *name));
    let mut query: Vec<String> =
        required.map(|name| format!("{name}={}", good(&format!("?{name}")))).collect();
    query.extend(parameter.map(|(name, value)| format!("{name}={value}")));
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// Ids that are none, and ids of nothing.
fn in_path(operation: &Operation, good: Good<'_>, kinds: &mut Kinds<'_>) {
    static LONG_ID: LazyLock<String> = LazyLock::new(|| letters(60_000));
    let bad = [
        ("a text", "abc"),
        ("0", "0"),
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("2^63-1", "9223372036854775807"),
        ("2^63", "9223372036854775808"),
        ("a blank", "%20"),
        ("NUL", "%00"),
        ("no UTF-8", "%FF"),
        ("up", "%2E%2E%2F%2E%2E"),
        ("60 000 letters", &LONG_ID),
    ];
    for name in &operation.path_names {
        for (what, value) in bad {
            kinds.add(format!("{{{name}}} {what}"), || {
                let path = Some(address(operation, good, Some((name, value)), None));
                RequestParts { path, ..sample(operation, good) }
            });
        }
    }
}

fn in_query(operation: &Operation, good: Good<'_>, kinds: &mut Kinds<'_>) {
    static LONG_TEXT: LazyLock<String> = LazyLock::new(|| letters(8000));
    for name in &operation.query_names {
        let twice = format!("1&{name}=2");
        let bad = [
            ("empty", ""),
            ("a text", "odd"),
            ("-1", "-1"),
            ("1.5", "1.5"),
            ("10^20", "100000000000000000000"),
            ("NUL", "%00"),
            ("no UTF-8", "%FF"),
            ("8000 letters", &LONG_TEXT),
            ("twice", &twice),
        ];
        for (what, value) in bad {
            kinds.add(format!("?{name} {what}"), || {
                let path = Some(address(operation, good, None, Some((name, value))));
                RequestParts { path, ..sample(operation, good) }
            });
        }
    }
    for name in &operation.query_required {
        kinds.add(format!("?{name} missing"), || {
            let path = address(operation, good, None, Some((name, "")));
            let path = Some(path.replace(&format!("{name}="), ""));
            RequestParts { path, ..sample(operation, good) }
        });
    }
}

/// A megabyte of letters.
static MEBIBYTE: LazyLock<String> = LazyLock::new(|| letters(LONG));

/// Letters that no database makes much shorter.
fn letters(count: usize) -> String {
    let mut state: u32 = 1;
    let letter = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from((state >> 24) % 26).unwrap_or_default())
    };
    (0..count).map(letter).collect()
}

/// Adds errors nested deeper than the fields of a body.
fn inside(operation: &Operation, kinds: &mut Kinds<'_>) {
    let long = MEBIBYTE.as_str();
    let document = |path: &str| {
        let text = format!(
            "kind: Playbook\nmetadata: {{name: a, path: {path}}}\nworkflow: [{{step: start, tool: {{kind: noop}}}}]\n"
        );
        serde_json::to_string(&text).expect("text")
    };
    let bodies = match operation.path.as_str() {
        "/api/execute" => vec![
            ("dedup.key empty", r#"{"path":"tests/greet","dedup":{"key":""}}"#.to_owned()),
            ("dedup.key 1 MiB", format!(r#"{{"path":"tests/greet","dedup":{{"key":"{long}"}}}}"#)),
            (
                "dedup.window_secs 0",
                r#"{"path":"tests/greet","dedup":{"key":"a","window_secs":0}}"#.to_owned(),
            ),
            (
                "dedup.window_secs -1",
                r#"{"path":"tests/greet","dedup":{"key":"a","window_secs":-1}}"#.to_owned(),
            ),
            (
                "dedup.window_secs 2^63",
                r#"{"path":"tests/greet","dedup":{"key":"a","window_secs":9223372036854775808}}"#
                    .to_owned(),
            ),
        ],
        "/api/catalog/register" => vec![
            ("metadata.path 1 MiB", format!(r#"{{"content":{}}}"#, document(long))),
            ("metadata.path empty", format!(r#"{{"content":{}}}"#, document("''"))),
        ],
        "/api/vars/{execution_id}" if operation.body.is_some() => vec![
            ("var_name empty", r#"{"variables":[{"var_name":"","var_value":1}]}"#.to_owned()),
            (
                "var_name 1 MiB",
                format!(r#"{{"variables":[{{"var_name":"{long}","var_value":1}}]}}"#),
            ),
            (
                "var_type odd",
                r#"{"variables":[{"var_name":"a","var_value":1,"var_type":"odd"}]}"#.to_owned(),
            ),
        ],
        "/api/internal/events/project" => vec![
            (
                "tenant_id 1 MiB",
                format!(r#"{{"events":[{{"event_id":5,"execution_id":6,"tenant_id":"{long}"}}]}}"#),
            ),
            ("event_id a text", r#"{"events":[{"event_id":"x"}]}"#.to_owned()),
        ],
        _ => Vec::new(),
    };
    for (label, body) in bodies {
        let body = Some(body.into_bytes());
        kinds.add(label.to_owned(), || RequestParts { path: None, content_type: JSON, body });
    }
}

/// A body that is wrong as a whole.
fn whole_bodies(operation: &Operation, first: Option<&Field>, kinds: &mut Kinds<'_>) {
    let name = first.map_or("a", |field| &field.name);
    let mut no_utf8 = format!(r#"{{"{name}":""#).into_bytes();
    no_utf8.extend(b"\xff\"}");
    let bodies = [
        ("no content type", None, b"{}".to_vec()),
        ("text/plain", Some("text/plain"), b"{}".to_vec()),
        ("no body", JSON, Vec::new()),
        ("no JSON", JSON, b"{".to_vec()),
        ("no UTF-8", JSON, no_utf8),
        ("a text", JSON, b"\"a\"".to_vec()),
        ("a number", JSON, b"7".to_vec()),
        ("null", JSON, b"null".to_vec()),
        ("a list", JSON, b"[7]".to_vec()),
        ("an empty object", JSON, b"{}".to_vec()),
        ("a deep list", JSON, format!("{}{}", "[".repeat(1000), "]".repeat(1000)).into_bytes()),
    ];
    for (label, content_type, body) in bodies {
        kinds.add(label.to_owned(), || RequestParts { path: None, content_type, body: Some(body) });
    }
    too_large(operation, kinds);
}

fn too_large(operation: &Operation, kinds: &mut Kinds<'_>) {
    let is_large = LARGE.contains(&operation.path.as_str());
    let size = if is_large { FAR_TOO_LARGE } else { TOO_LARGE };
    let body = || Some(vec![b' '; size]);
    let sent = || RequestParts { path: None, content_type: JSON, body: body() };
    kinds.add("too large".to_owned(), sent);
}

/// Adds bad values for one field at a time, with valid values for the other required fields.
fn in_fields(operation: &Operation, fields: &[Field], good: Good<'_>, kinds: &mut Kinds<'_>) {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("\"{}\"", *MEBIBYTE));
    for field in fields {
        let mut values: Vec<(&str, Option<Cow<'static, str>>)> = Vec::new();
        if field.is_required {
            values.push(("missing", None));
        }
        let may = |kind: &str| field.types.is_empty() || field.types.contains(kind);
        let is_number = may("integer") || may("number");
        if !may("null") {
            values.push(("null", Some("null".into())));
        }
        if let Some((what, value)) = wrong_type(&may, is_number) {
            values.push((what, Some(value.into())));
        }
        if may("string") {
            values.push(("empty", Some("\"\"".into())));
            values.push(("1 MiB", Some(TEXT.as_str().into())));
            values.push(("NUL", Some(r#""a\u0000b""#.into())));
            values.push(("half a pair", Some(r#""\ud800""#.into())));
        }
        if is_number {
            for number in ["-1", "1.5", "9223372036854775808", "-9223372036854775809", "1e400"] {
                values.push((number, Some(number.into())));
            }
        }
        if may("array") {
            values.push(("[null]", Some("[null]".into())));
            values.push(("[[[]]]", Some("[[[]]]".into())));
        }
        if may("object") || field.types.is_empty() {
            let deep = format!("{}{}", r#"{"a":"#.repeat(120), "1") + &"}".repeat(120);
            values.push(("120 deep", Some(deep.into())));
        }
        for (what, value) in values {
            kinds.add(format!("{} {what}", field.name), || {
                let body = object(operation, fields, good, Some((&field.name, value.as_deref())));
                RequestParts { path: None, content_type: JSON, body: Some(body) }
            });
        }
    }
}

fn wrong_type(
    may: &impl Fn(&str) -> bool,
    is_number: bool,
) -> Option<(&'static str, &'static str)> {
    let all = [
        ("a list", "[]", may("array")),
        ("true", "true", may("boolean")),
        ("7", "7", is_number),
        ("a text", "\"odd\"", may("string")),
        ("an object", "{}", may("object")),
    ];
    all.into_iter().find(|(_, _, may)| !may).map(|(what, value, _)| (what, value))
}

/// A request whose body is as it should be, as far as that can be told.
fn sample(operation: &Operation, good: Good<'_>) -> RequestParts {
    let body = match &operation.body {
        Some(Body::Fields(fields)) => Some(object(operation, fields, good, None)),
        Some(Body::Other) => Some(b"[]".to_vec()),
        Some(Body::Raw) => Some(b"bytes".to_vec()),
        None => None,
    };
    RequestParts { path: None, content_type: body.as_ref().and(JSON), body }
}

/// An object of the required fields, and one of them as it is given: another value, or none.
fn object(
    operation: &Operation,
    fields: &[Field],
    good: Good<'_>,
    but: Option<(&str, Option<&str>)>,
) -> Vec<u8> {
    let mut parts = Vec::new();
    for field in fields {
        let value = match but {
            Some((name, value)) if name == field.name => value.map(str::to_owned),
            _ if field.is_required || is_needed(operation, field) => Some(usual(field, good)),
            _ => None,
        };
        parts.extend(value.map(|value| format!("\"{}\":{value}", field.name)));
    }
    format!("{{{}}}", parts.join(",")).into_bytes()
}

/// Returns `true` for fields that the document doesn't require but that requests need to reach
/// other checks: a playbook to start, and the wait time of a long poll.
fn is_needed(operation: &Operation, field: &Field) -> bool {
    match field.name.as_str() {
        "path" => operation.path == "/api/execute",
        name => name == "wait_seconds",
    }
}

/// A value of a field that nothing is wrong with by itself.
fn usual(field: &Field, good: Good<'_>) -> String {
    match field.name.as_str() {
        "status" => return "\"FAILED\"".to_owned(),
        "role" => return "\"viewer\"".to_owned(),
        "state" => return "\"failed\"".to_owned(),
        "event_type" => return "\"note\"".to_owned(),
        "wait_seconds" => return "0".to_owned(),
        name @ ("execution_id" | "command_id" | "step" | "path") => {
            return format!("\"{}\"", good(name));
        }
        _ => {}
    }
    let may = |kind: &str| field.types.contains(kind);
    let value = match () {
        () if may("integer") || may("number") => "7",
        () if may("string") => "\"some\"",
        () if may("boolean") => "false",
        () if may("array") => "[]",
        () => "{}",
    };
    value.to_owned()
}
