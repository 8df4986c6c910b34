//! What a worker is told of how its steps are kept apart.

use std::path::PathBuf;

use clap::Args;

/// Flags win over the variables of the environment that are named beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Isolation of shell and python steps")]
pub(crate) struct IsolationArguments {
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
