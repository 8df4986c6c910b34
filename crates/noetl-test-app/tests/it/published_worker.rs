//! The published worker against a control plane, over a real NATS server.

mod claims;
mod faults;
mod fixture;
mod leases;
mod portable;
