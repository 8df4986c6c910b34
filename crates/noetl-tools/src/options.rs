//! What the standard tools need to know about the worker they run in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use noetl_fence::Fence;
use tokio::process::Command;

use crate::{Isolation, OwnFiles, Root, TenantRules};

const MIB: usize = 1024 * 1024;

/// Settings of the standard tools.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Python program: a path, or a name looked up in `PATH`. Default `python3`.
    pub python: PathBuf,
    /// Where steps get their fresh working directories. Default: the system's temporary directory.
    pub work_dir: PathBuf,
    /// The environment that programs started by steps see.
    pub environment: Environment,
    /// Isolation of steps from the machine and from each other. Default: none (level 0).
    pub isolation: Isolation,
    /// The program that hosts sandboxed steps with its hidden command `step-host`: this one, as
    /// `/proc/self/exe`. Without it only isolation level 0 can be had. Default: none.
    pub host: Option<PathBuf>,
    /// Files of the program itself, which steps never use. Default: none.
    pub own: OwnFiles,
    /// Directories that steps may use beside those of the system, by tenant. Default: all.
    pub paths: TenantRules<Root>,
    /// Kinds of tools that steps may use, by tenant. Default: all.
    pub tools: TenantRules<String>,
    /// Whether steps of several tenants may run here where nothing keeps them apart. Default: yes;
    /// programs that serve tenants say no.
    pub share_tenants: bool,
    /// How much output a step may make.
    pub limits: Limits,
    /// Which addresses `http` may reach. Default: all but those where a cloud tells its machines
    /// who they are.
    pub fence: Fence,
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
            limits: Limits::default(),
            fence: Fence::default(),
        }
    }
}

/// How much output a step may make, in bytes where nothing else is said.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Each of a shell step's two streams; more fails the step, because they are its result.
    /// Default 1 MiB.
    pub shell_output: usize,
    /// Each of a Python step's two streams; more keeps the first and the last half and counts the
    /// gap, because they are only its log. Default 1 MiB.
    pub python_output: usize,
    /// A Python step's result as JSON; more fails the step. Default 2 MiB.
    pub python_result: usize,
    /// An HTTP response's body after decompression; more fails the step. Default 16 MiB.
    pub http_response: usize,
    /// The rows of all of a database step's statements together; more fails the step. Default
    /// 100 000.
    pub sql_rows: usize,
    /// The same in bytes of JSON; more fails the step. Default 16 MiB.
    pub sql_result: usize,
    /// A message or an object that a `nats` step gets; more fails the step. Default 16 MiB.
    pub nats_payload: usize,
    /// A program that a Python step gets from a file or an address. Default 1 MiB.
    pub python_script: usize,
}

impl Default for Limits {
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

/// The environment of the programs that steps start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Which of the worker's own variables are handed down.
    pub inherit: Inherit,
    /// Variables set on top, by name.
    pub set: BTreeMap<String, String>,
}

/// Which of the worker's own variables its steps see.
#[derive(Debug, Clone)]
pub enum Inherit {
    /// These only. The worker's variables hold its database and bus credentials, so the default
    /// is the few that programs need to find their files: `PATH`, `HOME`, `LANG`, `TMPDIR`.
    Only(Vec<String>),
    /// All of them, for a worker whose operator trusts every playbook.
    Everything,
}

impl Default for Inherit {
    fn default() -> Self {
        Self::Only(["PATH", "HOME", "LANG", "TMPDIR"].map(str::to_owned).to_vec())
    }
}

impl Environment {
    /// Gives `command` this environment and nothing else.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Inherit::Only(names) = &self.inherit {
            command.env_clear();
            for name in names {
                // Handed down unread: this is no setting of the worker's.
                if let Some(value) = std::env::var_os(name) {
                    command.env(name, value);
                }
            }
        }
        command.envs(&self.set);
    }
}
