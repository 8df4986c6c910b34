//! Remote and published workers: their registrations, the leases of their commands, and the reports
//! that they and clients send about executions.

mod connection;
mod lease_activity;
mod leasing;
mod published_claims;
mod reports;
mod service;
mod workers;

pub use connection::{
    ConnectError, ConnectionCaller, LEASE_MAX, LEASE_MIN, Resumed, SessionReporter,
    WorkerConnections, WorkerDeclaration, WorkerSession,
};
pub use leasing::{LEASE, LeaseError, LeaseService, LeasedRow, LongPoll, RenewalResult, WAIT_MAX};
pub use published_claims::{ClaimError, ClaimedCommand, PublishedClaims};
pub use reports::{
    Completion, CompletionAck, EventReport, Repeated, ReportError, Reports, derived_status,
    is_event_type,
};
pub use service::{Options, RemoteDeps, RemoteService};
pub use workers::{Registration, WorkerError, Workers};
