//! The published worker against a control plane, over a real NATS server.

mod claims;
mod faults;
mod leases;
mod portable;
mod stage;
