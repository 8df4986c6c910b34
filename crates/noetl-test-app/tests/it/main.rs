//! Control planes end to end: on SQLite, on a real Postgres server, and with the published worker on a
//! real NATS server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod fixture;
mod postgres;
mod published_worker;
mod sqlite;
