//! Pipelines that call playbooks.

use std::sync::Arc;

use super::TimeLimit;
use crate::pipeline::{Pipeline, Task};

/// A pipeline, split at its `playbook` tasks. It has at least one call and two segments.
///
/// No jump leads from one segment to another, and no `iter` or `step` variable set in one is read in
/// a later one, so that the results of tasks are all that a segment needs of earlier ones.
#[derive(Debug)]
pub struct Split {
    /// The segments, in order.
    pub segments: Vec<Segment>,
}

/// Part of a split pipeline that is one command.
#[derive(Debug)]
pub enum Segment {
    /// Tasks that one worker runs in a row.
    Tasks(Arc<Pipeline>),
    /// A `playbook` task, which the control plane runs.
    Call(Box<Call>),
}

/// A `playbook` task of a pipeline.
#[derive(Debug)]
pub struct Call {
    /// The task, as a pipeline of one.
    pub pipeline: Arc<Pipeline>,
    /// Timeout, if a template gives it.
    pub limit: Option<TimeLimit>,
}

impl Call {
    /// Returns the task itself.
    pub fn task(&self) -> &Task {
        &self.pipeline.tasks[0]
    }
}

impl Split {
    /// Returns the calls of playbooks, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Call(call) => Some(&**call),
            Segment::Tasks(_) => None,
        })
    }

    /// Returns the tasks of all segments, in order.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.segments.iter().flat_map(|segment| match segment {
            Segment::Tasks(pipeline) => pipeline.tasks.as_slice(),
            Segment::Call(call) => call.pipeline.tasks.as_slice(),
        })
    }
}
