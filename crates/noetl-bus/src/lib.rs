//! What the services ask of a bus: one stream that keeps messages for those who read it.
//!
//! [`EventStream`] is the seam, its guarantees are in the doc comments, and the conformance suite is
//! their specification. [`MemoryStream`] keeps everything in one process and can be made to fail;
//! the adapters talk to a server.

mod memory;
mod settings;
mod stream;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use memory::{Kept, MemoryStream};
pub use settings::{Consumer, StreamSettings};
pub use stream::{BusError, EventStream, Message, PublishError, Stored};
