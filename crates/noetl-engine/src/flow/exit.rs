//! Leaving a step: `set`, the arcs, and the record of both (rule R4).
//!
//! The engine evaluates conditions of arcs only here. After a failure, only arcs with a condition
//! on failure count, unless the step has `on_error: continue`; a taken arc handles the failure.

use std::sync::Arc;

use noetl_model::event::TakenArc;
use noetl_model::{Fact, Failure, FailureKind, Map, Routing, StepOutcome, Value};
use noetl_playbook::assignment::{Assignment, SetScope};
use noetl_playbook::document::{FailureMode, OnError, OnNoMatch, RoutingMode, Step};
use noetl_template::{Data, Names, Scope, ValueSlot, ValueSource, from_json};

use super::render;
use crate::draft::{Activation, Draft};
use crate::{required_values, scope};

/// Outcome of a step run's `set` and arcs.
#[derive(Default)]
struct ExitDecision {
    /// Values to set, by dotted path below `ctx`, in the order of writing.
    values: Map,
    /// Indexes of the taken arcs.
    taken: Vec<usize>,
}

impl Draft<'_, '_> {
    /// Ends a step run whose command, if it had one, was completed.
    pub(crate) fn exit_done(&mut self, name: &Arc<str>, run: u32) {
        let step_run = self.state.running.get(&(name.clone(), run));
        let data =
            step_run.and_then(|step_run| step_run.data.as_ref()).map(|stored| stored.slot.clone());
        let data = data.unwrap_or_default();
        self.exit(name, run, &data, None);
    }

    /// Ends a step run that failed.
    pub(crate) fn exit_failed(&mut self, name: &Arc<str>, run: u32, failure: Failure) {
        let data = failure_data(&failure).into();
        self.exit(name, run, &data, Some(failure));
    }

    /// Ends a step run whose condition (`when`) does not hold. Evaluates its arcs as after a step
    /// without work.
    pub(super) fn exit_skipped(&mut self, name: &Arc<str>, run: u32) {
        let Some(ix) = self.playbook.find(name) else { return };
        let step = self.playbook.step(ix);
        let data = ValueSlot::default();
        if let Some((failure, decision)) = self.routed(step, run, &data, None) {
            let outcome = match failure {
                None => StepOutcome::Skipped,
                Some(failure) => self.unhandled(step, failure, &decision),
            };
            self.leave(step, run, outcome, decision);
        }
    }

    /// Returns the outcome of a step run that failed. The arcs decide whether the failure is
    /// handled.
    fn unhandled(&self, step: &Step, failure: Failure, decision: &ExitDecision) -> StepOutcome {
        let handled = !decision.taken.is_empty() || step.on_error == OnError::Continue;
        let drains = !handled && step.failure == FailureMode::BestEffort;
        StepOutcome::Failed { failure, handled, drains }
    }

    fn exit(&mut self, name: &Arc<str>, run: u32, data: &ValueSlot, failure: Option<Failure>) {
        let Some(ix) = self.playbook.find(name) else { return };
        let step = self.playbook.step(ix);
        if self.state.is_failing() {
            // A failing execution starts no steps, so there are no arcs to evaluate.
            let failed = |failure| StepOutcome::Failed { failure, handled: false, drains: false };
            let outcome = failure.map_or(StepOutcome::Done, failed);
            self.leave(step, run, outcome, ExitDecision::default());
            return;
        }
        let Some((failure, decision)) = self.routed(step, run, data, failure) else {
            // The arcs depend on a missing value. The step run stays active, so that other branches
            // continue as far as possible and the same attempt finds the values they need.
            return;
        };
        let outcome = match failure {
            None => StepOutcome::Done,
            Some(failure) => self.unhandled(step, failure, &decision),
        };
        self.leave(step, run, outcome, decision);
    }

    /// Returns the outcome of `set` and the arcs, with the failure that the step run ends with, or
    /// `None` if a value is missing.
    fn routed(
        &mut self,
        step: &Step,
        run: u32,
        data: &ValueSlot,
        failure: Option<Failure>,
    ) -> Option<(Option<Failure>, ExitDecision)> {
        match self.arcs(step, run, data, failure.as_ref())? {
            Ok(decision) => self.unmatched(step, run, data, failure, decision),
            // A template of this step's `set` or arcs failed, which fails the step.
            Err(message) => {
                let failure = Failure::new(FailureKind::TemplateError, message);
                let decision = self.arcs(step, run, data, Some(&failure))?;
                self.unmatched(step, run, data, Some(failure), decision.unwrap_or_default())
            }
        }
    }

    /// Fails a step that succeeded without a matching arc, if the step or the playbook requires a
    /// match.
    fn unmatched(
        &mut self,
        step: &Step,
        run: u32,
        data: &ValueSlot,
        failure: Option<Failure>,
        decision: ExitDecision,
    ) -> Option<(Option<Failure>, ExitDecision)> {
        let strict = step.router.on_no_match == OnNoMatch::Fail || self.playbook.no_next_is_error;
        if failure.is_some() || !strict || step.router.arcs.is_empty() || !decision.taken.is_empty()
        {
            return Some((failure, decision));
        }
        let message = format!("no arc of step '{}' matched", step.name);
        let failure = Failure::new(FailureKind::Config, message);
        let decision = self.arcs(step, run, data, Some(&failure))?.unwrap_or_default();
        Some((Some(failure), decision))
    }

    /// Evaluates `set` and the arcs of a step run. Returns `None` if a value is missing.
    fn arcs(
        &mut self,
        step: &Step,
        run: u32,
        data: &ValueSlot,
        failure: Option<&Failure>,
    ) -> Option<Result<ExitDecision, String>> {
        let loops = step.repeat.is_some();
        let mut scope = scope::exit_scope(self, &step.name, data.clone(), failure, loops);
        scope.step = self.state.locals(&step.name, run);
        let decision = self.evaluate(step, failure, &mut scope);
        if self.misses(&scope) {
            let places =
                required_values::exit_values(step, self.state, Some(data), failure.is_some());
            self.need(places);
            return None;
        }
        Some(match scope.reach.lost() {
            Some(lost) => Err(lost),
            None => decision,
        })
    }

    fn evaluate(
        &self,
        step: &Step,
        failure: Option<&Failure>,
        scope: &mut Scope,
    ) -> Result<ExitDecision, String> {
        let mut decision = ExitDecision::default();
        let goes_on = failure.is_none() || step.on_error == OnError::Continue;
        if goes_on {
            self.write(&step.set, "", scope, &mut decision)?;
        }
        for (place, arrow) in step.router.arcs.iter().enumerate() {
            if !required_values::is_considered(arrow, failure.is_some(), goes_on) {
                continue;
            }
            let at = format!("next.arcs[{place}].when");
            if arrow.when.holds(scope).map_err(render::with_path(&at))? {
                decision.taken.push(place);
                if step.router.mode == RoutingMode::Exclusive {
                    break;
                }
            }
        }
        for place in decision.taken.clone() {
            let at = format!("next.arcs[{place}].");
            self.write(&step.router.arcs[place].set, &at, scope, &mut decision)?;
        }
        Ok(decision)
    }

    /// Renders a `set` block located at `at` and writes it to the scope. The whole block is
    /// rendered before any of its values is visible.
    fn write(
        &self,
        set: &[Assignment],
        at: &str,
        scope: &mut Scope,
        decision: &mut ExitDecision,
    ) -> Result<(), String> {
        let mut rendered = Vec::with_capacity(set.len());
        for assignment in set {
            let at = format!("{at}set.{}", assignment.target());
            rendered.push((assignment, render::render(&assignment.value, scope, &at)?));
        }
        for (assignment, value) in rendered {
            let names = match assignment.scope {
                SetScope::Ctx => &mut scope.ctx,
                // An iteration ends when its step is left; only the arcs read the values it sets
                // here.
                SetScope::Step | SetScope::Iter => &mut scope.step,
            };
            assign(Arc::make_mut(names), &assignment.path, &value);
            if assignment.scope == SetScope::Ctx {
                decision.values.insert(assignment.path.join("."), value);
            }
        }
        Ok(())
    }

    fn leave(&mut self, step: &Step, run: u32, outcome: StepOutcome, decision: ExitDecision) {
        let name = step.name.clone();
        if !decision.values.is_empty() {
            let (step, values, locals) = (name.clone(), decision.values, Map::new());
            self.record(Fact::ContextUpdated { step, run, values, locals });
        }
        let ix = self.playbook.find(&name).expect("a step of this playbook");
        let mut next = Routing::default();
        for (place, arrow) in step.router.arcs.iter().enumerate() {
            let target = self.playbook.step(arrow.to).name.clone();
            if decision.taken.contains(&place) {
                let back = self.playbook.graph.is_back_arc(ix, place);
                next.taken.push(TakenArc { step: target, back });
            } else {
                next.not_taken.push(target);
            }
        }
        let handled = !matches!(outcome, StepOutcome::Failed { handled: false, drains: false, .. });
        self.record(Fact::StepExited { step: name.clone(), run, outcome, next });
        if !handled {
            self.cancel_idle();
            return;
        }
        let mut targets: Vec<_> = Vec::with_capacity(decision.taken.len());
        for place in decision.taken {
            let to = step.router.arcs[place].to;
            let is_back = self.playbook.graph.is_back_arc(ix, place);
            // A step run enters the same target at most once.
            if targets.contains(&to) {
                if !is_back {
                    self.drop_token(to);
                }
                continue;
            }
            targets.push(to);
            if is_back {
                let from = Some(name.clone());
                self.queue.push_back(Activation { step: to, tokens: 0, from, held: false });
            } else {
                self.arrive(to, &name);
            }
        }
    }
}

/// Writes `value` at a path below a scope's names.
fn assign(names: &mut Names, path: &[String], value: &Value) {
    let Some((first, below)) = path.split_first() else { return };
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    let before = names.get(first.as_str()).cloned().unwrap_or_default();
    let slot = before.written(&below, ValueSource::Held(from_json(value)));
    names.insert(Arc::from(first.as_str()), slot);
}

/// Returns the data of a failed tool, such as the body of an HTTP response.
fn failure_data(failure: &Failure) -> Data {
    failure.details.as_deref().map_or_else(|| Data::from(()), from_json)
}
