//! Calls of playbooks within a pipeline.

use std::sync::Arc;

use noetl_model::event::{BlobRef, CommandSpec};
use noetl_model::parked::CONTROL_PLANE;
use noetl_model::scope::{CommandScope, EarlierSegment};
use noetl_model::{CommandId, Fact, Failure, FailureKind, Value};
use noetl_playbook::document::{PlaybookCall, Segment, Step};
use noetl_playbook::pipeline::{PipelineRequest, PipelineRun};
use noetl_template::{Scope, ValueLoader, exact_json};

use super::super::issue::{CommandParts, Made, PIPELINE};
use super::super::timeouts;
use super::{NextSegment, SegmentValue, away, segment_of, split_of};
use crate::draft::Draft;
use crate::slice;

impl Draft<'_, '_> {
    /// Renders a call and starts it. A call that can't be rendered fails the pipeline, like a task
    /// on a worker.
    pub(super) fn issue_call(
        &mut self,
        step: &Step,
        call: &PlaybookCall,
        scope: &Scope,
        next: NextSegment,
    ) -> Result<(), String> {
        let (run, item) = (next.run, next.item.clone());
        let carried = next.carried(slice::bare(scope));
        let Some(pipeline) = self.call_run(call, scope, &carried) else { return Ok(()) };
        let mut pipeline = pipeline?;
        let rendered = match pipeline.turn() {
            PipelineRequest::Call(task) => Ok(*task),
            PipelineRequest::Need(places) => {
                self.need(places);
                return Ok(());
            }
            PipelineRequest::Done(end) => Err(end.outcome.err().unwrap_or_else(unreadable)),
            PipelineRequest::Secrets(_) | PipelineRequest::Pause { .. } => Err(unreadable()),
        };
        let limit = call
            .limit
            .as_ref()
            .map(|limit| timeouts::resolve_timeout(limit, &step.name, pipeline.scope()));
        if self.misses(pipeline.scope()) {
            return Ok(());
        }
        let (timeout, misled) = match limit {
            None => (rendered.as_ref().ok().and_then(|task| task.timeout), None),
            Some(Ok(timeout)) => (timeout, None),
            Some(Err(failure)) => (None, Some(failure)),
        };
        let parts = CommandParts { kind: call.task().tool.kind.clone(), timeout, idempotent: true };
        let scoped = Some(carried);
        let (made, unrendered) = match rendered {
            Ok(task) => (Made { config: task.config, input: task.input, scope: scoped }, None),
            Err(failure) => (Made { scope: scoped, ..Made::default() }, Some(failure)),
        };
        let (id, issued) = self.hand_out(step, run, scope, parts, Ok(made), item)?;
        if !self.needed.is_empty() {
            return Ok(());
        }
        match unrendered {
            None => self.claim_control_tool(id, &issued, misled),
            Some(failure) => {
                let (step, worker) = (issued.step.clone(), Arc::from(CONTROL_PLANE));
                self.record(Fact::CommandClaimed { command: id, step, worker });
                self.failed(id, &issued, failure);
            }
        }
        Ok(())
    }

    /// Ends a call after applying the task's policy rules to its outcome.
    pub(in crate::flow) fn call_ended(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
        outcome: Result<Value, Failure>,
        reference: Option<Arc<BlobRef>>,
    ) {
        let Some((step, split)) = split_of(self.playbook, issued) else { return };
        let Some(Segment::Call(call)) = segment_of(split, issued) else { return };
        let (Some(scope), Some(carried)) =
            (self.segment_scope(step, issued), issued.scope.as_deref())
        else {
            return;
        };
        let task = call.task();
        // Only `set`, rules, and selections read the data.
        let is_read = !task.set.is_empty() || !task.rules.is_empty();
        let is_read = is_read || !task.tool.select.is_empty();
        let fields = outcome.as_ref().ok().cloned();
        let outcome = match (outcome, &reference) {
            (Ok(_), Some(reference)) if is_read => match self.blob(reference) {
                None => return,
                Some(read) => read,
            },
            (outcome, _) => outcome,
        };
        let pipeline = match self.call_run(call, &scope, carried) {
            None => return,
            Some(Ok(pipeline)) => pipeline,
            Some(Err(message)) => {
                let failure = Failure::new(FailureKind::TemplateError, message);
                return self.failed(command, issued, failure);
            }
        };
        let failed = outcome.is_err();
        let since = self.state.open_command(command).map_or(self.moment.now, |open| open.since);
        let took = u64::try_from(self.moment.now.since(since).as_millis()).unwrap_or(u64::MAX);
        let mut pipeline = pipeline.called(issued.attempt);
        pipeline.answered(outcome.clone(), took);
        let mut turn = pipeline.turn();
        let mut pause = None;
        if let PipelineRequest::Pause { seconds } = turn {
            pause = Some(seconds);
            turn = pipeline.turn();
        }
        match turn {
            PipelineRequest::Need(places) => self.need(places),
            PipelineRequest::Secrets(_) | PipelineRequest::Pause { .. } => {
                self.failed(command, issued, unreadable())
            }
            PipelineRequest::Call(task) => {
                let (ctx, locals) = pipeline.take_written();
                self.write_context(issued, ctx, locals);
                let again = CommandSpec {
                    attempt: issued.attempt.saturating_add(1),
                    config: task.config,
                    input: task.input,
                    ..(**issued).clone()
                };
                let seconds = pause.unwrap_or_default();
                self.retry_own(command, issued, outcome.err(), again, seconds);
            }
            PipelineRequest::Done(end) => match end.outcome {
                Err(failure) => {
                    self.write_context(issued, end.ctx, end.step);
                    self.failed(command, issued, failure);
                }
                Ok(answer) => {
                    let broke = answer.get("break").and_then(Value::as_bool) == Some(true);
                    let kind = EarlierSegment::Call { name: task.label.clone(), failed };
                    // A selection changes the data, which would become part of the event log.
                    if reference.is_some() && !task.tool.select.is_empty() {
                        return self.failed(command, issued, unselectable());
                    }
                    let (data, value) = match (&reference, fields) {
                        (Some(reference), Some(fields)) => {
                            (fields, SegmentValue::Blob(reference.clone()))
                        }
                        _ => {
                            let result = answer.get("tasks").and_then(|tasks| tasks.get(0));
                            let data = result.and_then(|result| result.get("data")).cloned();
                            let data = data.unwrap_or_default();
                            (data.clone(), SegmentValue::Inline(data))
                        }
                    };
                    let name = issued.step.clone();
                    self.record(Fact::CallDone { command, step: name, data, reference, run: None });
                    self.write_context(issued, end.ctx, end.step);
                    self.segment_ended(command, issued, (step, split), kind, value, broke);
                }
            },
        }
    }

    /// Returns the pipeline pipeline of a call after the tasks that a command carries, or `None` if a
    /// value is missing.
    fn call_run(
        &mut self,
        call: &PlaybookCall,
        scope: &Scope,
        carried: &CommandScope,
    ) -> Option<Result<PipelineRun, String>> {
        let tasks = self.earlier(carried)?;
        Some(tasks.map(|tasks| {
            PipelineRun::new(call.pipeline.clone(), scope.clone())
                .with_loaded(self.loaded.values())
                .with_segment(tasks, true)
        }))
    }

    /// Returns the whole result of a call, or `None` if it is not loaded.
    fn blob(&mut self, reference: &Arc<BlobRef>) -> Option<Result<Value, Failure>> {
        let reach = ValueLoader::new(self.loaded.values());
        let value = exact_json(&reach.data(&away(reference)));
        let missing = reach.needed();
        if !missing.is_empty() {
            self.need(missing);
            return None;
        }
        Some(match reach.lost() {
            Some(lost) => Err(Failure::new(FailureKind::TemplateError, lost)),
            None => Ok(value),
        })
    }
}

/// Returns `true` if a command is a call of a split pipeline.
pub(crate) fn is_call(issued: &CommandSpec) -> bool {
    issued.split().is_some() && &*issued.tool != PIPELINE
}

fn unreadable() -> Failure {
    let message = "a call of a playbook can't read the keychain";
    Failure::new(FailureKind::Config, message)
}

fn unselectable() -> Failure {
    let message = "output_select can't be applied to a result of more than 64 KiB of a playbook in a \
                   pipeline; select in the called playbook, or call it in a step of its own";
    Failure::new(FailureKind::Config, message)
}
