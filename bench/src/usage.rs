//! What a process has used so far, as the kernel counts it.

use std::time::Instant;

/// Where the counters of this process stand.
pub(crate) struct Usage {
    at: Instant,
    cpu_seconds: f64,
    written: f64,
    allocations: Option<u64>,
}

/// What was used between two looks.
pub(crate) struct Used {
    pub(crate) seconds: f64,
    /// Of all threads.
    pub(crate) cpu_seconds: f64,
    /// Bytes sent to the disk by this process; a database server's are not among them.
    pub(crate) written_bytes: f64,
    /// Times memory was asked for; known in a build that counts them.
    pub(crate) allocations: Option<u64>,
}

impl Usage {
    pub(crate) fn now() -> Self {
        Self {
            cpu_seconds: cpu_seconds(),
            written: field("/proc/self/io", "write_bytes:"),
            allocations: crate::allocations::count(),
            at: Instant::now(),
        }
    }

    pub(crate) fn used(&self) -> Used {
        let seconds = self.at.elapsed().as_secs_f64();
        let now = Self::now();
        Used {
            seconds,
            cpu_seconds: now.cpu_seconds - self.cpu_seconds,
            written_bytes: now.written - self.written,
            allocations: now.allocations.zip(self.allocations).map(|(now, then)| now - then),
        }
    }
}

/// Processor seconds of this process so far, all threads.
pub(crate) fn cpu_seconds() -> f64 {
    cpu_seconds_of("self")
}

/// The same of another process, by its number.
pub(crate) fn cpu_seconds_of(process: &str) -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may hold spaces; user and system time follow as fields 14 and 15.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// Mebibytes of memory that this process has now.
pub(crate) fn resident_mib() -> f64 {
    memory_mib("self", "VmRSS:")
}

/// A line of a process's status that counts kibibytes, in mebibytes.
pub(crate) fn memory_mib(process: &str, name: &str) -> f64 {
    field(&format!("/proc/{process}/status"), name) / 1024.0
}

/// The number behind a name in a file of the kernel's; 0 where there is none.
fn field(file: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}
