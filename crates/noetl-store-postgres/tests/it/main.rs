//! The Postgres store on a real server.

mod adoption;
mod audit;
mod conformance;
mod console;
mod faults;
mod keeping;
mod partitions;
mod pooled;
mod replay;
mod replicas;
mod reported_faults;
mod sharded;
mod tail;
mod traffic;
mod upgrade;
mod verify;
