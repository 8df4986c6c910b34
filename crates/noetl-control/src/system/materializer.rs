//! Imports rows of executions that another control plane drives.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_bus::Given;
use noetl_model::Map;
use noetl_store::Import;
use tracing::warn;

use super::{NotYet, Work};
use crate::intake::{Intake, read_row};
use crate::metrics::Metrics;
use crate::service::Control;

pub(super) struct Materializer {
    intake: Intake,
    metrics: Arc<Metrics>,
}

impl Materializer {
    pub(super) fn of(control: &Control) -> Self {
        Self { intake: control.intake.clone(), metrics: control.metrics.clone() }
    }

    fn read(&self, message: &Given) -> Result<Import, String> {
        let columns: Map =
            serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?;
        read_row(columns, self.intake.now()).map_err(|wrong| wrong.to_string())
    }

    fn refuse(&self, message: &Given, why: &str) {
        self.metrics.events_rejected.with_label_values(&["materializer"]).inc();
        warn!(subject = message.subject, why, "rejecting event stream message");
    }
}

#[async_trait]
impl Work for Materializer {
    async fn deal(&self, given: &[Given]) -> Result<(), NotYet> {
        let mut rows = Vec::with_capacity(given.len());
        for (place, message) in given.iter().enumerate() {
            match self.read(message) {
                Ok(row) => rows.push((place, row)),
                Err(why) => self.refuse(message, &why),
            }
        }
        let taken = self.intake.take(rows).await.map_err(|why| NotYet::any_of(given, why))?;
        self.metrics.events_projected.inc_by(taken.kept as u64);
        for (place, why) in &taken.rejected {
            self.refuse(&given[*place], why);
        }
        Ok(())
    }
}
