use std::sync::Arc;

use serde_json::json;

use super::EventRow;
use crate::event::{
    BlobRef, Callback, ChildExecution, CommandSpec, ExecutionStart, ForkedFrom, ImportedEvent,
    LoopEvent, LoopFact, LoopItem, LoopItemRef, ParkReason, ReportColumns, ReportedEvent,
    SubscriptionEvent, SubscriptionTransition, TakenArc, ToolRun,
};
use crate::loops::{
    FrameSizes, FrameState, FrameTransition, LoopItems, LoopStarted, LoopStats, StageClosed,
};
use crate::scope::{CommandScope, IterationScope};
use crate::{
    CatalogId, CommandId, Event, EventId, ExecutionId, Fact, Failure, FailureKind, Map, Origin,
    Routing, Seq, StepOutcome, Timestamp, TraceContext, Value,
};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn map(value: Value) -> Map {
    value.as_object().cloned().expect("an object")
}

fn step() -> Arc<str> {
    Arc::from("a/b")
}

fn item() -> Box<LoopItemRef> {
    Box::new(LoopItemRef { run: 3, index: 1, total: Some(4), frame: Some(2) })
}

fn in_loop(what: LoopEvent) -> Fact {
    Fact::Loop(Box::new(LoopFact { step: step(), run: 3, what }))
}

fn failure() -> Failure {
    Failure::new(FailureKind::Timeout, "took longer than 5 s").with_details(json!({"pid": 7}))
}

/// One of each fact, so that a new one without a row fails here.
pub(super) fn facts() -> Vec<Fact> {
    let command = CommandId::new(9);
    let worker: Arc<str> = Arc::from("local");
    vec![
        Fact::PlaybookStarted(Box::new(ExecutionStart {
            catalog: CatalogId::new(3),
            path: Arc::from("demo/greet"),
            version: 2,
            workload: map(json!({"who": "world", "zip": "00501"})),
            parent: Some(ExecutionId::new(1)),
            pool: Some(Arc::from("gpu")),
            parent_command: Some(CommandId::new(9)),
            returns: Some(Arc::from("end")),
            depth: 2,
            deadline: Some(Timestamp::from_millis(1_704_067_200_000)),
            forked: Some(ForkedFrom {
                execution: ExecutionId::new(8),
                seq: Seq(4),
                event: EventId::new(12),
            }),
            trace: TraceContext::read(TRACE, Some("a=b")).map(|it| it.with_baggage(Some("c=d"))),
        })),
        Fact::StepEntered { step: step(), run: 2, tokens: 1, round: None, deadline: None },
        Fact::StepEntered {
            step: step(),
            run: 1,
            tokens: 0,
            round: Some(3),
            deadline: Some(Timestamp::from_millis(5)),
        },
        Fact::TokensDropped { step: step(), tokens: 2 },
        Fact::CommandIssued(Arc::new(CommandSpec {
            step: step(),
            run: 2,
            attempt: 1,
            tool: Arc::from("python"),
            config: map(json!({"code": "result = 1"})),
            input: map(json!({"n": null})),
            timeout_ms: Some(1500),
            scope: Some(Box::new(CommandScope {
                workload: map(json!({"n": 1})),
                ctx: Map::new(),
                steps: map(json!({"a": {"b": 2}})),
                tasks: [(Arc::from("a"), Arc::from("first"))].into(),
                step: map(json!({"seen": 1})),
                previous: None,
                iteration: Some(IterationScope {
                    name: Arc::from("x"),
                    item: json!([1]),
                    index: 1,
                    total: Some(3),
                }),
                spec: None,
                env: std::collections::BTreeMap::new(),
                keychain: Map::new(),
                blobs: Vec::new(),
                earlier: Map::new(),
                split: None,
                catalog: CatalogId::new(3),
                path: Arc::from("a/b"),
                version: 1,
                parent: None,
            })),
            item: Some(LoopItem { index: 1, total: Some(3), frame: None, claims: false }),
            idempotent: false,
            pool: Some(Arc::from("gpu")),
            trace: TraceContext::read(TRACE, Some("a=b")).map(|it| it.trace),
        })),
        Fact::CommandClaimed { command, step: step(), worker: worker.clone() },
        Fact::CommandStarted { command, step: step(), worker: worker.clone() },
        Fact::CallDone {
            command,
            step: step(),
            data: json!([1, 2.5, "x", null]),
            reference: None,
            run: None,
        },
        Fact::CallDone {
            command,
            step: step(),
            data: json!({"rows": 7}),
            reference: Some(blob()),
            run: Some(Box::new(ToolRun { exit_code: Some(0), duration_ms: Some(148) })),
        },
        Fact::CallFailed { command, step: step(), failure: failure() },
        Fact::CommandCompleted { command, step: step(), item: None },
        Fact::CommandCompleted { command, step: step(), item: Some(item()) },
        Fact::CommandParked {
            command,
            step: step(),
            on: ParkReason::Until(Timestamp::from_millis(7)),
        },
        Fact::CommandParked {
            command,
            step: step(),
            on: ParkReason::Child(Box::new(ChildExecution {
                execution: ExecutionId::new(i64::MAX),
                path: Some(Arc::from("a/b")),
                catalog: Some(CatalogId::new(3)),
                version: Some(2),
                waits: true,
                returns: Some(Arc::from("end")),
                until: Some(Timestamp::from_millis(7)),
                depth: 1,
            })),
        },
        Fact::CommandParked {
            command,
            step: step(),
            on: ParkReason::Callback(Callback {
                token: Arc::from("t0k"),
                until: Timestamp::from_millis(7),
            }),
        },
        Fact::StepDenied { step: step(), tokens: 2 },
        Fact::StepHeld {
            step: step(),
            tokens: 1,
            from: Some(Arc::from("before")),
            until: Timestamp::from_millis(8),
        },
        in_loop(LoopEvent::Started(LoopStarted {
            total: Some(3),
            max_in_flight: 2,
            from: Some(Arc::from("before")),
            frame: None,
        })),
        in_loop(LoopEvent::Started(LoopStarted {
            total: None,
            max_in_flight: 2,
            from: None,
            frame: None,
        })),
        in_loop(LoopEvent::Started(LoopStarted {
            total: None,
            max_in_flight: 2,
            from: None,
            frame: Some(FrameSizes { max_rows: 5, ..FrameSizes::default() }),
        })),
        in_loop(LoopEvent::Items(LoopItems {
            from: 2,
            items: vec![json!({"a": 1}), Value::Null],
            frame: None,
        })),
        in_loop(LoopEvent::Items(LoopItems { from: 0, items: vec![json!(1)], frame: Some(4) })),
        in_loop(LoopEvent::Frame(FrameTransition {
            frame: 4,
            to: FrameState::Dispatched,
            rows: 0,
        })),
        in_loop(LoopEvent::Frame(FrameTransition { frame: 4, to: FrameState::Committed, rows: 1 })),
        in_loop(LoopEvent::Frame(FrameTransition { frame: 4, to: FrameState::Failed, rows: 1 })),
        in_loop(LoopEvent::StageClosed(StageClosed { frames: 1, rows: 1, failed: 0 })),
        in_loop(LoopEvent::Done(LoopStats { total: 3, success: 1, failed: 1, skipped: 1 })),
        Fact::StepExited {
            step: step(),
            run: 1,
            outcome: StepOutcome::Skipped,
            next: Routing::default(),
        },
        Fact::CommandFailed { command, step: step(), failure: failure(), item: None },
        Fact::CommandFailed { command, step: step(), failure: failure(), item: Some(item()) },
        Fact::CommandExpired { command, step: step(), reason: "the worker went away".into() },
        Fact::CommandCancelled { command, step: step() },
        Fact::ContextUpdated {
            step: step(),
            run: 2,
            values: map(json!({"a.b": {"c": 1}})),
            locals: Map::new(),
        },
        Fact::ContextUpdated {
            step: step(),
            run: 2,
            values: Map::new(),
            locals: map(json!({"a.b": [1]})),
        },
        Fact::StepExited {
            step: step(),
            run: 2,
            outcome: StepOutcome::Done,
            next: Routing {
                taken: vec![TakenArc { step: Arc::from("c"), back: true }],
                not_taken: vec![Arc::from("d")],
            },
        },
        Fact::StepExited {
            step: step(),
            run: 1,
            outcome: StepOutcome::Failed { failure: failure(), handled: true, drains: false },
            next: Routing::default(),
        },
        Fact::PlaybookCompleted { result: json!({"ok": true}), reference: None },
        Fact::PlaybookCompleted { result: json!(null), reference: Some(blob()) },
        Fact::PlaybookFailed { step: step(), failure: failure() },
        Fact::PlaybookCancelled { reason: Some("asked to".into()) },
        Fact::PlaybookCancelled { reason: None },
        Fact::Reported(Box::new(ReportedEvent {
            event_type: "progress".into(),
            step: step(),
            status: "RUNNING".into(),
            payload: Some(json!({"percent": 40})),
            meta: Some(json!({"n": 1})),
            worker: Some(worker.clone()),
            key: Some(-7),
            columns: None,
        })),
        Fact::Reported(Box::new(ReportedEvent {
            event_type: "progress".into(),
            step: step(),
            status: "RUNNING".into(),
            payload: None,
            meta: None,
            worker: None,
            key: None,
            columns: Some(Box::new(ReportColumns {
                node_type: Some(Arc::from("python")),
                command: Some(command),
                parent_execution: Some(ExecutionId::new(1)),
                duration: Some(0.25),
                context: Some(json!([1])),
                reference: Some(json!({"logical_uri": "s3://bucket/object"})),
                error: Some("broken".into()),
                more: map(json!({"stage_id": 5})),
            })),
        })),
        Fact::SubscriptionMoved(Box::new(SubscriptionTransition {
            to: SubscriptionEvent::Resumed,
            path: Arc::from("sub/orders"),
            catalog: CatalogId::new(7),
        })),
        Fact::Imported(Box::default()),
        Fact::Imported(Box::new(ImportedEvent {
            event_type: Some("step.exit".into()),
            node_name: Some(step()),
            node_type: Some(Arc::from("python")),
            status: Some("COMPLETED".into()),
            command: Some(command),
            parent_execution: Some(ExecutionId::new(1)),
            worker: Some(worker),
            duration: Some(0.25),
            context: Some(json!(["any", "shape"])),
            result: Some(json!({"status": "COMPLETED", "reference": {"ref": "noetl://x"}})),
            meta: Some(json!(null)),
            error: Some("went wrong".into()),
            key: Some(5),
            more: Map::from_iter([("stage_id".to_owned(), json!(7))]),
        })),
    ]
}

fn blob() -> Arc<BlobRef> {
    Arc::new(BlobRef {
        digest: Arc::from("sha256:00ff"),
        bytes: 70_000,
        media_type: Arc::from("application/json"),
    })
}

#[test]
fn every_fact_survives_its_row() {
    for (index, fact) in facts().into_iter().enumerate() {
        let seq = Seq(u64::try_from(index).expect("a small index"));
        let event = Event {
            execution: ExecutionId::new(8),
            id: EventId::new(9),
            seq,
            at: Timestamp::from_micros(1_704_067_200_000_123),
            fact,
            actor: None,
        };
        let row = EventRow::from(&event);
        assert_eq!(row.decode().expect("a readable row"), event, "{:?}", row.event_type);
    }
}

#[test]
fn only_a_decided_row_names_its_caller() {
    for fact in facts() {
        let event = Event {
            execution: ExecutionId::new(8),
            id: EventId::new(9),
            seq: Seq(1),
            at: Timestamp::default(),
            fact,
            actor: Some(Arc::from("token:7")),
        };
        let row = EventRow::from(&event);
        let read = row.decode().expect("a readable row");
        let is_decided = event.origin() == Origin::Decided;
        assert_eq!(read.actor.is_some(), is_decided, "{:?}", row.event_type);
        if is_decided {
            assert_eq!(read, event, "the rest of the metadata is as it was");
        }
    }
}

#[test]
fn results_keep_to_the_shape_every_reader_checks() {
    for fact in facts() {
        let event = Event {
            execution: ExecutionId::new(8),
            id: EventId::new(9),
            seq: Seq(1),
            at: Timestamp::default(),
            fact,
            actor: None,
        };
        let row = EventRow::from(&event);
        let Some(text) = row.result else { continue };
        let result: Map = serde_json::from_str(&text).expect("an object");
        assert!(result["status"].is_string(), "{text}");
        for (key, value) in &result {
            assert!(matches!(key.as_str(), "status" | "context" | "reference"), "{text}");
            assert!(key == "status" || value.is_object(), "{text}");
        }
    }
}

#[test]
fn a_row_of_a_newer_version_is_named_not_guessed() {
    let event = Event {
        execution: ExecutionId::new(8),
        id: EventId::new(9),
        seq: Seq(1),
        at: Timestamp::default(),
        fact: Fact::StepEntered { step: step(), run: 1, tokens: 1, round: None, deadline: None },
        actor: None,
    };
    let row = EventRow { event_type: Some("step.teleported".into()), ..EventRow::from(&event) };
    let error = row.decode().expect_err("an unknown type");
    assert!(error.to_string().contains("step.teleported"), "{error}");
}

#[test]
fn only_an_imported_row_may_lack_its_type() {
    let event = Event {
        execution: ExecutionId::new(8),
        id: EventId::new(9),
        seq: Seq(1),
        at: Timestamp::default(),
        fact: Fact::Imported(Box::default()),
        actor: None,
    };
    let row = EventRow::from(&event);
    assert_eq!((&row.event_type, &row.node_name, &row.status), (&None, &None, &None));
    for origin in [Origin::Decided, Origin::Reported] {
        let result = Some(r#"{"status":"x"}"#.into());
        let row = EventRow { origin, result, ..row.clone() };
        row.decode().expect_err("a row without a type");
    }
}

#[test]
fn a_reference_stands_beside_the_fields_taken_from_it() {
    let event = Event {
        execution: ExecutionId::new(8),
        id: EventId::new(9),
        seq: Seq(1),
        at: Timestamp::default(),
        fact: Fact::CallDone {
            command: CommandId::new(9),
            step: step(),
            data: json!({"rows": 7}),
            reference: Some(blob()),
            run: None,
        },
        actor: None,
    };
    let row = EventRow::from(&event);
    assert_eq!(
        row.result.as_deref(),
        Some(concat!(
            r#"{"status":"COMPLETED","reference":{"digest":"sha256:00ff","bytes":70000,"#,
            r#""media_type":"application/json"},"context":{"data":{"rows":7}}}"#
        ))
    );
}

#[test]
fn a_subscription_s_row_reads_as_the_published_one() {
    let moved = SubscriptionTransition {
        to: SubscriptionEvent::Draining,
        path: Arc::from("sub/orders"),
        catalog: CatalogId::new(7),
    };
    let event = Event {
        execution: ExecutionId::new(5),
        id: EventId::new(6),
        seq: Seq(1),
        at: Timestamp::from_micros(1_704_067_200_000_001),
        fact: Fact::SubscriptionMoved(Box::new(moved)),
        actor: None,
    };
    let row = EventRow::from(&event);
    assert_eq!(row.origin, Origin::Decided);
    assert_eq!(row.event_type.as_deref(), Some("subscription.draining"));
    assert_eq!(row.status.as_deref(), Some("DRAINING"));
    assert_eq!(
        (row.node_id(), row.node_name.as_deref()),
        (Some("subscription"), Some("sub/orders"))
    );
    assert_eq!(row.node_type.as_deref(), Some("subscription"));
    let context = r#"{"subscription_id":"5","path":"sub/orders","catalog_id":"7"}"#;
    assert_eq!(row.context.as_deref(), Some(context));
    let meta = r#"{"emitted_at":"2024-01-01T00:00:00.000001+00:00","emitter":"control_plane","subscription_lifecycle":true}"#;
    assert_eq!(row.meta.as_deref(), Some(meta));
    assert_eq!(row.result, None);
}

#[test]
fn every_step_of_a_subscription_s_life_is_read_back() {
    for moved in SubscriptionEvent::ALL {
        assert_eq!(SubscriptionEvent::from_event_type(moved.event_type()), Some(moved));
    }
    assert_eq!(SubscriptionEvent::from_event_type("subscription.message.spooled"), None);
}
