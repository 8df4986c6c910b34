//! Lives through simulated worlds, one process per seed, and shows the first that goes wrong.
//!
//! `noetl-sim --seeds 0..2000` runs them; `noetl-sim one --seed 7 --transcript` repeats one.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what this program is for")]

mod many;
mod one;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == "one" => one::run(rest),
        _ => many::run(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("noetl-sim: {message}\n\n{}", words::USAGE);
            ExitCode::from(2)
        }
    }
}
