//! Control planes on a real Postgres server.

mod adoption;
mod audit;
mod faults;
mod pooled;
mod replay;
mod replicas;
mod reported_faults;
mod sharded;
mod upgrade;
mod verify;

/// Tables and rows of a database that another NoETL created.
const OLD_SCHEMA: &str = include_str!("../../../noetl-store-postgres/tests/it/old_schema.sql");
