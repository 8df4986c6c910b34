//! Arguments of `noetl worker` that configure the isolation of steps.

use std::path::PathBuf;

use clap::Args;

/// Isolation flags. Each flag overrides the environment variable named in its help text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Isolation of steps")]
pub(crate) struct IsolationArguments {
    /// Isolation level of steps: 0 none, 1 Landlock and a subreaper, 2 namespaces, 3 separate
    /// users, or auto for the highest level up to 2 that this machine supports (3 with
    /// --step-users). [env: NOETL_STEP_ISOLATION] [default: auto]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) step_isolation: Option<String>,
    /// User IDs to run steps as, one per tenant, such as `200000-265535`. Requires root. [env:
    /// NOETL_STEP_USERS]
    #[arg(long, value_name = "FIRST-LAST", conflicts_with = "step_user")]
    pub(crate) step_users: Option<String>,
    /// Directories that steps may use in addition to system directories, `=ro` for read-only:
    /// `/srv/data,/srv/shared=ro; TENANT: /srv/tenant`. [env: NOETL_STEP_PATHS] [default: all]
    #[arg(long, value_name = "PATHS")]
    pub(crate) step_paths: Option<String>,
    /// Tool kinds that steps may use: `shell,http; TENANT: http`. [env: NOETL_STEP_TOOLS] [default:
    /// all]
    #[arg(long, value_name = "KINDS")]
    pub(crate) step_tools: Option<String>,
    /// Run steps of several tenants even if the level doesn't isolate tenants (below 2). [env:
    /// NOETL_STEP_SHARE_TENANTS=true]
    #[arg(long)]
    pub(crate) step_share_tenants: bool,
    /// User to run steps as: a name, or IDs such as `1000:1000`. Requires root. [env:
    /// NOETL_STEP_USER] [default: the worker's user]
    #[arg(long, value_name = "USER")]
    pub(crate) step_user: Option<String>,
    /// Run steps without network access. [env: NOETL_STEP_NO_NETWORK=true]
    #[arg(long)]
    pub(crate) step_no_network: bool,
    /// Give each step its own in-memory temporary directory. [env: NOETL_STEP_PRIVATE_TMP=true]
    #[arg(long)]
    pub(crate) step_private_tmp: bool,
    /// Address space limit of each step process, in MiB. [env: NOETL_STEP_MEMORY_MB]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) step_memory: Option<u32>,
    /// CPU time limit of each step process, in seconds. [env: NOETL_STEP_CPU_SECONDS]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) step_cpu_seconds: Option<u32>,
    /// Maximum number of processes of the user that runs the steps. [env: NOETL_STEP_PROCESSES]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..))]
    pub(crate) step_processes: Option<u32>,
    /// Control group (version 2) to run steps in; its limits apply to all steps together. [env:
    /// NOETL_STEP_CGROUP]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) step_cgroup: Option<PathBuf>,
    /// Names of the worker's environment variables that steps inherit, comma-separated. [env:
    /// NOETL_STEP_ENV] [default: PATH,HOME,LANG,TMPDIR]
    #[arg(long, value_name = "NAMES")]
    pub(crate) step_env: Option<String>,
}
