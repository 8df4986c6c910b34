//! One world, in a process whose chance is its seed's.

use std::process::Command;

use noetl_testkit::world::{Lived, live};
use serde_json::{Value, json};

use crate::words;

/// What the system's chance is replaced with.
pub(crate) const CHANCE: &str = "NOETL_SIM_CHANCE";

#[expect(clippy::disallowed_methods, reason = "what is replaced has to be so from the start")]
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let (wish, shows) = words::wish(arguments)?;
    if std::env::var(CHANCE).as_deref() != Ok(wish.seed.to_string().as_str()) {
        // It has to be there before anything draws from it.
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut again = Command::new(program);
        again.arg("one").args(arguments).env(CHANCE, wish.seed.to_string());
        let status = again.status().map_err(|error| error.to_string())?;
        return Ok(status.success());
    }
    let lived = live(&wish);
    if shows {
        println!("{}", lived.plan);
        for line in &lived.transcript {
            println!("{line}");
        }
        println!("{}", lived.wrong.as_deref().unwrap_or("all is well"));
    } else {
        println!("{}", summary(&lived));
    }
    Ok(lived.wrong.is_none())
}

fn summary(lived: &Lived) -> Value {
    let faults: serde_json::Map<String, Value> =
        lived.faults.iter().map(|(fault, count)| (fault.to_string(), json!(count))).collect();
    json!({
        "wrong": lived.wrong,
        "faults": faults,
        "executions": lived.executions,
        "events": lived.events,
        "processes": lived.processes,
    })
}
