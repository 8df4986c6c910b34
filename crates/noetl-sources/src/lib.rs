//! Sources of messages, and the runtime that makes executions of them.
//!
//! A [`Source`] hands out messages; a [`Plane`] is the control plane, in the same process or
//! elsewhere. Between them, [`Runtime`] acts on subscriptions: one runtime on each at a time, under
//! a lease. A message is acknowledged when its execution is durable, and never before; what cannot
//! become one is put aside with the reason.

mod credentials;
mod directives;
#[doc(hidden)]
pub mod fuzzing;
mod held;
mod kafka;
mod ledger;
mod limits;
mod local;
mod mqtt;
mod nats;
mod plane;
mod postgres;
mod pubsub;
mod redis;
mod remote;
mod returned;
mod runner;
mod runtime;
mod shape;
mod source;
mod spool;
mod tally;
mod token;

pub use kafka::Kafka;
pub use local::Local;
pub use mqtt::Mqtt;
pub use nats::Nats;
pub use plane::{
    Fault, FaultOf, Hold, NewStart, Note, Plane, PlaneError, Reading, Standing, Started,
};
pub use postgres::Postgres;
pub use pubsub::Pubsub;
pub use redis::Redis;
pub use remote::Remote;
pub use runtime::{Options, Runtime};
pub use source::{Acknowledge, Delivery, Message, Open, Source, SourceError, Sources};
pub use tally::Tally;
