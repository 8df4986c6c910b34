//! What the services ask of a bus: streams that keep messages for those who read them.
//!
//! [`EventStream`] is the seam, [`CommandBus`] what is asked beside it of a bus that wakes workers, and
//! [`CommandReader`] what the workers themselves ask. Their guarantees are in the doc comments, and the conformance suite is their specification.
//! [`MemoryStream`] keeps everything in one process and can be made to fail; the adapters talk to a
//! server.

mod memory;
mod reading;
mod settings;
mod stream;
pub mod subject;
mod waiting;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use memory::{Kept, MemoryStream};
pub use reading::{CommandReader, Given, ReadError};
pub use settings::{Consumer, StreamSettings};
pub use stream::{BusError, EventStream, Message, PublishError, Stored};
pub use waiting::{CommandBus, ConsumerState, StreamState};
