//! Advances an execution until no further step follows, then ends it if no work is left (R7, R8).

use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::{Fact, Failure, FailureKind, Value};
use noetl_template::{ValueLoader, ValuePatch, ValueSlot, ValueSource, exact_json};

use crate::draft::{Activation, Draft};
use crate::execution::{OpenCommand, PendingFailure, Status};
use crate::values::StoredFailure;

/// Maximum number of step runs that one decision may begin and end. Steps without a tool take no
/// time, so a cycle of them would never end; no reasonable playbook routes through this many.
const INLINE_VISITS_MAX: u32 = 10_000;

impl Draft<'_, '_> {
    /// Enters steps until a command is in flight, a token waits, or the execution has ended.
    pub(crate) fn settle(&mut self) {
        while self.state.status == Status::Running {
            if let Some(failing) = self.state.failing.clone() {
                self.queue.clear();
                if !self.state.commands.is_empty() {
                    return;
                }
                match self.last_step() {
                    Some(activation) => self.enter(activation),
                    None => self.end_failed(&failing),
                }
                continue;
            }
            if let Some(activation) = self.queue.pop_front() {
                self.enter_unless_endless(activation);
            } else if let Some(activation) = self.next_to_fire() {
                self.enter(activation);
            } else if self.tries_held() {
                self.admit_held();
            } else if !self.state.running.is_empty() || !self.state.held.is_empty() {
                return;
            } else if let Some(activation) = self.last_resort().or_else(|| self.last_step()) {
                self.enter(activation);
            } else if let Some(deferred_failure) = self.state.deferred_failure.clone() {
                self.end_failed(&deferred_failure);
            } else {
                self.end_completed();
            }
        }
    }

    /// Returns `true` if tokens that wait for admission must be evaluated: once per decision, and
    /// after each event that could have changed a variable.
    fn tries_held(&mut self) -> bool {
        if self.state.held.is_empty() || self.held_tried == Some(self.events.len()) {
            return false;
        }
        self.held_tried = Some(self.events.len());
        true
    }

    /// Returns the final step, which runs after all others, if it has not run.
    fn last_step(&self) -> Option<Activation> {
        let step = self.playbook.final_step?;
        let is_new = self.state.last_run(&self.playbook.step(step).name) == 0;
        let from = self.state.leaf.clone();
        is_new.then_some(Activation { step, tokens: 0, from, held: false })
    }

    /// Cancels commands that no worker runs. They are terminal at once, so the execution need not
    /// wait for a worker.
    pub(crate) fn cancel_idle(&mut self) {
        self.cancel_commands(|command| command.worker.is_none() || command.parked.is_some());
    }

    /// Cancels the commands for which `which` returns `true`. They are terminal at once.
    pub(crate) fn cancel_commands(&mut self, which: impl Fn(&OpenCommand) -> bool) {
        let open: Vec<_> = self
            .state
            .open_commands()
            .filter(|(_, command)| which(command))
            .map(|(id, command)| (id, command.issued.step.clone()))
            .collect();
        for (command, step) in open {
            self.record(Fact::CommandCancelled { command, step });
        }
    }

    fn enter_unless_endless(&mut self, activation: Activation) {
        if self.inline_visits <= INLINE_VISITS_MAX {
            self.enter(activation);
            return;
        }
        let step = self.playbook.step(activation.step).name.clone();
        let run = self.state.last_run(&step) + 1;
        let tokens = activation.tokens;
        let (round, deadline) = (None, None);
        let name = step.clone();
        self.record(Fact::StepEntered { step: name, run, tokens, round, deadline });
        let message = format!(
            "steps without a tool follow one another more than {INLINE_VISITS_MAX} times; \
             give one of them a tool, or an arc that ends the cycle"
        );
        let failure = Failure::new(FailureKind::Config, message);
        let outcome = noetl_model::StepOutcome::Failed { failure, handled: false, drains: false };
        let next = noetl_model::Routing::default();
        self.record(Fact::StepExited { step, run, outcome, next });
        self.cancel_idle();
    }

    /// Returns the step to run when all others are done: a step named `end` that no arc leads to.
    ///
    /// No tokens should wait here, because one of them can always start its step. If tokens wait
    /// nevertheless, starting their step is better than an execution that never ends.
    fn last_resort(&self) -> Option<Activation> {
        let stuck = self.state.waiting.iter().next();
        debug_assert!(
            stuck.is_none(),
            "waiting steps hold each other up: {:?}",
            self.state.waiting
        );
        if let Some((name, tokens)) = stuck {
            return Some(Activation {
                step: self.playbook.find(name)?,
                tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
                from: tokens.last().cloned(),
                held: false,
            });
        }
        let end = self.playbook.implicit_end?;
        let is_new = self.state.last_run(&self.playbook.step(end).name) == 0;
        is_new.then(|| Activation {
            step: end,
            tokens: 0,
            from: self.state.leaf.clone(),
            held: false,
        })
    }

    fn end_completed(&mut self) {
        let leaf = self.result_step().and_then(|leaf| self.state.results.get(&leaf));
        let leaf = leaf.cloned().unwrap_or_default();
        // A value stored in a blob remains there.
        if let Some(reference) = blob_of(&leaf) {
            let result = Value::Null;
            self.record(Fact::PlaybookCompleted { result, reference: Some(reference) });
            return;
        }
        let reach = ValueLoader::new(self.loaded.values());
        let result = exact_json(&reach.data(&leaf));
        self.need(reach.needed());
        self.record(Fact::PlaybookCompleted { result, reference: None });
    }

    /// Returns the step whose data is the execution's result: the one its parent requested, or else
    /// the last leaf step other than the final step.
    fn result_step(&self) -> Option<Arc<str>> {
        let asked = self.state.started.as_ref().and_then(|started| started.returns.clone());
        if let Some(asked) = asked.filter(|asked| self.state.results.get(asked).is_some()) {
            return Some(asked);
        }
        let last = self.playbook.final_step.map(|ix| &self.playbook.step(ix).name);
        let leaf = self.state.leaf.as_ref();
        if leaf.is_some() && leaf == last {
            return self.state.leaf_before.clone();
        }
        leaf.cloned()
    }

    fn end_failed(&mut self, failing: &PendingFailure) {
        let failure = match &failing.failure {
            StoredFailure::Held(failure) => failure.clone(),
            StoredFailure::At { seq, .. } => {
                self.need(failing.failure.place());
                let lost = || Failure::new(FailureKind::Unknown, "the failure cannot be read");
                self.loaded.failure(*seq).cloned().unwrap_or_else(lost)
            }
        };
        self.record(Fact::PlaybookFailed { step: failing.step.clone(), failure });
    }
}

/// Returns the blob that holds a value, or `None` if the value is not in a blob.
fn blob_of(slot: &ValueSlot) -> Option<Arc<BlobRef>> {
    let ValueSlot::Away(away) = slot else { return None };
    match away.parts.as_slice() {
        [ValuePatch { source: ValueSource::Blob { reference, .. }, .. }] => Some(reference.clone()),
        _ => None,
    }
}
