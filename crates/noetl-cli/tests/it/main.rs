//! The `noetl` program, run as people run it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod dev_process;
mod kill;
