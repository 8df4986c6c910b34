//! A copy of the worker released as 5.52: the same requests in the same order with the same JSON, and
//! the same messages to the bus. It shares no code with the control plane.
//!
//! Where the released worker exits with an error, `PublishedWorker::ended` returns it;
//! `PublishedWorker::kill` stands for a crash. [`render`] needs no server.

#[cfg(feature = "server")]
mod control_plane;
#[cfg(feature = "server")]
mod perform;
#[cfg(feature = "server")]
mod python;
mod render;
#[cfg(feature = "server")]
mod sequence;
#[cfg(feature = "server")]
mod tools;
#[cfg(feature = "server")]
mod worker;

pub use render::render;
#[cfg(feature = "server")]
pub use worker::{PublishedWorker, PublishedWorkerOptions, WorkerStats};

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
