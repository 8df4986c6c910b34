//! A performer, its tools and the values it finds.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_model::event::{BlobRef, CommandSpec};
use noetl_model::scope::CommandScope;
use noetl_model::{
    CatalogId, Clock, CommandId, ExecutionId, Failure, FailureKind, Map, Tenant, Timestamp, Value,
};
use noetl_tools::{Tool, ToolCall, ToolRegistry};
use noetl_work::CommandOutcome;
use noetl_worker::{CommandExecutor, CommandTask, LoadError, ValueFetcher};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Behavior of a [`ScriptedTool`] for one call.
type ToolBehavior = dyn Fn(&ToolCall) -> Result<Value, Failure> + Send + Sync;

/// A tool that runs a closure and records its inputs.
#[derive(Clone)]
pub(crate) struct ScriptedTool {
    does: Arc<ToolBehavior>,
    pub(crate) calls: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedTool {
    pub(crate) fn new(
        does: impl Fn(&ToolCall) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { does: Arc::new(does), calls: Arc::default() }
    }

    /// A tool that answers with its input.
    pub(crate) fn echo() -> Self {
        Self::new(|call| Ok(Value::Object(call.input.clone())))
    }

    /// Returns the inputs of all calls so far.
    pub(crate) fn inputs(&self) -> Vec<Value> {
        self.calls.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for ScriptedTool {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        self.calls.lock().unwrap().push(Value::Object(call.input.clone()));
        tokio::task::yield_now().await;
        (self.does)(&call)
    }
}

/// Values by digest, and failures that come first.
#[derive(Default)]
pub(crate) struct StoredValues {
    pub(crate) values: HashMap<String, Value>,
    pub(crate) failures: Mutex<VecDeque<LoadError>>,
    pub(crate) loads: Mutex<Vec<String>>,
}

#[async_trait]
impl ValueFetcher for StoredValues {
    async fn load(&self, reference: &BlobRef) -> Result<Vec<u8>, LoadError> {
        self.loads.lock().unwrap().push(reference.digest.to_string());
        if let Some(failure) = self.failures.lock().unwrap().pop_front() {
            return Err(failure);
        }
        match self.values.get(&*reference.digest) {
            Some(value) => Ok(value.to_string().into_bytes()),
            None => Err(LoadError { message: "there is no such value".into(), is_passing: false }),
        }
    }
}

pub(crate) fn performer(tool: ScriptedTool, values: Arc<StoredValues>) -> CommandExecutor {
    CommandExecutor::new(ToolRegistry::default().with(tool), values, clock())
}

/// A clock that stands.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(Stands)
}

struct Stands;

impl Clock for Stands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000)
    }
}

/// A command with these settings.
pub(crate) fn command(tool: &str, config: Value, scope: Option<CommandScope>) -> CommandTask {
    let Value::Object(config) = config else { panic!("settings are a map") };
    let issued = CommandSpec {
        step: "work".into(),
        run: 1,
        attempt: 1,
        tool: tool.into(),
        config,
        input: Map::new(),
        timeout_ms: None,
        scope: scope.map(Box::new),
        item: None,
        idempotent: true,
        pool: None,
        trace: None,
    };
    CommandTask {
        execution: ExecutionId::new(7),
        id: CommandId::new(8),
        tenant: Tenant::default(),
        issued: Arc::new(issued),
        cancel: CancellationToken::new(),
    }
}

pub(crate) fn scope(ctx: Value) -> CommandScope {
    let Value::Object(ctx) = ctx else { panic!("variables are a map") };
    CommandScope {
        workload: Map::new(),
        ctx,
        steps: Map::new(),
        tasks: std::collections::BTreeMap::new(),
        step: Map::new(),
        previous: None,
        iteration: None,
        spec: None,
        env: std::collections::BTreeMap::new(),
        keychain: Map::new(),
        blobs: Vec::new(),
        earlier: Map::new(),
        split: None,
        catalog: CatalogId::new(1),
        path: "p".into(),
        version: 1,
        parent: None,
    }
}

/// Runs tasks of the told tool.
pub(crate) async fn run(tool: &ScriptedTool, tasks: Value) -> CommandOutcome {
    let command = command("task_sequence", json!({ "tasks": tasks }), Some(scope(json!({}))));
    performer(tool.clone(), Arc::default()).execute(&command).await
}

/// A task of the told tool.
pub(crate) fn task(name: &str, more: Value) -> Value {
    let mut task = json!({"name": name, "kind": "scripted"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

pub(crate) fn failure(ended: CommandOutcome) -> Failure {
    ended.outcome.expect_err("the command failed")
}

pub(crate) fn refused() -> Result<Value, Failure> {
    Err(Failure::new(FailureKind::Connection, "nobody there"))
}
