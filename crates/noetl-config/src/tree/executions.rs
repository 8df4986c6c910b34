//! Settings of executions, retention, the message bus, and traces.

use std::time::Duration;

use crate::kind::Kind;
use crate::secret::Secret;
use crate::setting::{Feature, Setting, section};

const LEASE: Kind = Kind::Seconds { min: 3, max: 3600 };
const RETENTION: Kind = Kind::Number { min: i64::MIN, max: i64::MAX };
const YEAR: Kind = Kind::Seconds { min: 1, max: 366 * 86_400 };

section! {
    /// Executions and their limits.
    Executions = "executions" {
        /// Maximum number of items of a loop.
        loop_items_max: u32 =
            Setting::new(Kind::Number { min: 1, max: 10_000_000 }, &["NOETL_LOOP_ITEMS_MAX"])
                .default("100000").guarded();
        /// Items of a parallel loop that run at a time, unless the playbook sets a number.
        loop_in_flight: u32 =
            Setting::new(Kind::Number { min: 1, max: 100_000 }, &["NOETL_LOOP_IN_FLIGHT"])
                .default("64");
        /// Maximum depth of playbooks that call each other.
        playbook_depth_max: u32 =
            Setting::new(Kind::Number { min: 1, max: 1000 }, &["NOETL_PLAYBOOK_DEPTH_MAX"])
                .default("32").guarded();
        /// Maximum number of events of an execution.
        events_max: u64 =
            Setting::new(Kind::Number { min: 100, max: i64::MAX }, &["NOETL_EVENTS_MAX"])
                .default("10000000").guarded();
        /// Quotas of tenants, such as `executions=1000 starts=50; acme: executions=10`.
        quotas: Option<String> = Setting::new(Kind::Text, &["NOETL_QUOTAS"]).guarded();
        /// Names of the environment variables that templates see as `env`.
        template_env: Option<Vec<String>> =
            Setting::new(Kind::List, &["NOETL_TEMPLATE_ENV"]).guarded();
        /// Webhook that is notified of every failed or waiting execution.
        notify_webhook: Option<Secret> =
            Setting::new(Kind::Text, &["NOETL_NOTIFY_WEBHOOK"]).secret();
        /// Lease duration of a process, in seconds. When it expires, other processes take over the
        /// work or the subscription.
        lease_secs: Option<Duration> = Setting::new(LEASE, &["NOETL_LEASE_SECS"])
            .note("90; 30 for subscriptions");
        /// Lease duration of remote workers, in seconds. When it expires, other workers get the
        /// commands.
        worker_lease_secs: Duration =
            Setting::new(LEASE, &["NOETL_WORKER_LEASE_SECS"]).default("45");
        /// Time for which a published worker may hold a command whose report may be lost, in
        /// seconds.
        lost_report_secs: Duration =
            Setting::new(Kind::Seconds { min: 5, max: 86_400 }, &["NOETL_LOST_REPORT_SECS"])
                .default("300");
        /// Time for which signatures of webhooks are deduplicated, in seconds; 0 turns it off.
        webhook_replay_secs: Duration = Setting::new(
            Kind::Seconds { min: 0, max: 7 * 24 * 3600 },
            &["NOETL_WEBHOOK_REPLAY_SECS"],
        ).default("300").guarded();
    }
}

section! {
    /// Retention. `noetl dev` and `noetl server` purge once a day if any of these is set; 0 retains
    /// forever.
    Retention = "retention" {
        /// Days to retain finished executions with all their data, since their last event; 0 is
        /// forever.
        event_days: Option<i64> = Setting::new(RETENTION, &["NOETL_EVENT_RETENTION_DAYS"])
            .flag("event-retention-days", "N").note("0").guarded();
        /// Days to retain commands of finished executions, since the commands ended; 0 is forever.
        command_days: Option<i64> = Setting::new(RETENTION, &["NOETL_COMMAND_RETENTION_DAYS"])
            .flag("command-retention-days", "N").note("7").guarded();
        /// Minutes to retain worker pools, since their last heartbeat; 0 is forever.
        runtime_minutes: Option<i64> = Setting::new(RETENTION, &["NOETL_RUNTIME_STALE_MINUTES"])
            .flag("runtime-stale-minutes", "N").note("60").guarded();
        /// Days to retain published outbox rows; 0 is forever.
        outbox_days: Option<i64> = Setting::new(RETENTION, &["NOETL_OUTBOX_RETENTION_DAYS"])
            .flag("outbox-retention-days", "N").note("7").guarded();
        /// Days to remember messages of subscriptions for deduplication; 0 is forever.
        dedup_days: Option<i64> = Setting::new(RETENTION, &["NOETL_DEDUP_RETENTION_DAYS"])
            .flag("dedup-retention-days", "N").note("7").guarded();
        /// Days to retain audit records of secrets; 0 is forever.
        audit_days: Option<i64> = Setting::new(RETENTION, &["NOETL_AUDIT_RETENTION_DAYS"])
            .flag("audit-retention-days", "N").note("90").guarded();
    }
}

section! {
    /// Message bus, event stream, and outbox.
    Bus = "bus" {
        /// NATS server that announces commands, and on which servers publish events, such as
        /// `nats://user:password@host:port`; separate the servers of a cluster with commas.
        /// Publishing events requires NOETL_EVENT_STREAM_ENABLED or NOETL_OUTBOX_RELAY.
        nats_url: Option<Secret> = Setting::new(Kind::Text, &["NOETL_NATS_URL"])
            .flag("nats-url", "URL").url();
        /// Publish committed events from the event log.
        event_stream_enabled: bool =
            Setting::new(Kind::Switch, &["NOETL_EVENT_STREAM_ENABLED"]).default("false").guarded();
        /// Rows to publish at a time.
        event_stream_batch: usize =
            Setting::new(Kind::Number { min: 1, max: 5000 }, &["NOETL_EVENT_STREAM_BATCH"])
                .default("500");
        /// Interval of the search for rows of other processes, in milliseconds.
        event_stream_poll_ms: Duration =
            Setting::new(Kind::Millis { min: 1, max: 3_600_000 }, &["NOETL_EVENT_STREAM_POLL_MS"])
                .default("500");
        /// Begin with the first row of a database that was never published.
        event_stream_backfill: bool =
            Setting::new(Kind::Switch, &["NOETL_EVENT_STREAM_BACKFILL"]).default("false").guarded();
        /// Time for which a new stream deduplicates messages, in seconds; at most its retention.
        event_stream_dedup_secs: Option<Duration> =
            Setting::new(YEAR, &["NOETL_EVENT_STREAM_DEDUP_SECS"]).note("120");
        /// Time for which a new stream retains messages, in seconds.
        event_stream_retention_secs: Duration =
            Setting::new(YEAR, &["NOETL_EVENT_STREAM_RETENTION_SECS"]).default("86400");
        /// Lease of the process that publishes, in seconds.
        event_stream_lease_secs: Duration =
            Setting::new(Kind::Seconds { min: 1, max: 3600 }, &["NOETL_EVENT_STREAM_LEASE_SECS"])
                .default("15");
        /// Write events to the outbox, too.
        outbox_enabled: bool =
            Setting::new(Kind::Switch, &["NOETL_OUTBOX_ENABLED"]).default("false").guarded();
        /// Lease of a publisher that claims outbox rows over HTTP, in seconds.
        outbox_lease_secs: Duration =
            Setting::new(Kind::Seconds { min: 1, max: 86_400 }, &["NOETL_OUTBOX_LEASE_SECS"])
                .default("60");
        /// Publish the rows of the outbox from this process.
        outbox_relay: bool =
            Setting::new(Kind::Switch, &["NOETL_OUTBOX_RELAY"]).default("false").guarded();
        /// Write events of the stream to the database in this process, as a system pool does.
        materializer_enabled: bool =
            Setting::new(Kind::Switch, &["NOETL_MATERIALIZER_ENABLED"]).default("false").guarded();
        /// Update snapshots from the stream in this process, as a system pool does.
        projector_enabled: bool =
            Setting::new(Kind::Switch, &["NOETL_PROJECTOR_ENABLED"]).default("false").guarded();
        /// Number of subjects over which the commands of the system pool are distributed.
        command_shard_count: u32 =
            Setting::new(Kind::Number { min: 1, max: 1024 }, &["NOETL_COMMAND_SHARD_COUNT"])
                .default("1");
        /// Distribute the commands of the system pool over these subjects.
        shard_subject_route: bool =
            Setting::new(Kind::Switch, &["NOETL_SHARD_SUBJECT_ROUTE"]).default("false");
    }
}

section! {
    /// Traces, by the variables of OpenTelemetry. A variable of traces wins over that of all
    /// signals.
    Traces = "traces" {
        /// Turn the export of traces off.
        disabled: bool =
            Setting::new(Kind::OtelSwitch, &["OTEL_SDK_DISABLED"]).default("false");
        /// Exporter: `otlp`, or `none`.
        exporter: Option<String> = Setting::new(Kind::Text, &["OTEL_TRACES_EXPORTER"]);
        /// URL of the collector, to which `/v1/traces` is added.
        endpoint: Option<String> =
            Setting::new(Kind::Text, &["OTEL_EXPORTER_OTLP_ENDPOINT"]).url();
        /// Full URL for traces, instead of that of the collector.
        traces_endpoint: Option<String> =
            Setting::new(Kind::Text, &["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]).url();
        /// Protocol of the export: `http/protobuf`.
        protocol: Option<String> = Setting::new(
            Kind::Text,
            &["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"],
        );
        /// Headers for the collector, as `name=value` pairs with percent-encoded values, separated
        /// by commas.
        headers: Option<Secret> = Setting::new(
            Kind::Text,
            &["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"],
        ).secret();
        /// Time limit of an export, in milliseconds.
        timeout_ms: Duration = Setting::new(
            Kind::Millis { min: 1, max: 600_000 },
            &["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"],
        ).default("10000").only_with(Feature::TraceExport);
        /// Sampler: `always_on`, `always_off`, or `traceidratio`, also after `parentbased_`.
        sampler: Option<String> =
            Setting::new(Kind::Text, &["OTEL_TRACES_SAMPLER"]).note("parentbased_always_on");
        /// Share of traces to sample, from 0 to 1, for `traceidratio`.
        sampler_arg: String = Setting::new(Kind::Text, &["OTEL_TRACES_SAMPLER_ARG"]).default("1");
        /// Attribute `service.name` of this process.
        service_name: Option<String> =
            Setting::new(Kind::Text, &["OTEL_SERVICE_NAME"]).note("noetl");
        /// Attributes of this process, in the form of the headers.
        resource_attributes: Option<String> =
            Setting::new(Kind::Text, &["OTEL_RESOURCE_ATTRIBUTES"]);
        /// Maximum number of spans in the queue.
        queue: usize =
            Setting::new(Kind::Number { min: 1, max: 1_000_000 }, &["OTEL_BSP_MAX_QUEUE_SIZE"])
                .default("2048").only_with(Feature::TraceExport);
        /// Maximum number of spans per export.
        batch: usize = Setting::new(
            Kind::Number { min: 1, max: 1_000_000 },
            &["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"],
        ).default("512").only_with(Feature::TraceExport);
        /// Maximum time a span waits for its batch to fill, in milliseconds.
        delay_ms: Duration =
            Setting::new(Kind::Millis { min: 0, max: 600_000 }, &["OTEL_BSP_SCHEDULE_DELAY"])
                .default("5000").only_with(Feature::TraceExport);
    }
}
