//! `noetl check --against`: replays recorded executions with another version of their playbook.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use noetl_engine::{Divergence, first_divergence};
use noetl_model::event::BlobRef;
use noetl_model::{Event, ExecutionId, Fact, Seq, Tenant};
use noetl_playbook::Playbook;
use noetl_store::{Blobs, ExecutionFilter, ExecutionRow, Store, StoreError};
use serde_json::{Value, json};

use crate::arguments::{CheckArguments, Output};
use crate::database::Database;
use crate::error::{CliError, ErrorKind};
use crate::output::{self, style};
use crate::results;

/// Number of events per read.
const PAGE: usize = 1000;

/// Maximum number of bytes of result blobs to read per execution.
const BLOBS_MAX: u64 = 256 * 1024 * 1024;

pub(super) struct HistoryCheck {
    pub(super) differs: bool,
    pub(super) report: Value,
}

/// Compares a playbook with the recorded decisions of `target`: an execution ID, or a catalog path.
pub(super) fn run(
    playbook: &Playbook,
    target: &str,
    arguments: &CheckArguments,
) -> Result<HistoryCheck, CliError> {
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    runtime.block_on(async {
        let database = Database::configured(&arguments.database.settings())?;
        let opened = database.look_at().await?;
        let store = opened.store();
        let blobs: Arc<dyn Blobs> = match results::blobs()? {
            Some(place) => place,
            None => store.clone(),
        };
        let compared = compare(playbook, target, arguments, &*store, &*blobs).await;
        opened.close().await;
        compared
    })
}

async fn compare(
    playbook: &Playbook,
    target: &str,
    arguments: &CheckArguments,
    store: &dyn Store,
    blobs: &dyn Blobs,
) -> Result<HistoryCheck, CliError> {
    let rows = executions(store, target, arguments.last).await.map_err(|e| unanswered(&e))?;
    if rows.is_empty() {
        let message = format!("nothing is recorded of '{target}'");
        let hint = "name an execution's id or a catalog path; --data or --database-url say where";
        return Err(CliError::new(ErrorKind::User, message).hint(hint));
    }
    let (mut differs, mut reports) = (false, Vec::new());
    for row in &rows {
        let log = log(store, row.id).await.map_err(|error| unanswered(&error))?;
        let blob_contents = contents(blobs, &log).await;
        let env = Arc::new(BTreeMap::new());
        let blob = |reference: &BlobRef| blob_contents.get(&reference.digest).cloned();
        let difference = first_divergence(playbook, &log, &env, blob);
        differs |= difference.is_some();
        if arguments.output == Output::Text {
            say(row, log.len(), difference.as_ref());
        }
        reports.push(json!({
            "execution_id": row.id.to_string(),
            "path": row.path,
            "version": row.playbook_version,
            "status": row.status.as_str(),
            "events": log.len(),
            "difference": difference.map(|divergence| json!({
                "seq": divergence.seq,
                "step": divergence.step,
                "recorded": divergence.recorded,
                "now": divergence.now,
            })),
        }));
    }
    Ok(HistoryCheck { differs, report: json!(reports) })
}

/// Returns the execution with this ID, or the newest executions of this catalog path.
async fn executions(
    store: &dyn Store,
    target: &str,
    last: usize,
) -> Result<Vec<ExecutionRow>, StoreError> {
    let tenant = Tenant::default();
    if let Ok(id) = target.parse::<ExecutionId>() {
        return Ok(store.execution(&tenant, id).await?.into_iter().collect());
    }
    let filter = ExecutionFilter {
        path: Some(target.to_owned()),
        limit: last,
        ..ExecutionFilter::default()
    };
    let mut rows = store.executions(&tenant, &filter).await?;
    rows.retain(|row| &*row.path == target);
    Ok(rows)
}

async fn log(store: &dyn Store, id: ExecutionId) -> Result<Vec<Event>, StoreError> {
    let mut log: Vec<Event> = Vec::new();
    loop {
        let after = log.last().map_or(Seq::START, |event| event.seq);
        let page = store.read(id, after, PAGE).await?;
        let is_last = page.len() < PAGE;
        log.extend(page);
        if is_last {
            return Ok(log);
        }
    }
}

/// Reads the result blobs that a log references, up to `BLOBS_MAX` bytes.
///
/// A blob that can't be read counts as lost, and the comparison skips decisions that depend on it.
async fn contents(blobs: &dyn Blobs, log: &[Event]) -> HashMap<Arc<str>, Vec<u8>> {
    let mut contents = HashMap::new();
    let mut left = BLOBS_MAX;
    for event in log {
        let Fact::CallDone { reference: Some(reference), .. } = &event.fact else { continue };
        if reference.bytes > left || contents.contains_key(&reference.digest) {
            continue;
        }
        let Ok(digest) = reference.digest.parse() else { continue };
        let asked = noetl_store::BlobRef {
            digest,
            bytes: reference.bytes,
            media_type: reference.media_type.to_string(),
        };
        if let Ok(bytes) = blobs.blob(&asked).await {
            left -= reference.bytes;
            contents.insert(reference.digest.clone(), bytes);
        }
    }
    contents
}

fn say(row: &ExecutionRow, events: usize, difference: Option<&Divergence>) {
    let style = style::of_stderr();
    let head = format!("{} {} ({events} events)", row.id, row.status.as_str());
    match difference {
        None => output::note(&format!("  {}  {head}", style.good("same   "))),
        Some(divergence) => {
            output::note(&format!("  {}  {head}", style.warn("differs")));
            output::note(&format!(
                "           at event {}: {}",
                divergence.seq, divergence.recorded
            ));
            output::note(&format!("           now: {}", divergence.now));
        }
    }
}

fn unanswered(error: &StoreError) -> CliError {
    CliError::from_error(ErrorKind::Config, error)
}
