//! Reads playbooks and scripts from a compact notation, and writes what was decided as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::{
    CatalogId, CommandId, Event, EventId, ExecutionId, Fact, Failure, FailureKind, Map, Outcome,
    Timestamp, Value,
};
use noetl_playbook::Playbook;
use noetl_playbook::template::Entropy;

use crate::{
    Abandon, Begin, Cancel, Claim, Complete, Execution, Expire, Fail, Input, Limits, Loaded,
    Moment, Place, Refusal, Start, decide, places_needed,
};

/// Compiles the steps of a playbook; `apiVersion` and the rest are added.
pub(super) fn playbook(workflow: &str) -> Playbook {
    let indented: String = workflow.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t, path: t}}\n\
         workload: {{n: 3}}\nworkflow:\n{indented}"
    );
    let checked = noetl_playbook::check(&text);
    checked.playbook.unwrap_or_else(|| panic!("{text}\n{:#?}", checked.diagnostics))
}

/// One execution under test. It loads what a decision needs from its own log.
pub(super) struct Run {
    pub(super) playbook: Playbook,
    pub(super) state: Execution,
    pub(super) log: Vec<Event>,
    /// Blobs that can be loaded, by digest.
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    /// Whether what is known to be needed is loaded before deciding.
    pub(super) preload: bool,
    /// What was asked for, try by try.
    pub(super) asked: Vec<Vec<Place>>,
}

impl Run {
    pub(super) fn new(playbook: Playbook) -> Self {
        Self::within(playbook, Limits::default())
    }

    /// One whose state holds as much as `limits` say.
    pub(super) fn within(playbook: Playbook, limits: Limits) -> Self {
        let state = Execution::within(ExecutionId::new(1), limits);
        let (log, blobs, asked) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { playbook, state, log, blobs, preload: false, asked }
    }

    /// Starts an execution of these steps.
    pub(super) fn started(workflow: &str) -> Self {
        let mut run = Self::new(playbook(workflow));
        run.input(start()).unwrap();
        run
    }

    pub(super) fn input(&mut self, input: Input) -> Result<Vec<Event>, Refusal> {
        let mut loaded = Loaded::new();
        if self.preload {
            for place in places_needed(&self.playbook, &self.state, &input) {
                self.load(&mut loaded, &place);
            }
        }
        let entropy = Entropy::new(7);
        loop {
            let decided = self.attempt(input.clone(), loaded.clone(), &entropy);
            let Err(Refusal::Need(places)) = decided else {
                self.check_invariants();
                return decided;
            };
            assert!(!places.is_empty(), "a need names what it needs");
            for place in &places {
                assert!(!loaded.has(place), "{place:?} is asked for again");
                self.load(&mut loaded, place);
                assert!(loaded.has(place), "{place:?} is found or lost");
            }
            self.asked.push(places);
        }
    }

    /// Decides with what is loaded.
    pub(super) fn attempt(
        &mut self,
        input: Input,
        loaded: Loaded,
        entropy: &Entropy,
    ) -> Result<Vec<Event>, Refusal> {
        let mut next_id = self.log.last().map_or(100, |event| event.id.get());
        let mut moment = Moment {
            now: Timestamp::from_millis(1_704_067_200_000 + next_id),
            ids: &mut || {
                next_id += 1;
                EventId::new(next_id)
            },
            entropy: entropy.clone(),
            env: Arc::new(BTreeMap::new()),
            loaded,
        };
        let (before, bytes) = (self.state.clone(), self.state.to_snapshot());
        let decided = decide(&self.playbook, &mut self.state, input, &mut moment);
        match &decided {
            Ok(events) => self.log.extend(events.iter().cloned()),
            Err(_) => {
                assert_eq!(self.state, before, "a refusal changes nothing");
                assert_eq!(self.state.to_snapshot(), bytes, "nor the order of names");
            }
        }
        decided
    }

    fn load(&self, loaded: &mut Loaded, place: &Place) {
        match place {
            Place::Event { seq, .. } => {
                let event = self.log.iter().find(|event| event.seq == *seq);
                loaded.insert(event.unwrap_or_else(|| panic!("no event {seq}")));
            }
            Place::Blob(reference) => match self.blobs.get(&*reference.digest) {
                Some(bytes) => loaded.insert_blob(reference, bytes),
                None => loaded.insert_lost(place.clone(), "it is gone"),
            },
        }
    }

    /// The open command of a step.
    pub(super) fn command(&self, step: &str) -> CommandId {
        let found = self.state.open_commands().find(|(_, open)| &*open.issued.step == step);
        found.unwrap_or_else(|| panic!("step {step} has no open command")).0
    }

    pub(super) fn complete(&mut self, step: &str, data: Value) -> Vec<Event> {
        let command = self.command(step);
        let input = Complete { command, data: Some(data), reference: None, is_final: true };
        self.input(Input::Complete(input)).unwrap()
    }

    pub(super) fn fail(&mut self, step: &str) -> Vec<Event> {
        let command = self.command(step);
        let failure = Failure::new(FailureKind::Unknown, "it broke");
        self.input(Input::Fail(Fail { command, failure })).unwrap()
    }

    /// Steps with an open command, in name order.
    pub(super) fn open(&self) -> Vec<String> {
        let open = self.state.open_commands();
        let mut steps: Vec<String> = open.map(|(_, open)| open.issued.step.to_string()).collect();
        steps.sort();
        steps
    }

    /// How often a step was entered.
    pub(super) fn visits(&self, step: &str) -> usize {
        let entered = |event: &&Event| match &event.fact {
            Fact::StepEntered { step: name, .. } => **name == *step,
            _ => false,
        };
        self.log.iter().filter(entered).count()
    }

    /// What has to hold after every decision.
    fn check_invariants(&self) {
        for (index, event) in self.log.iter().enumerate() {
            assert_eq!(event.seq.0, u64::try_from(index).unwrap() + 1, "no gap in the log");
        }
        let mut replayed = Execution::within(self.state.id(), self.state.limits);
        for event in &self.log {
            replayed.apply(event);
        }
        assert_eq!(replayed, self.state, "replay equals life");
        assert_eq!(replayed.to_snapshot(), self.state.to_snapshot(), "in the same order");
        if self.state.status() == crate::Status::Running {
            let open = self.state.open_commands().next();
            assert!(open.is_some(), "something is outstanding unless it is final");
        }
        let is_end = |event: &&Event| {
            matches!(
                event.fact,
                Fact::PlaybookCompleted { .. }
                    | Fact::PlaybookFailed { .. }
                    | Fact::PlaybookCancelled { .. }
            )
        };
        assert!(self.log.iter().filter(is_end).count() <= 1, "it ends once");
    }
}

pub(super) fn start() -> Input {
    start_with(Map::new())
}

pub(super) fn start_with(payload: Map) -> Input {
    Input::Start(Box::new(Start {
        catalog: CatalogId::new(1),
        path: Arc::from("t"),
        version: 1,
        payload,
        parent: None,
        pool: None,
    }))
}

/// Runs a script against a playbook and compares what was decided.
///
/// Script words, separated by `;`: `start`, `claim a w`, `begin a w`, `complete a [json]`,
/// `answer a json`, `fail a`, `expire a`, `cancel`, `abandon`; `late` in front of one means the
/// step's last command, open or not.
#[track_caller]
pub(super) fn check(workflow: &str, script: &str, expected: &str) {
    let mut run = Run::new(playbook(workflow));
    let mut known: BTreeMap<String, CommandId> = BTreeMap::new();
    let mut transcript = String::new();
    for line in script.split(';').map(str::trim) {
        writeln!(transcript, "{line}").unwrap();
        let input = parse(&run, &known, line);
        for (command, open) in run.state.open_commands() {
            known.insert(open.issued.step.to_string(), command);
        }
        match run.input(input) {
            Ok(events) if events.is_empty() => transcript.push_str("  nothing\n"),
            Ok(events) => {
                for event in events {
                    writeln!(transcript, "  {}", show(&event)).unwrap();
                }
            }
            Err(refusal) => writeln!(transcript, "  refused: {refusal}").unwrap(),
        }
    }
    assert_eq!(transcript, expected, "\n--- got\n{transcript}");
}

fn parse(run: &Run, known: &BTreeMap<String, CommandId>, line: &str) -> Input {
    let (late, line) = match line.strip_prefix("late ") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let mut words = line.splitn(3, ' ');
    let verb = words.next().unwrap();
    let step = words.next().unwrap_or_default();
    let rest = words.next();
    let command = || if late { known[step] } else { run.command(step) };
    let worker = || Arc::from(rest.unwrap_or("w"));
    let json = || rest.map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
    match verb {
        "start" => start(),
        "claim" => Input::Claim(Claim { command: command(), worker: worker() }),
        "begin" => Input::Begin(Begin { command: command(), worker: worker() }),
        "complete" => {
            let data = rest.map(|_| json());
            Input::Complete(Complete { command: command(), data, reference: None, is_final: true })
        }
        "answer" => {
            let data = Some(json());
            Input::Complete(Complete { command: command(), data, reference: None, is_final: false })
        }
        "fail" => {
            let failure = Failure::new(FailureKind::Unknown, "it broke");
            Input::Fail(Fail { command: command(), failure })
        }
        "expire" => {
            let reason = "gone".to_owned();
            Input::Expire(Expire { command: command(), reason, attempts_max: ATTEMPTS_MAX })
        }
        "cancel" => Input::Cancel(Cancel::default()),
        "abandon" => Input::Abandon(Abandon),
        other => panic!("no such input: {other}"),
    }
}

fn show(event: &Event) -> String {
    match &event.fact {
        Fact::PlaybookStarted(_) => "playbook_started".into(),
        Fact::StepEntered { step, generation, .. } => format!("step.enter {step} #{generation}"),
        Fact::TokensDropped { step, tokens } => format!("tokens.dropped {step} {tokens}"),
        Fact::CommandIssued(issued) => {
            format!("command.issued {} attempt {}", issued.step, issued.attempt)
        }
        Fact::CommandClaimed { step, worker, .. } => format!("command.claimed {step} by {worker}"),
        Fact::CommandStarted { step, worker, .. } => format!("command.started {step} by {worker}"),
        Fact::CallDone { step, data, .. } => format!("call.done {step} {data}"),
        Fact::CallFailed { step, .. } => format!("call.error {step}"),
        Fact::CommandCompleted { step, .. } => format!("command.completed {step}"),
        Fact::CommandFailed { step, failure, .. } => format!("command.failed {step} {failure}"),
        Fact::CommandExpired { step, reason, .. } => format!("command.expired {step} {reason}"),
        Fact::CommandCancelled { step, .. } => format!("command.cancelled {step}"),
        Fact::ContextUpdated { values, .. } => {
            format!("ctx.updated {}", Value::Object(values.clone()))
        }
        Fact::StepExited { step, outcome, next, .. } => {
            let outcome = match outcome {
                Outcome::Done => "done".to_owned(),
                Outcome::Failed { failure, handled: true } => format!("failed, handled: {failure}"),
                Outcome::Failed { failure, .. } => format!("failed: {failure}"),
            };
            let again = |back| if back { " again" } else { "" };
            let taken = next.taken.iter().map(|arc| format!("{}{}", arc.step, again(arc.back)));
            let taken: Vec<String> = taken.collect();
            let to = if taken.is_empty() { "nowhere".into() } else { taken.join(", ") };
            format!("step.exit {step} {outcome} -> {to}")
        }
        Fact::PlaybookCompleted { result, .. } => format!("playbook.completed {result}"),
        Fact::PlaybookFailed { step, failure } => format!("playbook.failed at {step} {failure}"),
        Fact::PlaybookCancelled { .. } => "playbook_cancelled".into(),
        Fact::Reported(reported) => format!("reported {}", reported.event_type),
        Fact::SubscriptionMoved(moved) => moved.to.event_type().into(),
        Fact::Imported(_) => "imported".into(),
    }
}
