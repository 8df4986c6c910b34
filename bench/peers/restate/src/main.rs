//! Chains or fan-outs of steps on a Restate server: the handler, and who calls it, in one process.
//!
//!     peer-restate chain|fan_out CONCURRENCY SECONDS INGRESS_URL ADMIN_URL

use std::sync::Mutex;
use std::time::{Duration, Instant};

use restate_sdk::prelude::*;
use serde_json::json;

/// Steps of a chain, and items of a fan-out.
const LENGTH: usize = 100;

/// What was counted while the window was open.
struct Counted {
    is_open: bool,
    steps: usize,
    gaps_us: Vec<u128>,
}

static COUNTED: Mutex<Counted> =
    Mutex::new(Counted { is_open: false, steps: 0, gaps_us: Vec::new() });

fn count(last: &mut Option<Instant>) {
    let now = Instant::now();
    let before = last.replace(now);
    let mut counted = COUNTED.lock().expect("no counting panics");
    if counted.is_open {
        counted.steps += 1;
        counted.gaps_us.extend(before.map(|before| (now - before).as_micros()));
    }
}

struct Bench;

#[service]
impl Bench {
    /// A step is a `run`, whose result is durable before the next begins.
    #[handler]
    async fn chain(&self, ctx: Context<'_>) -> Result<String, HandlerError> {
        let mut last = None;
        for _ in 0..LENGTH {
            ctx.run(|| async { Ok(String::from("{}")) }).name("noop").await?;
            count(&mut last);
        }
        Ok(String::from("{}"))
    }

    /// Calls of another handler, all at a time, waited for together: `run`s cannot be.
    #[handler]
    async fn fan_out(&self, ctx: Context<'_>) -> Result<String, HandlerError> {
        let mut calls = DurableFuturesUnordered::new();
        for _ in 0..LENGTH {
            calls.push(ctx.service_client::<BenchClient>().item().call());
        }
        let mut last = None;
        while let Some((_, done)) = calls.next().await? {
            done?;
            count(&mut last);
        }
        Ok(String::from("{}"))
    }

    #[handler]
    async fn item(&self, _ctx: Context<'_>) -> Result<String, HandlerError> {
        Ok(String::from("{}"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [shape, concurrency, seconds, ingress, admin] = &arguments[..] else {
        return Err("chain|fan_out CONCURRENCY SECONDS INGRESS_URL ADMIN_URL".into());
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let uri = format!("http://{}", listener.local_addr()?);
    tokio::spawn(HttpServer::new(Endpoint::builder().bind(Bench).build()).serve(listener));

    let client = reqwest::Client::new();
    let registered = client.post(format!("{admin}/deployments")).json(&json!({"uri": uri})).send();
    registered.await?.error_for_status()?;

    for _ in 0..concurrency.parse::<usize>()? {
        let (client, url) = (client.clone(), format!("{ingress}/Bench/{shape}"));
        tokio::spawn(async move {
            loop {
                let answer = client.post(&url).send().await;
                if let Err(error) = answer.and_then(reqwest::Response::error_for_status) {
                    eprintln!("a call failed: {error}");
                    std::process::exit(1);
                }
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
    let at = |per_mille: usize| gaps.get((gaps.len() * per_mille / 1000).min(gaps.len() - 1));
    let line = json!({
        "steps": counted.steps, "seconds": took,
        "p50_us": at(500), "p99_us": at(990), "p999_us": at(999),
    });
    println!("{line}");
    std::process::exit(0);
}
