//! Builds the retention policy from flags and the environment.

use noetl_store::retention::{OutOfRange, RetentionPolicy, RetentionWindow};

use crate::arguments::PolicyArguments;
use crate::error::{CliError, ErrorKind};

impl PolicyArguments {
    /// Returns the retention policy, with defaults for unset periods.
    pub(crate) fn policy(&self) -> Result<RetentionPolicy, CliError> {
        let wrong = |error: OutOfRange| CliError::from_error(ErrorKind::User, &error);
        let days = |setting, number: Option<i64>, default: RetentionWindow| {
            number.map_or(Ok(default), |days| RetentionWindow::days(setting, days)).map_err(wrong)
        };
        let known = RetentionPolicy::default();
        let runtimes = match self.runtime_stale_minutes {
            Some(minutes) => {
                RetentionWindow::minutes("runtime_stale_minutes", minutes).map_err(wrong)?
            }
            None => known.runtimes,
        };
        Ok(RetentionPolicy {
            executions: days("event_retention_days", self.event_retention_days, known.executions)?,
            commands: days("command_retention_days", self.command_retention_days, known.commands)?,
            runtimes,
            outbox: days("outbox_retention_days", self.outbox_retention_days, known.outbox)?,
            dedup: days("dedup_retention_days", self.dedup_retention_days, known.dedup)?,
            audit: days("audit_retention_days", self.audit_retention_days, known.audit)?,
            expired: known.expired,
        })
    }

    /// Returns the retention policy, or `None` if no period is set.
    pub(crate) fn policy_if_any(&self) -> Result<Option<RetentionPolicy>, CliError> {
        let said = [
            self.event_retention_days,
            self.command_retention_days,
            self.runtime_stale_minutes,
            self.outbox_retention_days,
            self.dedup_retention_days,
            self.audit_retention_days,
        ];
        if said.iter().all(Option::is_none) { Ok(None) } else { self.policy().map(Some) }
    }
}
