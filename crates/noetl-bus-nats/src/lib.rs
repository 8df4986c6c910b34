//! The event stream on NATS JetStream.
//!
//! [`NatsStream`] connects in the background and goes on trying for as long as it lives: a server that
//! is not there at the start, or goes away later, is a bus that is away, and nothing else. A
//! connection that is lost is never taken up again with what waits in it; the next one begins with
//! what is published then, so that no message is kept before one that was sent earlier.

mod address;
mod connection;
mod reading;
mod stream;

pub use address::{Address, AddressError};
pub use stream::NatsStream;
