//! The tools a step can run, one file each, behind one trait.
//!
//! A tool gets a rendered [`Call`] and answers with a value or a [`Failure`] a policy can match
//! on. Whatever it starts has ended by the time it answers: processes are killed as a group on
//! timeout, on cancel and when the call is dropped. What a tool reads is bounded by
//! [`Limits`], so no step can fill the worker's memory or disk by printing. Tools know nothing of
//! playbooks, templates or credentials by name.

mod capture;
mod config;
mod http;
mod logs;
mod noop;
mod options;
mod process;
mod python;
mod shell;
mod workdir;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{
    CommandId, DEPTH_MAX, ExecutionId, Failure, FailureKind, Map, Value, is_deeper_than,
};
use tokio_util::sync::CancellationToken;

pub use http::Http;
pub use logs::{LogSink, Stream};
pub use noop::Noop;
pub use options::{Environment, Inherit, Limits, Options};
pub use python::Python;
pub use shell::Shell;

/// One call of a tool: everything is rendered, nothing is a template.
#[derive(Debug, Clone)]
pub struct Call {
    /// The execution it is for.
    pub execution: ExecutionId,
    /// The command it is for; with `attempt` a key for idempotent calls.
    pub command: CommandId,
    /// The step it is for.
    pub step: Arc<str>,
    /// Which try it is, from 1.
    pub attempt: u32,
    /// The tool's settings.
    pub config: Map,
    /// The tool's named arguments.
    pub input: Map,
    /// How long it may take; the tool's own default when `None`.
    pub timeout: Option<Duration>,
    /// Fires when the call is not wanted any more.
    pub cancel: CancellationToken,
    /// Where what it prints goes while it runs; by default nowhere.
    pub logs: LogSink,
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
}

impl Registry {
    /// The tools every worker has: noop, shell, http and python.
    ///
    /// Nothing is started or loaded before a step asks for it, so a missing interpreter or
    /// certificate store fails only the steps that need it.
    pub fn standard(options: Options) -> Self {
        let options = Arc::new(options);
        Self::default()
            .with(Noop)
            .with(Shell::new(Arc::clone(&options)))
            .with(Http::new(Arc::clone(&options)))
            .with(Python::new(options))
    }

    /// Adds a tool, in place of an earlier one of its kind.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.insert(tool.kind(), Arc::new(tool));
        self
    }

    /// Runs one call with the tool of this kind.
    pub async fn run(&self, kind: &str, call: Call) -> Result<Value, Failure> {
        let Some(tool) = self.tools.get(kind) else {
            return Err(Failure::new(
                FailureKind::ToolMissing,
                format!("this worker has no tool of kind '{kind}'"),
            ));
        };
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
