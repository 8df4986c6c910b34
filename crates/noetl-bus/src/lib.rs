//! Message bus abstraction: durable streams with pull consumers.
//!
//! [`EventStream`] publishes. [`CommandBus`] adds the consumer state and the maintenance operations
//! that announcing commands to workers needs. [`CommandConsumer`] adds consuming, for the workers
//! themselves. The doc comments state their guarantees, and the conformance suite specifies them.
//! [`MemoryStream`] stores everything in one process and can inject faults; other crates implement
//! the traits for a server.

mod consumer;
mod memory;
mod settings;
mod stream;
pub mod subject;
mod waiting;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use consumer::{CommandConsumer, Delivery, ReadError};
pub use memory::{MemoryStream, StoredMessage};
pub use settings::{Consumer, StreamSettings};
pub use stream::{BusError, EventStream, PublishAck, PublishError, StreamMessage};
pub use waiting::{CommandBus, ConsumerState, StreamState};
