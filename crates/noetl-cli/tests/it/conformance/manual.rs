//! A worker that does what a test tells it to.

use std::collections::HashSet;

use noetl_model::{CommandId, ExecutionId, Fact, Origin, Value};
use noetl_remote::EventReport;
use serde_json::json;

use super::plane::{TestPlane, over};

/// The worker, and the execution it works for.
pub(super) struct ManualWorker {
    pub(super) plane: TestPlane,
    pub(super) id: ExecutionId,
}

impl ManualWorker {
    /// Starts an execution without another worker.
    pub(super) async fn start(steps: &str) -> Self {
        let plane = TestPlane::with_slots(0).await;
        let id = plane.start(steps).await;
        Self { plane, id }
    }

    /// The commands that have not ended, oldest first.
    pub(super) async fn open(&self) -> Vec<CommandId> {
        let log = self.plane.log(self.id).await;
        let over: HashSet<CommandId> = log.iter().filter_map(|it| over(&it.fact)).collect();
        let issued = log.iter().filter(|event| matches!(event.fact, Fact::CommandIssued(_)));
        let issued = issued.map(|event| CommandId::new(event.id.get()));
        issued.filter(|command| !over.contains(command)).collect()
    }

    pub(super) async fn claim(&self, command: CommandId) {
        self.plane.control.remote.reports.claim(&None, command, "w").await.unwrap();
    }

    pub(super) async fn say(&self, event_type: &str, command: CommandId, mut payload: Value) {
        payload["command_id"] = json!(command.get());
        let report = EventReport {
            execution: self.id,
            step: "a".to_owned(),
            event_type: event_type.to_owned(),
            status: None,
            payload: Some(payload),
            meta: None,
            worker: Some("w".to_owned()),
            event: None,
            columns: None,
        };
        self.plane.control.remote.reports.record(&self.plane.tenant, report).await.unwrap();
    }

    pub(super) async fn complete(&self, command: CommandId, data: Value) {
        let result = json!({"status": "success", "context": {"data": data}});
        self.say("call.done", command, json!({ "result": result })).await;
        self.say("command.completed", command, json!({"status": "success"})).await;
    }

    /// Returns the number of events that the engine decided so far.
    pub(super) async fn decided(&self) -> usize {
        let log = self.plane.log(self.id).await;
        log.iter().filter(|event| event.origin() == Origin::Decided).count()
    }
}
