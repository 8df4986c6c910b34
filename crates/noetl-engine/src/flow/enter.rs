//! Entering a step: admission, a new step run, and its first command (rule R2).

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Fact, Failure, FailureKind};
use noetl_playbook::document::{AdmissionPolicy, JoinRule, Step, StepWork};
use noetl_template::Scope;

use super::split::NextSegment;
use super::{render, timeouts};
use crate::draft::{Activation, Draft};
use crate::scope;

impl Draft<'_, '_> {
    pub(super) fn enter(&mut self, activation: Activation) {
        let playbook = self.playbook;
        let step = playbook.step(activation.step);
        if let Some(admit) = &step.admit
            && !self.is_admitted(step, admit, &activation)
        {
            return;
        }
        let run = self.state.last_run(&step.name) + 1;
        let round = (step.join == JoinRule::Any).then(|| self.round_of(activation.step));
        let tokens = activation.tokens;
        let from = activation.from;
        let limit = self.visit_limit(step, from.as_deref());
        let longest = limit.as_ref().ok().copied().flatten();
        let deadline = longest.map(|limit| self.moment.now.plus(limit));
        let name = step.name.clone();
        self.record(Fact::StepEntered { step: name, run, tokens, round, deadline });
        if let Some(condition) = &step.when {
            let scope = scope::tool_scope(self, from.as_deref());
            let holds = condition.holds(&scope).map_err(render::with_path("when"));
            match self.rendered(&scope, holds) {
                None | Some(Ok(true)) => {}
                Some(Ok(false)) => {
                    self.inline_visits += 1;
                    self.exit_skipped(&step.name, run);
                    return;
                }
                Some(Err(message)) => return self.exit_unrendered(step, run, message),
            }
        }
        if let Err(failure) = limit {
            self.inline_visits += 1;
            return self.exit_failed(&step.name, run, failure);
        }
        self.begin_work(step, run, from);
    }

    /// Starts the work of a step run.
    pub(crate) fn begin_work(&mut self, step: &Step, run: u32, from: Option<Arc<str>>) {
        match (&step.repeat, &step.work) {
            (_, StepWork::Route) => {
                self.inline_visits += 1;
                self.exit_done(&step.name, run);
            }
            (Some(repeat), _) => self.begin_loop(step, repeat, run, from),
            (None, StepWork::Split(split)) => {
                let scope = scope::tool_scope(self, from.as_deref());
                let next = NextSegment::first(run, None, from, 1);
                if let Err(message) = self.issue_segment(step, split, &scope, next) {
                    self.exit_unrendered(step, run, message);
                }
            }
            (None, work) => {
                let scope = scope::tool_scope(self, from.as_deref());
                if let Err(message) = self.issue(step, work, run, &scope, None) {
                    self.exit_unrendered(step, run, message);
                }
            }
        }
    }

    /// Returns the timeout of a step run.
    fn visit_limit(
        &mut self,
        step: &Step,
        from: Option<&str>,
    ) -> Result<Option<Duration>, Failure> {
        if step.limits.is_empty() {
            return Ok(step.timeout);
        }
        let scope = scope::tool_scope(self, from);
        let limit = timeouts::step_timeout(step, &scope);
        // If a value is missing, the decision is undone, so the limit does not matter.
        if self.misses(&scope) { Ok(None) } else { limit }
    }

    /// Fails a step run whose templates do not render.
    pub(super) fn exit_unrendered(&mut self, step: &Step, run: u32, message: String) {
        self.inline_visits += 1;
        let failure = Failure::new(FailureKind::TemplateError, message);
        self.exit_failed(&step.name, run, failure);
    }

    /// Returns the rendered value or the error. If a value is missing, adds it to the missing
    /// values and returns `None`.
    pub(super) fn rendered<T, E: std::fmt::Display>(
        &mut self,
        scope: &Scope,
        rendered: Result<T, E>,
    ) -> Option<Result<T, String>> {
        if self.misses(scope) {
            return None;
        }
        Some(match scope.reach.lost() {
            Some(lost) => Err(lost),
            None => rendered.map_err(|error| error.to_string()),
        })
    }

    /// Adds the values that templates of a scope read and did not find to the missing values.
    /// Returns `true` if there are any.
    pub(super) fn misses(&mut self, scope: &Scope) -> bool {
        let missing = scope.reach.needed();
        let any = !missing.is_empty();
        self.need(missing);
        any
    }

    /// Returns `true` if a step admits its tokens. Otherwise the tokens end here, or wait.
    fn is_admitted(
        &mut self,
        step: &Step,
        admit: &AdmissionPolicy,
        activation: &Activation,
    ) -> bool {
        let scope = scope::tool_scope(self, activation.from.as_deref());
        let allowed = admits(admit, &scope);
        match self.rendered(&scope, allowed) {
            // If a value is missing, the decision is undone and retried with the value.
            None | Some(Ok(true)) => true,
            Some(Ok(false)) => {
                let (name, tokens) = (step.name.clone(), activation.tokens);
                match admit.wait {
                    Some(_) if activation.held => {}
                    Some(wait) => {
                        let until = self.moment.now.plus(wait);
                        let from = activation.from.clone();
                        self.record(Fact::StepHeld { step: name, tokens, from, until });
                    }
                    None => {
                        self.record(Fact::StepDenied { step: name, tokens });
                    }
                }
                false
            }
            // The step fails as it would if its tool did not render.
            Some(Err(message)) => {
                let run = self.state.last_run(&step.name) + 1;
                let (name, tokens) = (step.name.clone(), activation.tokens);
                let (round, deadline) = (None, None);
                self.record(Fact::StepEntered { step: name, run, tokens, round, deadline });
                self.exit_unrendered(step, run, message);
                false
            }
        }
    }

    /// Enters the steps that admit their waiting tokens after a change of variables.
    pub(super) fn admit_held(&mut self) {
        let waiting: Vec<(Arc<str>, Option<Arc<str>>)> = self
            .state
            .held
            .iter()
            .map(|(step, tokens)| (step.clone(), tokens.last().and_then(|t| t.from.clone())))
            .collect();
        for (name, from) in waiting {
            let Some(ix) = self.playbook.find(&name) else { continue };
            if self.state.held.contains_key(&name) {
                self.enter(Activation { step: ix, tokens: 0, from, held: true });
            }
        }
    }
}

/// Returns the verdict of the first rule whose condition holds. Without one, the token is admitted.
fn admits(admit: &AdmissionPolicy, scope: &Scope) -> Result<bool, String> {
    for (place, (condition, allowed)) in admit.rules.iter().enumerate() {
        let at = format!("spec.policy.admit.rules[{place}].when");
        if condition.holds(scope).map_err(render::with_path(&at))? {
            return Ok(*allowed);
        }
    }
    Ok(true)
}
