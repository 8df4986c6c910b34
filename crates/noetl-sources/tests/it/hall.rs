//! A control plane, and what is needed to see what becomes of messages, wherever they come from.

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

/// How often, and how long apart, it is looked whether something has come about.
const LOOKS: u32 = 3000;
const LOOK: Duration = Duration::from_millis(20);

/// The playbook messages start. Its first step does nothing.
const GREET: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: greet, path: tests/greet}\n\
                     workload: {order: 0}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n";

pub(crate) struct Hall {
    pub(crate) app: TestApp,
}

impl Hall {
    pub(crate) async fn new(app: TestApp) -> Self {
        let hall = Self { app };
        hall.playbook(GREET).await;
        hall
    }

    pub(crate) async fn playbook(&self, content: &str) {
        let request = noetl_api::catalog::RegisterRequest::playbook(content);
        self.app.client.register(&request, false).await.unwrap();
    }

    /// Registers a document of a source with these keys of its `spec`.
    pub(crate) async fn document_of(&self, source: &str, path: &str, keys: &str) {
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

    /// Waits until it stands there.
    pub(crate) async fn stands(&self, id: SubscriptionId, state: SubscriptionState) {
        until(&format!("the state {state:?}"), async || self.state(id).await == state).await;
    }

    pub(crate) fn local(&self) -> Arc<dyn ControlPlaneClient> {
        Arc::new(LocalControlPlane::new(self.app.control.clone(), Tenant::default()))
    }

    pub(crate) fn remote(&self) -> Arc<dyn ControlPlaneClient> {
        Arc::new(HttpControlPlane::new(self.app.client.clone()))
    }

    /// A runtime in this process that acts on everything.
    pub(crate) fn runtime(&self) -> SubscriptionRuntime {
        SubscriptionRuntime::all(
            self.local(),
            SourceRegistry::standard(EgressPolicy::default()),
            options("owner"),
        )
    }

    /// The executions of a subscription by the ids of their messages.
    pub(crate) async fn by_message(
        &self,
        id: SubscriptionId,
    ) -> BTreeMap<String, Vec<ExecutionId>> {
        let mut found: BTreeMap<String, Vec<ExecutionId>> = BTreeMap::new();
        for execution in self.executions(id).await {
            let workload = self.workload(execution).await;
            let message = workload["message"]["id"].as_str().unwrap_or("none").to_owned();
            found.entry(message).or_default().push(execution);
        }
        found
    }

    /// The executions a subscription started.
    pub(crate) async fn executions(&self, id: SubscriptionId) -> Vec<ExecutionId> {
        let mut found = Vec::new();
        loop {
            let filter = ExecutionFilter {
                parent: Some(id.log()),
                offset: found.len(),
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
                return found;
            }
            found.extend(page.iter().map(|row| row.id));
        }
    }

    /// What an execution was given.
    pub(crate) async fn workload(&self, execution: ExecutionId) -> Value {
        let log = self.app.read_log(execution).await;
        let started = log.first().expect("an execution has a beginning");
        let context = started.context.as_ref().expect("it says what it was given");
        let context: Value = serde_json::from_str(context).unwrap();
        context["workload"].clone()
    }

    /// The events of a subscription's log.
    pub(crate) async fn log(&self, id: SubscriptionId) -> Vec<EventRow> {
        self.app.read_log(id.log()).await
    }

    pub(crate) async fn types(&self, id: SubscriptionId) -> Vec<String> {
        let log = self.log(id).await;
        log.into_iter().filter_map(|row| Some(row.event_type?.into_owned())).collect()
    }

    /// Waits until it has started so many executions.
    pub(crate) async fn started(&self, id: SubscriptionId, count: usize) {
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

    /// What is told of the dead letters in a subscription's log.
    pub(crate) async fn letters(&self, id: SubscriptionId) -> Vec<Value> {
        let log = self.log(id).await;
        let event = Some("subscription.message.dead_lettered");
        let dead = log.iter().filter(|row| row.event_type.as_deref() == event);
        let told = dead.map(|row| {
            let result = row.result.as_deref().expect("what was said");
            serde_json::from_str::<Value>(result).unwrap()["context"].clone()
        });
        told.collect()
    }

    pub(crate) async fn close(self, runtimes: impl IntoIterator<Item = SubscriptionRuntime>) {
        for runtime in runtimes {
            runtime.close().await;
        }
        self.app.close().await;
    }
}

/// A lease that is missed soon.
pub(crate) fn options(holder: &str) -> Options {
    Options { lease: Duration::from_secs(3), ..Options::new(holder) }
}

/// Looks until it is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..LOOKS {
        if is_so().await {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for {what}");
}
