//! States that were written by hand from the rules, with checksums that a script computes on its
//! own.

use std::path::{Path, PathBuf};
use std::process::Command;

use noetl_engine::replay::{Checksum, ReplayScope, ReplayState, canonical};
use noetl_model::Value;
use serde_json::json;

use crate::{event, fold, scope};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay")
}

fn goldens() -> Vec<(String, Value)> {
    let files = std::fs::read_dir(directory()).expect("the golden files");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a golden file");
        let golden = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, golden)
    };
    paths.iter().map(read).collect()
}

fn scope_of(golden: &Value) -> ReplayScope {
    let fields = &golden["scope"];
    if fields.is_null() {
        return scope();
    }
    ReplayScope {
        tenant_id: fields["tenant_id"].as_str().expect("a tenant").to_owned(),
        organization_id: fields["organization_id"].as_str().expect("an organization").to_owned(),
        execution_id: fields["execution_id"].as_i64().expect("an id"),
        projection: fields["projection"].as_str().expect("a text").parse().expect("a projection"),
    }
}

#[test]
fn every_golden_log_folds_to_its_state() {
    let mut folded = 0;
    for (name, golden) in goldens() {
        let Some(events) = golden["events"].as_array() else { continue };
        let events: Vec<_> = events.iter().map(event).collect();
        let state = fold(scope_of(&golden), &events);
        let mut expected = golden["state"].as_object().expect("a state").clone();
        let checksums = golden["checksums"].as_object().expect("checksums");
        expected.extend(checksums.iter().map(|(key, value)| (key.clone(), value.clone())));
        let actual = serde_json::to_value(&state).expect("JSON");
        let shown = serde_json::to_string_pretty(&actual).expect("JSON");
        assert_eq!(actual, Value::Object(expected), "{name}: {shown}");
        let again: ReplayState = serde_json::from_value(actual).expect("a state");
        assert_eq!(again, state, "{name}");
        folded += 1;
    }
    assert!(folded >= 15, "{folded} golden files");
}

#[test]
fn every_vector_has_its_text_and_digest() {
    let goldens = goldens();
    let vectors = goldens.iter().filter_map(|(_, golden)| golden["vectors"].as_array()).flatten();
    let mut count = 0;
    for vector in vectors {
        let value = &vector["value"];
        assert_eq!(json!(Checksum::of_value(value).value), vector["sha256"], "{value}");
        if let Some(text) = vector["text"].as_str() {
            assert_eq!(canonical::text(value), text);
        }
        count += 1;
    }
    assert_eq!(count, 4);
}

#[test]
fn an_independent_script_computes_the_same_checksums() {
    let script = directory().join("checksums.py");
    let output = Command::new("python3").arg(script).output().expect("python3 is needed here");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{error}");
}

#[test]
fn fields_are_serialized_in_the_order_of_the_wire_format() {
    let state = fold(scope(), &[event(&json!({"event_id": 1, "event_type": "x"}))]);
    let value = serde_json::to_value(&state).expect("JSON");
    let names: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "tenant_id",
            "organization_id",
            "execution_id",
            "projection",
            "event_count",
            "last_event_id",
            "last_event_type",
            "execution",
            "stages",
            "frames",
            "commands",
            "business_objects",
            "loops",
            "checksum",
            "projection_checksums",
        ]
    );
    let parts = value["projection_checksums"].as_object().expect("an object");
    let parts: Vec<&str> = parts.keys().map(String::as_str).collect();
    assert_eq!(parts, ["business_object", "command", "execution", "frame", "loop", "stage"]);
}
