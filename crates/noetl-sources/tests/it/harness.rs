//! A control plane for tests of any source, with helpers that inspect what messages cause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_egress::EgressPolicy;
use noetl_local::LocalControlPlane;
use noetl_model::row::EventRow;
use noetl_model::{ExecutionId, SubscriptionId, Tenant, Value};
use noetl_sources::{
    ControlPlaneClient, HttpControlPlane, Options, SourceRegistry, SubscriptionRuntime,
};
use noetl_store::{ExecutionFilter, SubscriptionAction, SubscriptionState};
use noetl_test_app::TestApp;

/// Maximum number of polls of a condition, and the time between them.
const POLLS_MAX: u32 = 3000;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Playbook that messages start. Its only step does nothing.
const GREET: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: greet, path: tests/greet}\n\
                     workload: {order: 0}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n";

pub(crate) struct Harness {
    pub(crate) app: TestApp,
}

impl Harness {
    pub(crate) async fn new(app: TestApp) -> Self {
        let harness = Self { app };
        harness.playbook(GREET).await;
        harness
    }

    pub(crate) async fn playbook(&self, content: &str) {
        let request = noetl_api::catalog::RegisterRequest::playbook(content);
        self.app.client.register(&request, false).await.unwrap();
    }

    /// Registers a document of a source with these keys of its `spec`.
    pub(crate) async fn register_document(&self, source: &str, path: &str, keys: &str) {
        let mut content = format!(
            "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: orders, path: {path}}}\nspec:\n  \
             source: {source}\n  mode: pull\n{keys}",
        );
        if !keys.contains("dispatch:") {
            content.push_str("  dispatch: {playbook: tests/greet}\n");
        }
        let resource_type = "Subscription".to_owned();
        let request = noetl_api::catalog::RegisterRequest { content, resource_type };
        self.app.client.register(&request, false).await.unwrap();
    }

    /// Registers the subscription of a document.
    pub(crate) async fn subscribe(&self, path: &str) -> SubscriptionId {
        let row = self.app.control.triggers.subscriptions.register(&Tenant::default(), path).await;
        row.unwrap().id
    }

    pub(crate) async fn act(&self, id: SubscriptionId, action: SubscriptionAction) {
        self.app.control.triggers.subscriptions.act(&Tenant::default(), id, action).await.unwrap();
    }

    pub(crate) async fn state(&self, id: SubscriptionId) -> SubscriptionState {
        self.app.control.triggers.subscriptions.get(&Tenant::default(), id).await.unwrap().state
    }

    /// Waits until the subscription is in this state.
    pub(crate) async fn wait_for_state(&self, id: SubscriptionId, state: SubscriptionState) {
        until(&format!("the state {state:?}"), async || self.state(id).await == state).await;
    }

    pub(crate) fn local(&self) -> Arc<dyn ControlPlaneClient> {
        Arc::new(LocalControlPlane::new(self.app.control.clone(), Tenant::default()))
    }

    pub(crate) fn remote(&self) -> Arc<dyn ControlPlaneClient> {
        Arc::new(HttpControlPlane::new(self.app.client.clone()))
    }

    /// Starts a runtime in this process that runs all subscriptions.
    pub(crate) fn runtime(&self) -> SubscriptionRuntime {
        SubscriptionRuntime::all(
            self.local(),
            SourceRegistry::standard(EgressPolicy::default()),
            options("owner"),
        )
    }

    /// Returns the executions of a subscription by message ID.
    pub(crate) async fn by_message(
        &self,
        id: SubscriptionId,
    ) -> BTreeMap<String, Vec<ExecutionId>> {
        let mut executions: BTreeMap<String, Vec<ExecutionId>> = BTreeMap::new();
        for execution in self.executions(id).await {
            let workload = self.workload(execution).await;
            let message = workload["message"]["id"].as_str().unwrap_or("none").to_owned();
            executions.entry(message).or_default().push(execution);
        }
        executions
    }

    /// Returns the executions that a subscription started.
    pub(crate) async fn executions(&self, id: SubscriptionId) -> Vec<ExecutionId> {
        let mut executions = Vec::new();
        loop {
            let filter = ExecutionFilter {
                parent: Some(id.log()),
                offset: executions.len(),
                limit: 1000,
                ..ExecutionFilter::default()
            };
            let page = self
                .app
                .control
                .journal
                .executions
                .list(&Tenant::default(), &filter)
                .await
                .unwrap();
            if page.is_empty() {
                return executions;
            }
            executions.extend(page.iter().map(|row| row.id));
        }
    }

    /// Returns the workload of an execution.
    pub(crate) async fn workload(&self, execution: ExecutionId) -> Value {
        let log = self.app.read_log(execution).await;
        let started = log.first().expect("an execution has a beginning");
        let context = started.context.as_ref().expect("the start event has a context");
        let context: Value = serde_json::from_str(context).unwrap();
        context["workload"].clone()
    }

    /// Returns the event log of a subscription.
    pub(crate) async fn log(&self, id: SubscriptionId) -> Vec<EventRow> {
        self.app.read_log(id.log()).await
    }

    pub(crate) async fn types(&self, id: SubscriptionId) -> Vec<String> {
        let log = self.log(id).await;
        log.into_iter().filter_map(|row| Some(row.event_type?.into_owned())).collect()
    }

    /// Waits until the subscription has started `count` executions.
    pub(crate) async fn wait_for_executions(&self, id: SubscriptionId, count: usize) {
        let filter = ExecutionFilter {
            parent: Some(id.log()),
            offset: count.saturating_sub(1),
            limit: 1,
            ..ExecutionFilter::default()
        };
        until(&format!("{count} executions"), async || {
            let tenant = Tenant::default();
            count == 0
                || !self
                    .app
                    .control
                    .journal
                    .executions
                    .list(&tenant, &filter)
                    .await
                    .unwrap()
                    .is_empty()
        })
        .await;
    }

    /// Returns the contexts of the dead-letter events in a subscription's log.
    pub(crate) async fn dead_letters(&self, id: SubscriptionId) -> Vec<Value> {
        let log = self.log(id).await;
        let event = Some("subscription.message.dead_lettered");
        let dead = log.iter().filter(|row| row.event_type.as_deref() == event);
        let letters = dead.map(|row| {
            let result = row.result.as_deref().expect("an event result");
            serde_json::from_str::<Value>(result).unwrap()["context"].clone()
        });
        letters.collect()
    }

    pub(crate) async fn close(self, runtimes: impl IntoIterator<Item = SubscriptionRuntime>) {
        for runtime in runtimes {
            runtime.close().await;
        }
        self.app.close().await;
    }
}

/// Returns options with a short lease.
pub(crate) fn options(holder: &str) -> Options {
    Options { lease: Duration::from_secs(3), ..Options::new(holder) }
}

/// Waits until a condition is true. Panics after a minute.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..POLLS_MAX {
        if is_so().await {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    panic!("timed out waiting for {what}");
}
