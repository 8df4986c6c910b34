//! Checks recorded event logs against another version of their playbook.
//!
//! The check repeats every decision of an event log with the other version, on the state the
//! decision was made on: the taken arcs, the variables set, and the commands issued. It reports the
//! first decision that differs. Values that templates read from the clock or from randomness do not
//! count as differences.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::event::{BlobRef, CommandSpec};
use noetl_model::{Event, EventId, Fact, Seq, StepOutcome, Value};
use noetl_playbook::Playbook;
use noetl_playbook::document::{Segment, Step, StepWork};
use noetl_template::{Entropy, Template, ValueRef};

use crate::decision::{DecisionEnv, ExecutionLimits};
use crate::draft::Draft;
use crate::execution::Execution;
use crate::loaded::DecisionValues;
use crate::scope;
use crate::values::ValueLimits;

/// Maximum number of times that missing values are loaded for one decision.
const ROUNDS_MAX: usize = 16;

/// The first decision that would differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// Sequence number of the event that records the decision.
    pub seq: Seq,
    /// Step that the decision is about.
    pub step: Arc<str>,
    /// Recorded decision, as text.
    pub recorded: String,
    /// Decision of the other version, as text.
    pub now: String,
}

/// Compares an event log with the decisions `playbook` would have made and returns the first
/// difference. `blob` reads results stored as blobs.
pub fn first_divergence(
    playbook: &Playbook,
    log: &[Event],
    env: &Arc<BTreeMap<String, String>>,
    mut blob: impl FnMut(&BlobRef) -> Option<Vec<u8>>,
) -> Option<Divergence> {
    let id = log.first()?.execution;
    if let Fact::PlaybookStarted(started) = &log.first()?.fact
        && started.forked.is_some()
    {
        // The copied events were decided in another execution, perhaps with another workload.
        return None;
    }
    let mut state = Execution::with_value_limits(id, ValueLimits::NONE);
    for (place, event) in log.iter().enumerate() {
        let mut again = Redecision { playbook, state: &mut state, event, env, blob: &mut blob };
        if let Some(difference) = again.look(log, place) {
            return Some(difference);
        }
        state.apply(event);
    }
    None
}

struct Redecision<'a> {
    playbook: &'a Playbook,
    state: &'a mut Execution,
    event: &'a Event,
    env: &'a Arc<BTreeMap<String, String>>,
    blob: &'a mut dyn FnMut(&BlobRef) -> Option<Vec<u8>>,
}

impl Redecision<'_> {
    fn look(&mut self, log: &[Event], place: usize) -> Option<Divergence> {
        match &self.event.fact {
            Fact::StepEntered { step, .. } => self.entered(step, log, place),
            Fact::CommandIssued(issued) => self.issued(&issued.clone()),
            // The variables and the arcs were decided together, before either was recorded.
            Fact::ContextUpdated { step, run, values, .. } => {
                let exit = exit_after(log, place, step, *run)?;
                self.left(exit, Some(Value::Object(values.clone())))
            }
            Fact::StepExited { step, run, .. } => {
                let is_seen = place > 0
                    && matches!(
                        &log[place - 1].fact,
                        Fact::ContextUpdated { step: s, run: g, .. }
                            if s == step && g == run
                    );
                if is_seen { None } else { self.left(self.event, None) }
            }
            _ => None,
        }
    }

    fn differs(&self, step: &Arc<str>, recorded: String, now: String) -> Option<Divergence> {
        Some(Divergence { seq: self.event.seq, step: step.clone(), recorded, now })
    }

    fn entered(&self, step: &Arc<str>, log: &[Event], place: usize) -> Option<Divergence> {
        let recorded = format!("step '{step}' was entered");
        if self.playbook.find(step).is_none() {
            return self.differs(step, recorded, "there is no such step".to_owned());
        }
        let is_first = !log[..place].iter().any(|e| matches!(e.fact, Fact::StepEntered { .. }));
        let entry = &self.playbook.step(self.playbook.entry).name;
        if is_first && entry != step {
            return self.differs(step, recorded, format!("it begins with step '{entry}'"));
        }
        None
    }

    /// Repeats the decision about the arcs of a step run.
    fn left(&mut self, exit: &Event, set: Option<Value>) -> Option<Divergence> {
        let Fact::StepExited { step, run, outcome, next } = &exit.fact else { return None };
        let failure = match outcome {
            StepOutcome::Done | StepOutcome::Skipped => None,
            StepOutcome::Failed { failure, .. } => Some(failure.clone()),
        };
        let names: Vec<&str> = next.taken.iter().map(|arc| &*arc.step).collect();
        let recorded = format!("step '{step}' went {}", way(&names));
        let Some(ix) = self.playbook.find(step) else {
            return self.differs(step, recorded, "there is no such step".to_owned());
        };
        let playbook = self.playbook;
        let chance = names_chance(playbook.step(ix).set.iter().flat_map(|a| a.value.templates()));
        let (step, run) = (step.clone(), *run);
        let decided = self.draft(|draft| draft.left_again(&step, run, failure.clone()));
        let (taken_steps, values) = decided?;
        let taken_steps: Vec<&str> = taken_steps.iter().map(|name| &**name).collect();
        if taken_steps != names {
            return self.differs(&step, recorded, format!("it goes {}", way(&taken_steps)));
        }
        let set = set.unwrap_or_else(|| Value::Object(noetl_model::Map::new()));
        let values = Value::Object(values);
        if set != values && !chance {
            let recorded = format!("step '{step}' set {set}");
            return self.differs(&step, recorded, format!("it sets {values}"));
        }
        None
    }

    /// Renders a command a second time and compares it with the recorded one.
    fn issued(&mut self, issued: &Arc<CommandSpec>) -> Option<Divergence> {
        // A later attempt repeats the first one; claims and items are rendered in a scope of their
        // own.
        let is_later = issued.split().is_some_and(|split| split.segment > 0);
        if issued.attempt > 1 || issued.item.is_some() || is_later {
            return None;
        }
        let recorded = format!("step '{}' handed out {}", issued.step, shown(issued));
        let Some(ix) = self.playbook.find(&issued.step) else {
            return self.differs(&issued.step, recorded, "there is no such step".to_owned());
        };
        let playbook = self.playbook;
        let step = playbook.step(ix);
        if step.repeat.is_some() {
            return self.differs(&issued.step, recorded, "it is a loop".to_owned());
        }
        if names_chance(templates(step)) {
            return None;
        }
        let now = self.draft(|draft| draft.issued_again(step, issued.run))?;
        let same = now.tool == issued.tool
            && now.config == issued.config
            && now.input == issued.input
            && now.timeout_ms == issued.timeout_ms;
        if same {
            return None;
        }
        self.differs(&issued.step, recorded, format!("it hands out {}", shown(&now)))
    }

    /// Makes a decision on the state and undoes it. Returns `None` if the decision cannot be made.
    fn draft<T>(&mut self, decide: impl Fn(&mut Draft<'_, '_>) -> Option<T>) -> Option<T> {
        let mut loaded = DecisionValues::new();
        for _ in 0..ROUNDS_MAX {
            let mut next = self.event.id.get();
            let mut ids = || {
                next += 1;
                EventId::new(next)
            };
            let mut moment = DecisionEnv {
                now: self.event.at,
                ids: &mut ids,
                entropy: Entropy::new(0),
                env: self.env.clone(),
                loaded: loaded.clone(),
                caps: ExecutionLimits::default(),
                notify: &|_| false,
                traced: false,
                claim_for: &mut |_, _| None,
            };
            let mut draft = Draft::new(self.playbook, self.state, &mut moment);
            let decided = decide(&mut draft);
            let needed = draft.undo();
            if needed.is_empty() {
                return decided;
            }
            for place in needed {
                match &place {
                    ValueRef::Blob(reference) => match (self.blob)(reference) {
                        Some(bytes) => loaded.insert_blob(reference, &bytes),
                        None => loaded.insert_unreadable(place, "it is not there"),
                    },
                    ValueRef::Event { .. } => {
                        loaded.insert_unreadable(place, "it is not in the log")
                    }
                }
            }
        }
        None
    }
}

impl Draft<'_, '_> {
    /// Returns the targets of the taken arcs and the variables set when a step run ends with this
    /// outcome.
    fn left_again(
        &mut self,
        step: &Arc<str>,
        run: u32,
        failure: Option<noetl_model::Failure>,
    ) -> Option<(Vec<Arc<str>>, noetl_model::Map)> {
        let from = self.events.len();
        match failure {
            None => self.exit_done(step, run),
            Some(failure) => self.exit_failed(step, run, failure),
        }
        let mut values = noetl_model::Map::new();
        for event in &self.events[from..] {
            match &event.fact {
                Fact::ContextUpdated { values: set, .. } => values = set.clone(),
                Fact::StepExited { next, .. } => {
                    return Some((next.taken.iter().map(|arc| arc.step.clone()).collect(), values));
                }
                _ => {}
            }
        }
        None
    }

    fn issued_again(&mut self, step: &Step, run: u32) -> Option<Arc<CommandSpec>> {
        let from = self.state.leaf.clone();
        let scope = scope::tool_scope(self, from.as_deref());
        self.issue(step, &step.work, run, &scope, None).ok()?;
        self.events.iter().find_map(|event| match &event.fact {
            Fact::CommandIssued(issued) => Some(issued.clone()),
            _ => None,
        })
    }
}

/// Returns the exit of a step run whose variables were recorded right before it.
fn exit_after<'l>(log: &'l [Event], place: usize, step: &Arc<str>, run: u32) -> Option<&'l Event> {
    let next = log.get(place + 1)?;
    match &next.fact {
        Fact::StepExited { step: s, run: g, .. } if s == step && *g == run => Some(next),
        _ => None,
    }
}

fn templates(step: &Step) -> Vec<&Template> {
    match &step.work {
        StepWork::Route => Vec::new(),
        StepWork::Tool(tool) => [tool.config.templates(), tool.input.templates()].concat(),
        StepWork::Own(own) => [own.tool.config.templates(), own.tool.input.templates()].concat(),
        StepWork::Split(split) => match split.segments.first() {
            Some(Segment::Call(call)) => call.task().templates(),
            _ => Vec::new(),
        },
        // A pipeline is sent to the worker unrendered.
        StepWork::Pipeline(_) => Vec::new(),
    }
}

/// Returns `true` if a template reads the clock, randomness, or the result of the previous step,
/// which is not known here.
fn names_chance<'t>(templates: impl IntoIterator<Item = &'t Template>) -> bool {
    let by_chance = ["now", "uuid4", "uuid", "result", "_prev"];
    let mut templates = templates.into_iter();
    templates.any(|template| by_chance.iter().any(|name| template.source().contains(name)))
}

fn way(targets: &[&str]) -> String {
    match targets {
        [] => "nowhere".to_owned(),
        targets => format!("to {}", targets.join(", ")),
    }
}

fn shown(issued: &CommandSpec) -> String {
    const SHOWN_MAX: usize = 300;
    let config = Value::Object(issued.config.clone()).to_string();
    let input = Value::Object(issued.input.clone()).to_string();
    let text = format!("{} {config} {input}", issued.tool);
    match text.char_indices().nth(SHOWN_MAX) {
        Some((place, _)) => format!("{}…", &text[..place]),
        None => text,
    }
}
