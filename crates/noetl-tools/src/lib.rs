//! The tools a step can run, one file each, behind one trait.
//!
//! A tool gets a rendered [`Call`] and answers with a value or a [`Failure`] a policy can match
//! on. Whatever it starts has ended by the time it answers: processes are killed as a group on
//! timeout, on cancel and when the call is dropped. What a tool reads is bounded by
//! [`Limits`], so no step can fill the worker's memory or disk by printing. Tools know nothing of
//! playbooks and templates. Credentials are laid under a call's settings before its tool sees it
//! ([`auth`]), and what a tool asks of the worker goes through [`Artifacts`] and
//! [`CredentialSource`].

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
pub use options::{Environment, Inherit, Limits, Options};
pub use own::OwnFiles;
pub use postgres::{GatewaySession, GatewaySessions, Notices, Postgres, connect_postgres};
pub use python::Python;
pub use sandbox::wire::Root;
pub use seams::{Artifacts, Credential, CredentialSource};
pub use secrets::Secrets;
pub use shell::Shell;
pub use sqlite::Sqlite;
pub use transfer::Transfer;

/// One call of a tool: everything is rendered, nothing is a template.
#[derive(Debug, Clone)]
pub struct Call {
    /// The execution it is for.
    pub execution: ExecutionId,
    /// The command it is for; with `attempt` a key for idempotent calls.
    pub command: CommandId,
    /// Tenant of the execution. Steps of two tenants never share a sandbox.
    pub tenant: Tenant,
    /// The step it is for.
    pub step: Arc<str>,
    /// Which try it is, from 1.
    pub attempt: u32,
    pub config: Map,
    /// The tool's named arguments.
    pub input: Map,
    /// How long it may take; the tool's own default when `None`.
    pub timeout: Option<Duration>,
    /// Fires when the call is not wanted any more.
    pub cancel: CancellationToken,
    /// Where what it prints goes while it runs; by default nowhere.
    pub logs: LogSink,
    /// What the tool may know of the execution beyond its input; Python code sees it as `context`.
    pub context: Map,
    /// Results kept outside the log; `None` when the worker has no access to them.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Stored credentials; `None` when the worker has no access to them.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// The span that what it calls is below.
    pub trace: Option<TraceContext>,
}

/// Something a step can run.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The `kind` playbooks name it by.
    fn kind(&self) -> &'static str;

    /// Runs one call to its end, within its timeout, and stops what it started when cancelled.
    async fn run(&self, call: Call) -> Result<Value, Failure>;
}

/// The tools of one worker, by kind.
#[derive(Clone, Default)]
pub struct Registry {
    tools: HashMap<&'static str, Arc<dyn Tool>>,
    /// Kinds of tools that tenants may use; all when nothing is said.
    allowed: TenantRules<String>,
    isolation: Level,
}

impl Registry {
    /// The tools every worker has.
    ///
    /// Nothing is started or loaded before a step asks for it, so a missing interpreter or
    /// certificate store fails only the steps that need it.
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
            .with(Secrets)
            .with(Shell::within(Arc::clone(&sandbox)))
            .with(Python::within(Arc::clone(&sandbox)))
            .with(Nats::new(options))
            .with(Sqlite::within(Arc::clone(&sandbox)))
            .with(DuckDb::within(Arc::clone(&sandbox)))
            .with(Transfer::within(http.clone(), postgres.clone(), sandbox))
            .with(http)
            .with(postgres)
    }

    /// Returns how far steps are kept apart.
    pub fn isolation(&self) -> Level {
        self.isolation
    }

    /// The kinds of tools there are, in alphabetical order.
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<_> = self.tools.keys().copied().collect();
        kinds.sort_unstable();
        kinds
    }

    /// Adds a tool, in place of an earlier one of its kind.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.insert(tool.kind(), Arc::new(tool));
        self
    }

    /// Runs one call with the tool of this kind.
    ///
    /// The credentials that its `auth` asks for are part of its settings by then.
    pub async fn run(&self, kind: &str, mut call: Call) -> Result<Value, Failure> {
        let Some(tool) = self.tools.get(kind) else {
            return Err(Failure::new(
                FailureKind::ToolMissing,
                format!("this worker has no tool of kind '{kind}'"),
            ));
        };
        let allowed = self.allowed.of(&call.tenant);
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
