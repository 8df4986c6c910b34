//! The Postgres store on a real server.

mod conformance;
mod keeping;
mod replicas;
mod traffic;
mod verify;
