//! Runs of a segment of a split pipeline.

use std::sync::Arc;

use noetl_model::scope::{SegmentAnswer, TaskResult};
use noetl_template::{LoadedValues, Scope, ValueSlot, from_json_owned};
use serde_json::{Map, Value, json};

use super::super::call::TaskCall;
use super::{PipelineRun, Stage};

/// Segment of a split pipeline that a run executes.
#[derive(Debug)]
pub(super) struct Segment {
    /// Number of tasks that ran in earlier segments. Their labels come first.
    pub(super) earlier: usize,
    /// Whether the run returns its task results instead of the pipeline's result.
    pub(super) partial: bool,
}

impl Segment {
    /// Returns the result of a segment. `left` contains the results of all tasks, earlier segments
    /// first.
    pub(super) fn answer(&self, mut left: Vec<TaskResult>, broke: bool) -> Value {
        let tasks = left.split_off(self.earlier.min(left.len()));
        json!(SegmentAnswer { broke, tasks })
    }
}

impl PipelineRun {
    /// Makes this the run of a segment after `earlier` tasks, whose results its templates see by
    /// label. If `partial`, the run returns a [`SegmentAnswer`].
    #[must_use]
    pub fn with_segment(mut self, earlier: Vec<TaskResult>, partial: bool) -> Self {
        let labels = Arc::make_mut(&mut self.scope.labels);
        for TaskResult { name, data, failed } in earlier {
            if failed {
                self.failed.insert(name.clone());
            }
            let slot = ValueSlot::from(from_json_owned(data));
            self.last = Some(slot.clone());
            labels.insert(name, slot);
        }
        self.segment = Some(Segment { earlier: labels.len(), partial });
        if let Some(task) = &mut self.scope.task {
            task.previous = self.last.clone();
        }
        self
    }

    /// Returns the scope of the current task's templates.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Removes and returns the variables set with `ctx.*` and `step.*` so far. The end of the run
    /// then contains only variables set later.
    pub fn take_written(&mut self) -> (Map<String, Value>, Map<String, Value>) {
        (std::mem::take(&mut self.ctx), std::mem::take(&mut self.step))
    }

    /// Provides values that were loaded earlier.
    #[must_use]
    pub fn with_loaded(mut self, loaded: Arc<LoadedValues>) -> Self {
        self.loaded = loaded;
        self
    }

    /// Makes the run wait for the outcome of its first task, whose call with this `attempt` was
    /// issued earlier.
    #[must_use]
    pub fn called(mut self, attempt: u32) -> Self {
        let Some(task) = self.pipeline.tasks.first() else { return self };
        self.attempt = attempt;
        self.runs = 1;
        if let Some(scope) = &mut self.scope.task {
            scope.attempt = attempt;
        }
        self.stage = Stage::Called(Box::new(TaskCall {
            label: task.label.clone(),
            kind: task.tool.kind.clone(),
            config: Map::new(),
            input: Map::new(),
            timeout: None,
            attempt,
        }));
        self
    }
}
