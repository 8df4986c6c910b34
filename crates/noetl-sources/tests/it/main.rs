//! Subscriptions on a real NATS server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod cycles;
mod delivery;
mod life;
mod sharing;
mod source;
mod stage;
mod troubles;
