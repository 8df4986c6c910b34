//! Simulations, and planted defects that they have to find. Each one is a process, so that its
//! randomness follows from the seed alone; `make sim SEEDS=100000` runs many more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::process::{Command, Output};

use noetl_test_world::Planted;

/// Number of simulations in every test run. Seeds start at the seed `NOETL_TEST_SEED`, or at 0
/// without it; `NOETL_SIM_SEEDS` names another range.
const SEEDS: u64 = 40;

/// Number of seeds within which a planted defect has to show. Most show by the ninth. Two processes
/// seldom decide differently on one execution at once, so a hidden conflict shows by the sixtieth.
const FOUND_WITHIN: u64 = 100;

/// Number of seeds within which a defect of the stream has to show: every simulation compares each
/// message.
const FOUND_ON_STREAM_WITHIN: u64 = 10;

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_noetl-sim")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn every_simulation_finishes_without_a_violation() {
    let first = std::env::var("NOETL_TEST_SEED")
        .map_or(0, |text| text.parse::<u64>().expect("NOETL_TEST_SEED is a number"));
    let seeds = std::env::var("NOETL_SIM_SEEDS");
    let seeds = seeds.unwrap_or_else(|_| format!("{first}..{}", first.saturating_add(SEEDS)));
    let output = sim(&["--seeds", &seeds]);
    assert!(output.status.success(), "{}", stdout(&output));
}

/// Seeds that showed a defect once.
#[test]
fn previously_failed_seeds_finish_without_a_violation() {
    // A timer fired during a repeated start, and was lost.
    let output = sim(&["one", "--seed", "5092"]);
    assert!(output.status.success(), "{}", stdout(&output));
}

#[test]
fn the_last_line_is_a_json_summary() {
    let last = |arguments: &[&str]| -> (Option<i32>, serde_json::Value) {
        let output = sim(arguments);
        let text = stdout(&output);
        (output.status.code(), serde_json::from_str(text.lines().last().unwrap()).unwrap())
    };
    let (code, line) = last(&["--seeds", "3..5"]);
    assert_eq!((code, &line["first"], &line["seeds"]), (Some(0), &3.into(), &2.into()), "{line}");
    assert!(line["wrong"].is_null() && line["events"].as_u64() > Some(0), "{line}");
    let (code, line) = last(&["--seeds", "60", "--planted", Planted::EndLost.as_str()]);
    assert_eq!(code, Some(1), "{line}");
    assert!(line["wrong"]["what"].is_string() && line["wrong"]["seed"].is_u64(), "{line}");
}

#[test]
fn a_seed_repeats_exactly() {
    let shows = |seed: &str| stdout(&sim(&["one", "--seed", seed, "--transcript"]));
    for seed in ["1", "2", "3", "5"] {
        let (first, second) = (shows(seed), shows(seed));
        assert!(first.lines().count() > 20, "{first}");
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(shows("1"), shows("2"));
}

#[test]
fn a_fault_limit_of_zero_is_respected() {
    let output = sim(&["one", "--seed", "3", "--faults", "0"]);
    assert!(output.status.success(), "{}", stdout(&output));
    assert!(stdout(&output).contains("\"faults\":{}"), "{}", stdout(&output));
}

#[test]
fn invalid_arguments_print_the_usage() {
    for wrong in [&["--seeds", "many"][..], &["one"], &["one", "--seed", "1", "--planted", "x"]] {
        let output = sim(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage:"), "{wrong:?}");
    }
}

/// Runs simulations with this defect until one fails.
fn assert_found(planted: Planted, within: u64) {
    let name = planted.as_str();
    for seed in 0..within {
        let output = sim(&["one", "--seed", &seed.to_string(), "--planted", name]);
        if !output.status.success() {
            assert!(stdout(&output).contains("\"wrong\":\""), "{}", stdout(&output));
            return;
        }
    }
    panic!("{name} did not show within {within} seeds");
}

macro_rules! defects {
    (within $seeds:expr; $($test:ident: $planted:ident;)*) => {$(
        #[test]
        fn $test() {
            assert_found(Planted::$planted, $seeds);
        }
    )*};
}

defects! {
    within FOUND_WITHIN;
    a_dropped_timer_is_detected: DueDropped;
    a_lost_dedup_key_is_detected: KeyForgotten;
    a_lost_acknowledged_commit_is_detected: CommitLost;
    a_hidden_conflict_is_detected: ConflictHidden;
    a_lost_completion_is_detected: EndLost;
    duplicate_events_are_detected: EventsTwice;
    a_command_that_is_never_claimed_is_detected: CommandHidden;
    a_lease_that_never_expires_is_detected: LeaseEternal;
    a_dead_process_counted_as_alive_is_detected: DeadAlive;
    a_timer_that_fires_early_is_detected: TimerEarly;
    a_row_that_differs_from_its_log_is_detected: RowWrong;
}

defects! {
    within FOUND_ON_STREAM_WITHIN;
    an_event_dropped_by_the_stream_is_detected: StreamDropped;
    an_event_duplicated_by_the_stream_is_detected: StreamDoubled;
    events_reordered_by_the_stream_are_detected: StreamReordered;
    a_stream_emptied_without_a_fault_is_detected: StreamWiped;
}
