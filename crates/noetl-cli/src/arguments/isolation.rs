//! What a worker is told of how its steps are kept apart.

use std::path::PathBuf;

use clap::Args;

/// Flags win over the variables of the environment that are named beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Isolation of steps")]
pub(crate) struct IsolationArguments {
    /// Level to isolate steps at: 0 none, 1 Landlock and a subreaper, 2 namespaces, 3 users of
    /// their own, or auto for the best up to 2 that this machine allows (3 with users). Else
    /// NOETL_STEP_ISOLATION [default: auto].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) step_isolation: Option<String>,
    /// Users to run steps as, one for each tenant: numbers as `200000-265535`. The worker has to be
    /// root. Else NOETL_STEP_USERS.
    #[arg(long, value_name = "FIRST-LAST", conflicts_with = "step_user")]
    pub(crate) step_users: Option<String>,
    /// Directories that steps may use beside those of the system, `=ro` for reading only:
    /// `/srv/data,/srv/shared=ro; TENANT: /srv/tenant`. Else NOETL_STEP_PATHS [default: all].
    #[arg(long, value_name = "PATHS")]
    pub(crate) step_paths: Option<String>,
    /// Kinds of tools that steps may use: `shell,http; TENANT: http`. Else NOETL_STEP_TOOLS
    /// [default: all].
    #[arg(long, value_name = "KINDS")]
    pub(crate) step_tools: Option<String>,
    /// Run steps of several tenants though the level does not keep them apart (below 2). The same as
    /// NOETL_STEP_SHARE_TENANTS=true.
    #[arg(long)]
    pub(crate) step_share_tenants: bool,
    /// Whom they run as: a name, or numbers as `1000:1000`. The worker has to be root. Else
    /// NOETL_STEP_USER [default: the worker's user].
    #[arg(long, value_name = "USER")]
    pub(crate) step_user: Option<String>,
    /// They have no network. The same as NOETL_STEP_NO_NETWORK=true.
    #[arg(long)]
    pub(crate) step_no_network: bool,
    /// Each has temporary files of its own, in memory. The same as NOETL_STEP_PRIVATE_TMP=true.
    #[arg(long)]
    pub(crate) step_private_tmp: bool,
    /// How many mebibytes of address space each process may have. Else NOETL_STEP_MEMORY_MB.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) step_memory: Option<u32>,
    /// How many seconds each process may compute. Else NOETL_STEP_CPU_SECONDS.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) step_cpu_seconds: Option<u32>,
    /// How many processes their user may have in all. Else NOETL_STEP_PROCESSES.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..))]
    pub(crate) step_processes: Option<u32>,
    /// The control group (version 2) they are put into, whose limits hold for all of them together.
    /// Else NOETL_STEP_CGROUP.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) step_cgroup: Option<PathBuf>,
    /// Which of the worker's variables they see, parted by commas. Else NOETL_STEP_ENV
    /// [default: PATH,HOME,LANG,TMPDIR].
    #[arg(long, value_name = "NAMES")]
    pub(crate) step_env: Option<String>,
}
