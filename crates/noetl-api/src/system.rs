//! Resource usage of the server's machine, process, and store connections.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Response of `GET /api/status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SystemReply {
    /// Resource usage of the machine.
    pub system: Machine,
    /// Resource usage of the server process.
    pub process: Process,
}

/// Resource usage of a machine. CPU usage covers the time since the previous request for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    /// CPU usage of all processors, 0 to 100.
    pub cpu_percent: f64,
    /// Used share of the memory, 0 to 100.
    pub memory_percent: f64,
    /// Total memory in MiB.
    pub total_memory_mb: f64,
    /// Used memory in MiB.
    pub used_memory_mb: f64,
    /// Available memory in MiB.
    pub available_memory_mb: f64,
}

/// Resource usage of a process. CPU usage covers the time since the previous request for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Process {
    /// Process ID assigned by the operating system.
    pub pid: u32,
    /// CPU usage, where 100 is one processor fully used. Can exceed 100.
    pub cpu_percent: f64,
    /// Resident memory in MiB.
    pub memory_rss_mb: f64,
    /// Virtual memory in MiB.
    pub memory_vms_mb: f64,
    /// Number of threads. 0 if unknown.
    pub num_threads: u64,
    /// Start time of the process, in seconds since the Unix epoch.
    pub start_time: u64,
    /// Seconds since the server started.
    pub uptime_seconds: u64,
}

/// A group of threads of the server process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Threads {
    /// Name of the group. Always `all`.
    pub name: String,
    /// Number of threads in the group.
    pub count: u64,
    /// Explanation as readable text.
    pub note: String,
}

/// Response of the `/api/profiler` endpoints. The server has no profiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfilerReply {
    /// Always `ok`, although nothing is profiled.
    pub status: String,
    /// Whether profiling is on. Always `false`.
    pub enabled: bool,
    /// Alternative to use, as readable text.
    pub message: String,
}

/// Response of `GET /api/pool/status`: connections to the store. All counts are 0 for a store
/// without a connection pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolReply {
    /// Minimum number of connections. Always 0.
    pub pool_min: u32,
    /// Maximum number of connections.
    pub pool_max: u32,
    /// Number of open connections.
    pub pool_size: u32,
    /// Number of idle connections.
    pub pool_available: u32,
    /// Number of requests that wait for a connection. Always 0: not measured.
    pub requests_waiting: u32,
    /// Used share of the maximum number of connections, 0 to 1.
    pub utilization: f64,
    /// Number of connections that can still be acquired.
    pub slots_available: u32,
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
}
