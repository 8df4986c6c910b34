//! Many simulations, each in its own process.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use noetl_test_world::{Planted, SimConfig, shrink};
use serde_json::{Value, json};

use crate::arguments;
use crate::one::CHANCE;

/// Most time of one simulation. One that takes longer loops without advancing its clock.
const SIMULATION_MAX: Duration = Duration::from_secs(120);

/// Seeds between progress lines: on a terminal, and in a log.
const PROGRESS_EVERY: (u64, u64) = (10, 500);

struct Settings {
    seeds: Range<u64>,
    jobs: usize,
    planted: Option<Planted>,
}

#[derive(Default)]
struct Sum {
    simulations: u64,
    numbers: BTreeMap<&'static str, u64>,
    faults: BTreeMap<String, u64>,
}

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let settings = settings(arguments)?;
    let began = Instant::now();
    let (next, stop) = (AtomicU64::new(settings.seeds.start), AtomicBool::new(false));
    let (sum, first_wrong) = (Mutex::new(Sum::default()), Mutex::new(None));
    let progress = Progress::new(settings.seeds.end.saturating_sub(settings.seeds.start), began);
    std::thread::scope(|scope| {
        for _ in 0..settings.jobs {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= settings.seeds.end {
                        return;
                    }
                    let config =
                        SimConfig { planted: settings.planted, ..SimConfig::for_seed(seed) };
                    let report = simulate(&config);
                    let mut sum = sum.lock().expect("no thread panics with the lock");
                    sum.add(&report);
                    if let Some(wrong) = wrong(&report) {
                        stop.store(true, Ordering::SeqCst);
                        let mut first = first_wrong.lock().expect("no thread panics with the lock");
                        first.get_or_insert((config, wrong, faults(&report)));
                    } else {
                        progress.tell(sum.simulations);
                    }
                }
            });
        }
    });
    progress.clear();
    let sum = sum.into_inner().expect("no thread panics with the lock");
    let took = began.elapsed();
    eprintln!("{}", sum.text(took));
    let first_wrong = first_wrong.into_inner().expect("no thread panics with the lock");
    if let Some((config, wrong, faults)) = &first_wrong {
        show(config, wrong, *faults);
    }
    let wrong = first_wrong.as_ref().map(|(config, wrong, _)| (config.seed, wrong.as_str()));
    println!("{}", sum.line(&settings, took, wrong));
    Ok(wrong.is_none())
}

struct Progress {
    total: u64,
    began: Instant,
    is_watched: bool,
}

impl Progress {
    fn new(total: u64, began: Instant) -> Self {
        Self { total, began, is_watched: std::io::stderr().is_terminal() }
    }

    fn tell(&self, done: u64) {
        let every = if self.is_watched { PROGRESS_EVERY.0 } else { PROGRESS_EVERY.1 };
        if !done.is_multiple_of(every) {
            return;
        }
        let (took, total) = (self.began.elapsed(), self.total);
        let left = took.mul_f64(total.saturating_sub(done) as f64 / done as f64);
        let (took, left) = (took.as_secs(), left.as_secs());
        match self.is_watched {
            true => eprint!("\r\x1b[K{done} of {total} seeds, {took} s, about {left} s to go"),
            false => eprintln!("{done} of {total} seeds, {took} s"),
        }
    }

    fn clear(&self) {
        if self.is_watched {
            eprint!("\r\x1b[K");
        }
    }
}

fn settings(arguments: &[String]) -> Result<Settings, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut settings = Settings { seeds: 0..1000, jobs: cores, planted: None };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = arguments::value(name, &mut rest)?;
        match name.as_str() {
            "--seeds" => {
                settings.seeds = match value.split_once("..") {
                    Some((first, end)) => {
                        arguments::number(name, first)?..arguments::number(name, end)?
                    }
                    None => 0..arguments::number(name, value)?,
                };
            }
            "--jobs" => {
                settings.jobs = usize::try_from(arguments::number(name, value)?).unwrap_or(1)
            }
            "--planted" => settings.planted = Some(value.parse()?),
            other => return Err(format!("unknown option '{other}'")),
        }
    }
    Ok(settings)
}

/// Runs a simulation in its own process and returns its report.
fn simulate(config: &SimConfig) -> Value {
    let output = child(config, &[]).and_then(|child| wait(child, SIMULATION_MAX));
    let printed = match output {
        Ok(text) => text,
        Err(error) => return json!({ "wrong": error }),
    };
    let last = printed.lines().last().unwrap_or_default();
    serde_json::from_str(last)
        .unwrap_or_else(|_| json!({ "wrong": format!("it crashed: {printed}") }))
}

fn child(config: &SimConfig, more: &[&str]) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("one").args(arguments::options(config)).args(more);
    command.env(CHANCE, config.seed.to_string()).stdout(Stdio::piped());
    command.spawn().map_err(|error| error.to_string())
}

/// Returns the output of a process, and kills it if it takes too long.
fn wait(mut child: Child, most: Duration) -> Result<String, String> {
    let mut out = child.stdout.take().ok_or("its output is closed")?;
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = out.read_to_string(&mut text).map(|_| text);
        // The receiver is dropped if it took too long.
        let _ = sender.send(read);
    });
    let Ok(text) = receiver.recv_timeout(most) else {
        // It may have ended just now.
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("it did not finish within {} s", most.as_secs()));
    };
    child.wait().map_err(|error| error.to_string())?;
    text.map_err(|error| error.to_string())
}

fn wrong(report: &Value) -> Option<String> {
    report["wrong"].as_str().map(str::to_owned)
}

fn faults(report: &Value) -> u64 {
    let counts = report["faults"].as_object().into_iter().flatten();
    counts.filter_map(|(_, count)| count.as_u64()).sum()
}

/// Reduces a failing simulation and shows it.
fn show(config: &SimConfig, wrong_before: &str, faults_before: u64) {
    println!("seed {} fails: {wrong_before}", config.seed);
    let small = shrink(config, faults_before, |config| {
        let report = simulate(config);
        wrong(&report).map(|_| faults(&report))
    });
    let transcript = child(&small, &["--transcript"]).and_then(|child| wait(child, SIMULATION_MAX));
    println!("{}", transcript.unwrap_or_else(|error| error));
    println!("repeat it: noetl-sim one {} --transcript", arguments::options(&small).join(" "));
}

impl Sum {
    fn add(&mut self, report: &Value) {
        self.simulations += 1;
        for name in ["executions", "events", "processes"] {
            *self.numbers.entry(name).or_default() += report[name].as_u64().unwrap_or_default();
        }
        for (fault, count) in report["faults"].as_object().into_iter().flatten() {
            *self.faults.entry(fault.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
    }

    /// Returns the totals as JSON.
    fn line(&self, settings: &Settings, took: Duration, wrong: Option<(u64, &str)>) -> Value {
        let mut line = json!({
            "first": settings.seeds.start,
            "seeds": self.simulations,
            "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
            "faults": self.faults,
            "wrong": wrong.map(|(seed, what)| json!({ "seed": seed, "what": what })),
        });
        for (name, number) in &self.numbers {
            line[*name] = json!(number);
        }
        line
    }

    fn text(&self, took: Duration) -> String {
        let number = |name| self.numbers.get(name).copied().unwrap_or_default();
        let total: u64 = self.faults.values().sum();
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        format!(
            "{} seeds in {:.1} s: {} executions, {} events, {} processes, {total} faults ({})",
            self.simulations,
            took.as_secs_f64(),
            number("executions"),
            number("events"),
            number("processes"),
            faults.join(", ")
        )
    }
}
