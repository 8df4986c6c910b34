//! The Postgres store on a real server.

mod adoption;
mod conformance;
mod faults;
mod keeping;
mod partitions;
mod pooled;
mod replay;
mod replicas;
mod sharded;
mod traffic;
mod verify;
