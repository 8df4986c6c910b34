//! Starts executions for messages, pushed or fetched, and counts the outcomes.

use std::sync::Arc;

use noetl_journal::{Executions, Metrics, StartError, StartRequest, TraceParent};
use noetl_model::{ExecutionId, Tenant, TraceContext};
use noetl_playbook::subscription::{DIRECTIVES_APPLIED, Directives, MessageDedup, MessageStart};
use noetl_remote::{EventReport, Reports};
use tracing::warn;

use crate::dedup::{DedupKey, DedupStart, DedupStarter};

/// Way in which a message arrived: the label `entry` of start metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageEntry {
    /// A sender pushed it to a listener.
    Ingress,
    /// A runtime in this process fetched it from its source.
    Subscription,
}

impl MessageEntry {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Subscription => "subscription",
        }
    }
}

/// Starts executions for messages. Cheap to clone.
#[derive(Clone)]
pub struct MessageStarter {
    executions: Executions,
    starts: DedupStarter,
    reports: Reports,
    metrics: Arc<Metrics>,
}

impl MessageStarter {
    pub(crate) fn new(
        executions: Executions,
        starts: DedupStarter,
        reports: Reports,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { executions, starts, reports, metrics }
    }

    /// Starts the execution of a message, or returns the one that its dedup key has started. The
    /// execution is durable when this returns. Counts the outcome.
    pub async fn start(
        &self,
        tenant: &Tenant,
        entry: MessageEntry,
        start: MessageStart,
        trace: TraceParent,
    ) -> Result<DedupStart, StartError> {
        let request = StartRequest {
            path: Some(start.playbook),
            payload: start.payload,
            parent: Some(start.subscription.log()),
            pool: start.pool,
            trace,
            ..StartRequest::default()
        };
        let started = match start.dedup {
            None => self.executions.start(tenant, request).await.map(DedupStart::New),
            Some(MessageDedup { key, window, is_signature }) => {
                // Replays of one captured message must not fill the subscription's event log.
                let is_noted = !is_signature;
                let once = DedupKey { scope: start.subscription, key, window, is_noted };
                self.starts.start_once(tenant, request, once).await
            }
        };
        let outcome = match &started {
            Ok(DedupStart::New(_)) => "new",
            Ok(DedupStart::Duplicate(_)) => "duplicate",
            Err(_) => "error",
        };
        self.count(entry, outcome);
        started
    }

    /// Counts a message or request that is rejected before a start.
    pub fn count_rejected(&self, entry: MessageEntry) {
        self.count(entry, "error");
    }

    fn count(&self, entry: MessageEntry, outcome: &str) {
        self.metrics.execute_outcomes.with_label_values(&[entry.as_str(), outcome]).inc();
    }

    /// Records the applied directives in the log of the started execution. Only logs a failure.
    pub(crate) async fn record_directives(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        message: &str,
        directives: &Directives,
        trace: Option<&TraceContext>,
    ) {
        let (event_type, status) = DIRECTIVES_APPLIED;
        let report = EventReport {
            execution,
            step: "ingress".to_owned(),
            event_type: event_type.to_owned(),
            status: Some(status.to_owned()),
            payload: Some(directives.record(message, trace)),
            meta: None,
            worker: None,
            event: None,
            columns: None,
        };
        if let Err(error) = self.reports.record(tenant, report).await {
            warn!(%error, execution.id = %execution, "failed to record directives");
        }
    }
}
