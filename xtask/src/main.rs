//! Chores of this repository: `cargo xtask tidy` checks what no other tool sees, `cargo xtask prose` lists
//! lines that break the prose guide, `cargo xtask measure` lists what a measure of a crate counts, and
//! `cargo xtask ceilings` lowers the numbers that these checks allow.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the terminal it was started from"
)]

mod tidy;

use std::{path::Path, process::ExitCode};

const USAGE: &str = "usage: cargo xtask tidy
       cargo xtask prose RULE AREA         list the lines that break a rule of the prose guide
       cargo xtask measure MEASURE CRATE   list what a measure counts: lines, cycles, or short-docs
       cargo xtask ceilings                lower the ceilings of rules and measures after a cleanup";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["prose", rule, area] => done(tidy::prose(root(), rule, area).map(|lines| {
            lines.iter().for_each(|line| println!("{line}"));
        })),
        ["measure", measure, area] => done(tidy::measure(root(), measure, area).map(|lines| {
            lines.iter().for_each(|line| println!("{line}"));
        })),
        ["ceilings"] => done(tidy::lower_ceilings(root())),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

fn done(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn tidy() -> ExitCode {
    let report = match tidy::run(root()) {
        Ok(report) => report,
        Err(why) => {
            eprintln!("tidy could not look: {why}");
            return ExitCode::FAILURE;
        }
    };
    for note in &report.notes {
        eprintln!("note: {note}");
    }
    for finding in &report.findings {
        println!("{finding}");
    }
    match report.findings.len() {
        0 => {
            eprintln!("tidy: {} files looked at, nothing to say", report.files);
            ExitCode::SUCCESS
        }
        found => {
            eprintln!("tidy: {found} found");
            ExitCode::FAILURE
        }
    }
}
