//! Groups of flags that belong to settings.

use clap::Arg;

use super::flags::FlagGroup;

/// Flags of `noetl dev`.
#[derive(Debug)]
pub(crate) enum DevFlags {}

impl FlagGroup for DevFlags {
    const KEYS: &'static [&'static str] = &[
        "server.host",
        "server.port",
        "auth.mode",
        "database.data",
        "database.url",
        "server.slots",
        "bus.nats_url",
    ];
}

/// Flags of `noetl server`.
#[derive(Debug)]
pub(crate) enum ServerFlags {}

impl FlagGroup for ServerFlags {
    const KEYS: &'static [&'static str] =
        &["server.host", "server.port", "database.url", "bus.nats_url"];
}

/// Flags of verbs that open a database.
#[derive(Debug)]
pub(crate) enum DatabaseFlags {}

impl FlagGroup for DatabaseFlags {
    const KEYS: &'static [&'static str] = &["database.data", "database.url"];
}

/// Flag of verbs that use the data directory only.
#[derive(Debug)]
pub(crate) enum DataFlags {}

impl FlagGroup for DataFlags {
    const KEYS: &'static [&'static str] = &["database.data"];
}

/// Flags of retention periods.
#[derive(Debug)]
pub(crate) enum RetentionFlags {}

impl FlagGroup for RetentionFlags {
    const KEYS: &'static [&'static str] = &[
        "retention.event_days",
        "retention.command_days",
        "retention.runtime_minutes",
        "retention.outbox_days",
        "retention.dedup_days",
        "retention.audit_days",
    ];
}

/// Flag of `noetl audit verify`.
#[derive(Debug)]
pub(crate) enum AuditRetentionFlags {}

impl FlagGroup for AuditRetentionFlags {
    const KEYS: &'static [&'static str] = &["retention.audit_days"];

    fn adapt(_key: &str, arg: Arg) -> Arg {
        arg.help(
            "Days after which uses of secrets are purged; a missing younger use counts as removed. \
             0 if uses are never purged [env: NOETL_AUDIT_RETENTION_DAYS] [default: 90]",
        )
    }
}

/// Flags of verbs that call a server.
#[derive(Debug)]
pub(crate) enum ClientFlags {}

impl FlagGroup for ClientFlags {
    const KEYS: &'static [&'static str] = &["client.server_url", "client.token"];

    fn adapt(key: &str, arg: Arg) -> Arg {
        let arg = arg.help_heading("Server");
        if key == "client.token" { arg.alias("session-token") } else { arg }
    }
}

/// Flags of `noetl worker`, except those of steps.
#[derive(Debug)]
pub(crate) enum WorkerFlags {}

impl FlagGroup for WorkerFlags {
    const KEYS: &'static [&'static str] = &[
        "client.server_url",
        "worker.token_file",
        "client.token",
        "bus.nats_url",
        "worker.slots",
        "worker.pool",
        "worker.labels",
        "worker.name",
        "worker.listen",
        "worker.result_max_mb",
        "worker.grace_secs",
    ];

    fn long(key: &str) -> Option<&'static str> {
        (key == "client.server_url").then_some("server")
    }

    fn adapt(key: &str, arg: Arg) -> Arg {
        match key {
            "client.server_url" => arg.visible_alias("server-url").help_heading("Server"),
            "worker.token_file" => arg.help_heading("Server").conflicts_with("client.token"),
            "client.token" => arg.help_heading("Server").help(
                "Access token of role worker. Prefer a file: other processes may read the arguments \
                 and the environment while the worker starts [env: NOETL_TOKEN or \
                 NOETL_SESSION_TOKEN] [default: that of the context]",
            ),
            "bus.nats_url" => arg.help_heading("Server"),
            _ => arg,
        }
    }
}

/// Flags of `noetl worker` that configure the isolation of steps.
#[derive(Debug)]
pub(crate) enum StepFlags {}

impl FlagGroup for StepFlags {
    const KEYS: &'static [&'static str] = &[
        "steps.isolation",
        "steps.users",
        "steps.paths",
        "steps.tools",
        "steps.share_tenants",
        "steps.user",
        "steps.no_network",
        "steps.private_tmp",
        "steps.memory_mb",
        "steps.cpu_seconds",
        "steps.processes",
        "steps.cgroup",
        "steps.env",
    ];

    fn adapt(key: &str, arg: Arg) -> Arg {
        if key == "steps.users" { arg.conflicts_with("steps.user") } else { arg }
    }
}
