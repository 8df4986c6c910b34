//! `noetl audit export`: writes audit records as JSON lines, oldest first.

use std::collections::HashSet;
use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::credentials::SecretAuditRow;
use serde_json::{Value, json};

use super::syslog::Syslog;
use crate::arguments::ExportAuditArguments;
use crate::error::{CliError, ErrorKind};
use crate::output;
use crate::remote::{self, Remote};

/// Records per page: the maximum that a server returns.
const PAGE: usize = 10_000;

pub(crate) fn main(arguments: &ExportAuditArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.remote, async |remote| {
        let mut syslog = arguments.syslog.as_ref().map(Syslog::connect).transpose()?;
        let rows = all(&remote, arguments).await?;
        for row in rows.iter().rev() {
            let line = record(row);
            match &mut syslog {
                Some(syslog) => syslog.send(row, &line)?,
                None => output::data(format!("{line}\n").as_bytes())?,
            }
        }
        if syslog.is_some() {
            output::note(&format!("{} records sent", rows.len()));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns all records, latest first.
///
/// Each page starts at the time of the last record of the page before it, and records that both
/// pages contain are dropped once. Fails if a full page of records has the same time.
async fn all(
    remote: &Remote,
    arguments: &ExportAuditArguments,
) -> Result<Vec<SecretAuditRow>, CliError> {
    let (mut rows, mut known) = (Vec::new(), HashSet::new());
    let mut to = arguments.to;
    loop {
        let page = remote.ask(calls::audit_between(arguments.from, to, PAGE)).await?.value.rows;
        let (count, end) = (page.len(), page.last().map(|row| row.occurred_at));
        let before = rows.len();
        rows.extend(page.into_iter().filter(|row| known.insert(row.audit_id.to_string())));
        if count < PAGE {
            return Ok(rows);
        }
        if rows.len() == before {
            let message = format!("more than {PAGE} records have the same time");
            return Err(CliError::new(ErrorKind::Config, message));
        }
        to = end;
    }
}

/// Returns a record as a JSON object with actor, operation, target, time, and outcome.
fn record(row: &SecretAuditRow) -> Value {
    json!({
        "id": row.audit_id,
        "time": row.occurred_at,
        "actor": row.worker_id,
        "operation": row.operation,
        "target": row.credential,
        "outcome": row.outcome,
        "execution_id": row.execution_id,
        "parent_execution_id": row.parent_execution_id,
        "key_version": row.kek_version,
        "notes": row.notes,
    })
}
