//! Checks that the environment of a run chooses the generated cases: how many, and from which seed.
//!
//! The cases are those of one property of this test binary, started again as a child.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proptest::prelude::*;
use tempfile::TempDir;

/// Set to `print` or `fail` in a child.
const ROLE: &str = "NOETL_TEST_GENERATED_ROLE";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Passes, except in a child process whose role is to fail.
    #[test]
    fn a_child_prints_its_cases(case in any::<u64>()) {
        let role = std::env::var_os(ROLE);
        if role.is_some() {
            println!("case {case}");
        }
        prop_assert!(role.as_deref() != Some(OsStr::new("fail")));
    }
}

fn child(directory: &Path, role: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "tests::generated::a_child_prints_its_cases", "--nocapture"]);
    for name in ["PROPTEST_CASES", "PROPTEST_RNG_SEED"] {
        command.env_remove(name);
    }
    command.env(ROLE, role).envs(variables.iter().copied()).current_dir(directory);
    command.output().expect("a child")
}

fn cases(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter(|line| line.starts_with("case ")).map(str::to_owned).collect()
}

#[test]
fn the_environment_sets_the_number_and_the_seed_of_cases() {
    let directory = TempDir::new().expect("a directory");
    let run = |variables: &[(&str, &str)]| {
        let output = child(directory.path(), "print", variables);
        assert!(output.status.success(), "{output:?}");
        cases(&output)
    };
    let seeded = |seed| run(&[("PROPTEST_CASES", "5"), ("PROPTEST_RNG_SEED", seed)]);
    assert_eq!(seeded("7").len(), 5, "the variable wins over the number in the source");
    assert_eq!(seeded("7"), seeded("7"), "a seed repeats its cases");
    assert_ne!(seeded("7"), seeded("8"));
    assert_ne!(run(&[]), run(&[]), "without a seed every run is another");
    assert_eq!(run(&[]).len(), 48);
}

#[test]
fn a_failing_case_is_printed_and_stored_next_to_the_sources() {
    // The child searches upward for this source file, and finds a tree of its own.
    let directory = TempDir::new().expect("a directory");
    let source = directory.path().join(file!());
    let package = source.ancestors().nth(3).expect("a package").to_owned();
    fs::create_dir_all(package.join("src/tests")).expect("a directory");
    for file in [&source, &package.join("src/lib.rs")] {
        fs::write(file, "").expect("a file");
    }
    let output = child(&package, "fail", &[]);
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stored = package.join("proptest-regressions/tests/generated.txt");
    let stored = fs::read_to_string(stored).expect("a stored case");
    let seed = stored.lines().find_map(|line| line.strip_prefix("cc ")?.split(' ').next());
    assert!(stderr.contains(seed.expect("a seed")), "{stderr}");
    // The stored case runs before any other, whatever the seed.
    let again = child(&package, "print", &[("PROPTEST_RNG_SEED", "1"), ("PROPTEST_CASES", "1")]);
    assert_eq!(cases(&again).first(), cases(&output).first(), "{again:?}");
    assert_eq!(cases(&again).len(), 2);
}
