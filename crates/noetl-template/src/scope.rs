//! Values that a template can see.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::{CatalogId, ExecutionId, Failure, Timestamp};

use super::data::Data;
use super::entropy::Entropy;
use super::keychain::KeychainNames;
use super::loaded::ValueLoader;
use super::value_ref::{Names, ValueSlot};

/// Values that a template can see. Cheap to build, because every part is shared.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub workload: Arc<Names>,
    pub ctx: Arc<Names>,
    /// Latest result of each completed step, by name.
    pub results: Arc<Names>,
    /// Label of the first task of each step that is a pipeline. If no other task ran, the step's
    /// result is the result of that task.
    pub tasks: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Name and result of the step whose `set` and arcs are rendered. Separate, because the result
    /// is not recorded yet, and adding it to `results` would copy them.
    pub own: Option<(Arc<str>, ValueSlot)>,
    /// Variables that this step run set with `step.*`.
    pub step: Arc<Names>,
    /// Output of the completed step, in `set` and arcs.
    pub output: Option<StepOutput>,
    /// `event.name`: `step.done`, `loop.done`, or `step.failed`, in `set` and arcs.
    pub event: Option<&'static str>,
    /// Loop iteration: `iter.*`, the item under its own name, and its index.
    pub iteration: Option<Iteration>,
    /// Results of a pipeline's earlier tasks, by label.
    pub labels: Arc<Names>,
    /// Current task of a pipeline: `_task`, `_attempt`, `_prev`.
    pub task: Option<TaskScope>,
    /// Data of the step whose arc led here, as `result` in a tool's `input`.
    pub previous: Option<ValueSlot>,
    /// Payload of the request as `payload` and `input`. Present only while the workload is
    /// rendered.
    pub payload: Option<Data>,
    /// Root `spec` of the playbook.
    pub spec: Option<Data>,
    pub identity: ExecutionIdentity,
    /// Secrets by declared name. Present only where a worker renders.
    pub keychain: Option<Arc<KeychainNames>>,
    /// Environment variables visible as `env`, restricted to an allowlist.
    pub env: Arc<BTreeMap<String, String>>,
    pub now: Timestamp,
    /// Source of `uuid4()` and of retry jitter.
    pub entropy: Entropy,
    /// Access to values that are not in memory.
    pub reach: ValueLoader,
}

impl Scope {
    /// Returns the latest result of a step.
    pub fn result(&self, step: &str) -> Option<&ValueSlot> {
        self.named_result(step).map(|(_, slot)| slot)
    }

    pub(super) fn named_result(&self, step: &str) -> Option<(&Arc<str>, &ValueSlot)> {
        match &self.own {
            Some((name, data)) if **name == *step => Some((name, data)),
            _ => self.results.get_key_value(step),
        }
    }
}

/// A loop iteration as templates see it.
#[derive(Debug, Clone)]
pub struct Iteration {
    pub name: Arc<str>,
    pub item: ValueSlot,
    /// Index of the item, from 0.
    pub index: u32,
    /// Number of items. `None` while rows are still being claimed.
    pub total: Option<u32>,
    /// Variables that the iteration set with `iter.*`.
    pub vars: Arc<Names>,
}

/// Current task of a pipeline.
#[derive(Debug, Clone)]
pub struct TaskScope {
    pub label: Arc<str>,
    /// Attempt since the task was entered, from 1.
    pub attempt: u32,
    /// Data of the task that ran before it.
    pub previous: Option<ValueSlot>,
    /// Variables set with `iter.*`: those of the pipeline, over the initial ones of the iteration.
    pub iter: Arc<Names>,
    /// Duration of the run in milliseconds. `None` until it has ended.
    pub duration_ms: Option<u64>,
}

/// Output envelope of a step or task.
#[derive(Debug, Clone)]
pub struct StepOutput {
    /// Data of the tool. Null if it failed without any.
    pub data: ValueSlot,
    pub failure: Option<Arc<Failure>>,
    /// Whether the envelope's keys take precedence over the data's, as in policy rules.
    pub envelope_first: bool,
}

/// Execution identity: `execution_id`, `catalog_id`, `path`, `version`, `job`,
/// `parent_execution_id`.
#[derive(Debug, Clone)]
pub struct ExecutionIdentity {
    pub execution: ExecutionId,
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub version: u32,
    pub parent: Option<ExecutionId>,
}

impl Default for ExecutionIdentity {
    fn default() -> Self {
        Self {
            execution: ExecutionId::new(0),
            catalog: CatalogId::new(0),
            path: Arc::from(""),
            version: 0,
            parent: None,
        }
    }
}
