use insta::assert_snapshot;
use serde_json::json;

use crate::noetl::{Home, playbook};

/// Gives its workload back.
fn echo() -> String {
    playbook(
        "{who: world, limits: {max: 1, min: 0}}",
        "  - {step: start, tool: {kind: noop, result: '{{ workload }}'}}\n",
    )
}

#[test]
fn set_parses_json_else_text_and_sets_nested_keys() {
    let home = Home::with(&echo());
    let output = home.noetl([
        "run",
        "test.yaml",
        "--set",
        "who=Ada",
        "--set",
        "limits.max=3",
        "--set",
        "zip=00501",
        "--set",
        "on=true",
        "--set",
        "none=null",
        "--set",
        "list=[1, {\"a\": 2.50}]",
        "--set",
        "equals=a=b",
        "--set",
        "a.b.c=",
        "--set",
        "ünï.cödé=☃",
    ]);
    assert_eq!(
        output.json(),
        json!({
            "who": "Ada", "limits": {"max": 3, "min": 0}, "zip": "00501", "on": true, "none": null,
            "list": [1, {"a": 2.5}], "equals": "a=b", "a": {"b": {"c": ""}}, "ünï": {"cödé": "☃"}
        })
    );
}

#[test]
fn a_payload_is_read_from_a_file_or_stdin_and_set_overrides_it() {
    let home = Home::with(&echo());
    home.write("payload.json", r#"{"who": "Ada", "n": 1}"#);
    let output = home.noetl(["run", "test.yaml", "--payload", "payload.json", "--set", "n=2"]);
    assert_eq!(output.json(), json!({"who": "Ada", "limits": {"max": 1, "min": 0}, "n": 2}));
    let output = home.noetl_reading(["run", "test.yaml", "--payload", "-"], r#"{"who": "Bo"}"#);
    assert_eq!(output.json()["who"], "Bo");
}

#[test]
fn stdin_is_rejected_as_both_playbook_and_payload() {
    let output = Home::new().noetl_reading(["run", "-", "--payload", "-"], "");
    assert_snapshot!(output.transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: stdin holds the playbook or the payload, not both
      help: name a file for one of them
    ");
}

#[test]
fn invalid_assignments_are_rejected() {
    let home = Home::with(&echo());
    let output = |assignment| {
        let output = home.noetl(["run", "test.yaml", "--set", assignment]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
        output.stderr
    };
    assert_snapshot!(["who", "=x", "a..b=1", ".=1"].map(output).concat(), @r"
    error: --set takes KEY=VALUE, got 'who'
    error: --set takes a key such as 'who' or 'limits.max', got ''
    error: --set takes a key such as 'who' or 'limits.max', got 'a..b'
    error: --set takes a key such as 'who' or 'limits.max', got '.'
    ");
}

#[test]
fn invalid_payloads_are_rejected() {
    let home = Home::with(&echo());
    let deep = format!(r#"{{"a": {}{}}}"#, "[".repeat(100), "]".repeat(100));
    let deeper = format!(r#"{{"a": {}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    let output = |payload: &str| {
        home.write("payload.json", payload);
        let output = home.noetl(["run", "test.yaml", "--payload", "payload.json"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
        output.stderr
    };
    assert_snapshot!(["[1]", "{\"a\": ", "", &deep, &deeper].map(output).concat(), @r#"
    error: the payload payload.json is not a JSON object
      help: a payload is a JSON object such as {"who": "Ada"}
    error: the payload payload.json is not JSON: EOF while parsing a value at line 1 column 6
      help: a payload is a JSON object such as {"who": "Ada"}
    error: the payload payload.json is not JSON: EOF while parsing a value at line 1 column 0
      help: a payload is a JSON object such as {"who": "Ada"}
    error: the payload payload.json nests more than 100 levels deep
    error: the payload payload.json is not JSON: recursion limit exceeded at line 1 column 133
      help: a payload is a JSON object such as {"who": "Ada"}
    "#);
}
