//! Message sources and the runtime that starts executions from their messages.
//!
//! A [`Source`] delivers messages. A [`ControlPlaneClient`] is a client of the control plane, in the same
//! process or a remote one. Between them, [`SubscriptionRuntime`] runs subscriptions, with at most one runtime
//! per subscription at a time, enforced by a lease. A message is acked only after its execution is
//! durable. A message that cannot start an execution is dead-lettered with the reason.

mod ack_tracker;
mod control_plane;
mod counters;
mod credentials;
mod deps;
#[doc(hidden)]
pub mod fuzzing;
mod kafka;
mod lease;
mod limits;
mod mqtt;
mod nats;
mod postgres;
mod pubsub;
mod redelivery;
mod redis;
mod registry;
mod remote;
mod runner;
mod runtime;
mod source;
mod spool;
mod token;

use std::time::Duration;

use noetl_model::ExponentialBackoff;

pub use control_plane::{
    ControlPlaneClient, ControlPlaneError, FaultOwner, RuntimeEvent, RuntimeReport, StartFailure,
    StartOutcome, SubscriptionGrant, SubscriptionView,
};
pub use counters::MessageCounters;
pub use kafka::Kafka;
pub use mqtt::Mqtt;
pub use nats::Nats;
pub use postgres::Postgres;
pub use pubsub::Pubsub;
pub use redis::Redis;
pub use registry::SourceRegistry;
pub use remote::HttpControlPlane;
pub use runtime::{Options, SubscriptionRuntime};
pub use source::{Delivery, DeliveryAck, Message, Source, SourceError, SourceFactory};

/// Backoff after consecutive failures of the control plane or a source.
const RETRY: ExponentialBackoff =
    ExponentialBackoff::new(Duration::from_millis(250), Duration::from_secs(10));
