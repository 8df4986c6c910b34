//! Imports event rows from system pools. Rows of an execution from another control plane are stored
//! as they are; rows of an execution started here are recorded as reports.
//!
//! An import cannot drive an execution. Event types that only a decision may produce are rejected
//! as reports, and imported executions are never decided.

mod row;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use noetl_identity::IdGenerator;
use noetl_journal::SubmitError;
use noetl_model::event::{ImportedEvent, ReportColumns};
use noetl_model::placeholder::{remove_tags, remove_tags_in, without_tags};
use noetl_model::{ExecutionId, Map, Tenant, Timestamp, Value};
use noetl_remote::{EventReport, Repeated, ReportError, Reports, derived_status};
use noetl_store::{Import, ImportOutcome, PublishingStore, StoreError};

pub use row::{InvalidRow, check_depth, check_type, parse_row};

/// Maximum number of rows per transaction.
const CHUNK: usize = 1000;

/// Approximate bytes per transaction. A single row may be larger.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// Executions whose reports are recorded concurrently. Reports of one execution stay in order.
const AT_A_TIME: usize = 32;

/// Reason given for a row that the database rejects.
const REFUSED: &str = "the database does not take this row";

/// Row with its index in the request.
type Placed = (usize, Import);

#[derive(Debug, Default)]
pub struct ImportSummary {
    pub kept: usize,
    /// Number of rows that were already stored.
    pub duplicates: usize,
    /// The index of each rejected row, and the reason.
    pub rejected: Vec<(usize, String)>,
}

/// Imports event rows. Cheap to clone.
#[derive(Clone)]
pub struct ImportService {
    store: Arc<dyn PublishingStore>,
    reports: Reports,
    ids: IdGenerator,
}

impl ImportService {
    pub(crate) fn new(store: Arc<dyn PublishingStore>, reports: Reports, ids: IdGenerator) -> Self {
        Self { store, reports, ids }
    }

    /// Imports rows, each with its index in the request. On an error, some rows may be stored; they
    /// count as duplicates when the request is repeated.
    pub async fn import(&self, mut rows: Vec<Placed>) -> Result<ImportSummary, StoreError> {
        rows.iter_mut().for_each(|(_, import)| without_placeholders(&mut import.row));
        let mut taken = ImportSummary::default();
        let mut started_here: BTreeMap<(ExecutionId, Tenant), Vec<Placed>> = BTreeMap::new();
        let mut waiting = into_chunks(rows);
        while let Some(chunk) = waiting.pop() {
            let imports = chunk.iter().map(|(_, row)| row.clone()).collect();
            let outcomes = match self.store.import(imports).await {
                Ok(outcomes) => outcomes,
                Err(error) if matches!(error.failure(), StoreError::Refused(_)) => {
                    // One rejected row must not prevent the others from being stored.
                    match <[Placed; 1]>::try_from(chunk) {
                        Ok([(index, _)]) => {
                            tracing::warn!(%error, "database rejected imported row");
                            taken.rejected.push((index, REFUSED.to_owned()));
                        }
                        Err(mut chunk) => {
                            let second = chunk.split_off(chunk.len() / 2);
                            waiting.extend([second, chunk]);
                        }
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            for ((index, row), outcome) in chunk.into_iter().zip(outcomes) {
                match outcome {
                    ImportOutcome::Kept => taken.kept += 1,
                    ImportOutcome::Duplicate => taken.duplicates += 1,
                    ImportOutcome::Foreign => {
                        let why = format!("execution {} is another tenant's", row.execution);
                        taken.rejected.push((index, why));
                    }
                    ImportOutcome::Refused => taken.rejected.push((index, REFUSED.to_owned())),
                    ImportOutcome::StartedHere => {
                        let of = (row.execution, row.tenant.clone());
                        started_here.entry(of).or_default().push((index, row));
                    }
                }
            }
        }
        let reports = stream::iter(started_here.into_values().map(|rows| self.report_all(rows)));
        let reported: Vec<ImportSummary> =
            reports.buffer_unordered(AT_A_TIME).try_collect().await?;
        for one in reported {
            taken.kept += one.kept;
            taken.duplicates += one.duplicates;
            taken.rejected.extend(one.rejected);
        }
        taken.rejected.sort_by_key(|(index, _)| *index);
        Ok(taken)
    }

    /// Fails if the machine-ID lease lapsed, so events without an ID cannot be given one.
    pub fn ready(&self) -> Result<(), StoreError> {
        self.ids.ensure_leased()
    }

    /// Returns the time for a row without a timestamp.
    pub fn now(&self) -> Timestamp {
        self.ids.now()
    }

    /// Returns a report as an import row, for an execution that was not started here. A report with
    /// a reference has no context.
    pub fn import_of(&self, tenant: &Tenant, report: EventReport, at: Option<Timestamp>) -> Import {
        let status = report.status.unwrap_or_else(|| derived_status(&report.event_type).to_owned());
        let mut result = Map::from_iter([("status".to_owned(), Value::from(status.as_str()))]);
        match (report.columns.and_then(|columns| columns.reference), report.payload) {
            (Some(reference), _) => {
                result.insert("reference".to_owned(), reference);
            }
            (None, Some(payload @ Value::Object(_))) => {
                result.insert("context".to_owned(), payload);
            }
            (None, _) => {}
        }
        let node_id = ("node_id".to_owned(), Value::from(report.step.as_str()));
        Import {
            tenant: tenant.clone(),
            execution: report.execution,
            event: report.event.unwrap_or_else(|| self.ids.event()),
            at: at.unwrap_or_else(|| self.ids.now()),
            row: ImportedEvent {
                event_type: Some(report.event_type),
                node_name: Some(report.step.into()),
                status: Some(status),
                worker: report.worker.map(Into::into),
                result: Some(Value::Object(result)),
                meta: report.meta,
                more: Map::from_iter([node_id]),
                ..ImportedEvent::default()
            },
        }
    }

    /// Records rows of one execution of this server as reports, in order.
    async fn report_all(&self, rows: Vec<Placed>) -> Result<ImportSummary, StoreError> {
        let mut taken = ImportSummary::default();
        let Some((_, first)) = rows.first() else { return Ok(taken) };
        let (tenant, execution) = (first.tenant.clone(), first.execution);
        let (indexes, reports): (Vec<usize>, Vec<EventReport>) =
            rows.into_iter().map(|(index, row)| (index, report_of(row))).unzip();
        let answers = match self.reports.take_all(&tenant, execution, reports).await {
            Ok(answers) => answers,
            Err(ReportError::Store(error)) => return Err(error),
            Err(other) => return Err(StoreError::backend("keep reports", other.to_string())),
        };
        for (index, answer) in indexes.into_iter().zip(answers) {
            match answer {
                Ok((_, Repeated(true))) => taken.duplicates += 1,
                Ok((_, Repeated(false))) => taken.kept += 1,
                Err(ReportError::Store(error)) => return Err(error),
                Err(ReportError::Submit(SubmitError::Store(error))) => {
                    return Err(StoreError::backend("keep a report", error.to_string()));
                }
                Err(ReportError::Submit(
                    busy @ (SubmitError::Busy | SubmitError::Unleased | SubmitError::Stopped),
                )) => return Err(StoreError::backend("keep a report", busy.to_string())),
                Err(refused) => taken.rejected.push((index, refused.to_string())),
            }
        }
        Ok(taken)
    }
}

/// Removes the tags of placeholders, so no placeholder in an imported row resolves.
fn without_placeholders(row: &mut ImportedEvent) {
    for part in [&mut row.context, &mut row.result, &mut row.meta].into_iter().flatten() {
        remove_tags(part);
    }
    if let Some(error) = &mut row.error {
        *error = without_tags(error).into_owned();
    }
    remove_tags_in(&mut row.more);
}

/// Splits rows into chunks, the last chunk first, so popping from the end keeps their order. A
/// chunk is one transaction. Its size is bounded, so it fits the statement timeout of a database.
fn into_chunks(rows: Vec<Placed>) -> Vec<Vec<Placed>> {
    let mut chunks: Vec<Vec<Placed>> = Vec::new();
    let mut bytes = 0;
    for row in rows {
        let size = size_of(&row.1);
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK && bytes + size <= CHUNK_BYTES => {
                chunk.push(row);
                bytes += size;
            }
            _ => {
                chunks.push(vec![row]);
                bytes = size;
            }
        }
    }
    chunks.reverse();
    chunks
}

/// Returns the approximate size of a row in bytes.
fn size_of(row: &Import) -> usize {
    let row = &row.row;
    let parts = [&row.context, &row.result, &row.meta].into_iter().flatten();
    parts.map(size_of_value).sum::<usize>() + row.error.as_ref().map_or(0, String::len)
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of_value).sum::<usize>() + 8,
        Value::Object(map) => {
            map.iter().map(|(key, value)| key.len() + size_of_value(value)).sum::<usize>() + 8
        }
    }
}

/// Columns that the control plane sets itself for its own executions.
const OWN: [&str; 5] =
    ["catalog_id", "prev_event_id", "organization_id", "ingest_time", "idempotency_key"];

/// Returns a row of an execution that was started here as a report, with every column.
fn report_of(import: Import) -> EventReport {
    let mut row = import.row;
    let (mut payload, mut reference) = (None, None);
    if let Some(Value::Object(mut result)) = row.result {
        payload = result.remove("context").filter(Value::is_object);
        reference = result.remove("reference");
    }
    for name in OWN {
        row.more.remove(name);
    }
    row.more.entry("event_time").or_insert_with(|| import.at.to_string().into());
    let columns = ReportColumns {
        node_type: row.node_type,
        command: row.command,
        parent_execution: row.parent_execution,
        duration: row.duration,
        context: row.context,
        reference,
        error: row.error,
        more: row.more,
    };
    EventReport {
        execution: import.execution,
        step: row.node_name.as_deref().unwrap_or_default().to_owned(),
        event_type: row.event_type.unwrap_or_default(),
        status: row.status,
        payload,
        meta: row.meta,
        worker: row.worker.as_deref().map(str::to_owned),
        event: Some(import.event),
        columns: columns.if_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_in_order_from_the_end() {
        let row = |index| {
            let import = Import {
                tenant: Tenant::default(),
                execution: ExecutionId::new(1),
                event: noetl_model::EventId::new(1),
                at: Timestamp::from_micros(0),
                row: ImportedEvent::default(),
            };
            (index, import)
        };
        let mut chunks = into_chunks((0..2500).map(row).collect());
        let mut indexes = Vec::new();
        while let Some(chunk) = chunks.pop() {
            assert!(chunk.len() <= CHUNK);
            indexes.extend(chunk.into_iter().map(|(index, _)| index));
        }
        assert_eq!(indexes, (0..2500).collect::<Vec<_>>());
    }

    #[test]
    fn chunks_are_bounded_by_rows_and_bytes_and_keep_their_order() {
        let row = |text: &str| Import {
            tenant: Tenant::default(),
            execution: ExecutionId::new(1),
            event: noetl_model::EventId::new(1),
            at: Timestamp::default(),
            row: ImportedEvent { context: Some(Value::from(text)), ..ImportedEvent::default() },
        };
        let large = "x".repeat(CHUNK_BYTES / 2 + 1);
        let rows: Vec<Placed> = (0..3).map(|index| (index, row(&large))).collect();
        let indexes = |rows: Vec<Placed>| {
            let chunks = into_chunks(rows);
            let indexes = |chunk: &Vec<Placed>| chunk.iter().map(|(index, _)| *index).collect();
            chunks.iter().rev().map(indexes).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(indexes(rows), [[0], [1], [2]]);
        let rows: Vec<Placed> = (0..CHUNK + 1).map(|index| (index, row("x"))).collect();
        let sizes: Vec<usize> = indexes(rows).iter().map(Vec::len).collect();
        assert_eq!(sizes, [CHUNK, 1]);
    }
}
