//! Settings of the standard tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use noetl_egress::EgressPolicy;
use tokio::process::Command;

use crate::isolation::{Isolation, TenantRules};
use crate::own::{AllowedDirectory, OwnFiles};

const MIB: usize = 1024 * 1024;

/// Settings of the standard tools.
#[derive(Debug, Clone)]
pub struct Options {
    /// Python interpreter: a path, or a name looked up in `PATH`. Default: `python3`.
    pub python: PathBuf,
    /// Parent of the steps' working directories. Default: the system's temporary directory.
    pub work_dir: PathBuf,
    /// Environment of programs that steps start.
    pub environment: Environment,
    /// Isolation of steps from the machine and from each other. Default: none (level 0).
    pub isolation: Isolation,
    /// Program that hosts sandboxed steps with its hidden command `step-host`, usually
    /// `/proc/self/exe`. Without it, only isolation level 0 is available. Default: none.
    pub host: Option<PathBuf>,
    /// Files of the program itself, which steps must never access. Default: none.
    pub own: OwnFiles,
    /// Directories that steps may use besides those of the system, by tenant. Default: all.
    pub paths: TenantRules<AllowedDirectory>,
    /// Kinds of tools that steps may use, by tenant. Default: all.
    pub tools: TenantRules<String>,
    /// Whether steps of several tenants may run on this worker without isolation between them.
    /// Default: `true`; programs that serve several tenants set `false`.
    pub share_tenants: bool,
    pub limits: OutputLimits,
    /// Egress policy of `http`. Default: all addresses except cloud metadata services.
    pub egress: EgressPolicy,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            python: PathBuf::from("python3"),
            work_dir: std::env::temp_dir(),
            environment: Environment::default(),
            isolation: Isolation::default(),
            host: None,
            own: OwnFiles::default(),
            paths: TenantRules::default(),
            tools: TenantRules::default(),
            share_tenants: true,
            limits: OutputLimits::default(),
            egress: EgressPolicy::default(),
        }
    }
}

/// Output limits of a step, in bytes unless stated otherwise.
#[derive(Debug, Clone)]
pub struct OutputLimits {
    /// Maximum size of each of a shell step's two streams. The step fails beyond it, because the
    /// streams are its result. Default: 1 MiB.
    pub shell_output: usize,
    /// Maximum size of each of a Python step's two streams. Beyond it, only the first and last half
    /// are stored and the gap is counted, because the streams are only logs. Default: 1 MiB.
    pub python_output: usize,
    /// Maximum size of a Python step's result as JSON. The step fails beyond it. Default: 2 MiB.
    pub python_result: usize,
    /// Maximum size of an HTTP response's body after decompression. The step fails beyond it.
    /// Default: 16 MiB.
    pub http_response: usize,
    /// Maximum rows of all statements of a database step together. The step fails beyond it.
    /// Default: 100,000.
    pub sql_rows: usize,
    /// Maximum size of the rows of all statements of a database step as JSON. The step fails beyond
    /// it. Default: 16 MiB.
    pub sql_result: usize,
    /// Maximum size of a message or object that a `nats` step reads. The step fails beyond it.
    /// Default: 16 MiB.
    pub nats_payload: usize,
    /// Maximum size of a program that a Python step loads from a file or URL. Default: 1 MiB.
    pub python_script: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            shell_output: MIB,
            python_output: MIB,
            python_result: 2 * MIB,
            http_response: 16 * MIB,
            sql_rows: 100_000,
            sql_result: 16 * MIB,
            nats_payload: 16 * MIB,
            python_script: MIB,
        }
    }
}

/// Environment of programs that steps start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Variables inherited from the worker.
    pub inherit: EnvPolicy,
    /// Additional variables, by name. They override inherited ones.
    pub set: BTreeMap<String, String>,
}

/// Variables of the worker that its steps inherit.
#[derive(Debug, Clone)]
pub enum EnvPolicy {
    /// Only these. The worker's environment contains its database and bus credentials, so the
    /// default is the few variables that programs need to find their files: `PATH`, `HOME`, `LANG`,
    /// `TMPDIR`.
    Only(Vec<String>),
    /// All variables, for a worker whose operator trusts every playbook.
    Everything,
}

impl Default for EnvPolicy {
    fn default() -> Self {
        Self::Only(["PATH", "HOME", "LANG", "TMPDIR"].map(str::to_owned).to_vec())
    }
}

impl Environment {
    /// Sets the environment of `command`.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let EnvPolicy::Only(names) = &self.inherit {
            command.env_clear();
            for name in names {
                // Passed on without interpretation: it is not a setting of the worker.
                if let Some(value) = std::env::var_os(name) {
                    command.env(name, value);
                }
            }
        }
        command.envs(&self.set);
    }
}
