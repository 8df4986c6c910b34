//! What a template can see.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::{CatalogId, ExecutionId, Failure, Timestamp};

use super::{Data, Names};

/// What a template can see. Cheap to build: every part is shared.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The execution's input.
    pub workload: Arc<Names>,
    /// Its durable variables.
    pub ctx: Arc<Names>,
    /// Newest result of each completed step, by name.
    pub results: Arc<Names>,
    /// Names this visit set with `step.*`.
    pub step: Arc<Names>,
    /// The completed step's output, in `set` and arcs.
    pub output: Option<Output>,
    /// `event.name`: `step.done` or `step.failed`, in `set` and arcs.
    pub event: Option<&'static str>,
    /// Data of the step whose arc led here, as `result` in a tool's `input`.
    pub previous: Option<Data>,
    /// The request's payload as `payload` and `input`; only while the workload is rendered.
    pub payload: Option<Data>,
    /// The playbook's root `spec`.
    pub spec: Option<Data>,
    /// Who is running.
    pub identity: Identity,
    /// What `env` shows: an allow-list.
    pub env: Arc<BTreeMap<String, String>>,
    /// What `now()` answers.
    pub now: Timestamp,
    /// What `uuid4()` is made from; the same number gives the same sequence.
    ///
    /// The sequence starts anew with each rendering, so two renderings that must not share an
    /// identifier need two numbers.
    pub entropy: u64,
}

/// A step's output envelope.
#[derive(Debug, Clone)]
pub struct Output {
    /// The tool's data; none when it failed without any.
    pub data: Data,
    /// Why it failed.
    pub failure: Option<Arc<Failure>>,
}

/// Identity names: `execution_id`, `catalog_id`, `path`, `version`, `job`, `parent_execution_id`.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The execution.
    pub execution: ExecutionId,
    /// Its catalog entry.
    pub catalog: CatalogId,
    /// That entry's path.
    pub path: Arc<str>,
    /// That entry's version.
    pub version: u32,
    /// The execution that started it.
    pub parent: Option<ExecutionId>,
}

impl Default for Identity {
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
