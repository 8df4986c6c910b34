//! Reads playbooks and scripts from a compact notation, and writes what was decided as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::event::{LoopEvent, LoopFact, LoopItemRef, ParkReason};
use noetl_model::{
    CatalogId, CommandId, Event, EventId, ExecutionId, Fact, Failure, FailureKind, Map,
    StepOutcome, Timestamp, TraceContext, Value,
};
use noetl_playbook::Playbook;
use noetl_template::Entropy;

use crate::{
    Abandon, Answer, AnswerSource, Cancel, Claim, Complete, Decision, DecisionEnv, DecisionValues,
    Execution, Expire, Fail, Finalize, Input, MarkStarted, OpenCommand, Rejection, StartInput,
    Timeout, Timer, ValueLimits, ValueRef, Wake, decide, required_values,
};

/// The span that executions under test are below.
pub(super) const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

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

/// Execution under test, which loads the values of its decisions from its own log.
pub(super) struct Run {
    pub(super) playbook: Playbook,
    pub(super) state: Execution,
    pub(super) log: Vec<Event>,
    /// Blobs that can be loaded, by digest.
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    /// Whether what is known to be needed is loaded before deciding.
    pub(super) preload: bool,
    /// Requested values of each attempt to decide.
    pub(super) asked: Vec<Vec<ValueRef>>,
    /// Whether the checks after each decision, which replay the whole log, are left out.
    pub(super) quick: bool,
    pub(super) caps: crate::ExecutionLimits,
}

impl Run {
    pub(super) fn new(playbook: Playbook) -> Self {
        Self::within(playbook, ValueLimits::default())
    }

    /// Creates a run whose state has inline values within `limits`.
    pub(super) fn within(playbook: Playbook, limits: ValueLimits) -> Self {
        let state = Execution::with_value_limits(ExecutionId::new(1), limits);
        let (log, blobs, asked) = (Vec::new(), BTreeMap::new(), Vec::new());
        let caps = crate::ExecutionLimits::default();
        Self { playbook, state, log, blobs, preload: false, asked, quick: false, caps }
    }

    /// Starts an execution of these steps.
    pub(super) fn started(workflow: &str) -> Self {
        let mut run = Self::new(playbook(workflow));
        run.input(start()).unwrap();
        run
    }

    /// Decides an input and returns its events.
    pub(super) fn input(&mut self, input: Input) -> Result<Vec<Event>, Rejection> {
        let decision = self.decide(input)?;
        Ok(decision.events.iter().map(|event| Event::clone(event)).collect())
    }

    pub(super) fn decide(&mut self, input: Input) -> Result<Decision, Rejection> {
        let mut loaded = DecisionValues::new();
        if self.preload {
            for place in required_values(&self.playbook, &self.state, &input) {
                self.load(&mut loaded, &place);
            }
        }
        let entropy = Entropy::new(7);
        loop {
            let decided = self.attempt(input.clone(), loaded.clone(), &entropy);
            let Err(Rejection::Need(places)) = decided else {
                if !self.quick {
                    self.check_invariants();
                }
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
        loaded: DecisionValues,
        entropy: &Entropy,
    ) -> Result<Decision, Rejection> {
        let mut next_id = self.log.last().map_or(100, |event| event.id.get());
        let mut moment = DecisionEnv {
            now: Timestamp::from_millis(1_704_067_200_000 + next_id),
            ids: &mut || {
                next_id += 1;
                EventId::new(next_id)
            },
            entropy: entropy.clone(),
            env: Arc::new(BTreeMap::new()),
            loaded,
            caps: self.caps,
            notify: &|_| false,
            traced: true,
            claim_for: &mut |_, _| None,
        };
        let (before, bytes) = match self.quick {
            true => (Execution::new(self.state.id()), Vec::new()),
            false => (self.state.clone(), self.state.to_snapshot()),
        };
        let decided = decide(&self.playbook, &mut self.state, input, &mut moment);
        match &decided {
            Ok(decision) => {
                self.log.extend(decision.events.iter().map(|event| Event::clone(event)))
            }
            Err(_) if self.quick => {}
            Err(_) => {
                assert_eq!(self.state, before, "a refusal changes nothing");
                assert_eq!(self.state.to_snapshot(), bytes, "nor the order of names");
            }
        }
        decided
    }

    fn load(&self, loaded: &mut DecisionValues, place: &ValueRef) {
        match place {
            ValueRef::Event { seq, .. } => {
                let event = self.log.iter().find(|event| event.seq == *seq);
                loaded.insert(event.unwrap_or_else(|| panic!("no event {seq}")));
            }
            ValueRef::Blob(reference) => match self.blobs.get(&*reference.digest) {
                Some(bytes) => loaded.insert_blob(reference, bytes),
                None => loaded.insert_unreadable(place.clone(), "it is gone"),
            },
        }
    }

    /// Returns the open command of a step or of its item: `a`, `a:2`, or `a:claim` for a claim.
    pub(super) fn command(&self, step: &str) -> CommandId {
        let (name, item) = step.split_once(':').unwrap_or((step, ""));
        let command = self.state.open_commands().find(|(_, open)| {
            let is_meant = match &open.issued.item {
                Some(item_spec) if item_spec.claims => item == "claim",
                Some(item_spec) => item.is_empty() || item == item_spec.index.to_string(),
                None => item.is_empty(),
            };
            &*open.issued.step == name && is_meant
        });
        command.unwrap_or_else(|| panic!("step {step} has no open command")).0
    }

    /// Returns the time until which a step's command waits.
    pub(super) fn awaited(&self, step: &str) -> Timestamp {
        match self.state.open_command(self.command(step)).and_then(OpenCommand::parked) {
            Some(ParkReason::Until(at) | ParkReason::Retry(at)) => *at,
            Some(ParkReason::Callback(callback)) => callback.until,
            Some(ParkReason::Child(child)) => child.until.expect("it waits for a time"),
            None => panic!("{step} waits for nothing"),
        }
    }

    /// Returns the child execution for which a step's command waits.
    pub(super) fn child(&self, step: &str) -> ExecutionId {
        match self.state.open_command(self.command(step)).and_then(OpenCommand::parked) {
            Some(ParkReason::Child(child)) => child.execution,
            other => panic!("{step} waits for {other:?}"),
        }
    }

    pub(super) fn complete(&mut self, step: &str, data: Value) -> Vec<Event> {
        let command = self.command(step);
        let input = Complete {
            command,
            data: Some(data),
            reference: None,
            is_final: true,
            ctx: Map::new(),
            step: Map::new(),
            run: None,
        };
        self.input(Input::Complete(input)).unwrap()
    }

    pub(super) fn fail(&mut self, step: &str) -> Vec<Event> {
        let command = self.command(step);
        let failure = Failure::new(FailureKind::Unknown, "it broke");
        self.input(Input::Fail(Fail { command, failure, ctx: Map::new(), step: Map::new() }))
            .unwrap()
    }

    pub(super) fn claim(&mut self, step: &str, worker: &str) {
        let (command, worker) = (self.command(step), Arc::from(worker));
        self.input(Input::Claim(Claim { command, worker })).unwrap();
    }

    pub(super) fn expire(&mut self, step: &str) {
        self.script(&format!("expire {step}")).unwrap();
    }

    pub(super) fn timeout(&mut self, step: &str) {
        self.script(&format!("timeout {step}")).unwrap();
    }

    /// Decides one line of a script.
    pub(super) fn script(&mut self, line: &str) -> Result<Vec<Event>, Rejection> {
        let input = parse(self, &BTreeMap::new(), line);
        self.input(input)
    }

    /// Returns the result of a step as later templates see it.
    pub(super) fn result(&self, step: &str) -> Value {
        let mut loaded = DecisionValues::new();
        let slot = self.state.results.get(step).cloned().unwrap_or_default();
        for place in slot.places() {
            self.load(&mut loaded, &place);
        }
        let reach = noetl_template::ValueLoader::new(loaded.values());
        noetl_template::exact_json(&reach.data(&slot))
    }

    /// Steps with an open command, in name order.
    pub(super) fn open(&self) -> Vec<String> {
        let open = self.state.open_commands();
        let mut steps: Vec<String> = open.map(|(_, open)| open.issued.step.to_string()).collect();
        steps.sort();
        steps
    }

    /// Returns the number of runs of a step.
    pub(super) fn step_runs(&self, step: &str) -> usize {
        let entered = |event: &&Event| match &event.fact {
            Fact::StepEntered { step: name, .. } => **name == *step,
            _ => false,
        };
        self.log.iter().filter(entered).count()
    }

    /// Checks the invariants that hold after every decision.
    pub(super) fn check_invariants(&self) {
        for (index, event) in self.log.iter().enumerate() {
            assert_eq!(event.seq.0, u64::try_from(index).unwrap() + 1, "no gap in the log");
        }
        let mut replayed = Execution::with_value_limits(self.state.id(), self.state.limits);
        for event in &self.log {
            replayed.apply(event);
        }
        assert_eq!(replayed, self.state, "replay equals life");
        assert_eq!(replayed.to_snapshot(), self.state.to_snapshot(), "in the same order");
        if self.state.status() == crate::Status::Running {
            let is_open = self.state.open_commands().next().is_some();
            let is_held = !self.state.held.is_empty();
            assert!(is_open || is_held, "something is outstanding unless it is final");
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

/// Returns the timers that these events imply. `state` is the state after them.
pub(super) fn timers_of<'e>(
    state: &Execution,
    events: impl IntoIterator<Item = &'e Event>,
) -> Vec<Timer> {
    let events = events.into_iter().cloned().map(Arc::new).collect();
    Decision::from_events(state, events, &|_| false, None).timers
}

/// Returns `true` if an event issues a command.
pub(super) fn is_issued(event: &Event) -> bool {
    matches!(event.fact, Fact::CommandIssued(_))
}

pub(super) fn start() -> Input {
    start_with(Map::new())
}

pub(super) fn start_with(payload: Map) -> Input {
    Input::Start(Box::new(StartInput {
        catalog: CatalogId::new(1),
        path: Arc::from("t"),
        version: 1,
        payload,
        parent: None,
        pool: None,
        parent_command: None,
        returns: None,
        depth: 0,
        forked: None,
        trace: TraceContext::read(TRACE, Some("a=b")),
        actor: None,
    }))
}

/// Runs a script against a playbook and compares the decisions.
///
/// Script words, separated by `;`: `start`, `claim a w`, `begin a w`, `complete a [json]`,
/// `answer a json`, `fail a`, `expire a`, `return a` (expires an unstarted command), `cancel`,
/// `abandon`. The prefix `late` selects the step's last command, open or not.
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
        "begin" => Input::Begin(MarkStarted { command: command(), worker: worker() }),
        "complete" => {
            let data = rest.map(|_| json());
            Input::Complete(Complete {
                command: command(),
                data,
                reference: None,
                is_final: true,
                ctx: Map::new(),
                step: Map::new(),
                run: None,
            })
        }
        "answer" => {
            let data = Some(json());
            Input::Complete(Complete {
                command: command(),
                data,
                reference: None,
                is_final: false,
                ctx: Map::new(),
                step: Map::new(),
                run: None,
            })
        }
        "fail" => {
            let failure = Failure::new(FailureKind::Unknown, "it broke");
            Input::Fail(Fail { command: command(), failure, ctx: Map::new(), step: Map::new() })
        }
        "expire" | "return" => {
            let (reason, attempts_max) = ("gone".to_owned(), ATTEMPTS_MAX);
            let may_have_run = verb == "expire";
            Input::Expire(Expire { command: command(), reason, attempts_max, may_have_run })
        }
        "wake" => Input::Wake(Wake { command: command(), at: run.awaited(step) }),
        "child" => {
            let from = AnswerSource::Child(run.child(step));
            let answer = Answer {
                command: command(),
                from,
                outcome: Ok(json()),
                reference: None,
                actor: None,
            };
            Input::Answer(Box::new(answer))
        }
        "childfails" => {
            let from = AnswerSource::Child(run.child(step));
            let outcome = Err(Failure::new(FailureKind::ChildFailed, "it broke"));
            let answer = Answer { command: command(), from, outcome, reference: None, actor: None };
            Input::Answer(Box::new(answer))
        }
        "approve" => {
            let from = AnswerSource::Trusted;
            let answer = Answer {
                command: command(),
                from,
                outcome: Ok(json()),
                reference: None,
                actor: None,
            };
            Input::Answer(Box::new(answer))
        }
        "guess" => {
            let from = AnswerSource::Token(Arc::from("guessed"));
            let answer = Answer {
                command: command(),
                from,
                outcome: Ok(json()),
                reference: None,
                actor: None,
            };
            Input::Answer(Box::new(answer))
        }
        "timeout" => {
            let number = run.state.last_run(step);
            Input::Timeout(Timeout::Step { step: Arc::from(step), run: number })
        }
        "refuse" => {
            let until = Timestamp::from_micros(i64::MAX);
            Input::Timeout(Timeout::Admission { step: Arc::from(step), until })
        }
        "deadline" => Input::Timeout(Timeout::Execution),
        "finalize" => Input::Finalize(Finalize { error: rest.map(str::to_owned), actor: None }),
        "cancel" => Input::Cancel(Cancel::default()),
        "abandon" => Input::Abandon(Abandon),
        other => panic!("no such input: {other}"),
    }
}

fn show(event: &Event) -> String {
    match &event.fact {
        Fact::PlaybookStarted(_) => "playbook_started".into(),
        Fact::StepEntered { step, run, .. } => format!("step.enter {step} #{run}"),
        Fact::TokensDropped { step, tokens } => format!("tokens.dropped {step} {tokens}"),
        Fact::StepDenied { step, .. } => format!("step.denied {step}"),
        Fact::StepHeld { step, .. } => format!("step.held {step}"),
        Fact::Loop(fact) => show_loop(fact),
        Fact::CommandParked { step, on, .. } => match on {
            ParkReason::Until(_) => format!("command.parked {step} until a time"),
            ParkReason::Retry(_) => format!("command.parked {step} until the next try"),
            ParkReason::Child(child) if child.waits => format!("command.parked {step} on a child"),
            ParkReason::Child(_) => format!("command.parked {step} to send a child"),
            ParkReason::Callback(_) => format!("command.parked {step} on an answer"),
        },
        Fact::CommandIssued(issued) => {
            let item = match &issued.item {
                Some(item) if item.claims => format!(" claim {}", item.index),
                Some(item) => format!(" item {}", item.index),
                None => String::new(),
            };
            format!("command.issued {}{item} attempt {}", issued.step, issued.attempt)
        }
        Fact::CommandClaimed { step, worker, .. } => format!("command.claimed {step} by {worker}"),
        Fact::CommandStarted { step, worker, .. } => format!("command.started {step} by {worker}"),
        Fact::CallDone { step, data, .. } => format!("call.done {step} {data}"),
        Fact::CallFailed { step, .. } => format!("call.error {step}"),
        Fact::CommandCompleted { step, item, .. } => {
            format!("command.completed {step}{}", show_item(item.as_deref()))
        }
        Fact::CommandFailed { step, failure, item, .. } => {
            format!("command.failed {step}{} {failure}", show_item(item.as_deref()))
        }
        Fact::CommandExpired { step, reason, .. } => format!("command.expired {step} {reason}"),
        Fact::CommandCancelled { step, .. } => format!("command.cancelled {step}"),
        Fact::ContextUpdated { values, .. } => {
            format!("ctx.updated {}", Value::Object(values.clone()))
        }
        Fact::StepExited { step, outcome, next, .. } => {
            let outcome = match outcome {
                StepOutcome::Done => "done".to_owned(),
                StepOutcome::Skipped => "skipped".to_owned(),
                StepOutcome::Failed { failure, drains: true, .. } => {
                    format!("failed, rest goes on: {failure}")
                }
                StepOutcome::Failed { failure, handled: true, drains: false } => {
                    format!("failed, handled: {failure}")
                }
                StepOutcome::Failed { failure, .. } => format!("failed: {failure}"),
            };
            let again = |back| if back { " again" } else { "" };
            let targets = next.taken.iter().map(|arc| format!("{}{}", arc.step, again(arc.back)));
            let targets: Vec<String> = targets.collect();
            let to = if targets.is_empty() { "nowhere".into() } else { targets.join(", ") };
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

fn show_item(item: Option<&LoopItemRef>) -> String {
    item.map(|item| format!(" item {}", item.index)).unwrap_or_default()
}

fn show_loop(fact: &LoopFact) -> String {
    let LoopFact { step, what, .. } = fact;
    match what {
        LoopEvent::Started(started) => match started.total {
            Some(total) => format!("loop.started {step} {total} items"),
            None => format!("stage.opened {step}"),
        },
        LoopEvent::Items(items) => {
            let from = items.from;
            let frame = items.frame.map(|frame| format!(" frame {frame}")).unwrap_or_default();
            format!("loop.items {step}{frame} {} from {from}", items.items.len())
        }
        LoopEvent::Frame(moved) => {
            format!("frame {} of {step} {:?} {} rows", moved.frame, moved.to, moved.rows)
        }
        LoopEvent::StageClosed(closed) => {
            format!("stage.closed {step} {} frames {} rows", closed.frames, closed.rows)
        }
        LoopEvent::Done(stats) => {
            format!(
                "loop.done {step} {} of {}, {} failed",
                stats.success, stats.total, stats.failed
            )
        }
    }
}
