//! Measures pure commits: how many steps a second the store takes, and how many bytes a step costs.
//!
//! A step is six events, a new command, the end of the one before it, and the execution's row.
//! Usage: `commit_rate [steps] [executions per batch] [batches in flight] [file]`.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use noetl_model::event::{Issued, TakenArc};
use noetl_model::{CommandId, Fact, Outcome, Routing};
use noetl_store::conformance::story::{Story, map};
use noetl_store::{Append, Committed, EventLog};
use noetl_store_sqlite::{Options, SqliteStore};
use serde_json::json;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let steps = number(200_000)?;
    let width = number(64)?;
    let lanes = number(2)?;
    let directory = tempfile::TempDir::new_in(".")?;
    let path = arguments.next().map_or(directory.path().join("rate.db"), Into::into);
    let store = Arc::new(SqliteStore::open(Options::file(&path))?);

    let rounds = steps / width / lanes;
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for lane in 0..lanes {
        tasks.spawn(run(store.clone(), lane, width, rounds));
    }
    let mut slowest = std::time::Duration::ZERO;
    for longest in tasks.join_all().await {
        slowest = slowest.max(longest?);
    }
    let took = begin.elapsed();

    let stats = store.stats().await?;
    let done = rounds * width * lanes;
    println!("steps per second  {:.0}", done as f64 / took.as_secs_f64());
    println!("bytes per step    {:.0}", stats.database_bytes as f64 / done as f64);
    println!("slowest commit    {:.1} ms", slowest.as_secs_f64() * 1000.0);
    println!("write-ahead log   {} MiB", stats.log_bytes / 1024 / 1024);
    Ok(())
}

/// Steps of `width` executions at a time; new executions every 20 steps, as playbooks are short.
async fn run(
    store: Arc<SqliteStore>,
    lane: usize,
    width: usize,
    rounds: usize,
) -> Result<std::time::Duration, noetl_store::StoreError> {
    let mut lanes: Vec<(Story, CommandId)> = Vec::new();
    let mut slowest = std::time::Duration::ZERO;
    for round in 0..rounds {
        let is_start = round % 20 == 0;
        if is_start {
            lanes = (0..width).map(|place| begin(lane, round, place)).collect();
        }
        let batch: Vec<Append> = lanes.iter_mut().map(|lane| step(lane, is_start)).collect();
        let begin = Instant::now();
        let outcomes = store.commit(batch).await?;
        slowest = slowest.max(begin.elapsed());
        assert!(outcomes.iter().all(|outcome| *outcome == Committed::Appended));
    }
    Ok(slowest)
}

/// Ids as large as real ones, so that they cost as many bytes.
fn begin(lane: usize, round: usize, place: usize) -> (Story, CommandId) {
    let number = (round * 1000 + place) * 100 + lane;
    let id = 9_000_000_000_000 + i64::try_from(number).expect("a small number");
    (Story::new(id), CommandId::new(0))
}

fn step((story, command): &mut (Story, CommandId), is_start: bool) -> Append {
    if is_start {
        let start = story.start();
        *command = story.command_at(3);
        return start;
    }
    let name: Arc<str> = Arc::from("transform_orders");
    let issued = Fact::CommandIssued(Arc::new(Issued {
        step: name.clone(),
        generation: 1,
        attempt: 1,
        tool: Arc::from("python"),
        config: map(json!({"code": "result = {'total': sum(o['amount'] for o in orders)}"})),
        input: map(json!({"orders": [{"id": 17, "amount": 12.5}, {"id": 18, "amount": 7.25}]})),
        timeout_ms: None,
    }));
    let next = Routing {
        taken: vec![TakenArc { step: name.clone(), back: false }],
        not_taken: Vec::new(),
    };
    let ended = *command;
    *command = story.command_at(story.row.version.0 + 5);
    story.row.current_step = Some(name.clone());
    let data = json!({"total": 19.75, "count": 2, "checked_at": "2024-01-01T00:00:00Z"});
    story.then(vec![
        Fact::CallDone { command: ended, step: name.clone(), data, reference: None },
        Fact::CommandCompleted { command: ended, step: name.clone() },
        Fact::StepExited { step: name.clone(), generation: 1, outcome: Outcome::Done, next },
        Fact::StepEntered { step: name.clone(), generation: 1, tokens: 1, round: None },
        issued,
        Fact::CommandClaimed { command: *command, step: name, worker: Arc::from("local-1") },
    ])
}
