//! The `noetl` program, run as people run it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod canaries;
mod check;
mod clocks;
mod closed_output;
mod command_stream;
mod config;
mod conformance;
mod credentials;
mod db;
mod dev;
mod dev_process;
mod disk;
mod escapes;
mod event_stream;
mod examples;
mod extremes;
mod faults;
mod help;
mod isolation;
mod kill;
mod noetl;
mod patterns;
mod payload;
mod remote;
mod replicas;
mod resume;
mod run;
mod sharded;
mod shown;
mod stopping;
mod subscriptions;
mod system_pool;
mod terminal;
mod tour;
mod worker;
