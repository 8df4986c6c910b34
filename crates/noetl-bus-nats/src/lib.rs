//! Message bus on NATS JetStream.
//!
//! [`NatsStream`] connects in the background and reconnects until it is dropped. A server that is
//! not running at the start, or stops later, makes the bus unavailable and causes no other error. A
//! lost connection is never resumed with its buffered messages: a new connection starts empty, so
//! that no message is stored before one that was sent earlier.

mod address;
mod connection;
mod reading;
mod stream;

pub use address::{Address, AddressError};
pub use stream::NatsStream;
