//! Chains or fan-outs of activities on duroxide's SQLite provider, in one process.
//!
//!     peer-duroxide chain|fan_out CONCURRENCY SECONDS FILE

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use serde_json::json;

/// Steps of a chain, and items of a fan-out.
const LENGTH: usize = 100;

#[derive(Default)]
struct Counted {
    is_open: bool,
    steps: usize,
    last: HashMap<String, Instant>,
    gaps_us: Vec<u128>,
}

static COUNTED: LazyLock<Mutex<Counted>> = LazyLock::new(Mutex::default);

fn count(execution: String) {
    let now = Instant::now();
    let mut counted = COUNTED.lock().expect("no counting panics");
    let before = counted.last.insert(execution, now);
    if counted.is_open {
        counted.steps += 1;
        counted.gaps_us.extend(before.map(|before| (now - before).as_micros()));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [shape, concurrency, seconds, file] = &arguments[..] else {
        return Err("chain|fan_out CONCURRENCY SECONDS FILE".into());
    };
    std::fs::File::create(file)?;
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{file}"), None).await?);
    let activities = ActivityRegistry::builder()
        .register("noop", |_: ActivityContext, execution: String| async move {
            count(execution);
            Ok(String::from("{}"))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("chain", |ctx: OrchestrationContext, execution: String| async move {
            for _ in 0..LENGTH {
                ctx.schedule_activity("noop", execution.clone()).await?;
            }
            Ok(String::from("{}"))
        })
        .register("fan_out", |ctx: OrchestrationContext, execution: String| async move {
            let items = (0..LENGTH).map(|_| ctx.schedule_activity("noop", execution.clone()));
            for done in ctx.join(items.collect()).await {
                done?;
            }
            Ok(String::from("{}"))
        })
        .build();
    // Enough of both that nothing waits for a dispatcher; looked for as often as it may.
    let options = RuntimeOptions {
        orchestration_concurrency: 8,
        worker_concurrency: 8,
        dispatcher_min_poll_interval: Duration::from_millis(1),
        ..RuntimeOptions::default()
    };
    let _runtime =
        Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    for lane in 0..concurrency.parse::<usize>()? {
        let (client, shape) = (Client::new(store.clone()), shape.clone());
        tokio::spawn(async move {
            for turn in 0.. {
                let id = format!("{lane}-{turn}");
                if let Err(error) = client.start_orchestration(&id, &shape, &id).await {
                    eprintln!("it is not started: {error}");
                    std::process::exit(1);
                }
                let _ = client.wait_for_orchestration(&id, Duration::from_secs(600)).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    println!("begin");
    let began = Instant::now();
    COUNTED.lock().expect("no counting panics").is_open = true;
    tokio::time::sleep(Duration::from_secs_f64(seconds.parse()?)).await;
    let mut counted = COUNTED.lock().expect("no counting panics");
    counted.is_open = false;
    let took = began.elapsed().as_secs_f64();
    counted.gaps_us.sort_unstable();
    let gaps = &counted.gaps_us;
    let at = |per_mille: usize| gaps.get((gaps.len() * per_mille / 1000).min(gaps.len().saturating_sub(1)));
    let line = json!({
        "steps": counted.steps, "seconds": took,
        "p50_us": at(500), "p99_us": at(990), "p999_us": at(999),
    });
    println!("{line}");
    std::process::exit(0);
}
