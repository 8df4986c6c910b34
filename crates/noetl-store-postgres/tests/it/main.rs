//! The Postgres store on a real server.

mod adoption;
mod conformance;
mod keeping;
mod replicas;
mod sharded;
mod traffic;
mod verify;
