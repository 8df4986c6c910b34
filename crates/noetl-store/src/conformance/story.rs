//! Executions for tests: a [`Story`] tracks the end of its event log and creates the next append.

use std::sync::Arc;

use noetl_model::event::{
    CommandSpec, ExecutionStart, ImportedEvent, ReportColumns, ReportedEvent, TakenArc,
};
use noetl_model::{
    CatalogId, CommandChange, CommandId, Event, EventId, ExecutionId, Fact, Failure, FailureKind,
    Map, Routing, Seq, StepOutcome, Tenant, Timestamp, Value,
};
use serde_json::json;

use crate::{Append, Committed, ExecutionRow, ExecutionStatus, StartAppend, Store};

/// Number of event IDs reserved between the execution ID of one story and the next.
const EVENTS_MAX: i64 = 1_000_000;

/// An execution as its only writer sees it.
#[derive(Debug, Clone)]
pub struct Story {
    pub tenant: Tenant,
    pub key: u64,
    /// Execution row after the last append.
    pub row: ExecutionRow,
}

impl Story {
    /// Creates an execution without events.
    pub fn new(id: i64) -> Self {
        let started_at = Timestamp::from_micros(1_704_067_200_000_000 + id);
        Self {
            tenant: Tenant::default(),
            // The largest keys have no signed form, which a store must handle.
            key: u64::MAX - id.unsigned_abs(),
            row: ExecutionRow {
                id: ExecutionId::new(id),
                catalog: CatalogId::new(7),
                path: Arc::from("demo/greet"),
                playbook_version: 3,
                parent: None,
                status: ExecutionStatus::Running,
                version: Seq::START,
                started_at,
                updated_at: started_at,
                ended_at: None,
                error: None,
                steps_entered: 0,
                steps_completed: 0,
                steps_failed: 0,
                steps_running: 0,
                current_step: None,
            },
        }
    }

    /// Sets the tenant of the execution.
    #[must_use]
    pub fn of(mut self, tenant: &str) -> Self {
        self.tenant = Tenant::new(tenant);
        self
    }

    pub fn id(&self) -> ExecutionId {
        self.row.id
    }

    /// Returns the ID of the event with this sequence number.
    pub fn event_at(&self, place: u64) -> EventId {
        let place = i64::try_from(place).expect("a short story");
        EventId::new(self.row.id.get() * EVENTS_MAX + place)
    }

    /// Returns the command that the event with this sequence number issues.
    pub fn command_at(&self, place: u64) -> CommandId {
        self.event_at(place).into()
    }

    /// Returns the first append: the start, a step entry, and its command, issued at sequence
    /// number 3.
    pub fn start(&mut self) -> Append {
        self.row.current_step = Some(Arc::from("a"));
        self.row.steps_entered += 1;
        self.row.steps_running += 1;
        self.then(vec![started(), entered("a"), issued("a")])
    }

    /// Returns the append that adds these facts. Ends the execution if one of them does.
    pub fn then(&mut self, facts: Vec<Fact>) -> Append {
        let expected = self.row.version;
        let events: Vec<Arc<Event>> = facts.into_iter().map(|fact| self.tell(fact)).collect();
        let commands = CommandChange::of_all(events.iter().map(AsRef::as_ref));
        let start = (expected == Seq::START)
            .then(|| StartAppend { key: self.key, tenant: self.tenant.clone() });
        let after = start.is_none().then(|| self.event_at(expected.0));
        Append {
            expected,
            after,
            start,
            events,
            row: self.row.clone(),
            commands,
            leases: Vec::new(),
            due: Vec::new(),
            delivered: Vec::new(),
            blobs: Vec::new(),
        }
    }

    fn tell(&mut self, fact: Fact) -> Arc<Event> {
        let seq = self.row.version.next();
        let at = Timestamp::from_micros(self.row.updated_at.as_micros() + 1);
        self.row.version = seq;
        self.row.updated_at = at;
        let end = match &fact {
            Fact::PlaybookCompleted { .. } => Some(ExecutionStatus::Completed),
            Fact::PlaybookFailed { .. } => Some(ExecutionStatus::Failed),
            Fact::PlaybookCancelled { .. } => Some(ExecutionStatus::Cancelled),
            _ => None,
        };
        if let Some(status) = end {
            self.row.status = status;
            self.row.ended_at = Some(at);
        }
        if let Fact::PlaybookFailed { failure, .. } = &fact {
            self.row.error = Some(failure.to_string());
        }
        Arc::new(Event {
            execution: self.row.id,
            id: self.event_at(seq.0),
            seq,
            at,
            fact,
            actor: None,
        })
    }
}

/// Commits one append and returns its outcome.
pub async fn commit(store: &dyn Store, append: Append) -> Committed {
    let outcomes = store.commit(vec![append]).await.expect("a commit");
    assert_eq!(outcomes.len(), 1, "one outcome for one item");
    outcomes[0]
}

/// Commits one append that must succeed.
pub async fn write(store: &dyn Store, append: Append) {
    assert_eq!(commit(store, append).await, Committed::Appended);
}

/// Returns the whole event log of an execution.
pub async fn log(store: &dyn Store, id: ExecutionId) -> Vec<Event> {
    let log = store.read(id, Seq::START, usize::MAX).await;
    log.expect("a readable log")
}

pub fn map(value: Value) -> Map {
    value.as_object().cloned().expect("an object")
}

pub fn started() -> Fact {
    Fact::PlaybookStarted(Box::new(ExecutionStart {
        catalog: CatalogId::new(7),
        path: Arc::from("demo/greet"),
        version: 3,
        workload: map(json!({"who": "world"})),
        parent: Some(ExecutionId::new(1)),
        pool: Some(Arc::from("gpu")),
        parent_command: None,
        returns: None,
        depth: 0,
        deadline: None,
        forked: None,
        trace: None,
    }))
}

/// Returns the fact that a step was entered.
pub fn entered(step: &str) -> Fact {
    Fact::StepEntered { step: Arc::from(step), run: 1, tokens: 2, round: Some(1), deadline: None }
}

/// Returns the fact that a command was issued.
pub fn issued(step: &str) -> Fact {
    issued_for(step, None)
}

/// Returns the fact that a command was issued for a pool.
pub fn issued_for(step: &str, pool: Option<&str>) -> Fact {
    Fact::CommandIssued(Arc::new(CommandSpec { pool: pool.map(Arc::from), ..work(step) }))
}

/// Returns the fact that a command was issued whose tool has no timeout.
pub fn unlimited(step: &str) -> Fact {
    Fact::CommandIssued(Arc::new(CommandSpec { timeout_ms: None, ..work(step) }))
}

fn work(step: &str) -> CommandSpec {
    CommandSpec {
        step: Arc::from(step),
        run: 1,
        attempt: 2,
        tool: Arc::from("python"),
        config: map(json!({"code": "result = 1"})),
        input: map(json!({"n": null})),
        timeout_ms: Some(1500),
        scope: None,
        item: None,
        idempotent: true,
        pool: None,
        trace: None,
    }
}

/// Returns the fact that a worker claimed a command.
pub fn claimed(command: CommandId, worker: &str) -> Fact {
    Fact::CommandClaimed { command, step: Arc::from("a"), worker: Arc::from(worker) }
}

pub fn began(command: CommandId, worker: &str) -> Fact {
    Fact::CommandStarted { command, step: Arc::from("a"), worker: Arc::from(worker) }
}

pub fn called(command: CommandId, data: Value) -> Fact {
    Fact::CallDone { command, step: Arc::from("a"), data, reference: None, run: None }
}

/// Returns the fact that a command succeeded.
pub fn completed(command: CommandId) -> Fact {
    Fact::CommandCompleted { command, step: Arc::from("a"), item: None }
}

/// Returns the fact that a command failed.
pub fn failed(command: CommandId) -> Fact {
    Fact::CommandFailed { command, step: Arc::from("a"), failure: failure(), item: None }
}

/// Returns the fact that a command's lease expired.
pub fn expired(command: CommandId) -> Fact {
    Fact::CommandExpired { command, step: Arc::from("a"), reason: "the worker went away".into() }
}

/// Returns the fact that a command was cancelled.
pub fn stopped(command: CommandId) -> Fact {
    Fact::CommandCancelled { command, step: Arc::from("a") }
}

/// Returns a report of a worker.
pub fn said(text: &str) -> Fact {
    Fact::Reported(Box::new(ReportedEvent {
        event_type: "progress".into(),
        step: Arc::from("a"),
        status: "RUNNING".into(),
        payload: Some(json!({"text": text})),
        meta: Some(json!({"n": 1})),
        worker: Some(Arc::from("local")),
        key: None,
        columns: None,
    }))
}

/// Returns a report of a worker whose ID the server replaced.
pub fn said_as(key: i64) -> Fact {
    match said("under another id") {
        Fact::Reported(reported) => {
            Fact::Reported(Box::new(ReportedEvent { key: Some(key), ..*reported }))
        }
        fact => fact,
    }
}

/// Returns a report with every column that a report can have.
pub fn said_with_columns() -> Fact {
    match said("with columns") {
        Fact::Reported(mut reported) => {
            reported.columns = Some(Box::new(ReportColumns {
                node_type: Some(Arc::from("python")),
                command: Some(CommandId::new(7)),
                parent_execution: Some(ExecutionId::new(1)),
                duration: Some(0.25),
                context: Some(json!({"b": 1, "a": [2]})),
                reference: Some(json!({"logical_uri": "s3://bucket/object"})),
                error: Some("none".into()),
                more: map(json!({
                    "event_time": "2026-01-31T12:00:00.5Z", "stage_id": 5, "frame_id": 6,
                    "stack_trace": "at line 1", "trace_component": {"a": [1]},
                })),
            }));
            Fact::Reported(reported)
        }
        fact => fact,
    }
}

/// Returns an imported row with every column that such a row can have.
pub fn imported() -> Fact {
    Fact::Imported(Box::new(ImportedEvent {
        event_type: Some("action_completed".into()),
        node_name: Some(Arc::from("a")),
        node_type: Some(Arc::from("python")),
        status: Some("COMPLETED".into()),
        command: Some(CommandId::new(7)),
        parent_execution: Some(ExecutionId::new(1)),
        worker: Some(Arc::from("elsewhere")),
        duration: Some(0.25),
        context: Some(json!({"b": 1, "a": [2]})),
        result: Some(json!({"status": "ok", "context": {"n": 1.5}})),
        meta: Some(json!({"z": null})),
        error: Some("none".into()),
        key: Some(99),
        more: Map::new(),
    }))
}

/// Returns the fact that the execution succeeded.
pub fn done() -> Fact {
    Fact::PlaybookCompleted { result: json!({"ok": true}), reference: None }
}

/// Returns a failure with every field that a failure can have.
pub fn failure() -> Failure {
    Failure::new(FailureKind::Timeout, "took longer than 5 s").with_details(json!({"pid": 7}))
}

/// Returns one of each fact that does not end the execution, for a command issued before.
pub fn every_fact(command: CommandId) -> Vec<Fact> {
    let step: Arc<str> = Arc::from("a");
    vec![
        entered("b"),
        Fact::TokensDropped { step: step.clone(), tokens: 2 },
        issued("b"),
        claimed(command, "local"),
        began(command, "local"),
        called(command, json!([1, 2.5, "x", null])),
        Fact::CallFailed { command, step: step.clone(), failure: failure() },
        completed(command),
        failed(command),
        expired(command),
        stopped(command),
        Fact::ContextUpdated {
            step: step.clone(),
            run: 1,
            values: map(json!({"a.b": {"c": 1}})),
            locals: map(json!({"d": 1})),
        },
        Fact::StepExited {
            step: step.clone(),
            run: 1,
            outcome: StepOutcome::Done,
            next: Routing {
                taken: vec![TakenArc { step: Arc::from("b"), back: true }],
                not_taken: vec![Arc::from("c")],
            },
        },
        Fact::StepExited {
            step: step.clone(),
            run: 2,
            outcome: StepOutcome::Failed { failure: failure(), handled: true, drains: false },
            next: Routing::default(),
        },
        said("half way"),
        said_as(77),
        imported(),
        Fact::Imported(Box::default()),
    ]
}

/// Returns one of each fact that ends an execution.
pub fn every_end() -> Vec<Fact> {
    vec![
        done(),
        Fact::PlaybookFailed { step: Arc::from("a"), failure: failure() },
        Fact::PlaybookCancelled { reason: None },
        Fact::PlaybookCancelled { reason: Some("asked to".into()) },
    ]
}
