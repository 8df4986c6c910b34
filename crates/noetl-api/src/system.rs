//! The machine and the process a control plane runs in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The reply of `GET /api/status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SystemReply {
    /// The machine.
    pub system: Machine,
    /// The process.
    pub process: Process,
}

/// A machine. Loads are since the last time somebody asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    /// How busy its processors are, of 100.
    pub cpu_percent: f64,
    /// How much of its memory is used, of 100.
    pub memory_percent: f64,
    /// Its memory.
    pub total_memory_mb: f64,
    /// What is used of it.
    pub used_memory_mb: f64,
    /// What can be had of it.
    pub available_memory_mb: f64,
}

/// A process. Its load is since the last time somebody asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// How busy it keeps processors: 100 is one of them.
    pub cpu_percent: f64,
    /// Its memory that is there.
    pub memory_rss_mb: f64,
    /// Its memory that it could use.
    pub memory_vms_mb: f64,
    /// Its threads.
    pub num_threads: u64,
    /// When it began, in seconds since 1970.
    pub start_time: u64,
    /// How long ago the server began.
    pub uptime_seconds: u64,
}

/// A thread, or all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Threads {
    /// What they are.
    pub name: String,
    /// How many.
    pub count: u64,
    /// What is to be known about them.
    pub note: String,
}

/// A note of a profiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfilerReply {
    /// `ok`.
    pub status: String,
    /// Whether it is on.
    pub enabled: bool,
    /// What to use instead.
    pub message: String,
}

/// The reply of `GET /api/pool/status`: connections to the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolReply {
    /// How many there are at least.
    pub pool_min: u32,
    /// How many there may be.
    pub pool_max: u32,
    /// How many there are.
    pub pool_size: u32,
    /// How many of them nobody uses.
    pub pool_available: u32,
    /// Callers that wait for one.
    pub requests_waiting: u32,
    /// The part that is used, of 1.
    pub utilization: f64,
    /// How many more callers could have one.
    pub slots_available: u32,
    /// `ok`.
    pub status: String,
}
