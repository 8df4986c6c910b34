//! `docs/api-tour.md`, run as a reader would run it: every command against a real server, every
//! response compared with the page.

use std::path::Path;
use std::process::{Command, Stdio};

use noetl_test_services::postgres::TestDatabase;
use serde_json::Value;

use crate::dev_process::DevProcess;

const PAGE: &str = include_str!("../../../../docs/api-tour.md");

/// Placeholder for values that vary between runs.
const ANYTHING: &str = "…";

/// Between the answers of two blocks. No answer holds it.
const MARK: &str = "--- next block ---";

const SETTINGS: [(&str, &str); 3] = [
    ("NOETL_INTERNAL_API_TOKEN", "letmein"),
    ("NOETL_OUTBOX_ENABLED", "true"),
    ("NOETL_AUTH", "token"),
];

/// A block of commands, and what it has to answer.
struct Stop {
    commands: String,
    language: String,
    expected: String,
}

/// The blocks of the page: each `sh` with the block after it.
fn stops() -> Vec<Stop> {
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push((language.to_owned(), text.join("\n")));
    }
    let mut stops = Vec::new();
    let mut blocks = blocks.into_iter();
    while let Some((language, commands)) = blocks.next() {
        if language == "sh" {
            let (language, expected) = blocks.next().expect("an answer after every command");
            stops.push(Stop { commands, language, expected });
        }
    }
    stops
}

async fn take_the_tour(server: &DevProcess, data: &Path) {
    let stops = stops();
    assert!(stops.len() > 10, "{} stops", stops.len());
    let script: String =
        stops.iter().map(|stop| format!("{}\necho '{MARK}'\n", stop.commands)).collect();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let base = server.client.base().as_str().trim_end_matches('/').to_owned();
    let programs = Path::new(env!("CARGO_BIN_EXE_noetl")).parent().expect("a directory");
    let mut path = programs.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").expect("a path"));
    let data = data.to_owned();
    let output = tokio::task::spawn_blocking(move || {
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(script).current_dir(root).env("NOETL", base).stdin(Stdio::null());
        // The token is found as its user finds it, where there is no runtime directory.
        bash.env("NOETL_DATA", data).env("PATH", path).env_remove("NOETL_TOKEN");
        bash.output().expect("a shell")
    });
    let output = output.await.expect("the tour");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let answers: Vec<&str> = stdout.split(&format!("{MARK}\n")).collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(answers.len(), stops.len() + 1, "{stdout}\n{stderr}");
    for (stop, answer) in stops.iter().zip(answers) {
        let context = format!("{}\nanswered\n{answer}\n{stderr}", stop.commands);
        match stop.language.as_str() {
            "json" => {
                let expected: Value = serde_json::from_str(&stop.expected).expect(&stop.expected);
                let actual: Value = serde_json::from_str(answer).expect(&context);
                assert!(is_like(&expected, &actual), "{context}");
            }
            _ => assert!(is_like_text(&stop.expected, answer.trim_end()), "{context}"),
        }
    }
}

fn is_like(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(text), _) if text == ANYTHING => true,
        (Value::Object(expected), Value::Object(actual)) => {
            expected.len() == actual.len()
                && expected.iter().all(|(name, value)| {
                    actual.get(name).is_some_and(|actual| is_like(value, actual))
                })
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| is_like(expected, actual))
        }
        _ => expected == actual,
    }
}

fn is_like_text(expected: &str, actual: &str) -> bool {
    let mut rest = actual;
    let mut parts = expected.split(ANYTHING);
    let first = parts.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let mut is_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        is_open = part.is_empty();
    }
    is_open || rest.is_empty()
}

#[tokio::test]
async fn the_tour_matches_its_documented_output_on_sqlite() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let server = DevProcess::start_with(&data, &SETTINGS);
    take_the_tour(&server, &data).await;
}

#[tokio::test]
async fn the_tour_matches_its_documented_output_on_postgres() {
    let database = TestDatabase::new();
    let home = tempfile::tempdir().unwrap();
    let data = home.path().to_str().expect("a path of text");
    let settings = [&SETTINGS[..], &[("NOETL_DATA", data)]].concat();
    let server = DevProcess::start_on(&database.url(), 4, &settings);
    take_the_tour(&server, home.path()).await;
}

#[test]
fn differences_of_outputs_are_reported() {
    assert!(is_like_text("a…c", "abbbc") && is_like_text("a…", "abc") && is_like_text("a", "a"));
    assert!(!is_like_text("a…c", "abd") && !is_like_text("a", "ab") && !is_like_text("a…b", "abc"));
    let is = |expected: &str, actual: &str| {
        is_like(&serde_json::from_str(expected).unwrap(), &serde_json::from_str(actual).unwrap())
    };
    assert!(is(r#"{"a":"…","b":[1]}"#, r#"{"b":[1],"a":{}}"#));
    assert!(!is(r#"{"a":1}"#, r#"{"a":1,"b":2}"#) && !is("[1]", "[2]") && !is("[1]", "[1,1]"));
}
