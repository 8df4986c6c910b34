//! Runs simulations, one process per seed, and shows the first that fails.
//!
//! `noetl-sim --seeds 0..2000` runs them; `noetl-sim one --seed 7 --transcript` repeats one of them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the program prints its results")]

mod arguments;
mod many;
mod one;

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
            eprintln!("noetl-sim: {message}\n\n{}", arguments::USAGE);
            ExitCode::from(2)
        }
    }
}
