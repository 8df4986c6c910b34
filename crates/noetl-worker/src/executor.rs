//! Dependencies of a running command: tools, values, and services.

use std::sync::Arc;

use noetl_model::Clock;
use noetl_playbook::pipeline::TASK_RUNS_MAX;
use noetl_tools::ToolRegistry;

use crate::services::{NoServices, Services};
use crate::tokens::TokenCache;
use crate::values::ValueFetcher;

/// Runs commands. Cheap to clone.
#[derive(Clone)]
pub struct CommandExecutor {
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) values: Arc<dyn ValueFetcher>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) task_runs_max: u64,
    pub(crate) tokens: Arc<TokenCache>,
}

impl CommandExecutor {
    /// Creates a performer that runs commands with `tools`, loads blobs from `values`, and reads
    /// the time from `clock`.
    pub fn new(tools: ToolRegistry, values: Arc<dyn ValueFetcher>, clock: Arc<dyn Clock>) -> Self {
        let services = Arc::new(NoServices);
        Self {
            tools: Arc::new(tools),
            values,
            clock,
            services,
            task_runs_max: TASK_RUNS_MAX,
            tokens: Arc::default(),
        }
    }

    /// Sets the control-plane services that tools may use.
    #[must_use]
    pub fn with_services(mut self, services: Arc<dyn Services>) -> Self {
        self.services = services;
        self
    }

    /// Sets the maximum number of task runs in one pipeline.
    #[must_use]
    pub fn with_task_limit(mut self, task_runs_max: u64) -> Self {
        self.task_runs_max = task_runs_max;
        self
    }
}
