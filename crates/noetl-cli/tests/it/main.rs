//! The `noetl` program, run as people run it.

mod dev_process;
mod kill;
