//! The twin of the published worker against the control plane, over a real NATS server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod claims;
mod faults;
mod leases;
mod portable;
mod stage;
