//! Message bus abstraction: durable streams with pull consumers.
//!
//! [`EventStream`] publishes. [`CommandBus`] adds the consumer state and the maintenance operations
//! that announcing commands to workers needs. [`CommandReader`] adds consuming, for the workers
//! themselves. The doc comments state their guarantees, and the conformance suite specifies them.
//! [`MemoryStream`] stores everything in one process and can inject faults; other crates implement
//! the traits for a server.

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
