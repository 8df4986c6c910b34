//! A run of a pipeline as a state machine.
//!
//! The run decides and its driver acts: the run requests a call, a delay, or a value, and continues
//! with the response. Deterministic: equal responses lead to equal requests.

mod ends;
mod failures;
mod secrets;
mod split;

use std::collections::HashSet;
use std::sync::Arc;

use noetl_model::{Failure, FailureKind, Timestamp};
use noetl_template::{
    Data, LoadedValues, Scope, StepOutput, TaskScope, ValueLoader, ValueRef, ValueSlot, from_json,
    from_json_owned,
};
use serde_json::{Map, Value, json};

use self::secrets::WriteCheck;
use self::split::Segment;
use super::call::{TaskCall, rendered_call};
use super::outcome::{failed_value, select};
use super::request::{PipelineEnd, PipelineRequest};
use super::rules::{RuleError, judge};
use super::writes::{EvaluatedAssignment, note, rendered, write};
use super::{Action, Jump, Pipeline, PipelineTask};
use crate::assignment::SetScope;

/// Default maximum number of task runs in a pipeline run. Far more than any pagination needs; it
/// stops an endless jump.
pub const TASK_RUNS_MAX: u64 = 1_000_000;

#[derive(Debug)]
pub struct PipelineRun {
    pipeline: Arc<Pipeline>,
    scope: Scope,
    loaded: Arc<LoadedValues>,
    stage: Stage,
    /// Index of the current task, and number of its next attempt.
    at: usize,
    attempt: u32,
    /// Number of task runs so far, and their maximum.
    runs: u64,
    runs_max: u64,
    check: Option<WriteCheck>,
    /// Segment of a split pipeline. `None` if the run is the whole pipeline.
    segment: Option<Segment>,
    /// Labels of tasks whose latest run failed.
    failed: HashSet<Arc<str>>,
    /// Result of the latest task run.
    last: Option<ValueSlot>,
    ctx: Map<String, Value>,
    iter: Map<String, Value>,
    step: Map<String, Value>,
}

#[derive(Debug)]
enum Stage {
    /// The current task has to be rendered.
    Render,
    /// The driver runs the task's tool.
    Called(Box<TaskCall>),
    /// The tool succeeded. The task's assignments are next.
    Set,
    /// The task's rules are next.
    Rules,
    /// The rule at this index matched, and its assignments are applied.
    Act(usize),
    /// The task runs again after this number of seconds.
    Pause(f64),
    /// The run has ended, but its end has not been returned yet.
    Over(Box<PipelineEnd>),
    Said,
}

/// Reason that a stage could not finish.
enum StageStop {
    Need(Vec<ValueRef>),
    Secrets(Vec<Arc<str>>),
    /// The keychain rejected a request.
    Refused(Failure),
    /// The task failed before its tool was called.
    Task(Failure),
    Fail(Failure),
}

impl PipelineRun {
    /// Creates a run at the first task.
    pub fn new(pipeline: Arc<Pipeline>, mut scope: Scope) -> Self {
        let iter = scope.iteration.as_ref().map(|iteration| iteration.vars.clone());
        scope.task = Some(TaskScope {
            label: pipeline.tasks.first().map_or_else(|| "".into(), |task| task.label.clone()),
            attempt: 1,
            previous: None,
            iter: iter.unwrap_or_default(),
            duration_ms: None,
        });
        Self {
            pipeline,
            scope,
            loaded: Arc::default(),
            stage: Stage::Render,
            at: 0,
            attempt: 1,
            runs: 0,
            runs_max: TASK_RUNS_MAX,
            check: None,
            segment: None,
            failed: HashSet::new(),
            last: None,
            ctx: Map::new(),
            iter: Map::new(),
            step: Map::new(),
        }
    }

    /// Replaces the maximum number of task runs.
    #[must_use]
    pub fn with_limit(mut self, runs_max: u64) -> Self {
        self.runs_max = runs_max;
        self
    }

    /// Sets the result of `now()` from now on.
    pub fn set_now(&mut self, now: Timestamp) {
        self.scope.now = now;
    }

    /// Returns the next request. Repeats it until the driver has responded.
    pub fn turn(&mut self) -> PipelineRequest {
        loop {
            let done = match &mut self.stage {
                Stage::Render => self.render(),
                Stage::Called(call) => return PipelineRequest::Call(call.clone()),
                Stage::Set => self.set(),
                Stage::Rules => self.rules(),
                Stage::Act(rule) => {
                    let rule = *rule;
                    self.act(rule)
                }
                Stage::Pause(seconds) => {
                    let seconds = *seconds;
                    self.stage = Stage::Render;
                    return PipelineRequest::Pause { seconds };
                }
                Stage::Over(_) | Stage::Said => return PipelineRequest::Done(self.over()),
            };
            match done {
                Ok(()) => {}
                Err(StageStop::Need(places)) => return PipelineRequest::Need(places),
                Err(StageStop::Secrets(names)) => return PipelineRequest::Secrets(names),
                Err(StageStop::Task(failure)) => self.uncalled(failure),
                Err(StageStop::Fail(failure) | StageStop::Refused(failure)) => {
                    self.end(Err(failure))
                }
            }
        }
    }

    /// Provides a requested value, or the reason that it cannot be read.
    pub fn supply(&mut self, place: &ValueRef, loaded_value: Result<Data, String>) {
        // Drop the old `ValueLoader`, which shares `loaded`, so that `make_mut` does not copy it.
        self.scope.reach = ValueLoader::default();
        let loaded = Arc::make_mut(&mut self.loaded);
        match (place, loaded_value) {
            (ValueRef::Blob(reference), Ok(value)) => {
                loaded.insert_blob(reference.digest.clone(), value);
            }
            (ValueRef::Event { seq, .. }, Ok(value)) => {
                loaded.insert_event(*seq, [(None, value)]);
            }
            (place, Err(why)) => loaded.insert_lost(place.clone(), why),
        }
    }

    /// Provides a tool's outcome and duration in milliseconds. Ignored if no call is in flight.
    pub fn answered(&mut self, outcome: Result<Value, Failure>, duration_ms: u64) {
        if !matches!(self.stage, Stage::Called(_)) {
            return;
        }
        match outcome {
            Ok(mut value) => {
                let task = &self.pipeline.tasks[self.at];
                select(&mut value, &task.tool.select);
                let slot = ValueSlot::from(from_json_owned(value));
                self.failed.remove(&task.label);
                self.stage = Stage::Set;
                self.left(slot.clone(), slot, None, duration_ms);
            }
            Err(failure) => self.failed_with(failure, duration_ms),
        }
    }

    /// Records a failed task. Other tasks see the failure; the task's own rules see the tool's
    /// details as data.
    fn failed_with(&mut self, failure: Failure, duration_ms: u64) {
        self.failed.insert(self.pipeline.tasks[self.at].label.clone());
        self.stage = Stage::Rules;
        let data = match failure.details.as_deref() {
            Some(details @ Value::Object(_)) => from_json(details).into(),
            _ => ValueSlot::default(),
        };
        let left = from_json_owned(failed_value(&failure)).into();
        self.left(left, data, Some(Arc::new(failure)), duration_ms);
    }

    /// Records the outcome of the current task.
    fn left(
        &mut self,
        left: ValueSlot,
        data: ValueSlot,
        failure: Option<Arc<Failure>>,
        duration_ms: u64,
    ) {
        let label = self.pipeline.tasks[self.at].label.clone();
        let labels = Arc::make_mut(&mut self.scope.labels);
        // A task that ran again moves to the end.
        if labels.last().is_some_and(|(last, _)| *last != label) {
            labels.shift_remove(&label);
        }
        labels.insert(label, left.clone());
        self.last = Some(left);
        self.scope.output = Some(StepOutput { data, failure, envelope_first: false });
        if let Some(task) = &mut self.scope.task {
            task.duration_ms = Some(duration_ms);
        }
    }

    /// Renders the current task and requests its call.
    fn render(&mut self) -> Result<(), StageStop> {
        if self.runs >= self.runs_max {
            let message = format!(
                "the pipeline ran {} tasks, which is the most one may run; a jump that never ends \
                 is the usual reason, and the worker's limit of task runs can be raised",
                self.runs
            );
            let failure = Failure::new(FailureKind::Other("task_limit".into()), message);
            return Err(StageStop::Fail(failure.with_details(json!({"task_runs": self.runs}))));
        }
        let task = &self.pipeline.tasks[self.at];
        self.scope.output = None;
        if let Some(scope) = &mut self.scope.task {
            scope.label = task.label.clone();
            scope.attempt = self.attempt;
            scope.duration_ms = None;
        }
        let call = self.evaluate(rendered_call).map_err(StageStop::of_task)?;
        self.runs += 1;
        self.stage = Stage::Called(Box::new(TaskCall { attempt: self.attempt, ..call }));
        Ok(())
    }

    fn set(&mut self) -> Result<(), StageStop> {
        let written = self.evaluate(|task, scope| rendered(&task.set, scope))?;
        self.allowed(&written)?;
        self.write(written);
        self.stage = Stage::Rules;
        Ok(())
    }

    fn rules(&mut self) -> Result<(), StageStop> {
        if let Some(output) = &mut self.scope.output {
            output.envelope_first = true;
        }
        match self.evaluate(|task, scope| judge(&task.rules, scope))? {
            Some(judged) => {
                self.allowed(&judged.set)?;
                self.write(judged.set);
                self.stage = Stage::Act(judged.rule);
                Ok(())
            }
            None => match self.failure() {
                Some(failure) => Err(StageStop::Fail(self.placed(failure))),
                None => {
                    self.advance();
                    Ok(())
                }
            },
        }
    }

    fn act(&mut self, place: usize) -> Result<(), StageStop> {
        let pipeline = self.pipeline.clone();
        let rule = &pipeline.tasks[self.at].rules[place];
        match &rule.action {
            Action::Continue => self.advance(),
            Action::Break => self.succeed(true),
            Action::Fail => return Err(StageStop::Fail(self.failed_by(place))),
            Action::Jump(Jump::Previous) => self.enter(self.at.saturating_sub(1)),
            Action::Jump(Jump::To(label)) => match pipeline.find(label) {
                Some(to) => self.enter(to),
                None => self.advance(),
            },
            Action::Retry(_) => {
                let (attempt, failure) = (self.attempt, self.failure());
                let name = format!("rule {}", place + 1);
                let pause = self.evaluate(|_, scope| {
                    let pause = rule.pause(scope, attempt, failure.as_ref());
                    pause.map_err(|trouble| trouble.with_prefix(&name))
                })?;
                let Some(seconds) = pause else { return Err(StageStop::Fail(self.exhausted())) };
                self.attempt = self.attempt.saturating_add(1);
                self.stage = if seconds > 0.0 { Stage::Pause(seconds) } else { Stage::Render };
            }
        }
        Ok(())
    }

    /// Continues with the next task, or ends the run.
    fn advance(&mut self) {
        if self.at + 1 < self.pipeline.tasks.len() {
            self.enter(self.at + 1);
        } else {
            self.succeed(false);
        }
    }

    /// Enters a task with its first attempt.
    fn enter(&mut self, at: usize) {
        self.at = at;
        self.attempt = 1;
        if let Some(task) = &mut self.scope.task {
            task.previous = self.last.clone();
        }
        self.stage = Stage::Render;
    }

    fn write(&mut self, written: Vec<EvaluatedAssignment>) {
        for EvaluatedAssignment { scope, path, value } in written {
            let (names, notes) = match (scope, &mut self.scope.task) {
                (SetScope::Iter, Some(task)) => (&mut task.iter, &mut self.iter),
                (SetScope::Step, _) => (&mut self.scope.step, &mut self.step),
                (SetScope::Ctx | SetScope::Iter, _) => (&mut self.scope.ctx, &mut self.ctx),
            };
            write(Arc::make_mut(names), &path, &value);
            note(notes, &path, value);
        }
    }

    /// Evaluates a part of the current task. Has no effect if a value or secret is missing.
    fn evaluate<T>(
        &mut self,
        what: impl FnOnce(&PipelineTask, &Scope) -> Result<T, RuleError>,
    ) -> Result<T, StageStop> {
        let drawn = self.scope.entropy.position();
        self.scope.reach = ValueLoader::new(self.loaded.clone());
        let task = &self.pipeline.tasks[self.at];
        let result = what(task, &self.scope);
        let needed = self.scope.reach.needed();
        if !needed.is_empty() {
            self.scope.entropy.rewind(drawn);
            return Err(StageStop::Need(needed));
        }
        let secrets = self.scope.reach.secrets();
        if !secrets.is_empty() {
            self.scope.entropy.rewind(drawn);
            return Err(StageStop::Secrets(secrets));
        }
        if let Some(why) = self.scope.reach.refused() {
            let message = format!("task '{}': {why}", task.label);
            return Err(StageStop::Refused(Failure::new(FailureKind::Auth, message)));
        }
        if let Some(lost) = self.scope.reach.lost() {
            let message = format!("task '{}': a value it names cannot be read: {lost}", task.label);
            return Err(StageStop::Fail(Failure::new(FailureKind::TemplateError, message)));
        }
        result.map_err(|trouble| {
            let message = format!("task '{}', {}: {}", task.label, trouble.key, trouble.message);
            let failure = Failure::new(FailureKind::TemplateError, message);
            StageStop::Fail(failure.with_details(trouble.details(&task.label)))
        })
    }
}
