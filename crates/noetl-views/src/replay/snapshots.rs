//! Snapshots from which a fold can start instead of the first row.
//!
//! A snapshot covers the first rows of a log in recording order. Rows are folded in order of event
//! ID, so it is valid only while every later row has a larger ID than all covered rows. A row that
//! is recorded late with a smaller ID invalidates the snapshot, and it is deleted.

use noetl_engine::replay::{Projection, ReplayBase, ReplayScope, ReplayState};
use noetl_model::{EventId, ExecutionId, Seq, Tenant, Timestamp, Value};
use noetl_store::{ReadBound, Snapshot, StoreError, ViewStore};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::pass::{FoldPass, spawn_fold};

/// Aggregate type of the snapshots.
const TYPE: &str = "replay_state";

/// Writer and format of the snapshots. Other programs store snapshots of this type in other
/// formats.
const FORM: &str = "noetl-replay-1";

/// Minimum number of rows folded since the last snapshot before another is stored. From there on,
/// reading the rows again costs more than writing the snapshot.
const ROWS_MIN: u64 = 10_000;

/// Maximum size of a snapshot in bytes. Writing a larger one would block the store's writer.
const BODY_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct SnapshotMeta {
    form: String,
    /// Sequence number of the last covered row.
    rows: u64,
    /// Latest time among the covered rows, in microseconds.
    newest_us: i64,
    /// `meta` of the execution's first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_meta: Option<Value>,
}

fn name(execution: ExecutionId) -> String {
    format!("execution/{execution}/{}", Projection::All.as_str())
}

fn parts(pass: &FoldPass) -> (Tenant, ExecutionId) {
    (Tenant::new(&pass.state.tenant_id), ExecutionId::new(pass.state.execution_id))
}

/// Starts a fold from a snapshot, if a valid one covers a prefix of the rows to fold.
pub(super) async fn resume_from_snapshot(
    store: &dyn ViewStore,
    pass: FoldPass,
    until: ReadBound,
    limit: Option<u64>,
) -> Result<FoldPass, StoreError> {
    if !pass.may_be_kept() {
        return Ok(pass);
    }
    let (tenant, execution) = parts(&pass);
    let found = match store.snapshot(&tenant, TYPE, &name(execution)).await {
        Ok(found) => found,
        Err(error) => {
            warn!(execution.id = %execution, %error, "failed to read replay snapshot");
            None
        }
    };
    let Some(found) = found else { return Ok(pass) };
    let Some(note) = serde_json::from_value(found.meta.clone()).ok().filter(is_ours) else {
        return Ok(pass);
    };
    let fits = match until {
        ReadBound::End => true,
        ReadBound::Event(last) => found.version <= last.get(),
        ReadBound::Time(last) => note.newest_us <= last.as_micros(),
    };
    if !fits || limit.is_some_and(|limit| limit < note.rows) {
        return Ok(pass);
    }
    let version = found.version;
    if !stands(store, execution, version, note.rows).await? {
        return Ok(FoldPass { is_outdated: true, ..pass });
    }
    let state = spawn_fold(move || serde_json::from_str::<ReplayState>(&found.body)).await?;
    let is_it = |state: &ReplayState| {
        state.execution_id == execution.get()
            && state.last_event_id == Some(version)
            && state.event_count == note.rows
    };
    let Some(state) = state.ok().filter(is_it) else {
        warn!(execution.id = %execution, "ignoring invalid replay snapshot");
        return Ok(FoldPass { is_outdated: true, ..pass });
    };
    Ok(go_on(pass, state, note))
}

/// Returns `true` if a snapshot of the first `rows` rows, with `version` as their largest ID, is
/// still valid for this log.
async fn stands(
    store: &dyn ViewStore,
    execution: ExecutionId,
    version: i64,
    rows: u64,
) -> Result<bool, StoreError> {
    let is_folded = |least: EventId| least.get() <= version;
    // The last covered row has one of the covered IDs. If it is missing, the execution was purged
    // and created again, and this is another log.
    let last = store.least_id_since(execution, Seq(rows.saturating_sub(1))).await?;
    if !last.is_some_and(is_folded) {
        return Ok(false);
    }
    let later = store.least_id_since(execution, Seq(rows)).await?;
    Ok(!later.is_some_and(is_folded))
}

fn is_ours(note: &SnapshotMeta) -> bool {
    note.form == FORM
}

/// Returns a pass that continues from a snapshot. The starting point does not affect the result:
/// the checksum equals that of a fold from the first row.
fn go_on(pass: FoldPass, state: ReplayState, note: SnapshotMeta) -> FoldPass {
    let scope = ReplayScope {
        tenant_id: pass.state.tenant_id.clone(),
        organization_id: pass.state.organization_id.clone(),
        execution_id: pass.state.execution_id,
        projection: pass.state.projection,
    };
    FoldPass {
        last: state.last_event_id.map(EventId::new),
        state: ReplayState::begin(
            scope,
            ReplayBase { state: Some(state), ..ReplayBase::default() },
        ),
        start_meta: note.start_meta,
        last_place: Seq(note.rows),
        newest: Timestamp::from_micros(note.newest_us),
        ..pass
    }
}

/// Stores a snapshot of a state folded to the end of its log, if it is worth it and covers all rows
/// up to a sequence number. It does not if rows were recorded during the fold and some were missed.
pub(super) async fn save_snapshot(
    store: &dyn ViewStore,
    pass: FoldPass,
) -> Result<FoldPass, StoreError> {
    let (tenant, execution) = parts(&pass);
    let rows = pass.state.event_count;
    let is_whole = rows == pass.last_place.0 && pass.is_plain && pass.may_be_kept();
    let Some(version) = pass.last.filter(|_| is_whole && pass.fresh >= ROWS_MIN) else {
        return Ok(pass);
    };
    let (pass, body) = spawn_fold(move || {
        let mut pass = pass;
        // The snapshot is stored for all projections, whichever the caller asked for.
        let asked = std::mem::replace(&mut pass.state.projection, Projection::All);
        let body = serde_json::to_string(&pass.state);
        pass.state.projection = asked;
        (pass, body)
    })
    .await?;
    let Some(body) = body.ok().filter(|body| body.len() <= BODY_BYTES_MAX) else {
        return Ok(pass);
    };
    let note = SnapshotMeta {
        form: FORM.to_owned(),
        rows,
        newest_us: pass.newest.as_micros(),
        start_meta: pass.start_meta.clone(),
    };
    let Ok(meta) = serde_json::to_value(&note) else { return Ok(pass) };
    let name = name(execution);
    if pass.is_outdated
        && let Err(error) = store.forget(&tenant, TYPE, &name).await
    {
        warn!(execution.id = %execution, %error, "failed to delete outdated replay snapshot");
    }
    let snapshot = Snapshot::new(version.get(), body, meta);
    if let Err(error) = store.save(&tenant, TYPE, &name, snapshot).await {
        warn!(execution.id = %execution, %error, "failed to store replay snapshot");
    }
    // If the execution was purged in the meantime, nothing else would delete the snapshot.
    if store.tenant_of(execution).await?.is_none() {
        store.forget(&tenant, TYPE, &name).await?;
    }
    Ok(pass)
}
