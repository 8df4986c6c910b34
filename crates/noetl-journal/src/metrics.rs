//! Prometheus metrics of the control plane, under the names that NoETL dashboards use.
//!
//! A label never has a value that a caller can choose freely: an unknown event type counts as
//! `other`, so callers cannot add series.

mod builder;

use noetl_engine::Status;
use noetl_model::command::DEFAULT_POOL;
use noetl_model::trace::SpanCounts;
use prometheus::{
    Encoder, Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Registry, TextEncoder,
};

use self::builder::MetricBuilder;
use crate::subscription_metrics::SubscriptionMetrics;

/// Content type of the text that [`Metrics::text`] returns.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Event types with their own series.
const TYPES: [&str; 43] = [
    "playbook_started",
    "playbook.completed",
    "playbook.failed",
    "playbook.cancelled",
    "playbook_completed",
    "playbook_failed",
    "playbook_cancelled",
    "step.enter",
    "step.exit",
    "step.skipped",
    "ctx.updated",
    "tokens.dropped",
    "command.issued",
    "command.claimed",
    "command.started",
    "command.completed",
    "command.failed",
    "command.expired",
    "command.cancelled",
    "call.done",
    "call.error",
    "loop.done",
    "loop.shard.done",
    "loop.shard.failed",
    "loop.fanin.completed",
    "stage.opened",
    "stage.closed",
    "frame.dispatched",
    "frame.started",
    "frame.committed",
    "frame.failed",
    "frame.abandoned",
    "subscription.registered",
    "subscription.activated",
    "subscription.paused",
    "subscription.resumed",
    "subscription.draining",
    "subscription.deactivated",
    "subscription.message.deduplicated",
    "subscription.message.directives_applied",
    "subscription.rate_limited",
    "progress",
    "note",
];

/// Maximum number of pools with their own series.
const POOLS_MAX: usize = 64;

/// Returns the label value of an event type: the type itself if it is known, else `other`.
pub fn type_label(event_type: Option<&str>) -> &'static str {
    let named = event_type.and_then(|named| TYPES.into_iter().find(|known| *known == named));
    named.unwrap_or("other")
}

/// All metrics of a control plane.
pub struct Metrics {
    registry: Registry,
    /// Duration of journal commits in seconds, including failed ones.
    pub commit_seconds: Histogram,
    /// Events appended by the journal.
    pub events_appended: IntCounter,
    /// Appends that conflicted with another process and were decided again.
    pub conflicts: IntCounter,
    /// Executions that ended in this process, by status.
    pub executions_finished: IntCounterVec,
    /// Leases of remote workers that expired without a completion.
    pub leases_ended: IntCounter,
    /// Events reported by workers and clients, by type and `ok`, `rejected`, or `error`.
    pub events_ingested: IntCounterVec,
    /// Time to process a reported event in seconds, by type.
    pub event_ingest_seconds: HistogramVec,
    pub events_projected: IntCounter,
    pub events_materialized: IntCounter,
    /// Rows rejected by `events/project` and `events/materialize`, by route.
    pub events_rejected: IntCounterVec,
    pub projections_advanced: IntCounter,
    /// Rows deleted by a purge, by table.
    pub rows_purged: IntCounterVec,
    /// Requests to start an execution, by entry and outcome.
    pub execute_outcomes: IntCounterVec,
    /// Messages to listeners that repeated a signature and started nothing.
    pub webhook_replays: IntCounter,
    /// Number of starts in one request.
    pub execute_batch_size: Histogram,
    /// Results stored independently of reports, by `ok` or `error`.
    pub results_put: IntCounterVec,
    /// Result references resolved, by `ok`, `not_found`, or `error`.
    pub results_resolved: IntCounterVec,
    /// Requests for sealed credentials, by `ok` or `error`.
    pub credentials_sealed: IntCounterVec,
    /// Write requests, by endpoint and status.
    pub write_requests: IntCounterVec,
    /// Duration of write requests in seconds, by endpoint.
    pub write_request_seconds: HistogramVec,
    /// Rows published to the event stream, by type.
    pub stream_published: IntCounterVec,
    /// Rows that the event stream permanently rejects, by type.
    pub stream_skipped: IntCounterVec,
    /// Rows published by reference because of their size, by type.
    pub stream_referenced: IntCounterVec,
    /// Position of the tailer, by database and commit lane.
    pub stream_cursor: IntGaugeVec,
    /// Age of the oldest unpublished row, in seconds.
    pub stream_lag_seconds: Gauge,
    /// Outbox rows published by the relay.
    pub outbox_published: IntCounter,
    /// Outbox rows that can be claimed.
    pub outbox_pending: IntGauge,
    /// Container callbacks, by final state.
    pub container_callbacks: IntCounterVec,
    /// Container callbacks for which no command waited, by final state.
    pub container_callbacks_stale: IntCounterVec,
    /// Command announcements accepted by the bus.
    pub commands_announced: IntCounter,
    /// Commands announced again because their announcement was lost.
    pub commands_announced_again: IntCounter,
    /// Commands waiting for a worker, by pool.
    pub commands_pending: IntGaugeVec,
    /// Number of subscriptions, by state.
    pub subscription_state: IntGaugeVec,
    /// Scheduled runs that came due, by outcome.
    pub schedule_runs: IntCounterVec,
    /// Delay between the due time and the start of a scheduled run, in seconds.
    pub schedule_delay_seconds: Histogram,
    pub spans: IntCounterVec,
    /// Metrics reported by the processes that run subscriptions.
    pub subscriptions: SubscriptionMetrics,
    /// Store reads for the metrics page that failed.
    pub scrape_errors: IntCounter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates all metrics with a value of zero.
    pub fn new() -> Self {
        let made = MetricBuilder { registry: Registry::new() };
        Self {
            commit_seconds: made
                .histogram("noetl_journal_commit_duration_seconds", "Time to commit one batch"),
            events_appended: made
                .counter("noetl_journal_events_total", "Events appended to logs of executions"),
            conflicts: made.counter(
                "noetl_journal_conflicts_total",
                "Appends that met another process's and were decided again",
            ),
            executions_finished: made.counters(
                "noetl_executions_finished_total",
                "Executions that ended here",
                &["status"],
            ),
            leases_ended: made.counter(
                "noetl_command_leases_ended_total",
                "Leases of remote workers that expired without a completion",
            ),
            events_ingested: made.counters(
                "noetl_events_ingested_total",
                "Events taken from workers and clients",
                &["event_type", "status"],
            ),
            event_ingest_seconds: made.histograms(
                "noetl_event_ingest_duration_seconds",
                "Time to take one event",
                &["event_type"],
            ),
            events_projected: made
                .counter("noetl_events_projected_total", "Rows kept by events/project"),
            events_materialized: made
                .counter("noetl_events_materialized_total", "Events kept by events/materialize"),
            events_rejected: made.counters(
                "noetl_events_rejected_total",
                "Rows not kept by events/project and events/materialize",
                &["route"],
            ),
            projections_advanced: made
                .counter("noetl_projection_advanced_total", "Snapshots brought up to date"),
            rows_purged: made.counters(
                "noetl_cleanup_rows_purged_total",
                "What cleanup removed",
                &["table"],
            ),
            execute_outcomes: made.counters(
                "noetl_execute_outcomes_total",
                "Requests to start an execution",
                &["entry", "outcome"],
            ),
            webhook_replays: made.counter(
                "noetl_webhook_replays_total",
                "Messages to listeners that repeated a signature and started nothing",
            ),
            execute_batch_size: made
                .sizes("noetl_execute_batch_size", "Starts asked for in one request"),
            results_put: made.counters(
                "noetl_result_store_put_total",
                "Results handed in apart from reports",
                &["status"],
            ),
            results_resolved: made.counters(
                "noetl_result_store_resolve_total",
                "References that were followed",
                &["status"],
            ),
            credentials_sealed: made.counters(
                "noetl_credentials_sealed_total",
                "Credentials asked for sealed",
                &["status"],
            ),
            write_requests: made.counters(
                "noetl_write_requests_total",
                "Requests that write",
                &["endpoint", "status"],
            ),
            write_request_seconds: made.histograms(
                "noetl_write_request_duration_seconds",
                "Time to answer a request that writes",
                &["endpoint"],
            ),
            stream_published: made.counters(
                "noetl_event_stream_published_total",
                "Rows the event stream took",
                &["event_type"],
            ),
            stream_skipped: made.counters(
                "noetl_event_stream_skipped_total",
                "Rows the event stream never takes",
                &["event_type"],
            ),
            stream_referenced: made.counters(
                "noetl_event_stream_referenced_total",
                "Rows published by reference because of their size",
                &["event_type"],
            ),
            stream_cursor: made.gauges(
                "noetl_event_stream_cursor",
                "Position up to which rows are published",
                &["cursor"],
            ),
            stream_lag_seconds: made.gauge(
                "noetl_event_stream_oldest_unpublished_seconds",
                "Age of the oldest row that is not published",
            ),
            outbox_published: made
                .counter("noetl_outbox_relay_published_total", "Rows the relay published"),
            outbox_pending: made
                .whole_gauge("noetl_outbox_pending", "Rows of the outbox that can be claimed"),
            commands_announced: made
                .counter("noetl_commands_announced_total", "Announcements of commands"),
            commands_announced_again: made.counter(
                "noetl_commands_announced_again_total",
                "Commands that were announced again",
            ),
            container_callbacks: made.counters(
                "noetl_container_callback_total",
                "Answers of containers",
                &["state"],
            ),
            container_callbacks_stale: made.counters(
                "noetl_container_callback_stale_total",
                "Answers of containers that nothing waited for",
                &["state"],
            ),
            commands_pending: made.gauges(
                "noetl_commands_pending",
                "Commands that wait for a worker",
                &["pool"],
            ),
            subscription_state: made.gauges(
                "noetl_subscription_state",
                "Subscriptions by state",
                &["state"],
            ),
            schedule_runs: made.counters(
                "noetl_schedule_runs_total",
                "Runs of schedules that came due, by what became of them",
                &["outcome"],
            ),
            schedule_delay_seconds: made.histogram(
                "noetl_schedule_start_delay_seconds",
                "How late runs of schedules were started",
            ),
            spans: made.counters(
                "noetl_trace_spans_total",
                "Spans of traces: exported, dropped for want of room, or failed to be taken",
                &["outcome"],
            ),
            subscriptions: SubscriptionMetrics::new(
                made.gauges(
                    "noetl_subscription_backlog",
                    "Messages that wait at the source of a subscription",
                    &["subscription"],
                ),
                made.counters(
                    "noetl_subscription_messages_total",
                    "Messages of subscriptions by what became of them",
                    &["subscription", "outcome"],
                ),
            ),
            scrape_errors: made.counter(
                "noetl_scrape_errors_total",
                "Readings for this page that the database did not answer",
            ),
            registry: made.registry,
        }
    }

    /// Counts the end of an execution. Ignores a status that is not final.
    pub(crate) fn count_end(&self, status: Status) {
        let status = match status {
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Cancelled => "CANCELLED",
            Status::Absent | Status::Running => return,
        };
        self.executions_finished.with_label_values(&[status]).inc();
    }

    /// Sets the number of pending commands by pool. A start request can name any pool, so pools
    /// beyond the first 64 are added up as `other`.
    pub fn set_pending(&self, pools: &[(std::sync::Arc<str>, u64)]) {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.commands_pending.reset();
        self.commands_pending.with_label_values(&[DEFAULT_POOL]).set(0);
        let (named, rest) = pools.split_at(pools.len().min(POOLS_MAX));
        for (pool, pending) in named {
            self.commands_pending.with_label_values(&[&**pool]).set(count(*pending));
        }
        if !rest.is_empty() {
            let pending = rest.iter().map(|(_, pending)| pending).sum();
            self.commands_pending.with_label_values(&["other"]).set(count(pending));
        }
    }

    /// Sets the numbers of exported, dropped, and failed spans.
    pub fn set_spans(&self, counts: SpanCounts) {
        let SpanCounts { exported, dropped, failed } = counts;
        for (outcome, count) in [("exported", exported), ("dropped", dropped), ("failed", failed)] {
            let counter = self.spans.with_label_values(&[outcome]);
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }

    /// Returns the metrics page in the Prometheus text format.
    pub fn text(&self) -> String {
        self.subscriptions.forget_old();
        let mut page = Vec::new();
        // Writing to memory cannot fail, and each family was validated when it was created.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut page);
        String::from_utf8(page).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_a_caller_made_up_counts_as_other() {
        assert_eq!(type_label(Some("call.done")), "call.done");
        assert_eq!(type_label(Some("made-up-4711")), "other");
        assert_eq!(type_label(None), "other");
    }

    #[test]
    fn the_metrics_page_shows_the_counters() {
        let metrics = Metrics::new();
        metrics.events_ingested.with_label_values(&["call.done", "ok"]).inc();
        let page = metrics.text();
        let line = "noetl_events_ingested_total{event_type=\"call.done\",status=\"ok\"} 1";
        assert!(page.lines().any(|found| found == line), "{page}");
    }
}
