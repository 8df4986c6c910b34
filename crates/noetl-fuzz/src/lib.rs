//! What fuzzing runs: one plain function per kind of input that comes from outside.
//!
//! A target takes any bytes. It panics when something is broken: the code under test panicked, or what
//! has to hold of its answer does not. `fuzz/` wraps each one for libFuzzer, which looks for inputs by
//! what code they reach; the inputs kept in `fuzz/corpus` are replayed by the tests of this crate, so
//! what was found once stays found. Nothing here ships.

mod cron;
mod document;
mod engine;
mod event;
mod halves;
mod kafka;
mod message;
mod signature;
mod template;
mod wire;

pub use cron::cron;
pub use document::document;
pub use engine::engine;
pub use event::event;
pub use kafka::kafka;
pub use message::message;
pub use signature::signature;
pub use template::template;
pub use wire::wire;

/// A target by its name, which is that of its corpus and of its program in `fuzz/`.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: [Target; 9] = [
    ("cron", cron),
    ("document", document),
    ("engine", engine),
    ("event", event),
    ("kafka", kafka),
    ("message", message),
    ("signature", signature),
    ("template", template),
    ("wire", wire),
];
