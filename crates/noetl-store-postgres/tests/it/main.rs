//! The Postgres store on a real server.

mod conformance;
mod replicas;
mod traffic;
mod verify;
