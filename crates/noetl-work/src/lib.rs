//! Data that the control plane exchanges with its workers: outcomes, sealed secrets, redaction, and
//! the limits and names that both sides use.
//!
//! A worker depends on this crate and not on the control plane. It does no I/O.

mod consumers;
mod inline;
pub mod keychain_settings;
mod limits;
mod messages;
mod outcome;
mod redaction;
mod resolved;
mod worker_seal;

pub use consumers::{COMMAND_STREAM, SEGMENT_MAX, consumer_name, consumers_of_pool, segment};
pub use inline::{INLINE_MAX, is_small, small_fields};
pub use limits::{LEASE_BATCH_MAX, NAME_MAX, STEP_LOG_LINES_MAX};
pub use messages::{DeadLetter, MessageCounts};
pub use outcome::CommandOutcome;
pub use redaction::{LENGTH_MIN, Mint, Redaction, SecretTable, reveal, secret_names, short_fields};
pub use resolved::ResolvedPlaceholder;
pub use worker_seal::{
    SEAL_ALGORITHM, SEAL_VERSION, SealedReply, WorkerKey, WorkerKeyError, seal_for,
};
