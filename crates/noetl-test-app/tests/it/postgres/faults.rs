//! Executions in flight while the database or the connection to it fails.

mod connection_lost;
mod disk_full;
mod outcome_unknown;
pub(crate) mod plane;
mod restart;
mod slow_disk;
mod undone;
