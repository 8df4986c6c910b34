//! The work a journal hands to a store: steps of many executions, decided beforehand.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use noetl_model::event::{CommandSpec, TakenArc};
use noetl_model::{CommandId, ExecutionId, Fact, Routing, StepOutcome};
use noetl_store::conformance::story::{Story, map};
use noetl_store::{Append, Committed, Store};
use serde_json::json;

/// Executions that end after this many steps, as playbooks are short.
const STEPS_EACH: usize = 20;

/// Rows that a step writes: an append, a command, and the execution's own.
pub(crate) const ROWS_PER_STEP: usize = 3;

/// Steps of `width` executions at a time, in batches, as far as one caller gets.
pub(crate) struct Work {
    caller: usize,
    width: usize,
    round: usize,
    executions: Vec<(Story, CommandId)>,
}

impl Work {
    pub(crate) fn new(caller: usize, width: usize) -> Self {
        Self { caller, width, round: 0, executions: Vec::new() }
    }

    /// The next step of every execution.
    pub(crate) fn next(&mut self) -> Vec<Append> {
        let is_start = self.round.is_multiple_of(STEPS_EACH);
        if is_start {
            let begin = |place| begin(self.caller, self.round, place);
            self.executions = (0..self.width).map(begin).collect();
        }
        self.round += 1;
        self.executions.iter_mut().map(|execution| step(execution, is_start)).collect()
    }
}

/// Commits `steps` steps through a store, by these callers at a time; returns rows per second.
pub(crate) async fn commit(
    store: Arc<dyn Store>,
    steps: usize,
    width: usize,
    callers: Range<usize>,
) -> Result<f64, Box<dyn std::error::Error>> {
    let rounds = (steps / width / callers.len()).max(STEPS_EACH);
    let mut tasks = tokio::task::JoinSet::new();
    let started = Instant::now();
    for caller in callers.clone() {
        let store = store.clone();
        tasks.spawn(async move {
            let mut work = Work::new(caller, width);
            for _ in 0..rounds {
                let outcomes =
                    store.commit(work.next()).await.map_err(|error| error.to_string())?;
                if outcomes.iter().any(|outcome| *outcome != Committed::Appended) {
                    return Err("an append was not kept".to_owned());
                }
            }
            Ok(())
        });
    }
    for done in tasks.join_all().await {
        done?;
    }
    let rows = rounds * callers.len() * width * ROWS_PER_STEP;
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}

/// Writes one execution of about this many events; returns it and how many they are.
pub(crate) async fn long(
    store: &dyn Store,
    events: usize,
) -> Result<(ExecutionId, usize), Box<dyn std::error::Error>> {
    /// Steps per transaction.
    const STEPS: usize = 100;
    let mut execution = begin(0, 0, 0);
    let (mut rows, mut is_start) = (0, true);
    while rows < events {
        let batch: Vec<Append> =
            (0..STEPS).map(|_| step(&mut execution, std::mem::take(&mut is_start))).collect();
        rows += batch.iter().map(|append| append.events.len()).sum::<usize>();
        let outcomes = store.commit(batch).await?;
        if outcomes.iter().any(|outcome| *outcome != Committed::Appended) {
            return Err("an append was not kept".into());
        }
    }
    Ok((execution.0.id(), rows))
}

/// Ids as large as real ones, so that they cost as many bytes.
fn begin(caller: usize, round: usize, place: usize) -> (Story, CommandId) {
    let number = (round * 1000 + place) * 100 + caller;
    let id = 9_000_000_000_000 + i64::try_from(number).unwrap_or(i64::MAX / 2);
    (Story::new(id), CommandId::new(0))
}

fn step((story, command): &mut (Story, CommandId), is_start: bool) -> Append {
    if is_start {
        let start = story.start();
        *command = story.command_at(3);
        return start;
    }
    let name: Arc<str> = Arc::from("transform_orders");
    let issued = Fact::CommandIssued(Arc::new(CommandSpec {
        step: name.clone(),
        run: 1,
        attempt: 1,
        tool: Arc::from("python"),
        config: map(json!({"code": "result = {'total': sum(o['amount'] for o in orders)}"})),
        input: map(json!({"orders": [{"id": 17, "amount": 12.5}, {"id": 18, "amount": 7.25}]})),
        timeout_ms: None,
        scope: None,
        item: None,
        idempotent: true,
        pool: None,
        trace: None,
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
        Fact::CallDone { command: ended, step: name.clone(), data, reference: None, run: None },
        Fact::CommandCompleted { command: ended, step: name.clone(), item: None },
        Fact::StepExited { step: name.clone(), run: 1, outcome: StepOutcome::Done, next },
        Fact::StepEntered { step: name.clone(), run: 1, tokens: 1, round: None, deadline: None },
        issued,
        Fact::CommandClaimed { command: *command, step: name, worker: Arc::from("local-1") },
    ])
}
