//! What a run fails with.

use noetl_model::{Failure, FailureKind};

use super::Run;

impl Run {
    pub(super) fn failure(&self) -> Option<Failure> {
        self.scope.output.as_ref()?.failure.as_deref().cloned()
    }

    /// What a rule that fails the pipeline fails it with.
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

    /// A tool's failure with the task it is of, where that is not plain.
    pub(super) fn placed(&self, failure: Failure) -> Failure {
        match self.pipeline.tasks.as_slice() {
            [_] if self.segment.is_none() => failure,
            tasks => failure.with_detail("task", &*tasks[self.at].label),
        }
    }

    /// The last failure of a task that was tried often enough.
    pub(super) fn exhausted(&self) -> Failure {
        let (attempts, task) = (self.attempt, &self.pipeline.tasks[self.at].label);
        let failure = self.failure().unwrap_or_else(|| {
            let message = format!("task '{task}' was not done after {attempts} runs");
            Failure::new(FailureKind::Other("attempts_exhausted".into()), message)
        });
        self.placed(failure).with_detail("attempts", attempts)
    }
}
