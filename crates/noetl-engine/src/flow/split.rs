//! Pipelines that call playbooks, segment by segment.
//!
//! Every command of such a pipeline carries its segment and the results of earlier segments, so the
//! open command is all the state there is: a command that is reissued, forked, or restored from a
//! snapshot needs nothing else.

mod call;

use std::sync::Arc;

use noetl_model::event::{BlobRef, CommandSpec, LoopItem};
use noetl_model::parked::CONTROL_PLANE;
use noetl_model::scope::{
    CommandScope, EarlierSegment, ScopeBlob, ScopePart, SplitScope, TaskResult,
};
use noetl_model::{CommandId, Fact, Failure, FailureKind, Map, Value};
use noetl_playbook::Playbook;
use noetl_playbook::document::{Segment, Split, Step, StepWork};
use noetl_playbook::pipeline::{earlier_blob, earlier_key, earlier_tasks, merged};
use noetl_template::{Data, Scope, ValueLoader, ValuePatch, ValueSlot, ValueSource, exact_json};

use super::issue::{CommandParts, Made, PIPELINE, object};
use crate::draft::Draft;
use crate::values::size_of;
use crate::{scope, slice};
pub(crate) use call::is_call;

/// Maximum size, in bytes, of earlier results that the control plane merges itself. A worker merges
/// larger ones and stores a large result as a blob.
const MERGED_HERE_MAX: usize = 64 * 1024;

/// The segment of a step run to issue next.
pub(super) struct NextSegment {
    pub(super) run: u32,
    pub(super) item: Option<LoopItem>,
    pub(super) split: SplitScope,
    /// Results of earlier segments. Those too large for the event log are in `blobs`.
    earlier: Map,
    blobs: Vec<ScopeBlob>,
}

impl NextSegment {
    pub(super) fn first(
        run: u32,
        item: Option<LoopItem>,
        from: Option<Arc<str>>,
        attempt: u32,
    ) -> Self {
        let split = SplitScope { segment: 0, partial: true, from, attempt, tasks: Vec::new() };
        Self { run, item, split, earlier: Map::new(), blobs: Vec::new() }
    }

    /// Returns the segment after that of a command with this result.
    fn after(
        issued: &CommandSpec,
        segment: u32,
        kind: EarlierSegment,
        answer: SegmentValue,
    ) -> Self {
        let (mut split, mut earlier, mut blobs) = match issued.scope.as_deref() {
            Some(scope @ CommandScope { split: Some(split), .. }) => {
                let blobs = scope.blobs.iter().filter(|blob| blob.among == ScopePart::Earlier);
                ((**split).clone(), scope.earlier.clone(), blobs.cloned().collect::<Vec<_>>())
            }
            _ => return Self::first(issued.run, issued.item.clone(), None, 1),
        };
        let key = earlier_key(split.tasks.len());
        match answer {
            SegmentValue::Inline(value) => drop(earlier.insert(key, value)),
            SegmentValue::Blob(reference) => blobs.push(ScopeBlob {
                among: ScopePart::Earlier,
                name: Arc::from(key),
                reference,
                fields: Value::Null,
            }),
        }
        split.tasks.push(kind);
        split.segment = segment;
        Self { run: issued.run, item: issued.item.clone(), split, earlier, blobs }
    }

    /// Adds the results of earlier segments to the scope of a command.
    fn carried(self, scope: CommandScope) -> Box<CommandScope> {
        let blobs = [scope.blobs, self.blobs].concat();
        let (earlier, split) = (self.earlier, Some(Box::new(self.split)));
        Box::new(CommandScope { blobs, earlier, split, ..scope })
    }
}

pub(super) enum SegmentValue {
    Inline(Value),
    Blob(Arc<BlobRef>),
}

impl Draft<'_, '_> {
    /// Issues a segment, or, after the last call, the command that merges the results.
    pub(super) fn issue_segment(
        &mut self,
        step: &Step,
        split: &Split,
        scope: &Scope,
        mut next: NextSegment,
    ) -> Result<(), String> {
        let at = usize::try_from(next.split.segment).unwrap_or(usize::MAX);
        match split.segments.get(at) {
            Some(Segment::Tasks(pipeline)) => {
                next.split.partial = at + 1 < split.segments.len();
                let slice = slice::slice_scope(pipeline.mentions(), scope, &self.playbook.keychain);
                let idempotent = pipeline.tasks.iter().all(|task| task.tool.idempotent);
                let parts = CommandParts { kind: Arc::from(PIPELINE), timeout: None, idempotent };
                let (run, item) = (next.run, next.item.clone());
                let config = object((*pipeline.source).clone());
                let made = Made { config, input: Map::new(), scope: Some(next.carried(slice)) };
                self.hand_out(step, run, scope, parts, Ok(made), item).map(|_| ())
            }
            Some(Segment::Call(call)) => {
                next.split.partial = true;
                self.issue_call(step, call, scope, next)
            }
            None => {
                next.split.partial = false;
                self.issue_merge(step, scope, next)
            }
        }
    }

    /// Issues the command whose result is that of the whole pipeline, and completes it at once if
    /// the results are small.
    fn issue_merge(&mut self, step: &Step, scope: &Scope, next: NextSegment) -> Result<(), String> {
        let (run, item) = (next.run, next.item.clone());
        let bytes: usize = next.earlier.values().map(size_of).sum();
        let is_small = next.blobs.is_empty() && bytes <= MERGED_HERE_MAX;
        let carried = next.carried(slice::bare(scope));
        let tasks = match is_small.then(|| self.earlier(&carried)) {
            None => None,
            Some(None) => return Ok(()),
            Some(Some(tasks)) => Some(tasks?),
        };
        let config = Map::from_iter([("tasks".to_owned(), Value::Array(Vec::new()))]);
        let made = Made { config, input: Map::new(), scope: Some(carried) };
        let parts = CommandParts { kind: Arc::from(PIPELINE), timeout: None, idempotent: true };
        let (command, issued) = self.hand_out(step, run, scope, parts, Ok(made), item)?;
        if let Some(tasks) = tasks.filter(|_| self.needed.is_empty()) {
            let (step, worker) = (issued.step.clone(), Arc::from(CONTROL_PLANE));
            self.record(Fact::CommandClaimed { command, step: step.clone(), worker });
            let (data, reference, run) = (merged(tasks), None, None);
            self.record(Fact::CallDone { command, step, data, reference, run });
            self.completed(command, &issued);
        }
        Ok(())
    }

    /// Issues the next segment after a command whose result is recorded and isn't that of the last
    /// one.
    pub(super) fn segment_completed(&mut self, command: CommandId, issued: &Arc<CommandSpec>) {
        let Some((step, split)) = split_of(self.playbook, issued) else { return };
        let Some(segment) = segment_of(split, issued) else { return };
        let answer = self.state.open_command(command).and_then(|open| open.answer.clone());
        let slot = answer.map(|stored| stored.slot).unwrap_or_default();
        let kind = match segment {
            Segment::Tasks(_) => EarlierSegment::Tasks,
            Segment::Call(call) => {
                EarlierSegment::Call { name: call.task().label.clone(), failed: false }
            }
        };
        let known = blob_of(&slot);
        let reach = ValueLoader::new(self.loaded.values());
        // The known fields of a blob depend on how many values are in memory.
        let fields = known.as_ref().map(|(_, fields)| exact_json(fields));
        let fields = fields.filter(|fields| fields.get("break").is_some());
        let value = fields.unwrap_or_else(|| exact_json(&reach.data(&slot)));
        let missing = reach.needed();
        if !missing.is_empty() {
            return self.need(missing);
        }
        if let Some(lost) = reach.lost() {
            let failure = Failure::new(FailureKind::TemplateError, lost);
            return self.failed(command, issued, failure);
        }
        let broke = value.get("break").and_then(Value::as_bool);
        let value = match known {
            Some((reference, _)) => SegmentValue::Blob(reference),
            None => SegmentValue::Inline(value),
        };
        if kind == EarlierSegment::Tasks && broke.is_none() {
            return self.failed(command, issued, outdated());
        }
        self.segment_ended(command, issued, (step, split), kind, value, broke == Some(true));
    }

    /// Returns `true` if the result of a last segment lacks those of earlier ones, like that of a
    /// worker that doesn't support split pipelines. The command has then failed, or a value is
    /// missing.
    pub(super) fn lacks_earlier(&mut self, command: CommandId, issued: &Arc<CommandSpec>) -> bool {
        let tasks = issued.config.get("tasks").and_then(Value::as_array);
        let mut earlier = issued.split().into_iter().flat_map(|split| &split.tasks);
        let call = earlier.find_map(|segment| match segment {
            EarlierSegment::Call { name, .. } => Some(name),
            EarlierSegment::Tasks => None,
        });
        // Without tasks, the results may be those of a single task, which has no label.
        let Some(call) = call.filter(|_| tasks.is_some_and(|tasks| !tasks.is_empty())) else {
            return false;
        };
        let answer = self.state.open_command(command).and_then(|open| open.answer.clone());
        let slot = answer.map(|stored| stored.slot).unwrap_or_default();
        if slot.known_field(call).is_some() {
            return false;
        }
        let reach = ValueLoader::new(self.loaded.values());
        let data = reach.data(&slot);
        let missing = reach.needed();
        if !missing.is_empty() {
            self.need(missing);
            return true;
        }
        if let Some(lost) = reach.lost() {
            self.failed(command, issued, Failure::new(FailureKind::TemplateError, lost));
            return true;
        }
        let has_call = data.as_object().is_some_and(|data| data.get_value_by_str(call).is_some());
        if !has_call {
            self.failed(command, issued, outdated());
        }
        !has_call
    }

    /// Completes the command of a segment and issues the next one.
    fn segment_ended(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
        (step, split): (&Step, &Split),
        kind: EarlierSegment,
        answer: SegmentValue,
        broke: bool,
    ) {
        let name = issued.step.clone();
        // The item of a loop ends with the last segment.
        self.record(Fact::CommandCompleted { command, step: name, item: None });
        // A failing execution starts only its final step; it ends with its last command.
        if self.state.is_failing() && !self.is_final(&issued.step) {
            return;
        }
        let at = issued.split().map_or(0, |split| split.segment);
        let end = u32::try_from(split.segments.len()).unwrap_or(u32::MAX);
        let segment = if broke { end } else { at.saturating_add(1) };
        let next = NextSegment::after(issued, segment, kind, answer);
        let Some(scope) = self.segment_scope(step, issued) else { return };
        if let Err(message) = self.issue_segment(step, split, &scope, next) {
            match &issued.item {
                None => self.exit_unrendered(step, issued.run, message),
                Some(item) => {
                    self.fail_unrendered(step, issued.run, item.clone(), message);
                    self.advance_loop(&issued.step, issued.run);
                }
            }
        }
    }

    /// Restarts a row of a cursor from its first segment.
    pub(super) fn restart_split(&mut self, issued: &Arc<CommandSpec>, attempt: u32) {
        let Some((step, split)) = split_of(self.playbook, issued) else { return };
        let Some(scope) = self.segment_scope(step, issued) else { return };
        let next = NextSegment::first(issued.run, issued.item.clone(), None, attempt);
        let item = issued.item.clone();
        if let (Err(message), Some(item)) = (self.issue_segment(step, split, &scope, next), item) {
            self.fail_unrendered(step, issued.run, item, message);
            self.advance_loop(&issued.step, issued.run);
        }
    }

    /// Returns the results of the tasks before a segment, or `None` if a value is missing.
    fn earlier(&mut self, carried: &CommandScope) -> Option<Result<Vec<TaskResult>, String>> {
        let split = carried.split.as_deref()?;
        let reach = ValueLoader::new(self.loaded.values());
        let answer = |segment: usize| match earlier_blob(carried, segment) {
            Some(reference) => exact_json(&reach.data(&away(reference))),
            None => carried.earlier.get(&earlier_key(segment)).cloned().unwrap_or_default(),
        };
        let answers: Vec<Value> = (0..split.tasks.len()).map(answer).collect();
        let missing = reach.needed();
        if !missing.is_empty() {
            self.need(missing);
            return None;
        }
        Some(match reach.lost() {
            Some(lost) => Err(lost),
            None => earlier_tasks(split, answers),
        })
    }

    /// Returns the scope of a segment's templates, without the results of earlier tasks.
    fn segment_scope(&self, step: &Step, issued: &CommandSpec) -> Option<Scope> {
        let Some(item) = &issued.item else {
            let from = issued.split().and_then(|split| split.from.as_deref());
            return Some(scope::tool_scope(self, from));
        };
        let step_run_key = (issued.step.clone(), issued.run);
        let from = self.loop_state(&step_run_key)?.from.clone();
        Some(self.item_scope(step.repeat.as_ref()?, &step_run_key, from.as_deref(), item.index))
    }
}

/// Returns the step and the split pipeline of a command, or `None` if its pipeline is not split.
fn split_of<'p>(playbook: &'p Playbook, issued: &CommandSpec) -> Option<(&'p Step, &'p Split)> {
    issued.split()?;
    let step = playbook.step(playbook.find(&issued.step)?);
    match &step.work {
        StepWork::Split(split) => Some((step, split)),
        StepWork::Route | StepWork::Tool(_) | StepWork::Pipeline(_) | StepWork::Own(_) => None,
    }
}

/// Returns the segment that a command runs.
fn segment_of<'s>(split: &'s Split, issued: &CommandSpec) -> Option<&'s Segment> {
    let segment = usize::try_from(issued.split()?.segment).ok()?;
    split.segments.get(segment)
}

fn outdated() -> Failure {
    let message = "the worker answered without the results of each task, which a pipeline that \
                   calls a playbook needs; upgrade the worker";
    Failure::new(FailureKind::Config, message)
}

fn away(reference: &Arc<BlobRef>) -> ValueSlot {
    ValueSlot::away(ValueSource::Blob { reference: reference.clone(), fields: Data::from(()) })
}

/// Returns the blob that holds a value, with its known fields.
fn blob_of(slot: &ValueSlot) -> Option<(Arc<BlobRef>, Data)> {
    let ValueSlot::Away(away) = slot else { return None };
    match away.parts.as_slice() {
        [ValuePatch { source: ValueSource::Blob { reference, fields }, .. }] => {
            Some((reference.clone(), fields.clone()))
        }
        _ => None,
    }
}
