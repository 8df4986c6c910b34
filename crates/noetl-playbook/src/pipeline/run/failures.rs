//! Failures of a pipeline run, with the task that caused them.

use noetl_model::{Failure, FailureKind};

use super::PipelineRun;

impl PipelineRun {
    pub(super) fn failure(&self) -> Option<Failure> {
        self.scope.output.as_ref()?.failure.as_deref().cloned()
    }

    /// Returns the failure for a `fail` rule: the tool's failure, or a new one if the tool
    /// succeeded.
    pub(super) fn failed_by(&self, rule: usize) -> Failure {
        let failure = self.failure().unwrap_or_else(|| {
            let task = &self.pipeline.tasks[self.at].label;
            let message =
                format!("task '{task}': its rule {} says that this result is a failure", rule + 1);
            let failure = Failure::new(FailureKind::Other("policy".into()), message);
            failure.with_detail("rule", rule + 1)
        });
        self.placed(failure)
    }

    /// Adds the task's label to a tool's failure, unless the pipeline is a single task.
    pub(super) fn placed(&self, failure: Failure) -> Failure {
        match self.pipeline.tasks.as_slice() {
            [_] if self.segment.is_none() => failure,
            tasks => failure.with_detail("task", &*tasks[self.at].label),
        }
    }

    /// Returns the last failure of a task whose attempts are used up.
    pub(super) fn exhausted(&self) -> Failure {
        let (attempts, task) = (self.attempt, &self.pipeline.tasks[self.at].label);
        let failure = self.failure().unwrap_or_else(|| {
            let message = format!("task '{task}' was not done after {attempts} runs");
            Failure::new(FailureKind::Other("attempts_exhausted".into()), message)
        });
        self.placed(failure).with_detail("attempts", attempts)
    }
}
