//! Encoding and decoding of reported and imported rows, column by column.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::EventRow;
use super::encode::json;
use super::error::RowError;
use crate::event::{ImportedEvent, ReportColumns, ReportedEvent, ToolRun};
use crate::{Event, Map, Origin, Value};

/// Value of a report's `result` column.
#[derive(Serialize)]
struct Result_<'a> {
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a Value>,
}

#[derive(Deserialize)]
struct MaybeSaid {
    reference: Option<Value>,
    context: Option<Value>,
}

pub(super) fn reported(event: &Event, reported: &ReportedEvent) -> EventRow {
    let columns = reported.columns.as_deref();
    let result = Result_ {
        status: &reported.status,
        reference: columns.and_then(|columns| columns.reference.as_ref()),
        context: reported.payload.as_ref(),
    };
    EventRow {
        execution_id: event.execution,
        event_id: event.id,
        seq: event.seq,
        created_at: event.at,
        origin: Origin::Reported,
        event_type: Some(Cow::Owned(reported.event_type.clone())),
        node_name: Some(reported.step.clone()),
        node_type: columns.and_then(|columns| columns.node_type.clone()),
        status: Some(Cow::Owned(reported.status.clone())),
        command_id: columns.and_then(|columns| columns.command),
        parent_execution_id: columns.and_then(|columns| columns.parent_execution),
        worker_id: reported.worker.clone(),
        context: columns.and_then(|columns| columns.context.as_ref()).map(json),
        result: Some(json(&result)),
        meta: reported.meta.as_ref().map(json),
        error: columns.and_then(|columns| columns.error.clone()),
        duration: columns.and_then(|columns| columns.duration),
        idempotency_key: reported.key,
        more: columns.and_then(|columns| more(&columns.more)),
    }
}

pub(super) fn imported(event: &Event, imported: &ImportedEvent) -> EventRow {
    EventRow {
        execution_id: event.execution,
        event_id: event.id,
        seq: event.seq,
        created_at: event.at,
        origin: Origin::Imported,
        event_type: imported.event_type.clone().map(Cow::Owned),
        node_name: imported.node_name.clone(),
        node_type: imported.node_type.clone(),
        status: imported.status.clone().map(Cow::Owned),
        command_id: imported.command,
        parent_execution_id: imported.parent_execution,
        worker_id: imported.worker.clone(),
        context: imported.context.as_ref().map(json),
        result: imported.result.as_ref().map(json),
        meta: imported.meta.as_ref().map(json),
        error: imported.error.clone(),
        duration: imported.duration,
        idempotency_key: imported.key,
        more: more(&imported.more),
    }
}

fn more(columns: &Map) -> Option<String> {
    (!columns.is_empty()).then(|| json(columns))
}

impl EventRow {
    pub(super) fn reported(&self) -> Result<ReportedEvent, RowError> {
        let said: MaybeSaid = self.result()?;
        Ok(ReportedEvent {
            event_type: self.text("event_type", self.event_type.as_deref())?,
            step: self.node()?,
            status: self.text("status", self.status.as_deref())?,
            payload: said.context,
            meta: self.optional("meta", self.meta.as_deref())?,
            worker: self.worker_id.clone(),
            key: self.idempotency_key,
            columns: ReportColumns {
                node_type: self.node_type.clone(),
                command: self.command_id,
                parent_execution: self.parent_execution_id,
                duration: self.duration,
                context: self.optional("context", self.context.as_deref())?,
                reference: said.reference,
                error: self.error.clone(),
                more: self.further()?,
            }
            .if_any(),
        })
    }

    /// Returns the exit code and duration of a tool. Rows of older versions don't have them.
    pub(super) fn run(&self) -> Option<Box<ToolRun>> {
        let run: ToolRun = serde_json::from_str(self.meta.as_deref()?).ok()?;
        (run != ToolRun::default()).then(|| Box::new(run))
    }

    fn further(&self) -> Result<Map, RowError> {
        self.more.as_deref().map_or(Ok(Map::new()), |more| self.json("more", Some(more)))
    }

    pub(super) fn imported(&self) -> Result<ImportedEvent, RowError> {
        Ok(ImportedEvent {
            event_type: self.event_type.clone().map(Cow::into_owned),
            node_name: self.node_name.clone(),
            node_type: self.node_type.clone(),
            status: self.status.clone().map(Cow::into_owned),
            command: self.command_id,
            parent_execution: self.parent_execution_id,
            worker: self.worker_id.clone(),
            duration: self.duration,
            context: self.optional("context", self.context.as_deref())?,
            result: self.optional("result", self.result.as_deref())?,
            meta: self.optional("meta", self.meta.as_deref())?,
            error: self.error.clone(),
            key: self.idempotency_key,
            more: self.further()?,
        })
    }
}
