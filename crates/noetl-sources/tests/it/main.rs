//! Tests of subscriptions on real servers: of the runtime with NATS, and of each source, by itself
//! and in a common suite.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod both_ways;
mod cycles;
mod delivery;
mod harness;
mod kafka;
mod life;
mod mqtt;
mod nats;
mod nats_harness;
mod postgres;
mod pubsub;
mod redis;
mod sharing;
mod source;
mod spool;
mod suite;
mod troubles;
