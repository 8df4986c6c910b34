use std::collections::BTreeSet;
use std::net::TcpListener;
use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::noetl::{EXAMPLES, Home};

/// Runs an example and gives its result.
fn check<const N: usize>(name: &str, set: [&str; N], expected: Value) {
    let home = Home::new();
    let mut command = home.command(["run"]);
    command.arg(format!("{EXAMPLES}/{name}.yaml"));
    for assignment in set {
        command.args(["--set", assignment]);
    }
    let said = home.end_of(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.json(), expected);
    assert!(said.stderr.ends_with(&format!("examples/{name} completed in [time]\n")), "{said:?}");
}

#[test]
fn hello_greets() {
    check("hello", [], json!({"message": "Hello, world!"}));
    check("hello", ["who=Ada"], json!({"message": "Hello, Ada!"}));
}

#[test]
fn python_passes_data_on() {
    check("python", [], json!({"message": "the mean of 3 numbers is 4.0", "largest": 7}));
}

#[test]
fn branch_takes_one_way() {
    check("branch", [], json!({"message": "21 degrees is mild"}));
    check("branch", ["degrees=30"], json!({"message": "30 degrees is hot"}));
    check("branch", ["degrees=-4"], json!({"message": "-4 degrees is cold"}));
}

#[test]
fn join_waits_for_both_ways() {
    check("join", [], json!({"message": "both branches are in", "total": 111}));
}

#[test]
fn cycle_counts() {
    check("cycle", [], json!({"message": "counted to 5"}));
    check("cycle", ["times=20"], json!({"message": "counted to 20"}));
}

#[test]
fn errors_goes_on_without_a_quotient() {
    let without = json!({"message": "division failed, went on without it", "quotient": null});
    check("errors", [], without);
    check("errors", ["divisor=4"], json!({"message": "division worked", "quotient": 3.0}));
}

#[test]
fn http_completes_when_nobody_answers() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/health");
    let message = format!("{url} did not answer well");
    check("http", [&format!("url={url}")], json!({ "message": message }));
}

#[test]
fn shell_counts_lines() {
    check("shell", [], json!({"message": "the text has 3 lines"}));
    check("shell", ["text=one line"], json!({"message": "the text has 1 lines"}));
}

#[test]
fn all_examples_are_in_order_and_tried_here() {
    let files = fs::read_dir(EXAMPLES).unwrap().map(|entry| entry.unwrap().path());
    let files: BTreeSet<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    let names: Vec<&str> =
        files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    let tried = ["branch", "cycle", "errors", "hello", "http", "join", "python", "shell"];
    // A subscription is checked only: it starts others.
    let in_order = [&tried[..], &["subscription"]].concat();
    assert_eq!(names, in_order);

    let home = Home::new();
    let said = home.end_of(home.command(["check"]).args(&files));
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    let lines: Vec<&str> = said.stderr.lines().collect();
    assert_eq!(lines.len(), files.len());
    assert!(lines.iter().all(|line| line.ends_with(".yaml: ok")), "{lines:?}");
}
