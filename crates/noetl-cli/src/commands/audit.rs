//! `noetl audit`: lists, exports, and verifies audit records of secrets.

mod export;
mod syslog;

use std::process::ExitCode;
use std::time::Duration;

use noetl_api::calls;
use noetl_api::credentials::SecretAuditRow;
use noetl_config::tree::Retention;
use noetl_model::{Clock as _, ExecutionId, Timestamp};
use noetl_secrets::{AuditCheck, verify_audit, verify_sealed};
use noetl_store::SystemClock;
use serde_json::json;

use super::credential::reseal;
use super::format::time;
use crate::arguments::{AuditArguments, AuditCommand, Output, VerifyAuditArguments};
use crate::database::Database;
use crate::error::{CliError, ErrorKind};
use crate::output::answers::show;
use crate::output::table::{Table, TableCell, Tone};
use crate::output::{self, style};
use crate::{remote, settings};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn main(command: AuditCommand) -> Result<ExitCode, CliError> {
    match command {
        AuditCommand::List(arguments) => list(&arguments),
        AuditCommand::Export(arguments) => export::main(&arguments),
        AuditCommand::Verify(arguments) => verify(&arguments),
    }
}

fn list(arguments: &AuditArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.remote, async |remote| {
        let execution = arguments.execution.map(ExecutionId::new);
        let call = calls::audit(arguments.credential.as_deref(), execution, arguments.limit);
        let answer = remote.ask(call).await?;
        show(remote.form, &answer.body, |style| {
            table(&answer.value.rows).render(style, "no secret requests")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(rows: &[SecretAuditRow]) -> Table<6> {
    let mut table = Table::new(["TIME", "CREDENTIAL", "ASKED", "CAME OF IT", "BY", "EXECUTION"]);
    for row in rows {
        let tone = if row.outcome == "ok" { Tone::Good } else { Tone::Bad };
        table.row([
            TableCell::new(time(row.occurred_at)),
            TableCell::new(&row.credential),
            TableCell::new(&row.operation),
            TableCell::new(&row.outcome).toned(tone),
            TableCell::maybe(row.worker_id.as_ref()),
            TableCell::maybe(row.execution_id.as_ref()),
        ]);
    }
    table
}

fn verify(arguments: &VerifyAuditArguments) -> Result<ExitCode, CliError> {
    let purged_before = purged_before(arguments)?;
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    runtime.block_on(async {
        let db = &arguments.db;
        let database = Database::configured(&db.flags.settings())?;
        let name = database.name();
        let open = database.look_at().await?;
        let key = reseal::key(db)?;
        let store = open.store();
        let check = verify_audit(&*store, arguments.head, purged_before).await;
        let sealed = verify_sealed(&*store, key.as_ref()).await;
        drop(store);
        open.close().await;
        let mut check = check.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
        check
            .problems
            .extend(sealed.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?);
        report(&name, &check, db.output)?;
        Ok(if check.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Returns the time after which every use of a secret must have a record; earlier uses may have
/// been purged.
fn purged_before(arguments: &VerifyAuditArguments) -> Result<Timestamp, CliError> {
    /// Days for which a server retains records by default.
    const DAYS: i64 = 90;
    let settings = arguments.retention.settings();
    let retention: Retention = settings::decode(&settings)?;
    let days = retention.audit_days.unwrap_or(DAYS);
    let days = u32::try_from(days).map_err(|_| {
        let name = settings.name_of("NOETL_AUDIT_RETENTION_DAYS");
        let message = format!("{name} is a number from 0 to {}, not '{days}'", u32::MAX);
        CliError::new(ErrorKind::User, message)
    })?;
    Ok(match days {
        0 => Timestamp::from_micros(i64::MIN),
        days => SystemClock.now().minus(DAY.saturating_mul(days)),
    })
}

fn report(name: &str, check: &AuditCheck, output: Output) -> Result<(), CliError> {
    let AuditCheck { head, uses, purged, outside, problems, more } = check;
    if output == Output::Json {
        return output::json(&json!({
            "database": name,
            "head": head.to_string(),
            "uses": uses,
            "purged": purged,
            "outside": outside,
            "problems": problems,
            "more": more,
        }));
    }
    let style = style::of_stderr();
    for problem in problems {
        output::note(&format!("{}: {problem}", style.bad("wrong")));
    }
    let outcome = match problems.len() as u64 + more {
        0 => style.good("sound"),
        1 => style.bad("1 problem"),
        count => style.bad(&format!("{count} problems")),
    };
    let mut text = format!("{name}: {outcome} ({uses} uses, {purged} purged");
    if *outside > 0 {
        text.push_str(&format!(", {outside} without a link"));
    }
    output::note(&format!("{text})"));
    output::note("store this head outside the database; `--head` compares with it:");
    output::data(format!("{head}\n").as_bytes())
}
