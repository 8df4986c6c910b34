//! Replays the inputs in `fuzz/corpus`: seeds, and inputs that once failed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::path::{Path, PathBuf};

use noetl_fuzz::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the files of a directory, sorted by name.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs a target on every input of its corpus. Panics with the name of an input that fails.
fn replay(target: &str) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let inputs = files(&fuzz().join("corpus").join(target));
    assert!(!inputs.is_empty(), "{target} has inputs to begin with");
    for input in inputs {
        let data = std::fs::read(&input).unwrap();
        let broken = std::panic::catch_unwind(|| run(&data)).is_err();
        assert!(!broken, "{} breaks {target}", input.display());
    }
}

#[test]
fn cron_expressions_of_the_corpus_do_not_panic() {
    replay("cron");
}

#[test]
fn documents_of_the_corpus_do_not_panic() {
    replay("document");
}

#[test]
fn engine_inputs_of_the_corpus_do_not_panic() {
    replay("engine");
}

#[test]
fn rows_of_the_corpus_do_not_panic() {
    replay("event");
}

#[test]
fn batches_of_the_corpus_do_not_panic() {
    replay("kafka");
}

#[test]
fn messages_of_the_corpus_do_not_panic() {
    replay("message");
}

#[test]
fn signatures_of_the_corpus_do_not_panic() {
    replay("signature");
}

#[test]
fn templates_of_the_corpus_do_not_panic() {
    replay("template");
}

#[test]
fn bodies_of_the_corpus_do_not_panic() {
    replay("wire");
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let names = |directory: &str| -> Vec<String> {
        let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
        files(&fuzz().join(directory)).into_iter().map(stem).collect()
    };
    let targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
}
