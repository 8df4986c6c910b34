//! Tools of a worker, with their shared parts.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_model::{DEPTH_MAX, Failure, FailureKind, Value, is_deeper_than};

use crate::auth;
use crate::isolation::{Level, TenantRules};
use crate::options::Options;
use crate::sandbox::Sandbox;
use crate::tool::{Tool, ToolCall};
use crate::{
    Artifact, DuckDb, Http, Nats, Noop, Postgres, Python, SecretsTool, Shell, Sqlite, Transfer,
};

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
