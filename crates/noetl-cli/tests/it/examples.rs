//! The examples, run as their heads say, on both kinds of store.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::noetl::{EXAMPLES, Home};
use crate::shown::{self, ShownPlaybook};

/// Runs an example and gives its result.
fn check<const N: usize>(name: &str, set: [&str; N], expected: Value) {
    let home = Home::new();
    let mut command = home.command(["run"]);
    command.arg(format!("{EXAMPLES}/{name}.yaml"));
    for assignment in set {
        command.args(["--set", assignment]);
    }
    let output = home.end_of(&mut command);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.json(), expected);
    assert!(
        output.stderr.ends_with(&format!("examples/{name} completed in [time]\n")),
        "{output:?}"
    );
}

#[test]
fn hello_greets_the_name_of_the_workload() {
    check("hello", ["who=Ada"], json!({"message": "Hello, Ada!"}));
}

#[test]
fn branch_takes_one_arc() {
    check("branch", ["degrees=30"], json!({"message": "30 degrees is hot"}));
    check("branch", ["degrees=-4"], json!({"message": "-4 degrees is cold"}));
}

#[test]
fn cycle_counts_to_its_limit() {
    check("cycle", ["times=20"], json!({"message": "counted to 20"}));
}

#[test]
fn errors_divides_by_a_nonzero_divisor() {
    check("errors", ["divisor=4"], json!({"message": "division worked", "quotient": 3.0}));
}

#[test]
fn http_completes_when_the_server_is_unreachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/health");
    let message = format!("{url} did not answer well");
    check("http", [&format!("url={url}")], json!({ "message": message }));
}

#[test]
fn shell_counts_lines() {
    check("shell", ["text=one line"], json!({"message": "the text has 1 lines"}));
}

#[test]
fn break_computes_values_missing_from_the_cache() {
    check("break", ["cached=null"], json!({"answer": 42, "from": "scratch"}));
}

#[test]
fn policy_fail_imports_existing_rows() {
    check("policy-fail", ["rows=3"], json!({"message": "the import went through"}));
}

/// Subscriptions and schedules start others, and whether an address answers is not the example's to say.
fn is_run(name: &str) -> bool {
    !name.starts_with("subscription") && !["schedule", "http"].contains(&name)
}

#[test]
fn examples_print_their_documented_output_on_sqlite() {
    let examples = shown::all(EXAMPLES, is_run);
    assert!(examples.len() >= 30, "{} examples", examples.len());
    shown::run_on_sqlite(&examples);
}

#[test]
fn examples_print_their_documented_output_on_postgres() {
    shown::run_on_postgres(&shown::all(EXAMPLES, is_run));
}

pub(crate) fn is_playbook(name: &str) -> bool {
    !name.starts_with("subscription") && name != "schedule"
}

#[test]
fn every_example_is_valid_listed_and_asserts_its_result() {
    let list = include_str!("../../../../examples/README.md");
    shown::assert_valid(EXAMPLES);
    for ShownPlaybook { name, text, .. } in shown::all(EXAMPLES, is_playbook) {
        assert!(list.contains(&format!("| [{name}.yaml]({name}.yaml) |")), "{name} is not listed");
        let is_sure = text.contains("assert ") || text.contains("on_no_match: fail");
        // The first example is minimal, and the result of `http` depends on the other server.
        assert!(is_sure || ["hello", "http"].contains(&name.as_str()), "{name} asserts nothing");
    }
}
