//! `noetl db purge`: deletes old data by retention policy.

use std::process::ExitCode;
use std::sync::Arc;

use noetl_control::{PurgeError, Purged};
use noetl_store::Blobs;
use serde_json::json;

use super::{database, size};
use crate::arguments::{Output, PurgeArguments};
use crate::error::{CliError, ErrorKind};
use crate::{output, policy, results};

pub(super) async fn run(arguments: &PurgeArguments) -> Result<ExitCode, CliError> {
    let policy = policy::policy(&arguments.retention.settings())?;
    let database = database(&arguments.db)?;
    let name = database.name();
    if database.schema().await?.0 == 0 {
        let message = format!("there is no database at {name}");
        return Err(CliError::new(ErrorKind::Config, message));
    }
    let open = match arguments.dry_run {
        true => database.look_at().await?,
        false => database.open().await?,
    };
    let store = open.store();
    let place: Arc<dyn Blobs> = match results::blobs()? {
        Some(place) => place,
        None => store.clone(),
    };
    let purged = noetl_control::purge(&*store, &*place, &policy, arguments.dry_run).await;
    drop((store, place));
    open.close().await;
    let purged =
        purged.map_err(|error: PurgeError| CliError::from_error(ErrorKind::Config, &error))?;
    match arguments.db.output {
        Output::Json => output::json(&document(&name, arguments.dry_run, &purged))?,
        Output::Text => tell(&name, arguments.dry_run, &purged),
    }
    Ok(ExitCode::SUCCESS)
}

fn document(name: &str, dry_run: bool, purged: &Purged) -> serde_json::Value {
    json!({
        "database": name,
        "dry_run": dry_run,
        "removed": purged.report.removed,
        "dropped": purged.report.dropped,
        "kept": purged.report.kept,
        "content": {
            "removed": purged.content.removed.len(),
            "bytes": purged.content.removed_bytes,
            "failed": purged.content.failed.len(),
        },
    })
}

fn tell(name: &str, dry_run: bool, purged: &Purged) {
    let removed = &purged.report.removed;
    let counts = [
        ("executions", removed.executions),
        ("events", removed.events),
        ("commands", removed.commands),
        ("snapshots", removed.snapshots),
        ("references to content", removed.references),
        ("variables", removed.variables),
        ("results", removed.results),
        ("resolved secrets", removed.keychain),
        ("runtimes", removed.runtimes),
        ("rows of the outbox", removed.outbox),
        ("messages of subscriptions", removed.dedup),
        ("uses of secrets", removed.audit),
    ];
    let verb = if dry_run { "would go" } else { "removed" };
    for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        output::note(&format!("  {verb:<8}  {count} {what}"));
    }
    if !purged.content.removed.is_empty() {
        let (count, bytes) = (purged.content.removed.len(), size(purged.content.removed_bytes));
        output::note(&format!("  {verb:<8}  {count} contents, {bytes}"));
    }
    for retained in &purged.report.kept {
        output::note(&format!("  kept      {}: {}", retained.partition, retained.reason));
    }
    let is_nothing = counts.iter().all(|(_, count)| *count == 0);
    let outcome = match (is_nothing && purged.content.removed.is_empty(), dry_run) {
        (true, _) => "nothing is old enough to go",
        (false, true) => "nothing was changed",
        (false, false) => "done",
    };
    output::note(&format!("{name}: {outcome}"));
}
