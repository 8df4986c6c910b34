//! A control plane, a NATS server with a stream, and what is needed to see what becomes of messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use noetl_model::row::EventRow;
use noetl_model::{ExecutionId, SubscriptionId, Tenant, Value};
use noetl_sources::{Local, Options, Plane, Remote, Runtime, Sources};
use noetl_store::{ExecutionFilter, SubscriptionAction, SubscriptionState};
use noetl_testkit::TestApp;
use noetl_testkit::nats::TestNats;

/// How often, and how long apart, it is looked whether something has come about.
const LOOKS: u32 = 3000;
const LOOK: Duration = Duration::from_millis(20);

/// The playbook messages start. Its first step does nothing.
const GREET: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: greet, path: tests/greet}\n\
                     workload: {order: 0}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n";

/// Where messages are published.
pub(crate) const SUBJECT: &str = "orders.new";

pub(crate) struct Stage {
    pub(crate) app: TestApp,
    pub(crate) nats: TestNats,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(TestNats::start(), TestApp::start(4).await).await
    }

    pub(crate) async fn with(nats: TestNats, app: TestApp) -> Self {
        let stage = Self { app, nats };
        stage.playbook(GREET).await;
        stage
    }

    /// With the stream `ORDERS`.
    pub(crate) async fn with_stream() -> Self {
        let stage = Self::new().await;
        stage.make_stream().await;
        stage
    }

    pub(crate) async fn make_stream(&self) {
        self.nats.make_stream("ORDERS", "orders.>").await;
    }

    pub(crate) async fn playbook(&self, content: &str) {
        let request = noetl_api::catalog::RegisterRequest::playbook(content);
        self.app.client.register(&request, false).await.unwrap();
    }

    /// Registers a document with these further keys of its `spec`.
    pub(crate) async fn document(&self, path: &str, more: &str) {
        self.whole_document(path, &format!("  stream: ORDERS\n{more}")).await;
    }

    pub(crate) async fn whole_document(&self, path: &str, keys: &str) {
        let mut content = format!(
            "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: orders, path: {path}}}\nspec:\n  \
             source: nats\n  mode: pull\n  url: {}\n{keys}",
            self.nats.url(),
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
        let row = self.app.control.subscriptions.register(&Tenant::default(), path).await;
        row.unwrap().id
    }

    pub(crate) async fn act(&self, id: SubscriptionId, action: SubscriptionAction) {
        self.app.control.subscriptions.act(&Tenant::default(), id, action).await.unwrap();
    }

    pub(crate) async fn state(&self, id: SubscriptionId) -> SubscriptionState {
        self.app.control.subscriptions.get(&Tenant::default(), id).await.unwrap().state
    }

    /// Waits until it stands there.
    pub(crate) async fn stands(&self, id: SubscriptionId, state: SubscriptionState) {
        until(&format!("the state {state:?}"), async || self.state(id).await == state).await;
    }

    pub(crate) fn local(&self) -> Arc<dyn Plane> {
        Arc::new(Local::new(self.app.control.clone(), Tenant::default()))
    }

    pub(crate) fn remote(&self) -> Arc<dyn Plane> {
        Arc::new(Remote::new(self.app.client.clone()))
    }

    /// A runtime in this process that acts on everything.
    pub(crate) fn runtime(&self) -> Runtime {
        Runtime::all(self.local(), Sources::standard(), options("owner"))
    }

    pub(crate) async fn publish(&self, count: usize) {
        publish(&self.nats.context().await, 0..count).await;
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
            let page = self.app.control.executions.list(&Tenant::default(), &filter).await.unwrap();
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
                || !self.app.control.executions.list(&tenant, &filter).await.unwrap().is_empty()
        })
        .await;
    }

    /// Waits until nothing waits at the source.
    pub(crate) async fn acknowledged(&self, consumer: &str) {
        until("every message to be acknowledged", async || self.waiting(consumer).await == 0).await;
    }

    /// How much waits at a consumer, what was handed out included.
    pub(crate) async fn waiting(&self, consumer: &str) -> u64 {
        self.nats.waiting("ORDERS", consumer).await
    }

    pub(crate) async fn close(self, runtimes: impl IntoIterator<Item = Runtime>) {
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

/// The id of a message by its number.
pub(crate) fn message_id(number: usize) -> String {
    format!("m{number:06}")
}

/// Publishes messages `{"order": n}` with ids, and waits until the stream has them.
pub(crate) async fn publish(context: &Context, numbers: std::ops::Range<usize>) {
    let mut acks = Vec::new();
    for number in numbers {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", message_id(number).as_str());
        let body = format!("{{\"order\": {number}}}");
        let ack = context.publish_with_headers(SUBJECT, headers, body.into()).await.unwrap();
        acks.push(ack);
        if acks.len() >= 500 {
            for ack in acks.drain(..) {
                ack.await.unwrap();
            }
        }
    }
    for ack in acks {
        ack.await.unwrap();
    }
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

/// The consumer of a subscription at `sub/orders` that names none.
pub(crate) const CONSUMER: &str = "noetl_sub_orders";
