//! A worker that does what a test tells it to.

use std::collections::HashSet;

use noetl_model::{CommandId, ExecutionId, Fact, Origin, Value};
use noetl_remote::EventReport;
use serde_json::json;

use super::stage::{Stage, over};

/// The worker, and the execution it works for.
pub(super) struct Hand {
    pub(super) stage: Stage,
    pub(super) id: ExecutionId,
}

impl Hand {
    /// Starts steps that nobody else works on.
    pub(super) async fn start(steps: &str) -> Self {
        let stage = Stage::with_slots(0).await;
        let id = stage.start(steps).await;
        Self { stage, id }
    }

    /// The commands that have not ended, oldest first.
    pub(super) async fn open(&self) -> Vec<CommandId> {
        let log = self.stage.log(self.id).await;
        let over: HashSet<CommandId> = log.iter().filter_map(|it| over(&it.fact)).collect();
        let issued = log.iter().filter(|event| matches!(event.fact, Fact::CommandIssued(_)));
        let issued = issued.map(|event| CommandId::new(event.id.get()));
        issued.filter(|command| !over.contains(command)).collect()
    }

    pub(super) async fn claim(&self, command: CommandId) {
        self.stage.control.remote.reports.claim(&None, command, "w").await.unwrap();
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
        self.stage.control.remote.reports.record(&self.stage.tenant, report).await.unwrap();
    }

    pub(super) async fn complete(&self, command: CommandId, data: Value) {
        let result = json!({"status": "success", "context": {"data": data}});
        self.say("call.done", command, json!({ "result": result })).await;
        self.say("command.completed", command, json!({"status": "success"})).await;
    }

    /// How much was decided so far.
    pub(super) async fn decided(&self) -> usize {
        let log = self.stage.log(self.id).await;
        log.iter().filter(|event| event.origin() == Origin::Decided).count()
    }
}
