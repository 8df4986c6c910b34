//! Pipelines with playbook tasks, split into segments at the calls.

use std::sync::Arc;

use super::TimeLimit;
use crate::pipeline::{Pipeline, PipelineTask};

/// A pipeline, split at its `playbook` tasks. Has at least one call and two segments.
///
/// No jump leads from one segment to another, and no `iter` or `step` variable set in a segment is
/// read in a later one. A segment therefore needs only the task results of earlier segments.
#[derive(Debug)]
pub struct Split {
    /// Segments in execution order.
    pub segments: Vec<Segment>,
}

/// Part of a split pipeline that is a single command.
#[derive(Debug)]
pub enum Segment {
    /// Tasks that a single worker runs in sequence.
    Tasks(Arc<Pipeline>),
    /// A `playbook` task, which the control plane runs.
    Call(Box<PlaybookCall>),
}

/// A `playbook` task of a pipeline.
#[derive(Debug)]
pub struct PlaybookCall {
    /// The task as a pipeline of one task.
    pub pipeline: Arc<Pipeline>,
    /// Time limit, if a template determines it.
    pub limit: Option<TimeLimit>,
}

impl PlaybookCall {
    pub fn task(&self) -> &PipelineTask {
        &self.pipeline.tasks[0]
    }
}

impl Split {
    /// Returns the playbook calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &PlaybookCall> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Call(call) => Some(&**call),
            Segment::Tasks(_) => None,
        })
    }

    /// Returns the tasks of all segments, in order.
    pub fn tasks(&self) -> impl Iterator<Item = &PipelineTask> {
        self.segments.iter().flat_map(|segment| match segment {
            Segment::Tasks(pipeline) => pipeline.tasks.as_slice(),
            Segment::Call(call) => call.pipeline.tasks.as_slice(),
        })
    }
}
