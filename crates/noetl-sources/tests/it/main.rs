//! Subscriptions on real servers: NATS for what the runtime does, each source for itself and in one
//! suite that all of them pass.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod both_ways;
mod cycles;
mod delivery;
mod hall;
mod kafka;
mod life;
mod mqtt;
mod nats;
mod postgres;
mod pubsub;
mod redis;
mod sharing;
mod source;
mod spool;
mod stage;
mod suite;
mod troubles;
