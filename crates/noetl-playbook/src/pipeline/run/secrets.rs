//! Keychain access of a run, and checks of assignments.

use std::fmt;
use std::sync::Arc;

use noetl_model::Failure;
use noetl_template::Data;

use super::super::writes::EvaluatedAssignment;
use super::{PipelineRun, Stage, StageStop};

impl StageStop {
    /// Converts a keychain rejection before the call to a failure of the task, so that its rules
    /// decide.
    pub(super) fn of_task(self) -> Self {
        match self {
            Self::Refused(failure) => Self::Task(failure),
            other => other,
        }
    }
}

/// Returns a failure if an assignment is forbidden.
type Check = dyn Fn(&EvaluatedAssignment) -> Option<Failure> + Send + Sync;

/// Checks assignments before they are applied. A failure forbids the assignment.
#[derive(Clone)]
pub(super) struct WriteCheck(Arc<Check>);

impl fmt::Debug for WriteCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteCheck")
    }
}

impl PipelineRun {
    /// Makes the run fail instead of applying an assignment that `check` forbids.
    #[must_use]
    pub fn with_write_check(
        mut self,
        check: impl Fn(&EvaluatedAssignment) -> Option<Failure> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(WriteCheck(Arc::new(check)));
        self
    }

    /// Provides a requested keychain entry. On an error, the task that needs it fails, and its
    /// rules decide.
    pub fn secret(&mut self, name: Arc<str>, entry: Result<Data, Failure>) {
        match entry {
            Ok(fields) => {
                let keychain = self.scope.keychain.get_or_insert_default();
                Arc::make_mut(keychain).insert(name, fields);
            }
            Err(failure) => self.uncalled(failure),
        }
    }

    /// Discards resolved keychain entries, so that the next task run requests them again.
    pub fn forget_secrets(&mut self) {
        if let Some(keychain) = &mut self.scope.keychain {
            Arc::make_mut(keychain).forget();
        }
    }

    /// Fails the current task, whose tool was not called, as if its tool had failed.
    pub(super) fn uncalled(&mut self, failure: Failure) {
        if matches!(self.stage, Stage::Render) {
            self.runs += 1;
            self.failed_with(failure, 0);
        } else {
            self.end(Err(failure));
        }
    }

    /// Checks all assignments. Returns an error if any is forbidden; then none of them is applied.
    pub(super) fn allowed(&self, written: &[EvaluatedAssignment]) -> Result<(), StageStop> {
        let Some(WriteCheck(check)) = &self.check else { return Ok(()) };
        match written.iter().find_map(|written| check(written)) {
            Some(failure) => Err(StageStop::Fail(self.placed(failure))),
            None => Ok(()),
        }
    }
}
