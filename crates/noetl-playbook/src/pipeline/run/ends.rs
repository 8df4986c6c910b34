//! End of a run: its result, and the variables it wrote.

use noetl_model::scope::TaskResult;
use noetl_model::{Failure, FailureKind};
use noetl_template::{ValueSlot, exact_json};
use serde_json::{Map, Value};

use super::super::outcome::merged;
use super::super::request::PipelineEnd;
use super::{PipelineRun, Stage};

impl PipelineRun {
    /// Ends the run successfully: after its last task, or because of a `break` rule.
    pub(super) fn succeed(&mut self, broke: bool) {
        let labels = std::mem::take(&mut self.scope.labels);
        let left = labels.iter().map(|(label, slot)| TaskResult {
            name: label.clone(),
            data: match slot {
                ValueSlot::Held(data) => exact_json(data),
                ValueSlot::Away(_) => Value::Null,
            },
            failed: self.failed.contains(label),
        });
        let left: Vec<TaskResult> = left.collect();
        let result = match &self.segment {
            Some(segment) if segment.partial => segment.answer(left, broke),
            _ => merged(left),
        };
        self.end(Ok(result));
    }

    pub(super) fn end(&mut self, outcome: Result<Value, Failure>) {
        self.stage = Stage::Over(Box::new(PipelineEnd {
            outcome,
            ctx: std::mem::take(&mut self.ctx),
            iter: std::mem::take(&mut self.iter),
            step: std::mem::take(&mut self.step),
        }));
    }

    pub(super) fn over(&mut self) -> Box<PipelineEnd> {
        match std::mem::replace(&mut self.stage, Stage::Said) {
            Stage::Over(end) => end,
            _ => Box::new(PipelineEnd {
                outcome: Err(Failure::new(FailureKind::Unknown, "the pipeline is over already")),
                ctx: Map::new(),
                iter: Map::new(),
                step: Map::new(),
            }),
        }
    }
}
