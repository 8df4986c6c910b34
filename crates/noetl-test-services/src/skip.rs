//! Records tests that cannot run on this machine.
//!
//! A skipped test counts as passed, so each skip leaves a trace: a line on stdout and, if
//! `NOETL_TEST_SKIPS_FILE` names a file, a line in that file. Under CI (`CI` is set) a missing program
//! fails the test instead, because the job has to install it.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::Location;
use std::path::Path;

/// File that collects one line per skipped test: part, install command, test, separated by tabs.
const SKIPS_FILE: &str = "NOETL_TEST_SKIPS_FILE";

/// Set to `off`, leaves out the tests that install and start services from the network.
const SERVICES: &str = "NOETL_TEST_SERVICES";

/// Records that `part` is not installed. The calling test returns early.
///
/// `install` is the command that installs the part.
///
/// # Panics
///
/// Panics if `CI` is set, with a message that names the part and the command.
#[track_caller]
pub fn missing(part: &str, install: &str) {
    if std::env::var_os("CI").is_some() {
        panic!("{}", failure(part, install));
    }
    record(part, install, Location::caller());
}

/// Records that this machine cannot offer `part`, such as a kernel feature or a root user. The
/// calling test returns early, under CI too.
///
/// `remedy` names what the machine needs.
#[track_caller]
pub fn unsupported(part: &str, remedy: &str) {
    record(part, remedy, Location::caller());
}

/// Returns `true` if `NOETL_TEST_SERVICES=off` leaves out `part`, and records that like
/// [`missing`]. The calling test then returns early.
///
/// # Panics
///
/// Panics if `CI` is set and the variable is `off`.
#[track_caller]
pub fn services_off(part: &str) -> bool {
    let is_off = std::env::var_os(SERVICES).is_some_and(|value| value == "off");
    if is_off {
        missing(part, "unset NOETL_TEST_SERVICES");
    }
    is_off
}

fn failure(part: &str, install: &str) -> String {
    format!("{part} is missing, and CI skips no test; run `{install}`")
}

#[expect(clippy::print_stdout, reason = "the output of a test shows why it did not run")]
fn record(part: &str, remedy: &str, caller: &Location<'_>) {
    let test = test_name(std::thread::current().name(), caller);
    println!("skipped: {test}: no {part}; {remedy}");
    if let Some(file) = std::env::var_os(SKIPS_FILE).filter(|file| !file.is_empty()) {
        append(Path::new(&file), &line(part, remedy, &test));
    }
}

/// Returns the test's name, which is its thread's, or the caller's location on an unnamed thread.
fn test_name(thread: Option<&str>, caller: &Location<'_>) -> String {
    match thread.filter(|name| *name != "main" && !name.starts_with("tokio-")) {
        Some(name) => name.to_owned(),
        None => format!("{}:{}", caller.file(), caller.line()),
    }
}

/// Formats one record. Line breaks and tabs become spaces, so that a record stays one line.
fn line(part: &str, remedy: &str, test: &str) -> String {
    let field = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    format!("{}\t{}\t{}\n", field(part), field(remedy), field(test))
}

/// Appends a record in one write, so that tests in other processes do not interleave with it.
fn append(file: &Path, line: &str) {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        let name = OsStr::new(SKIPS_FILE).display();
        panic!("failed to write to {name} ({}): {error}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_with_three_fields() {
        let line = line("redis-server", "scripts/services/redis.sh install", "redis::a\tb\nc");
        assert_eq!(line, "redis-server\tscripts/services/redis.sh install\tredis::a b c\n");
    }

    #[test]
    fn test_names_come_from_the_thread_or_the_calling_line() {
        let caller = Location::caller();
        assert_eq!(test_name(Some("redis::a_test"), caller), "redis::a_test");
        for unnamed in [None, Some("main"), Some("tokio-rt-worker")] {
            let name = test_name(unnamed, caller);
            assert_eq!(name, format!("{}:{}", caller.file(), caller.line()));
        }
    }

    #[test]
    fn records_are_appended() {
        let name = format!("noetl-skips-{}.tsv", std::process::id());
        let file = std::env::temp_dir().join(name);
        append(&file, "a\tb\tc\n");
        append(&file, "d\te\tf\n");
        let text = std::fs::read_to_string(&file).expect("the records");
        std::fs::remove_file(&file).expect("a file to remove");
        assert_eq!(text, "a\tb\tc\nd\te\tf\n");
    }

    #[test]
    fn a_failure_names_the_part_and_the_command() {
        let text = failure("kcat", "scripts/services/kafka.sh install");
        assert!(text.contains("kcat") && text.contains("`scripts/services/kafka.sh install`"));
    }
}
