//! Host of sandboxed steps as a separate program, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    noetl_tools::step_host::main(std::env::args_os().skip(2))
}
