//! The host of sandboxed steps as a program of its own: what the tests of this crate start.

use std::process::ExitCode;

fn main() -> ExitCode {
    noetl_tools::step_host::main(std::env::args_os().skip(2))
}
