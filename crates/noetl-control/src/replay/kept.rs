//! States that are kept so that a fold need not begin at the first row.
//!
//! A kept state stands for the first so many rows of a log, by the order in which they were
//! recorded. Rows are folded in the order of their ids, so it may stand for them only while every
//! later row has a larger id than all of these: a row that was recorded late with a small id makes
//! it useless, and it is dropped.

use noetl_engine::replay::{Base, Projection, ReplayState, Scope};
use noetl_model::{EventId, ExecutionId, Seq, Tenant, Timestamp, Value};
use noetl_store::{Snapshot, Store, StoreError, Until};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::pass::{Pass, aside};

/// What they are kept as.
const TYPE: &str = "replay_state";

/// Who wrote them, and in what form. Others write states of this type too, of another form.
const FORM: &str = "noetl-replay-1";

/// A state is kept when this many rows were folded since the last one: then reading them again
/// costs more than writing it.
const ROWS_MIN: u64 = 10_000;

/// A larger state is not kept: writing it would hold up those who wait for the store's writer.
const BODY_BYTES_MAX: usize = 16 << 20;

/// What is noted beside a kept state.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    form: String,
    /// It stands for the rows up to this place.
    rows: u64,
    /// The latest time among them, in microseconds.
    newest_us: i64,
    /// The `meta` of the event the execution began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_meta: Option<Value>,
}

fn name(execution: ExecutionId) -> String {
    format!("execution/{execution}/{}", Projection::All.as_str())
}

fn parts(pass: &Pass) -> (Tenant, ExecutionId) {
    (Tenant::new(&pass.state.tenant_id), ExecutionId::new(pass.state.execution_id))
}

/// Lets a fold go on from a kept state if there is one that stands for the beginning of what is
/// folded.
pub(super) async fn seeded(
    store: &dyn Store,
    pass: Pass,
    until: Until,
    limit: Option<u64>,
) -> Result<Pass, StoreError> {
    if !pass.may_be_kept() {
        return Ok(pass);
    }
    let (tenant, execution) = parts(&pass);
    let found = match store.snapshot(&tenant, TYPE, &name(execution)).await {
        Ok(found) => found,
        Err(error) => {
            warn!(execution.id = %execution, %error, "a kept state is not read");
            None
        }
    };
    let Some(found) = found else { return Ok(pass) };
    let Some(note) = serde_json::from_value(found.meta.clone()).ok().filter(is_ours) else {
        return Ok(pass);
    };
    let fits = match until {
        Until::End => true,
        Until::Event(last) => found.version <= last.get(),
        Until::Time(last) => note.newest_us <= last.as_micros(),
    };
    if !fits || limit.is_some_and(|limit| limit < note.rows) {
        return Ok(pass);
    }
    let version = found.version;
    if !stands(store, execution, version, note.rows).await? {
        return Ok(Pass { is_outdated: true, ..pass });
    }
    let state = aside(move || serde_json::from_str::<ReplayState>(&found.body)).await?;
    let is_it = |state: &ReplayState| {
        state.execution_id == execution.get()
            && state.last_event_id == Some(version)
            && state.event_count == note.rows
    };
    let Some(state) = state.ok().filter(is_it) else {
        warn!(execution.id = %execution, "a kept state is not what it says and is passed over");
        return Ok(Pass { is_outdated: true, ..pass });
    };
    Ok(go_on(pass, state, note))
}

/// Whether a state of so many rows, up to the largest id among them, is still one of this log's
/// beginning.
async fn stands(
    store: &dyn Store,
    execution: ExecutionId,
    version: i64,
    rows: u64,
) -> Result<bool, StoreError> {
    let is_folded = |least: EventId| least.get() <= version;
    // The last of the rows has one of the ids. If it is not there, this is another log: the
    // execution was purged, and came again.
    let last = store.least_id_since(execution, Seq(rows.saturating_sub(1))).await?;
    if !last.is_some_and(is_folded) {
        return Ok(false);
    }
    let later = store.least_id_since(execution, Seq(rows)).await?;
    Ok(!later.is_some_and(is_folded))
}

fn is_ours(note: &Note) -> bool {
    note.form == FORM
}

/// The fold from a kept state. Where it began is not part of what it comes to: the checksum is that
/// of a fold from the first row.
fn go_on(pass: Pass, state: ReplayState, note: Note) -> Pass {
    let scope = Scope {
        tenant_id: pass.state.tenant_id.clone(),
        organization_id: pass.state.organization_id.clone(),
        execution_id: pass.state.execution_id,
        projection: pass.state.projection,
    };
    Pass {
        last: state.last_event_id.map(EventId::new),
        state: ReplayState::begin(scope, Base { state: Some(state), ..Base::default() }),
        start_meta: note.start_meta,
        last_place: Seq(note.rows),
        newest: Timestamp::from_micros(note.newest_us),
        ..pass
    }
}

/// Keeps a state that was folded to the end of its log, when it is worth it and stands for all rows
/// up to a place. It does not when rows were recorded while it was folded and some of them missed.
pub(super) async fn keep(store: &dyn Store, pass: Pass) -> Result<Pass, StoreError> {
    let (tenant, execution) = parts(&pass);
    let rows = pass.state.event_count;
    let is_whole = rows == pass.last_place.0 && pass.is_plain && pass.may_be_kept();
    let Some(version) = pass.last.filter(|_| is_whole && pass.fresh >= ROWS_MIN) else {
        return Ok(pass);
    };
    let (pass, body) = aside(move || {
        let mut pass = pass;
        // The state of everything, whatever this caller is interested in.
        let asked = std::mem::replace(&mut pass.state.projection, Projection::All);
        let body = serde_json::to_string(&pass.state);
        pass.state.projection = asked;
        (pass, body)
    })
    .await?;
    let Some(body) = body.ok().filter(|body| body.len() <= BODY_BYTES_MAX) else {
        return Ok(pass);
    };
    let note = Note {
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
        warn!(execution.id = %execution, %error, "an outdated state is not dropped");
    }
    let snapshot = Snapshot::new(version.get(), body, meta);
    if let Err(error) = store.save(&tenant, TYPE, &name, snapshot).await {
        warn!(execution.id = %execution, %error, "a state is not kept");
    }
    // What was purged meanwhile would leave a state that nothing removes.
    if store.tenant_of(execution).await?.is_none() {
        store.forget(&tenant, TYPE, &name).await?;
    }
    Ok(pass)
}
