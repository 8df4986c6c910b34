//! Message sources and the runtime that starts executions from their messages.
//!
//! A [`Source`] delivers messages. A [`Plane`] is a client of the control plane, in the same
//! process or a remote one. Between them, [`Runtime`] runs subscriptions, with at most one runtime
//! per subscription at a time, enforced by a lease. A message is acked only after its execution is
//! durable. A message that cannot start an execution is dead-lettered with the reason.

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
