//! Implements [`ImportStore`]: event rows from another control plane.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, Tenant, Timestamp};
use noetl_store::{Import, ImportOutcome, ImportStore, ImportedExecution, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use crate::SqliteStore;
use crate::append::{last_position, raise};
use crate::append_rows::AppendRows;
use crate::encoded_append::{rows, stored_seq};
use crate::encoded_events::EncodedEvents;
use crate::event_search;
use crate::executions::execution;
use crate::outbox_writer::OutboxWriter;

#[async_trait]
impl ImportStore for SqliteStore {
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let has_outbox = self.outbox().is_on;
        self.write("import rows", move |connection, now| {
            let mut importer = Importer::new(connection, has_outbox.then_some(now))?;
            let outcomes = rows.iter().map(|row| importer.import(row)).collect();
            importer.finish()?;
            outcomes
        })
        .await
    }

    async fn imported(
        &self,
        executions: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        let executions = executions.to_vec();
        self.read("look for imported executions", move |connection| {
            let sql = "select origin = 'imported' from execution where id = ?1";
            let mut find = connection.prepare_cached(sql)?;
            let mut found = HashSet::new();
            for id in executions {
                if find.query_row([id.get()], |row| row.get(0)).optional()?.unwrap_or(false) {
                    found.insert(id);
                }
            }
            Ok(found)
        })
        .await
    }
}

/// State of an execution, read once and written once per import.
enum ImportTarget {
    /// An execution of this control plane, or a subscription.
    Own,
    Imported(Box<ExternalExecution>),
}

struct ExternalExecution {
    tenant: Tenant,
    listed: ImportedExecution,
    last: Option<EventId>,
    /// Rows to write, in order.
    rows: Vec<EventRow>,
    /// IDs of these rows.
    ids: HashSet<EventId>,
}

struct Importer<'c> {
    connection: &'c Connection,
    known: HashMap<ExecutionId, ImportTarget>,
    /// Executions in the order of their first rows, in which they are written.
    order: Vec<ExecutionId>,
    outgoing: Option<OutboxWriter<'c>>,
}

impl<'c> Importer<'c> {
    fn new(connection: &'c Connection, outbox: Option<Timestamp>) -> rusqlite::Result<Self> {
        let outgoing = outbox.map(|now| OutboxWriter::new(connection, now)).transpose()?;
        Ok(Self { connection, known: HashMap::new(), order: Vec::new(), outgoing })
    }

    fn import(&mut self, import: &Import) -> rusqlite::Result<ImportOutcome> {
        if !self.known.contains_key(&import.execution) {
            let found = self.find(import)?;
            self.known.insert(import.execution, found);
            self.order.push(import.execution);
        }
        let Some(ImportTarget::Imported(known)) = self.known.get_mut(&import.execution) else {
            return Ok(ImportOutcome::StartedHere);
        };
        if known.tenant != import.tenant {
            return Ok(ImportOutcome::Foreign);
        }
        let is_known = known.ids.contains(&import.event)
            // No ID of an imported log counts as ascending.
            || event_search::has_late_id(self.connection, import.execution, import.event)?;
        if is_known {
            return Ok(ImportOutcome::Duplicate);
        }
        let seq = known.listed.add(import);
        let row = EventRow::from(&import.event(seq));
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.add_row(&known.tenant, known.listed.row.catalog, known.last, &row)?;
        }
        known.last = Some(import.event);
        known.ids.insert(import.event);
        known.rows.push(row);
        Ok(ImportOutcome::Kept)
    }

    fn find(&self, import: &Import) -> rusqlite::Result<ImportTarget> {
        let sql = include_str!("../queries/import_execution_get.sql");
        let mut get = self.connection.prepare_cached(sql)?;
        let found = get.query_row([import.execution.get()], |row| {
            if row.get_ref(17)?.as_str()? != "imported" {
                return Ok(ImportTarget::Own);
            }
            let end = row.get::<_, Option<i64>>(18)?.map(EventId::new);
            Ok(ImportTarget::Imported(Box::new(ExternalExecution {
                tenant: Tenant::new(row.get::<_, String>(16)?),
                listed: ImportedExecution { row: execution(row)?, end },
                last: row.get::<_, Option<i64>>(19)?.map(EventId::new),
                rows: Vec::new(),
                ids: HashSet::new(),
            })))
        });
        if let Some(found) = found.optional()? {
            return Ok(found);
        }
        let sql = "select 1 from subscription where id = ?1";
        if self.connection.prepare_cached(sql)?.exists([import.execution.get()])? {
            return Ok(ImportTarget::Own);
        }
        Ok(ImportTarget::Imported(Box::new(ExternalExecution {
            tenant: import.tenant.clone(),
            listed: ImportedExecution::empty(import),
            last: None,
            rows: Vec::new(),
            ids: HashSet::new(),
        })))
    }

    /// Writes the appends, the execution rows, and the last position of the log.
    fn finish(self) -> rusqlite::Result<()> {
        let mut appends = AppendRows::new(self.connection)?;
        let mut position = last_position(self.connection)?;
        let sql = include_str!("../queries/import_execution_put.sql");
        let mut put = self.connection.prepare_cached(sql)?;
        for execution in &self.order {
            let Some(ImportTarget::Imported(known)) = self.known.get(execution) else { continue };
            if known.rows.is_empty() {
                continue;
            }
            appends.add(&EncodedEvents::encode(&known.rows), position, None)?;
            position += rows(known.rows.len());
            let row = &known.listed.row;
            put.execute(params![
                row.id.get(),
                known.tenant.as_str(),
                row.catalog.get(),
                &*row.path,
                row.parent.map(|parent| parent.get()),
                row.status.as_str(),
                stored_seq(row.version),
                row.started_at.as_micros(),
                row.updated_at.as_micros(),
                row.ended_at.map(|at| at.as_micros()),
                row.error,
                row.steps_entered,
                row.steps_completed,
                row.steps_failed,
                row.current_step.as_deref(),
                known.last.map_or(0, EventId::get),
                known.listed.end.map(EventId::get),
            ])?;
        }
        // Imported IDs are arbitrary, so they don't raise the largest ID of this control plane.
        raise(self.connection, 0, position)
    }
}
