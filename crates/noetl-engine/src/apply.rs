//! The fold: one event changes the state it describes. Total: what is in the log happened.

use std::sync::Arc;

use noetl_model::event::Started;
use noetl_model::{
    CommandId, CommandState, Event, Fact, Failure, Map, Outcome, Routing, Timestamp, Value,
};
use noetl_playbook::template::{self, Data, Names};

use crate::execution::{Execution, Failing, OpenCommand, Sized, Status, Visit};

impl Execution {
    /// Folds in one event. Events come in the order of their places.
    pub fn apply(&mut self, event: &Event) {
        self.version = event.seq;
        self.last_event = Some(event.id);
        self.updated_at = event.at;
        match &event.fact {
            Fact::PlaybookStarted(started) => self.begin(started, event.at),
            Fact::StepEntered { step, generation, tokens, round } => {
                self.enter(step, *generation, *tokens, *round);
            }
            Fact::TokensDropped { step, tokens } => self.use_tokens(step, *tokens),
            Fact::CommandIssued(issued) => {
                let command = OpenCommand {
                    issued: issued.clone(),
                    state: CommandState::Pending,
                    worker: None,
                    answer: None,
                };
                self.commands.insert(event.id.into(), command);
            }
            Fact::CommandClaimed { command, worker, .. } => {
                self.hold(*command, CommandState::Claimed, worker);
            }
            Fact::CommandStarted { command, worker, .. } => {
                self.hold(*command, CommandState::Running, worker);
            }
            Fact::CallDone { command, data, .. } => {
                if let Some(command) = self.commands.get_mut(command) {
                    let bytes = size_of(data);
                    command.answer = Some(Sized { data: template::from_json(data), bytes });
                }
            }
            Fact::CommandCompleted { command, .. } => self.complete(*command),
            Fact::CommandFailed { command, .. } | Fact::CommandExpired { command, .. } => {
                self.commands.remove(command);
            }
            Fact::CommandCancelled { command, .. } => self.stop(*command),
            Fact::ContextUpdated { values, .. } => {
                let ctx = Arc::make_mut(&mut self.ctx);
                for (path, value) in values {
                    let bytes = assign(ctx, path.split('.'), value);
                    let name = path.split('.').next().unwrap_or_default();
                    self.ctx_bytes.set(Arc::from(name), bytes);
                }
            }
            Fact::StepExited { step, generation, outcome, next } => {
                self.exit(step, *generation, outcome, next);
            }
            Fact::PlaybookCompleted { .. } => self.end(Status::Completed, event.at, None),
            Fact::PlaybookFailed { failure, .. } => {
                self.end(Status::Failed, event.at, Some(failure.to_string()));
            }
            Fact::PlaybookCancelled { reason } => {
                self.end(Status::Cancelled, event.at, reason.clone());
            }
            // Said by a worker or client; only what the engine decided drives state.
            Fact::CallFailed { .. } | Fact::Reported(_) => {}
        }
    }

    fn begin(&mut self, started: &Started, at: Timestamp) {
        self.status = Status::Running;
        self.started_at = at;
        let named = |(name, value): (&String, &Value)| {
            (Arc::from(name.as_str()), template::from_json(value))
        };
        self.workload = Arc::new(started.workload.iter().map(named).collect());
        self.workload_bytes = started.workload.values().map(size_of).sum();
        // The workload is kept once, as names; the rest of the start is small.
        let started = Started { workload: Map::new(), ..started.clone() };
        self.started = Some(Arc::new(started));
    }

    fn enter(&mut self, step: &Arc<str>, generation: u32, tokens: u32, round: Option<u32>) {
        self.use_tokens(step, tokens);
        self.generations.insert(step.clone(), generation);
        self.current_step = Some(step.clone());
        if let Some(round) = round {
            self.rounds.insert(step.clone(), round);
        }
        self.running.insert((step.clone(), generation), Visit::default());
    }

    fn use_tokens(&mut self, step: &Arc<str>, tokens: u32) {
        let Some(waiting) = self.waiting.get_mut(step) else { return };
        let used = usize::try_from(tokens).unwrap_or(usize::MAX).min(waiting.len());
        waiting.drain(..used);
        if waiting.is_empty() {
            self.waiting.remove(step);
        }
    }

    fn hold(&mut self, command: CommandId, state: CommandState, worker: &Arc<str>) {
        if let Some(command) = self.commands.get_mut(&command) {
            command.state = state;
            command.worker = Some(worker.clone());
        }
    }

    fn complete(&mut self, command: CommandId) {
        let Some(command) = self.commands.remove(&command) else { return };
        let visit = (command.issued.step.clone(), command.issued.generation);
        if let Some(visit) = self.running.get_mut(&visit) {
            visit.data = command.answer;
        }
    }

    fn stop(&mut self, command: CommandId) {
        if let Some(command) = self.commands.remove(&command) {
            self.running.remove(&(command.issued.step.clone(), command.issued.generation));
        }
    }

    fn exit(&mut self, step: &Arc<str>, generation: u32, outcome: &Outcome, next: &Routing) {
        let visit = self.running.remove(&(step.clone(), generation)).unwrap_or_default();
        match outcome {
            Outcome::Done => {
                self.counts.completed += 1;
                if let Some(Sized { data, bytes }) = visit.data {
                    Arc::make_mut(&mut self.results).insert(step.clone(), data);
                    self.result_bytes.set(step.clone(), bytes);
                }
                if next.taken.is_empty() && self.leaf.as_deref() != Some("end") {
                    self.leaf = Some(step.clone());
                }
            }
            Outcome::Failed { failure, handled } => {
                self.counts.failed += 1;
                let results = Arc::make_mut(&mut self.results);
                results.insert(step.clone(), failed_result(failure));
                let bytes = failure.details.as_deref().map_or(0, size_of);
                self.result_bytes.set(step.clone(), 2 * bytes + failure.message.len());
                if !handled && self.failing.is_none() {
                    let failing = Failing { step: step.clone(), failure: failure.clone() };
                    self.failing = Some(failing);
                }
            }
        }
        for arc in next.taken.iter().filter(|arc| !arc.back) {
            self.waiting.entry(arc.step.clone()).or_default().push(step.clone());
        }
    }

    fn end(&mut self, status: Status, at: Timestamp, error: Option<String>) {
        self.status = status;
        self.ended_at = Some(at);
        self.error = error;
        self.running.clear();
        self.waiting.clear();
        self.commands.clear();
    }
}

/// What later templates see of a failed step: what the tool still answered, at the top and below
/// `error`, so that a failed step is read as `output` was in its own arcs.
pub(crate) fn failed_result(failure: &Failure) -> Data {
    let details = match failure.details.as_deref() {
        Some(Value::Object(details)) => details.clone(),
        _ => Map::new(),
    };
    let mut error = details.clone();
    error.insert("kind".into(), failure.kind.as_str().into());
    error.insert("message".into(), failure.message.as_str().into());
    error.insert("retryable".into(), failure.retryable.into());
    let mut result = details;
    result.insert("status".into(), "error".into());
    result.insert("ok".into(), false.into());
    result.insert("error".into(), Value::Object(error));
    template::from_json(&Value::Object(result))
}

/// Writes `value` at a dotted path below `names`, making maps on the way. Returns a rough size of
/// what the path's first name now holds.
pub(crate) fn assign<'a>(
    names: &mut Names,
    mut path: impl Iterator<Item = &'a str>,
    value: &Value,
) -> usize {
    let Some(first) = path.next() else { return 0 };
    let rest: Vec<&str> = path.collect();
    let (data, bytes) = if rest.is_empty() {
        (template::from_json(value), size_of(value))
    } else {
        let known = names.get(first).and_then(|data| template::to_json(data).ok());
        let mut root = known.filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
        place(&mut root, &rest, value);
        (template::from_json(&root), size_of(&root))
    };
    names.insert(Arc::from(first), data);
    bytes
}

fn place(root: &mut Value, path: &[&str], value: &Value) {
    let mut at = root;
    for name in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let map = at.as_object_mut().expect("made an object just above");
        at = map.entry(*name).or_insert(Value::Null);
    }
    *at = value.clone();
}

/// A rough size of a value in memory.
fn size_of(value: &Value) -> usize {
    const NODE: usize = 32;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => NODE,
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(size_of).sum::<usize>(),
        Value::Object(map) => {
            NODE + map.iter().map(|(key, value)| NODE + key.len() + size_of(value)).sum::<usize>()
        }
    }
}
