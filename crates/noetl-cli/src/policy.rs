//! Builds the retention policy from settings.

use noetl_config::Settings;
use noetl_config::tree::Retention;
use noetl_store::retention::{OutOfRange, RetentionPolicy, RetentionWindow};

use crate::error::{CliError, ErrorKind};
use crate::settings;

/// Returns the retention policy, with defaults for unset periods.
pub(crate) fn policy(settings: &Settings) -> Result<RetentionPolicy, CliError> {
    from_retention(&settings::decode(settings)?)
}

/// Returns the retention policy, or `None` if no period is set.
pub(crate) fn policy_if_any(settings: &Settings) -> Result<Option<RetentionPolicy>, CliError> {
    let retention: Retention = settings::decode(settings)?;
    let Retention {
        event_days,
        command_days,
        runtime_minutes,
        outbox_days,
        dedup_days,
        audit_days,
    } = &retention;
    let periods = [event_days, command_days, runtime_minutes, outbox_days, dedup_days, audit_days];
    if periods.into_iter().all(Option::is_none) {
        Ok(None)
    } else {
        from_retention(&retention).map(Some)
    }
}

fn from_retention(retention: &Retention) -> Result<RetentionPolicy, CliError> {
    let wrong = |error: OutOfRange| CliError::from_error(ErrorKind::User, &error);
    let days = |setting, number: Option<i64>, default: RetentionWindow| {
        number.map_or(Ok(default), |days| RetentionWindow::days(setting, days)).map_err(wrong)
    };
    let known = RetentionPolicy::default();
    let runtimes = match retention.runtime_minutes {
        Some(minutes) => {
            RetentionWindow::minutes("runtime_stale_minutes", minutes).map_err(wrong)?
        }
        None => known.runtimes,
    };
    Ok(RetentionPolicy {
        executions: days("event_retention_days", retention.event_days, known.executions)?,
        commands: days("command_retention_days", retention.command_days, known.commands)?,
        runtimes,
        outbox: days("outbox_retention_days", retention.outbox_days, known.outbox)?,
        dedup: days("dedup_retention_days", retention.dedup_days, known.dedup)?,
        audit: days("audit_retention_days", retention.audit_days, known.audit)?,
        expired: known.expired,
    })
}
