//! Runs one simulation in a process whose randomness follows from the seed.

use std::process::Command;

use noetl_test_world::{SimReport, simulate};
use serde_json::{Value, json};

use crate::arguments;

/// Seed that replaces the randomness of the system.
pub(crate) const CHANCE: &str = "NOETL_SIM_CHANCE";

#[expect(
    clippy::disallowed_methods,
    reason = "the randomness is replaced from the start of the process"
)]
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let (config, shows) = arguments::config(arguments)?;
    if std::env::var(CHANCE).as_deref() != Ok(config.seed.to_string().as_str()) {
        // It has to be set before anything draws from it.
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("one").args(arguments).env(CHANCE, config.seed.to_string());
        let status = command.status().map_err(|error| error.to_string())?;
        return Ok(status.success());
    }
    let report = simulate(&config);
    if shows {
        println!("{}", report.plan);
        for line in &report.transcript {
            println!("{line}");
        }
        println!("{}", report.violation.as_deref().unwrap_or("no violation"));
    } else {
        println!("{}", summary(&report));
    }
    Ok(report.violation.is_none())
}

fn summary(report: &SimReport) -> Value {
    let faults: serde_json::Map<String, Value> =
        report.faults.iter().map(|(fault, count)| (fault.to_string(), json!(count))).collect();
    json!({
        "wrong": report.violation,
        "faults": faults,
        "executions": report.executions,
        "events": report.events,
        "processes": report.processes,
    })
}
