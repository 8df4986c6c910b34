//! Vocabulary shared by all crates: IDs, time, events, commands, and failures.
//!
//! Pure: no clock, disk, network, or randomness. Components that read a clock implement [`Clock`];
//! functions that need the current time accept a [`Timestamp`]. An [`Event`] is a fact of an
//! execution's event log; [`row`] is its stored and wire form.

mod backoff;
mod blob;
mod clock;
pub mod command;
mod command_row;
mod command_spec;
mod depth;
pub mod event;
mod external;
mod failure;
mod id;
mod lifecycle;
pub mod loops;
pub mod parked;
pub mod placeholder;
pub mod row;
pub mod scope;
mod shard;
mod snowflake;
mod time;
mod tool_run;
pub mod trace;

pub use backoff::{ExponentialBackoff, RetryDelays};
pub use clock::Clock;
pub use command::{CommandState, DEFAULT_POOL, command_name};
pub use command_row::{CommandChange, CommandRow};
pub use depth::{DEPTH_MAX, is_deeper_than};
pub use event::{Event, Fact, Origin, Routing, Seq, StepOutcome};
pub use failure::{Failure, FailureKind};
pub use id::{
    AuditId, CatalogId, CommandId, CredentialId, EventId, ExecutionId, IdError, ResultId,
    RuntimeId, ScheduleId, SubscriptionId, Tenant, TimerId,
};
pub use shard::shard_for;
pub use snowflake::{MachineId, Snowflakes};
pub use time::{Timestamp, TimestampError};
pub use trace::TraceContext;

/// A JSON value as users write and read it.
pub type Value = serde_json::Value;
/// A JSON object that preserves the order of its keys.
pub type Map = serde_json::Map<String, Value>;
