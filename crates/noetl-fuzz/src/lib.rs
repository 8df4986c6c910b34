//! Fuzz targets: one plain function per kind of external input.
//!
//! A target accepts any bytes. It panics if the code under test panics or violates an invariant.
//! `fuzz/` wraps each target for libFuzzer, which searches for inputs by code coverage. The tests
//! of this crate replay the inputs in `fuzz/corpus`, so a fixed failure stays fixed. This crate is
//! not part of the product.

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
