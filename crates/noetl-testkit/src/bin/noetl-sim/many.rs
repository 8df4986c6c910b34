//! Many worlds, each in a process of its own.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use noetl_testkit::world::{Planted, Wish, shrink};
use serde_json::{Value, json};

use crate::one::CHANCE;
use crate::words;

/// How long a world may take. One that takes longer goes round in circles without time passing.
const WORLD_MAX: Duration = Duration::from_secs(120);

/// After how many seeds it says how far it is: often where somebody looks on, and now and then in a log.
const TELL_EVERY: (u64, u64) = (10, 500);

struct Settings {
    seeds: Range<u64>,
    jobs: usize,
    planted: Option<Planted>,
}

/// What all worlds together came to.
#[derive(Default)]
struct Sum {
    worlds: u64,
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
                    let wish = Wish { planted: settings.planted, ..Wish::of(seed) };
                    let lived = live(&wish);
                    let mut sum = sum.lock().expect("nobody panics with it");
                    sum.add(&lived);
                    if let Some(wrong) = wrong(&lived) {
                        stop.store(true, Ordering::SeqCst);
                        let mut first = first_wrong.lock().expect("nobody panics with it");
                        first.get_or_insert((wish, wrong, faults(&lived)));
                    } else {
                        progress.tell(sum.worlds);
                    }
                }
            });
        }
    });
    progress.clear();
    let sum = sum.into_inner().expect("nobody panics with it");
    let took = began.elapsed();
    eprintln!("{}", sum.words(took));
    let first_wrong = first_wrong.into_inner().expect("nobody panics with it");
    if let Some((wish, wrong, faults)) = &first_wrong {
        show(wish, wrong, *faults);
    }
    let wrong = first_wrong.as_ref().map(|(wish, wrong, _)| (wish.seed, wrong.as_str()));
    println!("{}", sum.line(&settings, took, wrong));
    Ok(wrong.is_none())
}

/// Says how far it is.
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
        let every = if self.is_watched { TELL_EVERY.0 } else { TELL_EVERY.1 };
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
        let value = words::value(name, &mut rest)?;
        match name.as_str() {
            "--seeds" => {
                settings.seeds = match value.split_once("..") {
                    Some((first, end)) => words::number(name, first)?..words::number(name, end)?,
                    None => 0..words::number(name, value)?,
                };
            }
            "--jobs" => settings.jobs = usize::try_from(words::number(name, value)?).unwrap_or(1),
            "--planted" => settings.planted = Some(value.parse()?),
            other => return Err(format!("there is no setting '{other}'")),
        }
    }
    Ok(settings)
}

/// Lives through a world in a process of its own, and answers with what that said.
fn live(wish: &Wish) -> Value {
    let output = child(wish, &[]).and_then(|child| wait(child, WORLD_MAX));
    let said = match output {
        Ok(text) => text,
        Err(error) => return json!({ "wrong": error }),
    };
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last)
        .unwrap_or_else(|_| json!({ "wrong": format!("it broke down: {said}") }))
}

fn child(wish: &Wish, more: &[&str]) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("one").args(words::settings(wish)).args(more);
    command.env(CHANCE, wish.seed.to_string()).stdout(Stdio::piped());
    command.spawn().map_err(|error| error.to_string())
}

/// What a process printed, once it has ended; it is ended when it takes too long.
fn wait(mut child: Child, most: Duration) -> Result<String, String> {
    let mut out = child.stdout.take().ok_or("its output is gone")?;
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = out.read_to_string(&mut text).map(|_| text);
        // Nobody listens any more when it took too long.
        let _ = tell.send(read);
    });
    let Ok(text) = told.recv_timeout(most) else {
        // It may have ended just now.
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("it was not over after {} s", most.as_secs()));
    };
    child.wait().map_err(|error| error.to_string())?;
    text.map_err(|error| error.to_string())
}

fn wrong(lived: &Value) -> Option<String> {
    lived["wrong"].as_str().map(str::to_owned)
}

fn faults(lived: &Value) -> u64 {
    let counts = lived["faults"].as_object().into_iter().flatten();
    counts.filter_map(|(_, count)| count.as_u64()).sum()
}

/// Makes a world that is wrong small, and shows it.
fn show(wish: &Wish, wrong_before: &str, faults_before: u64) {
    println!("seed {} is wrong: {wrong_before}", wish.seed);
    let small = shrink(wish, faults_before, |wish| {
        let lived = live(wish);
        wrong(&lived).map(|_| faults(&lived))
    });
    let transcript = child(&small, &["--transcript"]).and_then(|child| wait(child, WORLD_MAX));
    println!("{}", transcript.unwrap_or_else(|error| error));
    println!("repeat it: noetl-sim one {} --transcript", words::settings(&small).join(" "));
}

impl Sum {
    fn add(&mut self, lived: &Value) {
        self.worlds += 1;
        for name in ["executions", "events", "processes"] {
            *self.numbers.entry(name).or_default() += lived[name].as_u64().unwrap_or_default();
        }
        for (fault, count) in lived["faults"].as_object().into_iter().flatten() {
            *self.faults.entry(fault.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
    }

    /// The same for programs to read.
    fn line(&self, settings: &Settings, took: Duration, wrong: Option<(u64, &str)>) -> Value {
        let mut line = json!({
            "first": settings.seeds.start,
            "seeds": self.worlds,
            "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
            "faults": self.faults,
            "wrong": wrong.map(|(seed, what)| json!({ "seed": seed, "what": what })),
        });
        for (name, number) in &self.numbers {
            line[*name] = json!(number);
        }
        line
    }

    fn words(&self, took: Duration) -> String {
        let number = |name| self.numbers.get(name).copied().unwrap_or_default();
        let total: u64 = self.faults.values().sum();
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        format!(
            "{} seeds in {:.1} s: {} executions, {} events, {} processes, {total} faults ({})",
            self.worlds,
            took.as_secs_f64(),
            number("executions"),
            number("events"),
            number("processes"),
            faults.join(", ")
        )
    }
}
