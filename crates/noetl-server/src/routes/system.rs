//! State of the machine and of the control plane's process.

use std::sync::{Mutex, PoisonError};

use noetl_api::system::{Machine, PoolReply, Process, ProfilerReply, SystemReply, Threads};
use sysinfo::{MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;

const MB: f64 = 1024.0 * 1024.0;

/// Returns the state of the machine and the process
#[utoipa::path(
    get,
    path = "/api/status",
    operation_id = "system_status",
    tag = "health",
    responses((status = 200, body = SystemReply), ErrorResponses),
)]
pub(crate) async fn status(Scoped(app): Scoped) -> Result<Json<SystemReply>, ApiError> {
    measure(&app).await.map(Json)
}

/// Counts the threads of the process
#[utoipa::path(
    get,
    path = "/api/threads",
    operation_id = "system_threads",
    tag = "health",
    responses((status = 200, body = [Threads]), ErrorResponses),
)]
pub(crate) async fn threads(Scoped(app): Scoped) -> Result<Json<Vec<Threads>>, ApiError> {
    let count = measure(&app).await?.process.num_threads;
    let note = "requests and steps share these; none is a request's own".to_owned();
    Ok(Json(vec![Threads { name: "all".to_owned(), count, note }]))
}

/// Returns the profiler status
///
/// The server has no profiler; `enabled` is always `false`.
#[utoipa::path(
    get,
    path = "/api/profiler/status",
    operation_id = "profiler_status",
    tag = "health",
    responses((status = 200, body = ProfilerReply), ErrorResponses),
)]
pub(crate) async fn profiler_status() -> Json<ProfilerReply> {
    Json(no_profiler())
}

/// Starts the memory profiler
///
/// Has no effect: the server has no profiler.
#[utoipa::path(
    post,
    path = "/api/profiler/memory/start",
    operation_id = "profiler_start",
    tag = "health",
    responses((status = 200, body = ProfilerReply), ErrorResponses),
)]
pub(crate) async fn profiler_start() -> Json<ProfilerReply> {
    Json(no_profiler())
}

/// Stops the memory profiler
///
/// Has no effect: the server has no profiler.
#[utoipa::path(
    post,
    path = "/api/profiler/memory/stop",
    operation_id = "profiler_stop",
    tag = "health",
    responses((status = 200, body = ProfilerReply), ErrorResponses),
)]
pub(crate) async fn profiler_stop() -> Json<ProfilerReply> {
    Json(no_profiler())
}

/// Returns the state of the store's connection pool
#[utoipa::path(
    get,
    path = "/api/pool/status",
    operation_id = "pool_status",
    tag = "health",
    responses((status = 200, body = PoolReply), ErrorResponses),
)]
pub(crate) async fn pool(Scoped(app): Scoped) -> Json<PoolReply> {
    let found = app.control.views.overview.connections();
    let (max, open, idle) = found.map_or((0, 0, 0), |found| (found.max, found.open, found.idle));
    let used = open.saturating_sub(idle);
    let utilization = if max == 0 { 0.0 } else { f64::from(used) / f64::from(max) };
    Json(PoolReply {
        pool_min: 0,
        pool_max: max,
        pool_size: open,
        pool_available: idle,
        requests_waiting: 0,
        utilization,
        slots_available: max.saturating_sub(used),
        status: "ok".to_owned(),
    })
}

fn no_profiler() -> ProfilerReply {
    ProfilerReply {
        status: "ok".to_owned(),
        enabled: false,
        message: "there is no profiler in the server; use one of the system, as heaptrack or perf"
            .to_owned(),
    }
}

/// Last measurement. CPU usage is computed from the difference to it.
static MEASURED: Mutex<Option<System>> = Mutex::new(None);

async fn measure(app: &App) -> Result<SystemReply, ApiError> {
    let uptime = app.uptime().as_secs();
    // Reads files of the operating system, which may block.
    let measured = tokio::task::spawn_blocking(move || read(uptime)).await;
    let measured = measured.ok().flatten();
    measured.ok_or_else(|| ApiError::internal("this machine cannot be measured"))
}

/// Measures the machine and the process. Returns `None` if the operating system isn't supported.
fn read(uptime_seconds: u64) -> Option<SystemReply> {
    let pid = std::process::id();
    let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let system = match &mut *measured {
        Some(system) => system,
        none => none.insert(System::new().ok()?),
    };
    system.refresh_cpu_usage();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let which = [Pid::from_u32(pid)];
    let kind = ProcessRefreshKind::nothing().with_cpu().with_memory().with_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&which), true, kind);
    let (total, used) = (system.total_memory() as f64, system.used_memory() as f64);
    let process = system.process(which[0]);
    Some(SystemReply {
        system: Machine {
            cpu_percent: tenths(f64::from(system.global_cpu_usage())),
            memory_percent: if total > 0.0 { tenths(used * 100.0 / total) } else { 0.0 },
            total_memory_mb: tenths(total / MB),
            used_memory_mb: tenths(used / MB),
            available_memory_mb: tenths(system.available_memory() as f64 / MB),
        },
        process: Process {
            pid,
            cpu_percent: process.map_or(0.0, |process| tenths(f64::from(process.cpu_usage()))),
            memory_rss_mb: process.map_or(0.0, |process| tenths(process.memory() as f64 / MB)),
            memory_vms_mb: process
                .map_or(0.0, |process| tenths(process.virtual_memory() as f64 / MB)),
            num_threads: process
                .and_then(|process| process.tasks())
                .map_or(0, |tasks| tasks.len() as u64),
            start_time: process.map_or(0, |process| process.start_time()),
            uptime_seconds,
        },
    })
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
