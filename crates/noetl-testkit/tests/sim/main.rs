//! Simulated worlds, and defects they have to find. Each world is a process, so that chance is its
//! seed's alone; `make sim SEEDS=100000` lives through many more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::process::{Command, Output};

use noetl_testkit::world::Planted;

/// How many worlds every run of the tests simulates. They start at the seed `NOETL_TEST_SEED`, or at 0
/// without it; `NOETL_SIM_SEEDS` names another range.
const SEEDS: u64 = 40;

/// Within how many seeds a planted defect has to be found. Most are by the ninth. Two processes seldom
/// decide differently on the same execution at once, and a conflict that is hidden shows by the sixtieth.
const FOUND_WITHIN: u64 = 100;

/// Within how many seeds a defect of the stream has to be found: every world compares each message.
const FOUND_ON_STREAM_WITHIN: u64 = 10;

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_noetl-sim")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn every_world_comes_to_its_end() {
    let first = std::env::var("NOETL_TEST_SEED")
        .map_or(0, |text| text.parse::<u64>().expect("NOETL_TEST_SEED is a number"));
    let seeds = std::env::var("NOETL_SIM_SEEDS");
    let seeds = seeds.unwrap_or_else(|_| format!("{first}..{}", first.saturating_add(SEEDS)));
    let output = sim(&["--seeds", &seeds]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_last_line_is_what_all_worlds_came_to() {
    let last = |arguments: &[&str]| -> (Option<i32>, serde_json::Value) {
        let output = sim(arguments);
        let said = said(&output);
        (output.status.code(), serde_json::from_str(said.lines().last().unwrap()).unwrap())
    };
    let (code, line) = last(&["--seeds", "3..5"]);
    assert_eq!((code, &line["first"], &line["seeds"]), (Some(0), &3.into(), &2.into()), "{line}");
    assert!(line["wrong"].is_null() && line["events"].as_u64() > Some(0), "{line}");
    let (code, line) = last(&["--seeds", "60", "--planted", Planted::EndLost.as_str()]);
    assert_eq!(code, Some(1), "{line}");
    assert!(line["wrong"]["what"].is_string() && line["wrong"]["seed"].is_u64(), "{line}");
}

#[test]
fn the_same_seed_makes_the_same_world() {
    let shows = |seed: &str| said(&sim(&["one", "--seed", seed, "--transcript"]));
    for seed in ["1", "2", "3", "5"] {
        let (first, second) = (shows(seed), shows(seed));
        assert!(first.lines().count() > 20, "{first}");
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(shows("1"), shows("2"));
}

#[test]
fn a_world_without_faults_has_none() {
    let output = sim(&["one", "--seed", "3", "--faults", "0"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("\"faults\":{}"), "{}", said(&output));
}

#[test]
fn what_cannot_be_understood_is_said() {
    for wrong in [&["--seeds", "many"][..], &["one"], &["one", "--seed", "1", "--planted", "x"]] {
        let output = sim(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage:"), "{wrong:?}");
    }
}

/// Lives through worlds with this defect until one is wrong.
fn is_found(planted: Planted, within: u64) {
    let name = planted.as_str();
    for seed in 0..within {
        let output = sim(&["one", "--seed", &seed.to_string(), "--planted", name]);
        if !output.status.success() {
            assert!(said(&output).contains("\"wrong\":\""), "{}", said(&output));
            return;
        }
    }
    panic!("{name} was not found within {within} seeds");
}

macro_rules! defects {
    (within $seeds:expr; $($test:ident: $planted:ident;)*) => {$(
        #[test]
        fn $test() {
            is_found(Planted::$planted, $seeds);
        }
    )*};
}

defects! {
    within FOUND_WITHIN;
    a_due_row_that_is_dropped_is_found: DueDropped;
    a_key_that_is_forgotten_is_found: KeyForgotten;
    a_commit_that_is_answered_and_lost_is_found: CommitLost;
    a_conflict_that_is_hidden_is_found: ConflictHidden;
    an_end_that_is_lost_is_found: EndLost;
    events_that_are_written_twice_are_found: EventsTwice;
    a_command_that_is_handed_to_nobody_is_found: CommandHidden;
    a_lease_that_never_ends_is_found: LeaseEternal;
    a_dead_process_that_is_taken_for_alive_is_found: DeadAlive;
    a_timer_that_is_early_is_found: TimerEarly;
    a_row_that_differs_from_its_log_is_found: RowWrong;
}

defects! {
    within FOUND_ON_STREAM_WITHIN;
    an_event_that_the_stream_drops_is_found: StreamDropped;
    an_event_that_the_stream_stores_twice_is_found: StreamDoubled;
    events_that_the_stream_reorders_are_found: StreamReordered;
    a_stream_that_is_emptied_without_a_fault_is_found: StreamWiped;
}
