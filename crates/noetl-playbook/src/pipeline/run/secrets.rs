//! What a run does with the keychain, and what it may not set.

use std::fmt;
use std::sync::Arc;

use noetl_model::Failure;

use super::super::writes::Written;
use super::{Run, Stage, Stop};
use crate::template::Data;

impl Stop {
    /// What stops a task before it is called: without a secret it has failed, and its rules decide.
    pub(super) fn of_task(self) -> Self {
        match self {
            Self::Refused(failure) => Self::Task(failure),
            other => other,
        }
    }
}

/// Why something may not be set, if it may not.
type Check = dyn Fn(&Written) -> Option<Failure> + Send + Sync;

/// Looks at what is about to be set; a failure forbids it.
#[derive(Clone)]
pub(super) struct WriteCheck(Arc<Check>);

impl fmt::Debug for WriteCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteCheck")
    }
}

impl Run {
    /// The same run, which fails instead of setting what `check` forbids.
    #[must_use]
    pub fn with_write_check(
        mut self,
        check: impl Fn(&Written) -> Option<Failure> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(WriteCheck(Arc::new(check)));
        self
    }

    /// Gives an entry of the keychain that was asked for; without it, the task that needs it has
    /// failed, and its rules decide.
    pub fn secret(&mut self, name: Arc<str>, found: Result<Data, Failure>) {
        match found {
            Ok(fields) => {
                let keychain = self.scope.keychain.get_or_insert_default();
                Arc::make_mut(keychain).insert(name, fields);
            }
            Err(failure) => self.uncalled(failure),
        }
    }

    /// Forgets the entries of the keychain that were found, so that the next run asks anew.
    pub fn forget_secrets(&mut self) {
        if let Some(keychain) = &mut self.scope.keychain {
            Arc::make_mut(keychain).forget();
        }
    }

    /// Ends a run of the task that was never called, as its tool's failure would.
    pub(super) fn uncalled(&mut self, failure: Failure) {
        if matches!(self.stage, Stage::Render) {
            self.runs += 1;
            self.failed_with(failure, 0);
        } else {
            self.end(Err(failure));
        }
    }

    /// Whether everything may be written; nothing of it is when something may not.
    pub(super) fn allowed(&self, written: &[Written]) -> Result<(), Stop> {
        let Some(WriteCheck(check)) = &self.check else { return Ok(()) };
        match written.iter().find_map(|written| check(written)) {
            Some(failure) => Err(Stop::Fail(self.placed(failure))),
            None => Ok(()),
        }
    }
}
