//! What a template can see.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use noetl_model::{CatalogId, ExecutionId, Failure, Timestamp};

use super::keychain::Keychain;
use super::loaded::Reach;
use super::slot::Slot;
use super::{Data, Names};

/// What a template can see. Cheap to build: every part is shared.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub workload: Arc<Names>,
    pub ctx: Arc<Names>,
    /// Newest result of each completed step, by name.
    pub results: Arc<Names>,
    /// The label of the first task of each step that is a pipeline: when no other ran, the step's
    /// result is what that one gave.
    pub tasks: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// The step whose `set` and arcs are rendered, with its result: before the result is recorded,
    /// and without copying the other results to put it among them.
    pub own: Option<(Arc<str>, Slot)>,
    /// Names this visit set with `step.*`.
    pub step: Arc<Names>,
    /// The completed step's output, in `set` and arcs.
    pub output: Option<Output>,
    /// `event.name`: `step.done`, `loop.done` or `step.failed`, in `set` and arcs.
    pub event: Option<&'static str>,
    /// The loop's iteration: `iter.*`, the item under its own name, and its place.
    pub iteration: Option<Iteration>,
    /// Results of a pipeline's earlier tasks, by label.
    pub labels: Arc<Names>,
    /// The task of a pipeline that is run: `_task`, `_attempt`, `_prev`.
    pub task: Option<TaskScope>,
    /// Data of the step whose arc led here, as `result` in a tool's `input`.
    pub previous: Option<Slot>,
    /// The request's payload as `payload` and `input`; only while the workload is rendered.
    pub payload: Option<Data>,
    /// The playbook's root `spec`.
    pub spec: Option<Data>,
    pub identity: Identity,
    /// Secrets by the names the playbook declares; only where a worker renders.
    pub keychain: Option<Arc<Keychain>>,
    /// What `env` shows: an allow-list.
    pub env: Arc<BTreeMap<String, String>>,
    /// What `now()` answers.
    pub now: Timestamp,
    /// What `uuid4()` is made from.
    pub entropy: Entropy,
    /// How values are found that are not in memory.
    pub reach: Reach,
}

impl Scope {
    /// The newest result of a step.
    pub fn result(&self, step: &str) -> Option<&Slot> {
        self.named_result(step).map(|(_, slot)| slot)
    }

    pub(super) fn named_result(&self, step: &str) -> Option<(&Arc<str>, &Slot)> {
        match &self.own {
            Some((name, data)) if **name == *step => Some((name, data)),
            _ => self.results.get_key_value(step),
        }
    }
}

/// One iteration of a loop, as templates see it.
#[derive(Debug, Clone)]
pub struct Iteration {
    pub name: Arc<str>,
    pub item: Slot,
    /// Its place, from 0.
    pub index: u32,
    /// How many there are; `None` while rows are still being claimed.
    pub total: Option<u32>,
    /// What the iteration set with `iter.*`.
    pub vars: Arc<Names>,
}

/// The task of a pipeline that is run.
#[derive(Debug, Clone)]
pub struct TaskScope {
    pub label: Arc<str>,
    /// Which run of it this is since it was entered, from 1.
    pub attempt: u32,
    /// Data of the task that ran before it.
    pub previous: Option<Slot>,
    /// What the pipeline set with `iter.*`, over what its iteration began with.
    pub iter: Arc<Names>,
    /// How long the run took, once it ended.
    pub duration_ms: Option<u64>,
}

/// A source of numbers for `uuid4()`: clones draw from one sequence, and the same seed gives the
/// same sequence.
#[derive(Debug, Clone, Default)]
pub struct Entropy(Arc<AtomicU64>);

impl Entropy {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// How far the sequence was drawn.
    pub fn position(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Goes back to a position, so that the same numbers are drawn again.
    pub fn rewind(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    pub(super) fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The next number of the sequence as a part of 1, below 1.
    pub fn chance(&self) -> f64 {
        /// The bits a float holds exactly.
        const BITS: u32 = 53;
        let bits = super::function::mix(self.draw()) >> (u64::BITS - BITS);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let (drawn, all) = (bits as f64, (1_u64 << BITS) as f64);
        drawn / all
    }
}

/// A step's output envelope.
#[derive(Debug, Clone)]
pub struct Output {
    /// The tool's data; none when it failed without any.
    pub data: Slot,
    pub failure: Option<Arc<Failure>>,
    /// Whether the envelope's keys come before the data's: in the rules of a policy.
    pub envelope_first: bool,
}

/// Identity names: `execution_id`, `catalog_id`, `path`, `version`, `job`, `parent_execution_id`.
#[derive(Debug, Clone)]
pub struct Identity {
    pub execution: ExecutionId,
    pub catalog: CatalogId,
    pub path: Arc<str>,
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
