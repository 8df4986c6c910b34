//! One measurement as a line of JSON.

use serde::Serialize;

/// One measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// What was measured.
    pub(crate) bench: &'static str,
    /// On which store.
    pub(crate) store: &'static str,
    /// Executions at a time.
    pub(crate) concurrency: usize,
    /// Steps in all.
    pub(crate) steps: usize,
    /// Steps that ended per second.
    pub(crate) steps_per_second: f64,
    /// From a step's entry to the next one's: median.
    pub(crate) p50_us: i64,
    /// The same: of a hundred, one takes longer.
    pub(crate) p99_us: i64,
    /// The same: of a thousand, one takes longer.
    pub(crate) p999_us: i64,
    /// Rows of the log and of commands per step.
    pub(crate) rows_per_step: f64,
    /// Bytes of the database per step; null in memory.
    pub(crate) bytes_per_step: Option<f64>,
    /// Steps that shared a transaction, where those are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) steps_per_transaction: Option<f64>,
    /// Rows of the same size per second that the same medium takes without an engine; null in
    /// memory.
    pub(crate) raw_rows_per_second: Option<f64>,
    /// Rows per second of this measurement by that limit; null in memory.
    pub(crate) of_raw: Option<f64>,
    /// Processor milliseconds per thousand steps, of all threads.
    pub(crate) cpu_ms_per_1000_steps: f64,
    /// Bytes this process sent to the disk per step.
    pub(crate) written_bytes_per_step: f64,
    /// Memory of the process at the end.
    pub(crate) resident_mib: f64,
    /// Times memory was asked for per step; only in a build that counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allocations_per_step: Option<f64>,
    /// The median by the median sync of the same disk; only alone on SQLite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of_fsync: Option<f64>,
    /// Cost per step by that of a short execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_ratio: Option<f64>,
}

impl Report {
    #[expect(clippy::print_stdout, reason = "the lines are what this program is for")]
    pub(crate) fn print(report: Self) {
        match serde_json::to_string(&report) {
            Ok(line) => println!("{line}"),
            Err(error) => println!("{{\"error\":\"{error}\"}}"),
        }
    }
}

/// Any other measurement: its name, its store, and numbers by name.
pub(crate) fn line(bench: &str, store: &str, fields: &[(&str, f64)]) -> String {
    let mut object = serde_json::Map::new();
    object.insert("bench".into(), bench.into());
    object.insert("store".into(), store.into());
    for (name, value) in fields {
        object.insert((*name).into(), crate::chain::round(*value).into());
    }
    serde_json::Value::Object(object).to_string()
}

#[expect(clippy::print_stdout, reason = "the lines are what this program is for")]
pub(crate) fn print(line: &str) {
    println!("{line}");
}
