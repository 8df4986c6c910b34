//! Tools that steps can run, one module each, behind the [`Tool`] trait.
//!
//! A tool receives a rendered [`ToolCall`] and returns a value or a [`Failure`] that policies match on.
//! All processes that a tool starts have ended when it returns: they are killed as a group on
//! timeout, on cancellation, and when the call is dropped. [`OutputLimits`] bounds the output that a tool
//! reads, so no step can fill the worker's memory or disk. Tools don't depend on playbooks or
//! templates. Credentials are resolved into a call's settings before its tool runs ([`auth`]).
//! Tools access the worker through [`Artifacts`] and [`CredentialSource`].

mod artifact;
pub mod auth;
mod capture;
mod config;
mod duckdb;
mod http;
mod isolation;
mod logs;
mod nats;
mod noop;
mod options;
mod own;
mod postgres;
mod process;
mod python;
mod sandbox;
mod seams;
mod secrets;
mod shell;
mod sql;
mod sqlite;
pub mod step_host;
mod transfer;
mod workdir;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{
    CommandId, DEPTH_MAX, ExecutionId, Failure, FailureKind, Map, Tenant, TraceContext, Value,
    is_deeper_than,
};
use tokio_util::sync::CancellationToken;

use crate::sandbox::Sandbox;

pub use artifact::Artifact;
pub use duckdb::DuckDb;
pub use http::Http;
pub use isolation::{Isolation, IsolationError, Level, TenantRules, User, UserRange};
pub use logs::{LogSink, Stream};
pub use nats::Nats;
pub use noop::Noop;
pub use options::{EnvPolicy, Environment, Options, OutputLimits};
pub use own::OwnFiles;
pub use postgres::{GatewaySession, GatewaySessions, NotifyHandling, Postgres, connect_postgres};
pub use python::Python;
pub use sandbox::wire::AllowedDirectory;
pub use seams::{Artifacts, CredentialSource, ToolCredential};
pub use secrets::SecretsTool;
pub use shell::Shell;
pub use sqlite::Sqlite;
pub use transfer::Transfer;

/// A call of a tool, with all templates rendered.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Execution that the step belongs to.
    pub execution: ExecutionId,
    /// Command of the call. Together with `attempt`, a key for idempotent calls.
    pub command: CommandId,
    /// Tenant of the execution. Steps of two tenants never share a sandbox.
    pub tenant: Tenant,
    pub step: Arc<str>,
    pub attempt: u32,
    pub config: Map,
    /// Named arguments of the tool.
    pub input: Map,
    /// Timeout. `None` for the default of the tool.
    pub timeout: Option<Duration>,
    /// Cancelled when the result is no longer needed.
    pub cancel: CancellationToken,
    /// Receives the output while the call runs. Default: discards it.
    pub logs: LogSink,
    /// Data about the execution beyond the input. Python code sees it as `context`.
    pub context: Map,
    /// Results stored outside the event log. `None` if the worker has no access to them.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Stored credentials. `None` if the worker has no access to them.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// Trace context of the call, whose span is the parent of requests that the tool sends.
    pub trace: Option<TraceContext>,
}

/// A tool that steps can run.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the `kind` that playbooks use.
    fn kind(&self) -> &'static str;

    /// Runs one call within its timeout, and stops everything it started when the call is
    /// cancelled.
    async fn run(&self, call: ToolCall) -> Result<Value, Failure>;
}

/// Tools of a worker, by kind.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: HashMap<&'static str, Arc<dyn Tool>>,
    /// Kinds of tools that each tenant may use. All kinds if there is no rule.
    allowed: TenantRules<String>,
    isolation: Level,
}

impl ToolRegistry {
    /// Creates the registry of the standard tools.
    ///
    /// Nothing is started or loaded before a step needs it, so a missing interpreter or certificate
    /// store fails only the steps that need it.
    pub fn standard(options: Options) -> Self {
        let options = Arc::new(options);
        let sandbox = Arc::new(Sandbox::new(Arc::clone(&options)));
        let http = Http::new(Arc::clone(&options));
        let postgres = Postgres::new(Arc::clone(&options));
        let empty = Self {
            tools: HashMap::new(),
            allowed: options.tools.clone(),
            isolation: options.isolation.level,
        };
        empty
            .with(Noop)
            .with(Artifact)
            .with(SecretsTool)
            .with(Shell::with_sandbox(Arc::clone(&sandbox)))
            .with(Python::with_sandbox(Arc::clone(&sandbox)))
            .with(Nats::new(options))
            .with(Sqlite::with_sandbox(Arc::clone(&sandbox)))
            .with(DuckDb::with_sandbox(Arc::clone(&sandbox)))
            .with(Transfer::with_clients(http.clone(), postgres.clone(), sandbox))
            .with(http)
            .with(postgres)
    }

    /// Returns the isolation level of steps.
    pub fn isolation(&self) -> Level {
        self.isolation
    }

    /// Returns the kinds of tools, in alphabetical order.
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<_> = self.tools.keys().copied().collect();
        kinds.sort_unstable();
        kinds
    }

    /// Adds a tool, replacing an earlier one of the same kind.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.insert(tool.kind(), Arc::new(tool));
        self
    }

    /// Runs a call with the tool of this kind, after resolving the credentials in its `auth`.
    ///
    /// Fails if the tenant may not use the tool, or if the result nests too deeply.
    pub async fn run(&self, kind: &str, mut call: ToolCall) -> Result<Value, Failure> {
        let Some(tool) = self.tools.get(kind) else {
            return Err(Failure::new(
                FailureKind::ToolMissing,
                format!("this worker has no tool of kind '{kind}'"),
            ));
        };
        let allowed = self.allowed.list_of(&call.tenant);
        if allowed.is_some_and(|allowed| !allowed.iter().any(|it| it == kind)) {
            return Err(Failure::new(
                FailureKind::Config,
                format!(
                    "steps of tenant '{}' may not use the tool '{kind}' on this worker (setting \
                     NOETL_STEP_TOOLS)",
                    call.tenant
                ),
            ));
        }
        auth::resolve(kind, &mut call).await?;
        match tool.run(call).await {
            Ok(value) if is_deeper_than(&value, DEPTH_MAX) => Err(Failure::new(
                FailureKind::Schema,
                format!("the result nests more than {DEPTH_MAX} levels deep"),
            )),
            Err(Failure { kind, message, details: Some(details), .. })
                if is_deeper_than(&details, DEPTH_MAX) =>
            {
                let note = format!("its details nest more than {DEPTH_MAX} levels deep");
                Err(Failure::new(kind, format!("{message}; {note}")))
            }
            outcome => outcome,
        }
    }
}
