//! Rows that decide nothing: both ways, column by column.

use std::borrow::Cow;

use serde::Deserialize;

use super::EventRow;
use super::encode::{Said, json};
use super::error::RowError;
use crate::event::{Imported, Reported};
use crate::{Event, Map, Origin, Value};

#[derive(Deserialize)]
struct MaybeSaid {
    context: Option<Value>,
}

pub(super) fn reported(event: &Event, reported: &Reported) -> EventRow {
    let result = match &reported.payload {
        Some(context) => json(&Said { status: &reported.status, context }),
        None => json(&serde_json::json!({ "status": reported.status })),
    };
    EventRow {
        execution_id: event.execution,
        event_id: event.id,
        seq: event.seq,
        created_at: event.at,
        origin: Origin::Reported,
        event_type: Some(Cow::Owned(reported.event_type.clone())),
        node_name: Some(reported.step.clone()),
        node_type: None,
        status: Some(Cow::Owned(reported.status.clone())),
        command_id: None,
        parent_execution_id: None,
        worker_id: reported.worker.clone(),
        context: None,
        result: Some(result),
        meta: reported.meta.as_ref().map(json),
        error: None,
        duration: None,
        idempotency_key: reported.key,
        more: None,
    }
}

pub(super) fn imported(event: &Event, imported: &Imported) -> EventRow {
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
        more: (!imported.more.is_empty()).then(|| json(&imported.more)),
    }
}

impl EventRow {
    pub(super) fn reported(&self) -> Result<Reported, RowError> {
        let said: MaybeSaid = self.result()?;
        Ok(Reported {
            event_type: self.text("event_type", self.event_type.as_deref())?,
            step: self.node()?,
            status: self.text("status", self.status.as_deref())?,
            payload: said.context,
            meta: self.optional("meta", self.meta.as_deref())?,
            worker: self.worker_id.clone(),
            key: self.idempotency_key,
        })
    }

    pub(super) fn imported(&self) -> Result<Imported, RowError> {
        Ok(Imported {
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
            more: self
                .more
                .as_deref()
                .map_or(Ok(Map::new()), |more| self.json("more", Some(more)))?,
        })
    }
}
