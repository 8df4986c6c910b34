//! Imports rows of executions that another control plane drives.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_bus::Delivery;
use noetl_journal::Metrics;
use noetl_model::Map;
use noetl_store::Import;
use tracing::warn;

use super::{MessageHandler, NotYet};
use crate::import::{ImportService, parse_row};

pub(super) struct Materializer {
    intake: ImportService,
    metrics: Arc<Metrics>,
}

impl Materializer {
    pub(super) fn new(imports: ImportService, metrics: Arc<Metrics>) -> Self {
        Self { intake: imports, metrics }
    }

    fn read(&self, message: &Delivery) -> Result<Import, String> {
        let columns: Map =
            serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?;
        parse_row(columns, self.intake.now()).map_err(|wrong| wrong.to_string())
    }

    fn refuse(&self, message: &Delivery, why: &str) {
        self.metrics.events_rejected.with_label_values(&["materializer"]).inc();
        warn!(subject = message.subject, why, "rejecting event stream message");
    }
}

#[async_trait]
impl MessageHandler for Materializer {
    async fn deal(&self, given: &[Delivery]) -> Result<(), NotYet> {
        let mut rows = Vec::with_capacity(given.len());
        for (index, message) in given.iter().enumerate() {
            match self.read(message) {
                Ok(row) => rows.push((index, row)),
                Err(why) => self.refuse(message, &why),
            }
        }
        let taken = self.intake.import(rows).await.map_err(|why| NotYet::any_of(given, why))?;
        self.metrics.events_projected.inc_by(taken.kept as u64);
        for (index, why) in &taken.rejected {
            self.refuse(&given[*index], why);
        }
        Ok(())
    }
}
